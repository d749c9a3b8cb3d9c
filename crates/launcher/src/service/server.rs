//! The launcher's door: the server of [`crate::wire`].
//!
//! In: connections of the orchestrator, over a Unix socket, each with one request. Out: frames or
//! one line. Refused: request lines that are long, late or not understood, a check that runs
//! already, and more checks than there are places.

use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use protocol::{CheckId, Host};
use thiserror::Error;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::container::run::{EXIT_CODE_KILLED, Outcome, Signals, ending, fault, run};
use crate::container::spec::{LABEL_CHECK, LABEL_INSTANCE, LABEL_PROBE, Spec, check_labels};
use crate::engine::{ContainerId, Engine, bounded};
use crate::service::registry::Table;
use crate::service::supervisor::{self, Condition, Ready};
use crate::settings::Settings;
use crate::wire::frames::FrameWriter;
use crate::wire::{
    Answer, FaultKind, FrameKind, Killed, LaunchFault, REQUEST_BYTES_MAX, Request, Status,
};

/// A request line is written at once by our own client.
const REQUEST_WAIT_MAX: Duration = Duration::from_secs(5);

/// How long a launch waits for the first probe, so that an orchestrator that starts together with the launcher doesn't begin with faults.
pub(crate) const STARTING_WAIT_MAX: Duration = Duration::from_secs(10);

/// Containers whose removal is under way, for each that runs. An engine that starts but doesn't remove would pile them up.
pub(crate) const SLOTS_PER_PLACE: usize = 4;

/// Connections beside those of launches: `kill`, `list` and `status` of one orchestrator and of people.
const OTHER_CONNECTIONS_MAX: usize = 32;

/// Ids in the answer to `list`: four times the most that an orchestrator may run.
const LIST_MAX: usize = 1024;

/// Launches in a row that the engine refuses before the keeper looks whether it refuses all. One alone may be that check's own bad luck.
const REFUSALS_IN_A_ROW_MAX: u32 = 3;

/// Checks in a row whose container had ended while its output had not, before the keeper looks at the engine. One alone says nothing: a checker
/// that was taken over can end by itself in the very moment of its deadline, and must not be able to have the engine probed for it.
const UNENDED_IN_A_ROW_MAX: u32 = 3;

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

/// What the door, the keeper and the launches share.
#[derive(Debug)]
pub(crate) struct Shared<E> {
    pub(crate) settings: Settings,
    pub(crate) engine: E,
    pub(crate) table: Table,
    pub(crate) condition: watch::Sender<Condition>,
    /// Tells the keeper that a launch found the engine out of order.
    pub(crate) nudge: Notify,
    pub(crate) ending: CancellationToken,
    pub(crate) reaped_total: AtomicU64,
    launches_total: AtomicU64,
    /// Launches in a row that ended in an error of the engine.
    refusals: AtomicU32,
    /// Checks in a row that were at their deadline though their container had ended.
    unended: AtomicU32,
    /// A permit for each check that runs.
    places: Semaphore,
    /// A permit for each container until it is removed.
    slots: Semaphore,
    connections: TaskTracker,
}

/// Why the door can't be opened.
#[derive(Debug, Error)]
pub enum LauncherError {
    /// Another launcher listens there.
    #[error("another launcher listens on {path}")]
    Taken {
        /// The door's path.
        path: PathBuf,
    },
    /// The socket can't be made.
    #[error("can't listen on {path}")]
    Listen {
        /// The door's path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Opens the door, and serves until `shutdown`; then ends all checks and closes it.
///
/// The engine need not be there: it is looked for with growing pauses, and checks are answered with the fault `EngineDown` meanwhile.
///
/// # Errors
/// When the door's socket can't be made.
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
    // The next life makes a new one, and would also clear this one away.
    if let Err(error) = tokio::fs::remove_file(&path).await {
        tracing::debug!(path = %path.display(), %error, "the door's socket stays");
    }
    Ok(())
}

impl<E: Engine> Launcher<E> {
    /// A launcher that does nothing before [`Self::keep`].
    pub fn new(settings: Settings, engine: E) -> Self {
        let places = settings.checks_max;
        Self {
            shared: Arc::new(Shared {
                engine,
                table: Table::default(),
                condition: watch::Sender::new(Condition::Starting),
                nudge: Notify::new(),
                ending: CancellationToken::new(),
                reaped_total: AtomicU64::new(0),
                launches_total: AtomicU64::new(0),
                refusals: AtomicU32::new(0),
                unended: AtomicU32::new(0),
                places: Semaphore::new(places),
                slots: Semaphore::new(places.saturating_mul(SLOTS_PER_PLACE)),
                connections: TaskTracker::new(),
                settings,
            }),
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
        // The keeper is waited for too: a probe's container that is still being made when nobody waits for it any more appears after the last
        // sweep.
        tokio::select! {
            () = async { tokio::join!(supervisor::keep(shared), shared.connections.wait()); } => {}
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
                return Box::pin(self.launch(reader, writer, &check, &host)).await;
            }
            Ok(Request::Kill { check }) => Answer::Killed {
                found: self.shared.table.kill(&check),
            },
            Ok(Request::List {}) => self.list().await,
            Ok(Request::Status {}) => Answer::Status(self.status()),
            Err(fault) => Answer::Fault(fault),
        };
        self.answer(writer, &answer).await;
    }

