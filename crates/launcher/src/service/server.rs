//! The server of [`crate::wire`]: connections of the orchestrator over a Unix socket, each with one
//! request.
//!
//! Answers with frames or one line. Rejects request lines that are long, late or not understood, a
//! check that runs already, and more checks than there are slots.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use local_socket::{BindError, Limits, LineError, LineLimits, Listener};
use protocol::CheckId;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::container::run::fault;
use crate::container::slot::CONTAINERS_PER_SLOT;
use crate::container::spec::{
    LABEL_CHECK, LABEL_HOLDER, LABEL_INSTANCE, LABEL_PROBE, check_labels,
};
use crate::engine::{Engine, bounded};
use crate::service::launch::{bad_request, launch};
use crate::service::state::{Condition, Shared, starting};
use crate::service::supervisor;
use crate::settings::Settings;
use crate::wire::{Answer, REQUEST_BYTES_MAX, Request, Status};

/// A request line is written at once by our own client.
const REQUEST_WAIT_MAX: Duration = Duration::from_secs(5);

/// Connections beside those of launches: `kill`, `list` and `status` of one orchestrator and of
/// people.
const OTHER_CONNECTIONS_MAX: usize = 32;

/// Ids in the answer to `list`: four times the most that an orchestrator may run.
const LIST_MAX: usize = 1024;

/// After a failed accept, which is for want of file descriptors and passes when connections end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Everybody who sees the socket's folder may use it: the folder is the lock.
const SOCKET_MODE: u32 = 0o666;

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

impl From<BindError> for LauncherError {
    fn from(error: BindError) -> Self {
        match error {
            BindError::InUse(path) => Self::Taken { path },
            BindError::Io { path, source } => Self::Listen { path, source },
        }
    }
}

/// Makes the socket, and serves until `shutdown`; then ends all checks and removes it.
///
/// The engine need not be there: it is looked for with growing pauses, and checks are answered with
/// the fault `EngineDown` meanwhile.
///
/// # Errors
/// When the socket can't be made.
pub async fn serve<E: Engine>(
    settings: Settings,
    engine: E,
    shutdown: CancellationToken,
) -> Result<(), LauncherError> {
    let path = settings.socket.clone();
    let listener = local_socket::bind(&path, SOCKET_MODE)?;
    if settings.extra_roots {
        tracing::warn!("LAB: CHECKERS TRUST THE ROOTS THAT THE GATEWAY LAYS");
    }
    let launcher = Launcher::new(settings, engine);
    tokio::select! {
        () = launcher.keep(shutdown) => {}
        () = launcher.accept(listener) => {}
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

    #[cfg(test)]
    pub(crate) fn engine(&self) -> &E {
        &self.shared.engine
    }

    /// Looks after the engine until `shutdown`, then ends all checks and returns when their
    /// containers are gone, or after as long as an engine may take to kill and remove one. What is
    /// left then falls to the next start's reaper.
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
        // The supervisor is waited for too: a probe's container that is still being made when
        // nobody waits for it any more appears after the last sweep.
        tokio::select! {
            () = async { tokio::join!(supervisor::supervise(shared), shared.connections.wait()); } => {}
            () = end => {
                tracing::warn!("some containers could not be removed; the next start will");
            }
        }
        supervisor::sweep_last(shared).await;
    }

    /// Serves one connection in a task of its own, which [`Self::keep`] waits for.
    pub(crate) fn spawn_connection<S>(&self, stream: S) -> JoinHandle<()>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let launcher = self.clone();
        self.shared
            .connections
            .spawn(async move { launcher.serve_connection(stream).await })
    }

    /// Serves one connection, over whatever carries bytes both ways, to its end. For a launch this
    /// includes the container's removal.
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
        // An engine is not asked before it was found.
        self.shared.settled().await;
        let labels = check_labels(&self.shared.settings.instance);
        let listed = self.shared.engine.list(&labels);
        match bounded("list", self.shared.settings.call_timeout, listed).await {
            Ok(listed) => Answer::List {
                checks: listed
                    .iter()
                    // The engine has filtered; other installations' checks are none of anybody's
                    // business here.
                    .filter(|found| {
                        found.labels.get(LABEL_INSTANCE) == Some(&self.shared.settings.instance)
                    })
                    .filter(|found| {
                        let is_other = |label: &&str| found.labels.contains_key(*label);
                        ![LABEL_PROBE, LABEL_HOLDER].iter().any(is_other)
                    })
                    .filter_map(|found| CheckId::parse(found.labels.get(LABEL_CHECK)?).ok())
                    .take(LIST_MAX)
                    .collect(),
            },
            Err(error) => Answer::Fault(fault(&error)),
        }
    }

    fn status(&self) -> Status {
        let shared = &self.shared;
        let (engine, slots, trouble, warnings) = match &*shared.condition.borrow() {
            Condition::Starting => (None, None, Some(starting().message), Vec::new()),
            Condition::Ready(ready) => (
                Some(ready.engine()),
                Some(ready.namespaces_why.clone()),
                None,
                ready.warnings.clone(),
            ),
            Condition::Trouble(fault) => (None, None, Some(fault.message.clone()), Vec::new()),
        };
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine,
            slots,
            trouble,
            warnings,
            running: u32::try_from(shared.slots.running()).unwrap_or(u32::MAX),
            launches_total: shared.launches_total.load(Ordering::Relaxed),
            reaped_total: shared.reaped_total.load(Ordering::Relaxed),
        }
    }

    async fn answer<W: AsyncWrite + Unpin>(&self, mut writer: W, answer: &Answer) {
        // Our own types: they always have a JSON form.
        let line = serde_json::to_vec(answer).unwrap_or_default();
        let limit = self.shared.settings.call_timeout;
        let written = async {
            local_socket::write_line(&mut writer, line, limit).await?;
            Ok::<(), LineError>(writer.shutdown().await?)
        };
        if !matches!(tokio::time::timeout(limit, written).await, Ok(Ok(()))) {
            tracing::debug!("an answer was not taken");
        }
    }

    /// Serves the socket's connections. Those that are open when this is dropped go on:
    /// [`Self::keep`] waits for them.
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

/// The one line of a connection, which has [`REQUEST_BYTES_MAX`] with its newline, and is returned
/// without. What comes after it in another read is not waited for: [`launch`] treats it as the end
/// of its reader, and nobody reads it after the other requests.
///
/// # Errors
/// What to answer: the line is too long, late or not ended, or more follows it in the same read.
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
        Err(LineError::Late(_)) => Err("no request came"),
        Ok(_) | Err(LineError::Io(_) | LineError::Ended | LineError::TooLong(_)) => {
            Err("one line of at most 1 KiB was expected")
        }
    }
}

#[cfg(test)]
mod tests;
