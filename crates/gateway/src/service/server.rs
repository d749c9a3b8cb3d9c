//! Serves the control socket, the socket that answers only requests for TXT records, and the one at
//! which a second gateway asks for its turns.
//!
//! A connection carries one request; one that opens a host stays until its `close`. Rejects
//! settings that can't be used, a second gateway on the same socket, and requests out of order.
//! Connections over [`CONTROL_SPARE`] more than the open limit wait.

use std::future::ready;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use local_socket::{Ask as _, Connection, Limits, LineLimits, Listener, WireError};
use tokio::io::AsyncBufRead;
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

use crate::net::family::{Routes, SystemRoutes};
use crate::net::ledger::GRANT_TIME_MAX;
use crate::service::error::GatewayError;
use crate::service::open::{self, Opened, Wanted};
use crate::service::text;
use crate::settings::Settings;
use crate::state::Shared;
use crate::wire::control::{Answer, CONTROL_LINE_BYTES_MAX, Deferral, Request};

/// Control connections in addition to `open_max`: requests for the status, and those that are
/// rejected because all slots are taken.
const CONTROL_SPARE: usize = 32;

/// Most connections to the socket for TXT records: as many requests as the intake serves at once.
const TEXT_CONNECTIONS_MAX: usize = 64;

/// Most connections of a second gateway. Each is answered from memory, so the others wait briefly.
const TURN_CONNECTIONS_MAX: usize = 64;

/// Longest time from the connection to its first complete line. The orchestrator is on this machine
/// and sends first.
const FIRST_LINE_TIME_MAX: Duration = Duration::from_secs(5);

/// How long after the end of the time budget the account is still available.
const CLOSE_GRACE: Duration = Duration::from_secs(60);

/// A connection ends if its answer is not read for this long.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

/// Mode of the control socket. Access to its volume is the permission.
const CONTROL_MODE: u32 = 0o666;

/// Retry interval for a client without a slot: checks last a few seconds.
const FULL_RETRY: Duration = Duration::from_secs(2);

/// Pause after a failed accept, so that a lack of descriptors doesn't burn the processor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Serves until `shutdown`. Before it returns, it closes every egress and removes its directory.
/// Fails if it can't start. Once it serves, it runs until `shutdown`.
pub async fn serve(settings: Settings, shutdown: CancellationToken) -> Result<(), GatewayError> {
    serve_over(settings, Box::new(SystemRoutes), shutdown).await
}

