//! The server of [`crate::wire`]: one request per connection, over a Unix socket.
//!
//! Answers with frames or one line. Rejects request lines that are too long, late or malformed, a
//! check that already runs, and more checks than there are slots.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use local_socket::{BindError, Limits, LineLimits, Listener, WireError};
use protocol::CheckId;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::container::slot::CONTAINERS_PER_SLOT;
use crate::container::spec::{LABEL_CHECK, LABEL_INSTANCE, LABEL_PROBE, check_labels};
use crate::engine::{Engine, bounded};
use crate::run::fault;
use crate::service::launch::{bad_request, launch};
use crate::service::state::{Condition, Shared, starting};
use crate::service::supervisor;
use crate::settings::Settings;
use crate::wire::{Answer, LaunchFault, REQUEST_BYTES_MAX, Request, Status};

/// Longest wait for a request line. Our own client writes it at once.
const REQUEST_WAIT_MAX: Duration = Duration::from_secs(5);

/// Connections in addition to those of launches: `kill`, `list` and `status` from one orchestrator
/// and from people.
const OTHER_CONNECTIONS_MAX: usize = 32;

/// Most ids in the answer to `list`: four times the most checks that an orchestrator may run.
const LIST_MAX: usize = 1024;

/// Pause after a failed accept. The usual cause is a lack of file descriptors, which passes when
/// connections end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The socket's folder controls the access, so every process that sees the folder may use the
/// socket.
const SOCKET_MODE: u32 = 0o666;

/// Why the launcher ended without being asked to.
#[derive(Debug, Error)]
pub enum ServeError {
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error(
        "{0}; nothing has listened there for a minute, so the launcher ends: its next start mounts the socket again"
    )]
    NoEngine(String),
}

/// Launches checks. Clones share all state.
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

/// Creates the socket and serves until `shutdown`. Then it ends all checks and removes the socket.
///
/// The engine need not be reachable: the supervisor retries with growing pauses, and checks are
/// answered with the fault `EngineDown` until then.
pub async fn serve<E: Engine>(
    settings: Settings,
    engine: E,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let path = settings.socket.clone();
    let listener = local_socket::bind(&path, SOCKET_MODE)?;
    if settings.extra_roots {
        tracing::warn!("LAB: CHECKERS TRUST THE ROOTS THAT THE GATEWAY LAYS");
    }
    let launcher = Launcher::new(settings, engine);
    let kept = tokio::select! {
        kept = launcher.keep(shutdown) => kept,
        () = launcher.accept(listener) => Ok(()),
    };
    // The next start would remove it.
    if let Err(error) = tokio::fs::remove_file(&path).await {
        tracing::debug!(path = %path.display(), %error, "the socket could not be removed");
    }
    kept.map_err(|fault| ServeError::NoEngine(fault.message))
}

impl<E: Engine> Launcher<E> {
    /// A launcher that is idle until [`Self::keep`] runs.
    pub fn new(settings: Settings, engine: E) -> Self {
        Self {
            shared: Arc::new(Shared::new(settings, engine)),
        }
    }

    #[cfg(test)]
    pub(crate) fn engine(&self) -> &E {
        &self.shared.engine
    }

    /// Supervises the engine until `shutdown`, then ends all checks. It returns when their
    /// containers are gone, or after the time that an engine may take to kill and remove one. The
    /// reaper of the next start removes what is left.
    ///
    /// # Errors
    /// Fails if no engine has listened at its socket for a minute: then a restart may help, which
    /// mounts the socket again.
    pub async fn keep(&self, shutdown: CancellationToken) -> Result<(), LaunchFault> {
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
        // This also waits for the supervisor: a probe's container whose create was abandoned could
        // appear after the last sweep.
        let supervise = async {
            let supervised = supervisor::supervise(shared).await;
            shared.ending.cancel();
            shared.connections.close();
            shared.connections.wait().await;
            supervised
        };
        let kept = tokio::select! {
            kept = supervise => kept,
            () = end => {
                tracing::warn!("some containers could not be removed; the next start will");
                Ok(())
            }
        };
        supervisor::sweep_last(shared).await;
        kept
    }

    /// Serves one connection in its own task. [`Self::keep`] waits for the task.
    pub(crate) fn spawn_connection<S>(&self, stream: S) -> JoinHandle<()>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let launcher = self.clone();
        self.shared
            .connections
            .spawn(async move { launcher.serve_connection(stream).await })
    }

    /// Serves one connection, over any byte stream, to its end. For a launch this includes the
    /// container's removal.
    pub async fn serve_connection<S>(&self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin,
    {
        let (mut reader, writer) = tokio::io::split(stream);
        let request = match request_line(&mut reader).await {
            Ok(line) => protocol::parse_line::<Request>(&line)
                .map_err(|error| bad_request(error.to_string())),
            Err(why) => Err(bad_request(why.to_owned())),
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
        // The engine must have been found before it is queried.
        self.shared.settled().await;
        let labels = check_labels(&self.shared.settings.instance);
        let listed = self.shared.engine.list(&labels);
        match bounded("list", self.shared.settings.call_timeout, listed).await {
            Ok(listed) => Answer::List {
                checks: listed
                    .iter()
                    // The engine has filtered already. Checks of other installations must not be
                    // reported here.
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
            Condition::Ready(ready) => (Some(ready.engine()), None, ready.warnings.clone()),
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
        // Serialising our own types can't fail.
        let line = serde_json::to_vec(answer).unwrap_or_default();
        let limit = self.shared.settings.call_timeout;
        let written = async {
            local_socket::write_line(&mut writer, line, limit).await?;
            Ok::<(), WireError>(writer.shutdown().await?)
        };
        if !matches!(tokio::time::timeout(limit, written).await, Ok(Ok(()))) {
            tracing::debug!("a client did not read its answer");
        }
    }

    /// Accepts connections. Open ones continue when this is dropped: [`Self::keep`] waits for them.
    async fn accept(&self, listener: Listener) {
        let connections_max = self
            .shared
            .settings
            .checks_max
            .saturating_mul(CONTAINERS_PER_SLOT)
            .saturating_add(OTHER_CONNECTIONS_MAX);
        let limits = Limits {
            connections_max,
            accept_pause: ACCEPT_PAUSE,
        };
        let handle = |stream: UnixStream| {
            let served = self.spawn_connection(stream);
            async move {
                // Its panic was reported where it happened.
                served.await.ok();
            }
        };
        local_socket::serve(listener, limits, &CancellationToken::new(), handle).await;
    }
}

/// Reads the only line of a connection: at most [`REQUEST_BYTES_MAX`] with its newline, and
/// returned without it. Bytes after the line in a later read are not awaited: [`launch`] treats
/// them as the end of its reader, and the other requests never read them.
///
/// # Errors
/// Returns the answer if the line is too long, late or incomplete, or if more follows it in the
/// same read.
pub(crate) async fn request_line<R: AsyncRead + Unpin>(
    reader: &mut R,
) -> Result<Vec<u8>, &'static str> {
    let limits = LineLimits {
        bytes_max: REQUEST_BYTES_MAX.saturating_sub(1),
        time_max: REQUEST_WAIT_MAX,
    };
    let mut buffered = BufReader::new(reader);
    match local_socket::read_line(&mut buffered, limits).await {
        Ok(line) if buffered.buffer().is_empty() => Ok(line),
        Err(WireError::Late(_)) => Err("no request came"),
        Ok(_) | Err(_) => Err("one line of at most 1 KiB was expected"),
    }
}

#[cfg(test)]
mod tests;
