//! The directories of the egress volume, one per check: created, filled and removed.
//!
//! Creating one for a check's id returns a [`Directory`], and dropping that removes it. An id whose
//! directory exists is rejected. The file system calls are behind a trait, so that tests can make
//! any of them fail.

use std::fmt::Debug;
use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::CheckId;
use tokio::net::UnixListener;

use super::error::EgressError;

/// Mode of a check's directory and of the root: a process that knows a name can enter, and no
/// process can list. Every check has the root mounted, so its mode separates the checks (invariant
/// I1).
const DIRECTORY_MODE: u32 = 0o711;

/// Mode of the egress socket, because the checker's uid differs from ours. Every check has the
/// volume mounted, but only this check knows the directory's name.
const SOCKET_MODE: u32 = 0o666;

/// Mode of the files next to the socket.
const FILE_MODE: u32 = 0o644;

/// Most directories that could not be removed and are tried again. The next start removes any
/// beyond that.
const STUCK_MAX: usize = 1024;

/// The file system calls for a directory.
pub(crate) trait Disk: Debug + Send + Sync {
    /// Creates a directory. Fails if it exists.
    fn make_directory(&self, path: &Path, mode: u32) -> io::Result<()>;

    fn write(&self, path: &Path, content: &[u8]) -> io::Result<()>;

    fn listen(&self, path: &Path) -> io::Result<UnixListener>;

    /// Sets a file's mode, because the umask may have removed bits.
    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()>;

    /// Removes a directory with its contents.
    fn remove_all(&self, path: &Path) -> io::Result<()>;
}

#[derive(Debug)]
struct SystemDisk;

impl Disk for SystemDisk {
    fn make_directory(&self, path: &Path, mode: u32) -> io::Result<()> {
        DirBuilder::new().mode(mode).create(path)
    }

    fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        std::fs::write(path, content)
    }

    fn listen(&self, path: &Path) -> io::Result<UnixListener> {
        UnixListener::bind(path)
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        std::fs::set_permissions(path, Permissions::from_mode(mode))
    }

    fn remove_all(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_dir_all(path)
    }
}

/// The volume that contains all directories.
#[derive(Debug)]
pub(crate) struct Root {
    path: PathBuf,
    disk: Box<dyn Disk>,
    /// Directories that could not be removed. Creating another directory tries them again.
    stuck: Mutex<Vec<PathBuf>>,
}

impl Root {
    pub(crate) fn new(path: &Path) -> Arc<Self> {
        Self::over(path, Box::new(SystemDisk))
    }

    /// A volume on another file system.
    pub(crate) fn over(path: &Path, disk: Box<dyn Disk>) -> Arc<Self> {
        Arc::new(Self {
            path: path.to_owned(),
            disk,
            stuck: Mutex::default(),
        })
    }

    /// Creates a check's directory, after trying again to remove stuck ones.
    ///
    /// # Errors
    /// Fails if the directory exists or can't be created. Nothing is left in the latter case,
    /// unless it can't be removed now.
    pub(crate) fn make(self: &Arc<Self>, check: &CheckId) -> Result<Directory, EgressError> {
        self.remove_stuck();
        let path = self.path.join(check.as_str());
        match self.disk.make_directory(&path, DIRECTORY_MODE) {
            Ok(()) => (),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(EgressError::Exists);
            }
            Err(error) => return Err(error.into()),
        }
        let directory = Directory {
            root: Arc::clone(self),
            path,
        };
        self.disk.set_mode(&directory.path, DIRECTORY_MODE)?;
        Ok(directory)
    }

    /// Sets the root's mode, and removes what an earlier process left: only directories whose names
    /// are check ids. Returns their number.
    ///
    /// # Errors
    /// Fails if the root's mode can't be set or the root can't be read. A directory that can't be
    /// removed is logged, and tried again later.
    pub(crate) fn sweep(&self) -> io::Result<u64> {
        self.disk.set_mode(&self.path, DIRECTORY_MODE)?;
        let mut removed: u64 = 0;
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            let is_ours = entry
                .file_name()
                .to_str()
                .is_some_and(|name| CheckId::parse(name).is_ok());
            if is_ours && entry.file_type()?.is_dir() && self.remove(&entry.path()) {
                removed = removed.saturating_add(1);
            }
        }
        Ok(removed)
    }

    /// Removes a directory. Returns whether it is gone; otherwise logs that and tries again later.
    fn remove(&self, path: &Path) -> bool {
        match self.disk.remove_all(path) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "an egress directory could not be removed; the gateway tries again");
                let mut stuck = self.stuck();
                if stuck.len() < STUCK_MAX {
                    stuck.push(path.to_owned());
                }
                false
            }
        }
    }

    fn remove_stuck(&self) {
        let is_gone = |path: &PathBuf| match self.disk.remove_all(path) {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        self.stuck().retain(|path| !is_gone(path));
    }

    fn stuck(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        self.stuck.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A check's directory. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Directory {
    root: Arc<Root>,
    path: PathBuf,
}

impl Directory {
    /// Creates a file in it that every process with access to the directory can read.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<(), EgressError> {
        let path = self.path.join(name);
        self.root.disk.write(&path, content)?;
        self.root.disk.set_mode(&path, FILE_MODE)?;
        Ok(())
    }

    /// Creates a socket in it that every process with access to the directory can connect to.
    pub(crate) fn listen(&self, name: &str) -> Result<UnixListener, EgressError> {
        let path = self.path.join(name);
        let listener = self.root.disk.listen(&path)?;
        self.root.disk.set_mode(&path, SOCKET_MODE)?;
        Ok(listener)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        self.root.remove(&self.path);
    }
}

#[cfg(test)]
mod tests;
