//! The server of [`crate::wire`]: connections of the orchestrator over a Unix socket, each with one request.
//!
//! Answers with frames or one line. Rejects request lines that are long, late or not understood, a check that runs
//! already, and more checks than there are slots.

use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use protocol::CheckId;
use thiserror::Error;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::container::run::fault;
use crate::container::slot::CONTAINERS_PER_SLOT;
use crate::container::spec::{LABEL_CHECK, LABEL_INSTANCE, LABEL_PROBE, check_labels};
use crate::engine::{Engine, bounded};
use crate::service::launch::{bad_request, launch};
use crate::service::state::{Condition, Shared, starting};
use crate::service::supervisor;
use crate::settings::Settings;
use crate::wire::{Answer, REQUEST_BYTES_MAX, Request, Status};

/// A request line is written at once by our own client.
const REQUEST_WAIT_MAX: Duration = Duration::from_secs(5);

/// Connections beside those of launches: `kill`, `list` and `status` of one orchestrator and of people.
const OTHER_CONNECTIONS_MAX: usize = 32;

/// Ids in the answer to `list`: four times the most that an orchestrator may run.
const LIST_MAX: usize = 1024;

/// After a failed accept, which is for want of file descriptors and passes when connections end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Launches checks. Clones share everything.
#[derive(Debug)]
pub struct Launcher<E> {
    shared: Arc<Shared<E>>,
}

impl<E> Clone for Launcher<E> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