/// [`serve`] with a given routing table, for tests that remove a family.
pub async fn serve_over(
    settings: Settings,
    routes: Box<dyn Routes>,
    shutdown: CancellationToken,
) -> Result<(), GatewayError> {
    settings.validate()?;
    warn_lab_mode(&settings);
    let path = settings.control_socket.clone();
    // First of all: only the one gateway that serves may remove what an earlier process left
    // behind.
    let listener = local_socket::bind(&path, CONTROL_MODE)?;
    let bind = |path: &PathBuf| local_socket::bind(path, CONTROL_MODE);
    let texts = settings.text_socket.as_ref().map(bind).transpose()?;
    let turns = settings.ledger_socket.as_ref().map(bind).transpose()?;
    let shared = Arc::new(Shared::prepare(settings, routes)?);
    tracing::info!(socket = %path.display(), "gateway serves");
    let connections_max = usize::try_from(shared.settings.open_max)
        .unwrap_or(usize::MAX)
        .saturating_add(CONTROL_SPARE);
    let serve = async |listener, accepts, connections_max| {
        if let Some(listener) = listener {
            accept(&shared, listener, accepts, connections_max, &shutdown).await;
        }
    };
    tokio::join!(
        serve(Some(listener), Accepts::Anything, connections_max),
        serve(texts, Accepts::Texts, TEXT_CONNECTIONS_MAX),
        serve(turns, Accepts::Turns, TURN_CONNECTIONS_MAX),
    );
    let settings = &shared.settings;
    let others = [&settings.text_socket, &settings.ledger_socket];
    for path in others.into_iter().flatten().chain([&path]) {
        if let Err(error) = std::fs::remove_file(path) {
            tracing::warn!(socket = %path.display(), %error, "the control socket could not be removed");
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Accepts {
    Anything,
    /// Requests for TXT records only.
    Texts,
    /// A second gateway's requests for turns.
    Turns,
}

/// Serves a socket's connections until `shutdown`.
async fn accept(
    shared: &Arc<Shared>,
    listener: Listener,
    accepts: Accepts,
    connections_max: usize,
    shutdown: &CancellationToken,
) {
    let limits = Limits {
        connections_max,
        accept_pause: ACCEPT_PAUSE,
    };
    // At the end, dropping a conversation drops its egress and the egress's directory.
    let handle = |stream| Box::pin(converse(Arc::clone(shared), stream, accepts));
    local_socket::serve(listener, limits, shutdown, handle).await;
}

/// Warns about each lab setting separately, because none of them belongs in a census of the real
/// Fediverse.
fn warn_lab_mode(settings: &Settings) {
    if let Some(path) = &settings.names_file {
        tracing::warn!(path = %path.display(), "LAB: ADDRESSES COME FROM A FILE, NOT FROM DNS");
    }
    if settings.allow_private {
        tracing::warn!("LAB: PRIVATE AND LOOPBACK ADDRESSES ARE DIALLED");
    }
    if let Some(path) = &settings.extra_ca {
        tracing::warn!(path = %path.display(), "LAB: CHECKERS TRUST AN EXTRA CA");
    }
    if settings.pace_divisor != 1 {
        tracing::warn!(
            divisor = settings.pace_divisor,
            "LAB: EVERY PACE IS DIVIDED"
        );
    }
}

/// Handles one control connection, and logs it if it ends badly.
async fn converse(shared: Arc<Shared>, stream: UnixStream, accepts: Accepts) {
    if accepts == Accepts::Turns {
        // Divided like the paces that it adds to.
        let delay = GRANT_TIME_MAX.checked_div(shared.settings.pace_divisor);
        let delay = delay.unwrap_or(GRANT_TIME_MAX);
        let grant = |request| ready(shared.paces.answer(request, delay));
        // The second gateway reports what went wrong.
        let answered = local_socket::answer_one(stream, GRANT_TIME_MAX, grant);
        return drop(answered.await);
    }
    let mut connection = Connection::from(stream);
    match answer_first(&shared, accepts, &mut connection).await {
        Err(error @ (WireError::TooLong(_) | WireError::NotUnderstood(_))) => {
            tracing::error!(%error, "a control request was refused");
            refuse(&mut connection, &error.to_string()).await.ok();
        }
        // It ended well, or the other end is gone or silent.
        Ok(())
        | Err(
            WireError::Connect { .. } | WireError::Io(_) | WireError::Ended | WireError::Late(_),
        ) => {}
    }
}

async fn answer_first(
    shared: &Arc<Shared>,
    accepts: Accepts,
    connection: &mut Connection,
) -> Result<(), WireError> {
    let bytes_max = match accepts {
        Accepts::Anything => Request::BYTES_MAX,
        Accepts::Texts | Accepts::Turns => CONTROL_LINE_BYTES_MAX,
    };
    let request = match read(&mut connection.reader, bytes_max, FIRST_LINE_TIME_MAX).await {
        Err(WireError::Late(_)) => return refuse(connection, "no request in time").await,
        first => first?,
    };
    match (request, accepts) {
        (Request::Txt { name, group }, Accepts::Anything | Accepts::Texts) => {
            let answer = tokio::select! {
                answer = text::look_up(shared, &name, &group) => answer,
                () = local_socket::gone(&mut connection.reader) => return Ok(()),
            };
            say(connection, &answer).await
        }
        (Request::Status {} | Request::Close { .. } | Request::Open { .. }, Accepts::Texts)
        | (_, Accepts::Turns) => refuse(connection, "this socket only looks up TXT records").await,
        (Request::Status {}, Accepts::Anything) => {
            let status = shared.status().await;
            if status.trouble.is_some() {
                // A look-up may take longer than the answer may.
                let shared = Arc::clone(shared);
                tokio::spawn(async move {
                    shared.resolver.test_again(&shared.families()).await;
                });
            }
            say(connection, &Answer::Status(status)).await
        }
        (Request::Close { .. }, Accepts::Anything) => {
            refuse(connection, "nothing is open on this connection").await
        }
        (
            Request::Open {
                check,
                host,
                group,
                order,
                wish,
            },
            Accepts::Anything,
        ) => {
            let wanted = Wanted {
                check,
                host,
                group,
                order,
                wish,
            };
            Box::pin(hold_open(shared, wanted, connection)).await
        }
    }
}

/// Opens, answers, and holds the egress until it is closed or the orchestrator disconnects.
async fn hold_open(
    shared: &Arc<Shared>,
    wanted: Wanted,
    connection: &mut Connection,
) -> Result<(), WireError> {
    shared.opens_total.fetch_add(1, Ordering::Relaxed);
    let Ok(_slot) = Arc::clone(&shared.slots).try_acquire_owned() else {
        let full = open::deferred(Deferral::Full, FULL_RETRY);
        return say(connection, &full).await;
    };
    let opened = tokio::select! {
        opened = open::open(shared, &wanted) => opened,
        () = local_socket::gone(&mut connection.reader) => return Ok(()),
    };
    let (egress, answer) = match opened {
        Opened::Ready(egress, answer) => (egress, answer),
        Opened::Not(answer) => return say(connection, &answer).await,
    };
    let pinned = egress.pinned();
    say(connection, &answer).await?;
    let budget = shared.settings.budget;
    let patience = budget
        .unused_max
        .saturating_add(budget.time_max)
        .saturating_add(CLOSE_GRACE);
    let request = match read(&mut connection.reader, CONTROL_LINE_BYTES_MAX, patience).await {
        Err(WireError::Late(_)) => {
            tracing::error!(host = %wanted.host, check.id = %wanted.check, "an egress was never closed");
            return Ok(());
        }
        second => second?,
    };
    match request {
        Request::Close { proven } => {
            let account = egress.close().await;
            shared.resolver.led_to_instance(proven);
            if proven {
                open::prove(shared, pinned).await;
            } else {
                shared.resolver.forget(&wanted.host);
            }
            say(connection, &Answer::Account(account)).await
        }
        Request::Open { .. } | Request::Status {} | Request::Txt { .. } => {
            refuse(connection, "only `close` may follow `open`").await
        }
    }
}

/// Reads a line as a request.
pub(crate) async fn read<R: AsyncBufRead + Unpin>(
    reader: &mut R,
    bytes_max: usize,
    time_max: Duration,
) -> Result<Request, WireError> {
    let limits = LineLimits {
        bytes_max,
        time_max,
    };
    Ok(Request::parse(
        &local_socket::read_line(reader, limits).await?,
    )?)
}

async fn say(connection: &mut Connection, answer: &Answer) -> Result<(), WireError> {
    let line = serde_json::to_vec(answer)?;
    local_socket::write_line(&mut connection.writer, line, ANSWER_TIME_MAX).await
}

async fn refuse(connection: &mut Connection, why: &str) -> Result<(), WireError> {
    say(connection, &Request::failed(why.to_owned())).await
}
