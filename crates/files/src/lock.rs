//! Locks between processes. They are held on files next to what they guard.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::disk::{Mode, folder_of};
use crate::folder::advice;

/// Bytes that are read from a lock's file. The description of a holder has about 150.
const HOLDER_BYTES_MAX: u64 = 300;

/// A container's name for itself, which engines set to the container's id; otherwise the machine's.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// Advice on a lock that can't be had for no evident reason.
const CHECK: &str = "check that its folder exists, belongs to this user, and that the disk is mounted for writing and not full";

/// Released when it is dropped, at the latest when the process ends. The file stays, because
/// deleting it would invalidate the lock of the next holder.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

#[derive(Debug, Error)]
pub enum ServeError {
    #[error("{path} is in use by {holder}: stop that first", path = .path.display())]
    InUse { path: PathBuf, holder: String },
    #[error("{path} can't be locked ({source}): {advice}", path = .path.display(), advice = advice(folder_of(path), source).unwrap_or_else(|| CHECK.to_owned()))]
    Io { path: PathBuf, source: io::Error },
}

impl Lock {
    /// Waits until the lock is free. `path` is the lock's own file.
    pub fn wait(path: &Path) -> io::Result<Self> {
        let file = open(path)?;
        file.lock()?;
        Ok(Self { _file: file })
    }

    /// `None` if another process holds it. `path` is the lock's own file.
    pub fn take(path: &Path) -> io::Result<Option<Self>> {
        let file = open(path)?;
        Ok(is_locked(&file)?.then_some(Self { _file: file }))
    }

    /// The lock of the one process that serves the database or socket at `path`. `role` and
    /// `since` describe this process to others that try to take the lock.
    pub fn serve(path: &Path, role: &str, since: &str) -> Result<Self, ServeError> {
        let mut name = path.as_os_str().to_owned();
        name.push(".serving");
        let failed = |source| ServeError::Io {
            path: path.to_owned(),
            source,
        };
        let mut file = open(Path::new(&name)).map_err(failed)?;
        if !is_locked(&file).map_err(failed)? {
            let mut holder = String::new();
            let read = file.take(HOLDER_BYTES_MAX).read_to_string(&mut holder);
            if read.is_err() || holder.is_empty() {
                "a process that is just starting".clone_into(&mut holder);
            }
            let path = path.to_owned();
            return Err(ServeError::InUse { path, holder });
        }
        let host = std::fs::read_to_string(HOST_NAME).unwrap_or_default();
        let holder = format!(
            "`fedicensus {role}` since {since} (process {} of container or host {})",
            std::process::id(),
            host.trim_end()
        );
        // A full disk, on which this fails, stops no process that serves.
        file.set_len(0)
            .and_then(|()| file.write_all(holder.as_bytes()))
            .ok();
        Ok(Self { _file: file })
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(Mode::Private.bits())
        .open(path)
}

fn is_locked(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
