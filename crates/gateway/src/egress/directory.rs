//! The directories of the egress volume, one a check: made, filled, and taken away again.
//!
//! In: a check's id, what is to lie in its directory. Out: a directory that goes with its [`Directory`]. Refused: a name that is taken. The calls
//! to the file system are a seam, so that tests can let any of them fail.

use std::fmt::Debug;
use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::CheckId;
use tokio::net::UnixListener;

use super::error::EgressError;

/// Mode of a check's directory and of the root: a process that knows a name enters, and none lists.
/// Every check has the root, so its mode is what keeps checks apart (invariant I1).
const DIRECTORY_MODE: u32 = 0o711;

/// Mode of the egress socket: the checker's uid differs from ours. Every check has the volume, and
/// none but this one the directory's name.
const SOCKET_MODE: u32 = 0o666;

/// Mode of the files beside it.
const FILE_MODE: u32 = 0o644;

/// Directories that could not be removed and are tried again. Those beyond, a disk's worth of trouble, go at the next start.
const STUCK_MAX: usize = 1024;

/// The calls that a directory is made of.
pub(crate) trait Disk: Debug + Send + Sync {
    /// Makes a new directory; an existing one is an error.
    fn make_directory(&self, path: &Path, mode: u32) -> io::Result<()>;

    /// Makes a file with this content.
    fn write(&self, path: &Path, content: &[u8]) -> io::Result<()>;

    /// Makes a socket and listens.
    fn listen(&self, path: &Path) -> io::Result<UnixListener>;

    /// Gives a file its mode: the umask may have taken bits away.
    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()>;

    /// Removes a directory with all that is in it.
    fn remove_all(&self, path: &Path) -> io::Result<()>;
}

/// The operating system's file system.
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

/// The volume that all of them stand in.
#[derive(Debug)]
pub(crate) struct Root {
    path: PathBuf,
    disk: Box<dyn Disk>,
    /// What could not be removed; tried again whenever another one is made.
    stuck: Mutex<Vec<PathBuf>>,
}

impl Root {
    /// The volume at `path`.
    pub(crate) fn new(path: &Path) -> Arc<Self> {
        Self::over(path, Box::new(SystemDisk))
    }

    /// The same over another file system.
    pub(crate) fn over(path: &Path, disk: Box<dyn Disk>) -> Arc<Self> {
        Arc::new(Self {
            path: path.to_owned(),
            disk,
            stuck: Mutex::default(),
        })
    }

    /// Makes a check's directory, after those that could not be removed before.
    ///
    /// # Errors
    /// When there is one of this name, or none can be made; nothing is left then, unless it can't be removed now.
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

    /// Gives the root its mode, and removes what a former life left: the directories whose names are
    /// check ids, nothing else. Gives how many.
    ///
    /// # Errors
    /// When the root can't be given its mode or be read. A directory that can't be removed is
    /// logged, and tried again later.
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

    /// Whether it is gone. If not, that is logged, and it is tried again later.
    fn remove(&self, path: &Path) -> bool {
        match self.disk.remove_all(path) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "an egress directory could not be removed; it is tried again");
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

/// A check's directory, removed when dropped.
#[derive(Debug)]
pub(crate) struct Directory {
    root: Arc<Root>,
    path: PathBuf,
}

impl Directory {
    /// Makes a file in it that everybody who has the directory may read.
    ///
    /// # Errors
    /// When the disk says so.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<(), EgressError> {
        let path = self.path.join(name);
        self.root.disk.write(&path, content)?;
        self.root.disk.set_mode(&path, FILE_MODE)?;
        Ok(())
    }

    /// Makes a socket in it that everybody who has the directory may connect to.
    ///
    /// # Errors
    /// When the system says so.
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
