//! Creates a socket. Replaces a socket that an ended process left behind, but never one that is in
//! use.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use thiserror::Error;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{Interval, MissedTickBehavior};

#[derive(Debug, Error)]
pub enum BindError {
    #[error("another process listens at {}", .0.display())]
    InUse(PathBuf),
    #[error("can't listen at {}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

#[derive(Debug)]
pub struct Listener {
    path: PathBuf,
    mode: u32,
    inner: UnixListener,
    /// When to check whether the path still exists.
    look: Option<Interval>,
}

/// Creates a socket at `path` and gives it `mode`. A socket on which no process answers is deleted
/// first; anything else at `path` stays.
///
/// # Panics
/// Outside of a tokio runtime.
pub fn bind(path: &Path, mode: u32) -> Result<Listener, BindError> {
    Ok(Listener {
        inner: listen(path, mode)?,
        path: path.to_owned(),
        mode,
        look: None,
    })
}

impl Listener {
    /// Checks this often whether the socket's path exists, and recreates the socket if it was
    /// deleted.
    #[must_use]
    pub fn remade_when_missing(mut self, every: Duration) -> Self {
        let mut look = tokio::time::interval(every);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.look = Some(look);
        self
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next connection. Cancel safe.
    pub async fn accept(&mut self) -> io::Result<UnixStream> {
        loop {
            let looked = async {
                match &mut self.look {
                    Some(look) => look.tick().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                accepted = self.inner.accept() => return accepted.map(|(stream, _unnamed)| stream),
                _ = looked => self.remake_if_missing(),
            }
        }
    }

    fn remake_if_missing(&mut self) {
        // It can't be recreated without its directory. No caller waits for an error here.
        if matches!(self.path.try_exists(), Ok(false))
            && let Ok(inner) = listen(&self.path, self.mode)
        {
            tracing::warn!(path = %self.path.display(), "the socket was removed; it has been created again");
            self.inner = inner;
        }
    }
}

fn listen(path: &Path, mode: u32) -> Result<UnixListener, BindError> {
    let failed = |source| BindError::Io {
        path: path.to_owned(),
        source,
    };
    remove_if_stale(path)?;
    let listener = UnixListener::bind(path).map_err(failed)?;
    // Independent of the umask.
    std::fs::set_permissions(path, Permissions::from_mode(mode)).map_err(failed)?;
    Ok(listener)
}

fn remove_if_stale(path: &Path) -> Result<(), BindError> {
    let failed = |source| BindError::Io {
        path: path.to_owned(),
        source,
    };
    if !std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        return Ok(());
    }
    match try_connect(path) {
        // A process that is too busy to accept is still running.
        Ok(()) | Err(Errno::AGAIN | Errno::INPROGRESS) => Err(BindError::InUse(path.to_owned())),
        Err(Errno::CONNREFUSED) => std::fs::remove_file(path).map_err(failed),
        Err(Errno::NOENT) => Ok(()),
        Err(unclear) => Err(failed(unclear.into())),
    }
}

/// Connects without blocking: a full queue would make a blocking call wait.
fn try_connect(path: &Path) -> Result<(), Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener as StdListener;

    use super::*;

    struct Rig {
        _directory: tempfile::TempDir,
        path: PathBuf,
    }

    fn rig() -> Rig {
        let directory = tempfile::tempdir().unwrap();
        Rig {
            path: directory.path().join("a.sock"),
            _directory: directory,
        }
    }

    #[tokio::test]
    async fn a_stale_socket_is_replaced() {
        let rig = rig();
        drop(StdListener::bind(&rig.path).unwrap());
        let mut listener = bind(&rig.path, 0o600).unwrap();
        let (connected, accepted) = tokio::join!(UnixStream::connect(&rig.path), listener.accept());
        assert!(connected.is_ok() && accepted.is_ok());
        let mode = std::fs::metadata(&rig.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[tokio::test]
    async fn a_living_socket_is_never_taken_even_when_its_queue_is_full() {
        let rig = rig();
        let _living = StdListener::bind(&rig.path).unwrap();
        let refused = bind(&rig.path, 0o600);
        assert!(matches!(refused, Err(BindError::InUse(_))), "{refused:?}");
        // Linux queues one connection more than the backlog. std's backlog is 128, or the kernel's
        // limit.
        let mut waiting = Vec::new();
        let full = loop {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
            match connect(&socket, &SocketAddrUnix::new(&rig.path).unwrap()) {
                Ok(()) => waiting.push(socket),
                Err(error) => break error,
            }
            assert!(waiting.len() < 10_000, "the queue never fills");
        };
        assert_eq!(full, Errno::AGAIN);
        let refused = bind(&rig.path, 0o600);
        assert!(matches!(refused, Err(BindError::InUse(_))), "{refused:?}");
        assert!(rig.path.exists());
    }

    #[tokio::test]
    async fn what_is_no_socket_is_never_removed() {
        let rig = rig();
        std::fs::write(&rig.path, "precious").unwrap();
        let refused = bind(&rig.path, 0o600);
        assert!(matches!(refused, Err(BindError::Io { .. })), "{refused:?}");
        assert_eq!(std::fs::read(&rig.path).unwrap(), b"precious");
    }

    #[tokio::test]
    async fn a_socket_that_somebody_removed_is_made_again() {
        let rig = rig();
        let listener = bind(&rig.path, 0o660).unwrap();
        let mut listener = listener.remade_when_missing(Duration::from_millis(10));
        std::fs::remove_file(&rig.path).unwrap();
        let connected = async {
            loop {
                if let Ok(stream) = UnixStream::connect(&rig.path).await {
                    return stream;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let both = async { tokio::join!(connected, listener.accept()) };
        let (_near, far) = tokio::time::timeout(Duration::from_secs(10), both)
            .await
            .unwrap();
        assert!(far.is_ok());
        let mode = std::fs::metadata(&rig.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o660);
    }
}