    /// Serves a launch: the frames of the check, while nothing more may come from the other side.
    async fn launch<S: AsyncRead + AsyncWrite>(
        &self,
        mut reader: tokio::io::ReadHalf<S>,
        writer: tokio::io::WriteHalf<S>,
        check: &CheckId,
        host: &Host,
    ) {
        let gone = CancellationToken::new();
        let watching = async {
            // Its end, or a byte that nobody may send: either way there is no reader that we understand.
            let mut byte = [0];
            if reader.read(&mut byte).await.is_ok_and(|count| count > 0) {
                tracing::warn!(check.id = %check, "bytes after a launch request");
            }
            gone.cancel();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = watching => {}
            () = self.launched(FrameWriter::new(writer), check, host, &gone) => {}
        }
    }

    async fn launched<W: AsyncWrite + Unpin>(
        &self,
        mut frames: FrameWriter<W>,
        check: &CheckId,
        host: &Host,
        gone: &CancellationToken,
    ) {
        let shared = &self.shared;
        let mut container = None;
        let entry = shared.table.enter(check);
        let slot = shared.slots.try_acquire();
        let place = shared.places.try_acquire();
        let outcome = match (&entry, &slot, &place) {
            (None, ..) => Outcome::Fault(bad_request(format!("the check {check} runs already"))),
            (_, Err(_), _) | (.., Err(_)) => Outcome::Fault(LaunchFault {
                kind: FaultKind::Full,
                message: format!("all {} places are taken", shared.settings.checks_max),
            }),
            (Some(entry), Ok(_), Ok(_)) => match self.ready().await {
                Err(fault) => Outcome::Fault(fault),
                Ok(ready) => {
                    let spec = Spec::check(&shared.settings, &ready.image, check, host);
                    let signals = Signals {
                        asked: entry.asked.clone(),
                        gone: gone.clone(),
                        ending: shared.ending.clone(),
                    };
                    let (engine, settings) = (&shared.engine, &shared.settings);
                    run(
                        engine,
                        settings,
                        &spec,
                        &signals,
                        &mut frames,
                        &mut container,
                    )
                    .await
                }
            },
        };
        if container.is_some() {
            shared.launches_total.fetch_add(1, Ordering::Relaxed);
        }
        // Before the report: whoever has read it may launch the next check at once.
        drop(place);
        self.conclude(&outcome, &mut frames, check, host);
        let last = tokio::time::timeout(shared.settings.call_timeout, frames.flush());
        let (_read, ()) = tokio::join!(last, shared.remove(container));
        drop((entry, slot));
    }

    /// Puts the last frame in line, says what happened, and sends the keeper to look when it was the engine.
    fn conclude<W: AsyncWrite + Unpin>(
        &self,
        outcome: &Outcome,
        frames: &mut FrameWriter<W>,
        check: &CheckId,
        host: &Host,
    ) {
        match outcome {
            Outcome::End(end) => {
                tracing::debug!(check.id = %check, %host, exit_code = end.exit_code, duration_ms = end.millis, "a check's container has ended");
                self.shared.refusals.store(0, Ordering::Relaxed);
                frames.push_last(FrameKind::End, end);
                let unended =
                    end.killed == Some(Killed::Deadline) && end.exit_code != EXIT_CODE_KILLED;
                if !unended {
                    self.shared.unended.store(0, Ordering::Relaxed);
                } else if is_enough(&self.shared.unended, UNENDED_IN_A_ROW_MAX) {
                    tracing::warn!(check.id = %check, %host, exit_code = end.exit_code, "several containers in a row had ended by themselves, but the engine did not end their output");
                    self.shared.nudge.notify_one();
                } else {
                    tracing::info!(check.id = %check, %host, exit_code = end.exit_code, "a container was to be killed for its deadline and had ended by itself");
                }
            }
            Outcome::Fault(fault) => {
                frames.push_last(FrameKind::Fault, fault);
                self.complain(fault, check, host);
            }
            Outcome::Gone => {
                tracing::info!(check.id = %check, %host, "a check was given up by its reader");
            }
        }
    }

