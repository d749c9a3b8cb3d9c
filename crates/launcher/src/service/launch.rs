//! One launch: from the request to the last frame and the container's removal.

use std::sync::atomic::{AtomicU32, Ordering};

use protocol::{CheckId, Host};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::container::spec::Spec;
use crate::engine::Engine;
use crate::run::{EXIT_CODE_KILLED, Outcome, Signals, run};
use crate::service::state::{Condition, Shared};
use crate::wire::frames::FrameWriter;
use crate::wire::{FaultKind, FrameKind, Killed, LaunchFault};

/// Launches in a row that the engine may refuse before the supervisor checks whether it refuses
/// all. A single refusal may concern that check only.
const REFUSALS_IN_A_ROW_MAX: u32 = 3;

/// Checks in a row whose container ended without the end of its output, before the supervisor looks
/// at the engine. One alone proves nothing: a compromised checker can end in the very moment of its
/// deadline, and must not be able to trigger a probe.
pub(crate) const UNENDED_IN_A_ROW_MAX: u32 = 3;

/// Serves a launch: writes the frames of the check. The client may send nothing more.
pub(crate) async fn launch<E: Engine, S: AsyncRead + AsyncWrite>(
    shared: &Shared<E>,
    mut reader: tokio::io::ReadHalf<S>,
    writer: tokio::io::WriteHalf<S>,
    check: &CheckId,
    host: &Host,
) {
    let gone = CancellationToken::new();
    let watching = async {
        // An end of the stream or an unexpected byte: either way the reader is gone or unknown to
        // us.
        let mut byte = [0];
        if reader.read(&mut byte).await.is_ok_and(|count| count > 0) {
            tracing::warn!(check.id = %check, "bytes after a launch request");
        }
        gone.cancel();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = watching => {}
        () = launched(shared, FrameWriter::new(writer), check, host, &gone) => {}
    }
}

async fn launched<E: Engine, W: AsyncWrite + Unpin>(
    shared: &Shared<E>,
    mut frames: FrameWriter<W>,
    check: &CheckId,
    host: &Host,
    gone: &CancellationToken,
) {
    let mut container = None;
    let entry = shared.registry.enter(check);
    let mut slot = shared.slots.take();
    let outcome = match (&entry, &slot) {
        (None, _) => Outcome::Fault(bad_request(format!("the check {check} is running already"))),
        (_, None) => Outcome::Fault(LaunchFault {
            kind: FaultKind::Full,
            message: format!("all {} slots are taken", shared.settings.checks_max),
        }),
        (Some(entry), Some(_)) => match shared.ready().await {
            Err(fault) => Outcome::Fault(fault),
            Ok(ready) => {
                let settings = &shared.settings;
                let spec = Spec {
                    runtime: ready.runtime,
                    ..Spec::check(settings, &ready.image, check, host)
                };
                let signals = Signals {
                    asked: entry.asked.clone(),
                    gone: gone.clone(),
                    ending: shared.ending.clone(),
                };
                let engine = &shared.engine;
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
    // Before the report, because its reader may launch the next check at once.
    if let Some(slot) = &mut slot {
        slot.ended();
    }
    conclude(shared, &outcome, &mut frames, check, host);
    let last = tokio::time::timeout(shared.settings.call_timeout, frames.flush());
    let (_read, ()) = tokio::join!(last, shared.remove(container));
    drop((entry, slot));
}

/// Queues the last frame, logs what happened, and wakes the supervisor if the engine failed.
fn conclude<E: Engine, W: AsyncWrite + Unpin>(
    shared: &Shared<E>,
    outcome: &Outcome,
    frames: &mut FrameWriter<W>,
    check: &CheckId,
    host: &Host,
) {
    match outcome {
        Outcome::End(end) => {
            tracing::debug!(check.id = %check, %host, exit_code = end.exit_code, duration_ms = end.millis, "a check's container has ended");
            shared.refusals.store(0, Ordering::Relaxed);
            frames.push_last(FrameKind::End, end);
            let unended = end.killed == Some(Killed::Deadline) && end.exit_code != EXIT_CODE_KILLED;
            if !unended {
                shared.unended.store(0, Ordering::Relaxed);
            } else if is_enough(&shared.unended, UNENDED_IN_A_ROW_MAX) {
                tracing::warn!(check.id = %check, %host, exit_code = end.exit_code, "several containers in a row had exited, but the engine did not close their output");
                shared.nudge.notify_one();
            } else {
                tracing::debug!(check.id = %check, %host, exit_code = end.exit_code, "a container reached its deadline, but had already exited");
            }
        }
        Outcome::Fault(fault) => {
            frames.push_last(FrameKind::Fault, fault);
            complain(shared, fault, check, host);
        }
        Outcome::Gone => {
            tracing::debug!(check.id = %check, %host, "the reader of a check's output went away");
        }
    }
}

/// Logs why a check could not be run, and wakes the supervisor if the engine is the cause. Known
/// trouble is already logged, and has its own pauses.
fn complain<E: Engine>(shared: &Shared<E>, fault: &LaunchFault, check: &CheckId, host: &Host) {
    if !matches!(*shared.condition.borrow(), Condition::Ready(_)) {
        tracing::debug!(check.id = %check, %host, kind = ?fault.kind, "no check can start");
        return;
    }
    tracing::warn!(check.id = %check, %host, kind = ?fault.kind, reason = fault.message, "a check could not be run");
    match fault.kind {
        FaultKind::EngineDown | FaultKind::ImageMissing => shared.nudge.notify_one(),
        FaultKind::EngineError => {
            if is_enough(&shared.refusals, REFUSALS_IN_A_ROW_MAX) {
                shared.nudge.notify_one();
            }
        }
        FaultKind::NotConfined | FaultKind::Full | FaultKind::BadRequest => {}
    }
}

/// Counts one more in a row. Returns whether `most` is reached, and then starts again from zero.
fn is_enough(in_a_row: &AtomicU32, most: u32) -> bool {
    let enough = in_a_row.fetch_add(1, Ordering::Relaxed).saturating_add(1) >= most;
    if enough {
        in_a_row.store(0, Ordering::Relaxed);
    }
    enough
}

/// The fault of a request that is malformed or not allowed.
pub(crate) fn bad_request(message: String) -> LaunchFault {
    LaunchFault {
        kind: FaultKind::BadRequest,
        message,
    }
}