/// Why the launcher can't serve.
#[derive(Debug, Error)]
pub enum LauncherError {
    /// Another launcher listens there.
    #[error("another launcher listens on {path}")]
    Taken {
        /// The socket's path.
        path: PathBuf,
    },
    /// The socket can't be made.
    #[error("can't listen on {path}")]
    Listen {
        /// The socket's path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Makes the socket, and serves until `shutdown`; then ends all checks and removes it.
///
/// The engine need not be there: it is looked for with growing pauses, and checks are answered with the fault `EngineDown` meanwhile.
///
/// # Errors
/// When the socket can't be made.
pub async fn serve<E: Engine>(
    settings: Settings,
    engine: E,
    shutdown: CancellationToken,
) -> Result<(), LauncherError> {
    let path = settings.door_socket.clone();
    let listener = listen(&path).await?;
    if settings.extra_roots {
        tracing::warn!("LAB: CHECKERS TRUST THE ROOTS THAT THE GATEWAY LAYS");
    }
    let launcher = Launcher::new(settings, engine);
    tokio::select! {
        () = launcher.keep(shutdown) => {}
        () = launcher.accept(&listener) => {}
    }
    // The next start would clear it away.
    if let Err(error) = tokio::fs::remove_file(&path).await {
        tracing::debug!(path = %path.display(), %error, "the socket could not be removed");
    }
    Ok(())
}

impl<E: Engine> Launcher<E> {
    /// A launcher that does nothing before [`Self::keep`].
    pub fn new(settings: Settings, engine: E) -> Self {
        Self {
            shared: Arc::new(Shared::new(settings, engine)),
        }
    }

    /// Looks after the engine until `shutdown`, then ends all checks and returns when their containers are gone, or after as long as an engine
    /// may take to kill and remove one. What is left then falls to the next start's reaper.
    pub async fn keep(&self, shutdown: CancellationToken) {
        let shared = &self.shared;
        let settings = &shared.settings;
        let longest = settings
            .start_timeout
            .saturating_mul(4)
            .saturating_add(settings.call_timeout.saturating_mul(4));
        let end = async {
            shutdown.cancelled().await;
            shared.ending.cancel();
            shared.connections.close();
            tokio::time::sleep(longest).await;
        };
        // The supervisor is waited for too: a probe's container that is still being made when nobody waits for it any more appears after the last
        // sweep.
        tokio::select! {
            () = async { tokio::join!(supervisor::supervise(shared), shared.connections.wait()); } => {}
            () = end => {
                tracing::warn!("some containers could not be removed; the next start will");
            }
        }
        supervisor::sweep_last(shared).await;
    }

    /// Serves one connection in a task of its own.
    #[cfg(test)]
    pub(crate) fn spawn_connection<S>(&self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let launcher = self.clone();
        self.shared
            .connections
            .spawn(async move { launcher.serve_connection(stream).await });
    }

    /// Serves one connection, over whatever carries bytes both ways, to its end. For a launch this includes the container's removal.
    pub async fn serve_connection<S>(&self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin,
    {
        let (mut reader, writer) = tokio::io::split(stream);
        let line = tokio::time::timeout(REQUEST_WAIT_MAX, request_line(&mut reader)).await;
        let request = match line {
            Ok(Some(line)) => protocol::parse_line::<Request>(&line)
                .map_err(|error| bad_request(error.to_string())),
            Ok(None) => Err(bad_request(
                "one line of at most 1 KiB was expected".to_owned(),
            )),
            Err(_elapsed) => Err(bad_request("no request came".to_owned())),
        };
        let answer = match request {
            Ok(Request::Launch { check, host }) => {
                let launched = launch(&self.shared, reader, writer, &check, &host);
                return Box::pin(launched).await;
            }
            Ok(Request::Kill { check }) => Answer::Killed {
                found: self.shared.registry.kill(&check),
            },
            Ok(Request::List {}) => self.list().await,
            Ok(Request::Status {}) => Answer::Status(self.status()),
            Err(fault) => Answer::Fault(fault),
        };
        self.answer(writer, &answer).await;
    }

    async fn list(&self) -> Answer {
        // An engine is not asked before it was found.
        self.shared.settled().await;
        let labels = check_labels(&self.shared.settings.instance);
        let listed = self.shared.engine.list(&labels);
        match bounded("list", self.shared.settings.call_timeout, listed).await {
            Ok(listed) => Answer::List {
                checks: listed
                    .iter()
                    // The engine has filtered; other installations' checks are none of anybody's business here.
                    .filter(|found| {
                        found.labels.get(LABEL_INSTANCE) == Some(&self.shared.settings.instance)
                    })
                    .filter(|found| !found.labels.contains_key(LABEL_PROBE))
                    .filter_map(|found| CheckId::parse(found.labels.get(LABEL_CHECK)?).ok())
                    .take(LIST_MAX)
                    .collect(),
            },
            Err(error) => Answer::Fault(fault(&error)),
        }
    }

    fn status(&self) -> Status {
        let shared = &self.shared;
        let (engine, trouble, warnings) = match &*shared.condition.borrow() {
            Condition::Starting => (None, Some(starting().message), Vec::new()),
            Condition::Ready(ready) => (
                Some(ready.identity.to_string()),
                None,
                ready.warnings.clone(),
            ),
            Condition::Trouble(fault) => (None, Some(fault.message.clone()), Vec::new()),
        };
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine,
            trouble,
            warnings,
            running: u32::try_from(shared.slots.running()).unwrap_or(u32::MAX),
            launches_total: shared.launches_total.load(Ordering::Relaxed),
            reaped_total: shared.reaped_total.load(Ordering::Relaxed),
        }
    }

    async fn answer<W: AsyncWrite + Unpin>(&self, mut writer: W, answer: &Answer) {
        // Our own types: they always have a JSON form.
        let mut line = serde_json::to_vec(answer).unwrap_or_default();
        line.push(b'\n');
        let written = async {
            writer.write_all(&line).await?;
            writer.shutdown().await
        };
        let limit = self.shared.settings.call_timeout;
        if !matches!(tokio::time::timeout(limit, written).await, Ok(Ok(()))) {
            tracing::debug!("an answer was not taken");
        }
    }

    async fn accept(&self, listener: &UnixListener) {
        let most = self
            .shared
            .settings
            .checks_max
            .saturating_mul(CONTAINERS_PER_SLOT)
            .saturating_add(OTHER_CONNECTIONS_MAX);
        let free = Arc::new(Semaphore::new(most));
        loop {
            // Never closed, so there is always a permit at some time; whoever comes meanwhile waits in the listener's own queue.
            let Ok(permit) = Arc::clone(&free).acquire_owned().await else {
                return;
            };
            match listener.accept().await {
                Ok((stream, _address)) => {
                    let launcher = self.clone();
                    self.shared.connections.spawn(async move {
                        launcher.serve_connection(stream).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// The one line of a connection, without its newline; `None` when it is too long, not ended, or followed by more in the same read. What comes
/// later is not waited for: [`launch`] takes it for the end of its reader, and nobody reads it after the other requests.
pub(crate) async fn request_line<R: AsyncRead + Unpin>(reader: &mut R) -> Option<Vec<u8>> {
    let most = u64::try_from(REQUEST_BYTES_MAX).unwrap_or(u64::MAX);
    let mut limited = BufReader::new(reader.take(most));
    let mut line = Vec::new();
    limited.read_until(b'\n', &mut line).await.ok()?;
    let whole = line.pop() == Some(b'\n') && limited.buffer().is_empty();
    whole.then_some(line)
}

/// Makes the socket, which everybody who sees its folder may open: the folder is the lock.
async fn listen(path: &Path) -> Result<UnixListener, LauncherError> {
    let failed = |source| LauncherError::Listen {
        path: path.to_owned(),
        source,
    };
    if let Ok(found) = tokio::fs::symlink_metadata(path).await
        && found.file_type().is_socket()
    {
        // A former life that was killed leaves its socket, on which nobody answers.
        if UnixStream::connect(path).await.is_ok() {
            return Err(LauncherError::Taken {
                path: path.to_owned(),
            });
        }
        tokio::fs::remove_file(path).await.map_err(failed)?;
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    let everybody = std::fs::Permissions::from_mode(0o666);
    tokio::fs::set_permissions(path, everybody)
        .await
        .map_err(failed)?;
    Ok(listener)
}

#[cfg(test)]
mod tests;