    /// Says why a check could not be run, and sends the keeper to look when it was the engine. Trouble that is known was said already, and has
    /// pauses of its own.
    fn complain(&self, fault: &LaunchFault, check: &CheckId, host: &Host) {
        if !matches!(*self.shared.condition.borrow(), Condition::Ready(_)) {
            tracing::debug!(check.id = %check, %host, kind = ?fault.kind, "no check can be launched");
            return;
        }
        tracing::warn!(check.id = %check, %host, kind = ?fault.kind, reason = fault.message, "a check could not be run");
        match fault.kind {
            FaultKind::EngineDown | FaultKind::ImageMissing => self.shared.nudge.notify_one(),
            FaultKind::EngineError => {
                if is_enough(&self.shared.refusals, REFUSALS_IN_A_ROW_MAX) {
                    self.shared.nudge.notify_one();
                }
            }
            FaultKind::NotConfined | FaultKind::Full | FaultKind::BadRequest => {}
        }
    }

    /// The engine as it was found fit, or why it isn't.
    async fn ready(&self) -> Result<Ready, LaunchFault> {
        if self.shared.ending.is_cancelled() {
            return Err(ending());
        }
        self.settled().await;
        match &*self.shared.condition.borrow() {
            Condition::Starting => Err(starting()),
            Condition::Ready(ready) => Ok(ready.clone()),
            Condition::Trouble(fault) => Err(lasting(fault)),
        }
    }

    /// Waits, but not for ever, until it is known whether checks can be launched.
    async fn settled(&self) {
        let mut condition = self.shared.condition.subscribe();
        let known = condition.wait_for(|condition| *condition != Condition::Starting);
        if tokio::time::timeout(STARTING_WAIT_MAX, known)
            .await
            .is_err()
        {
            tracing::debug!("the engine is slow to be found");
        }
    }

    async fn list(&self) -> Answer {
        // An engine is not asked before it was found.
        self.settled().await;
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
        let places = shared.settings.checks_max;
        let running = places.saturating_sub(shared.places.available_permits());
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine,
            trouble,
            warnings,
            running: u32::try_from(running).unwrap_or(u32::MAX),
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
            .saturating_mul(SLOTS_PER_PLACE)
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

impl<E: Engine> Shared<E> {
    /// Removes a container by force. One that stays is left to the next sweep.
    pub(crate) async fn remove(&self, container: Option<ContainerId>) {
        let Some(id) = container else { return };
        let removed = bounded(
            "remove",
            self.settings.start_timeout,
            self.engine.remove(&id),
        );
        if let Err(error) = removed.await {
            tracing::warn!(container = %id, error = %fault(&error).message, "a container could not be removed; the next sweep tries again");
        }
    }
}

/// Counts one more in a row, and says whether these are as many as `most`; then the count begins anew.
fn is_enough(in_a_row: &AtomicU32, most: u32) -> bool {
    let enough = in_a_row.fetch_add(1, Ordering::Relaxed).saturating_add(1) >= most;
    if enough {
        in_a_row.store(0, Ordering::Relaxed);
    }
    enough
}

/// The one line of a connection, without its newline; `None` when it is too long, not ended, or followed by more in the same read. What comes
/// later is not waited for: [`Launcher::launch`] takes it for the end of its reader, and nobody reads it after the other requests.
pub(crate) async fn request_line<R: AsyncRead + Unpin>(reader: &mut R) -> Option<Vec<u8>> {
    let most = u64::try_from(REQUEST_BYTES_MAX).unwrap_or(u64::MAX);
    let mut limited = BufReader::new(reader.take(most));
    let mut line = Vec::new();
    limited.read_until(b'\n', &mut line).await.ok()?;
    let whole = line.pop() == Some(b'\n') && limited.buffer().is_empty();
    whole.then_some(line)
}

fn bad_request(message: String) -> LaunchFault {
    LaunchFault {
        kind: FaultKind::BadRequest,
        message,
    }
}

/// The fault of a launch that was not even tried. An engine's refusal that keeps every check from running must not look like one that hit
/// this check by chance, after which the next is tried at once.
fn lasting(trouble: &LaunchFault) -> LaunchFault {
    let kind = match trouble.kind {
        FaultKind::EngineDown
        | FaultKind::EngineError
        | FaultKind::Full
        | FaultKind::BadRequest => FaultKind::EngineDown,
        FaultKind::ImageMissing => FaultKind::ImageMissing,
        FaultKind::NotConfined => FaultKind::NotConfined,
    };
    LaunchFault {
        kind,
        message: trouble.message.clone(),
    }
}

fn starting() -> LaunchFault {
    LaunchFault {
        kind: FaultKind::EngineDown,
        message: "the engine is still being looked for and probed".to_owned(),
    }
}

/// Makes the door's socket, which everybody who sees its folder may open: the folder is the lock.
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
