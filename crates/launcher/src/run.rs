//! Runs one container: create → attach → start → stream → wait (invariant I4). The caller removes
//! it after the report.
//!
//! It takes a [`Spec`], the signals that may end the container early, and the reader of its output,
//! and returns an [`Outcome`]. Every wait is bounded. Calls have the settings' timeouts. From the
//! start on, one deadline covers reading, writing and waiting, so that neither a container that
//! never ends nor a stalled reader can block it.

use futures_util::StreamExt as _;
use protocol::escaped;
use tokio::io::AsyncWrite;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::container::spec::Spec;
use crate::engine::{ContainerId, Created, Engine, EngineError, Output, bounded};
use crate::settings::Settings;
use crate::wire::frames::{FrameWriter, ReaderGone};
use crate::wire::{End, FaultKind, Killed, LaunchFault};

/// The exit code of a process that SIGKILL ended: 128 + 9. If we didn't send the signal, the kernel
/// did, because of the memory limit.
pub(crate) const EXIT_CODE_KILLED: i64 = 137;

/// Longest message of a fault in bytes. An engine's answers may be much longer than an operator
/// wants to read.
const MESSAGE_BYTES_MAX: usize = 500;

/// What may end a container early.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signals {
    /// A `kill` request came.
    pub(crate) asked: CancellationToken,
    pub(crate) gone: CancellationToken,
    /// The launcher is shutting down.
    pub(crate) ending: CancellationToken,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    End(End),
    /// The container could not be run, or not until its end: our fault.
    Fault(LaunchFault),
    /// The reader has disconnected, so there is nobody to report to.
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Deadline,
    Asked,
    Gone,
    Ending,
}

/// Runs a container to its end. `container` holds what was created as soon as it is known, because
/// the caller removes the container whatever the outcome.
pub(crate) async fn run<E: Engine, W: AsyncWrite + Unpin>(
    engine: &E,
    settings: &Settings,
    spec: &Spec,
    signals: &Signals,
    frames: &mut FrameWriter<W>,
    container: &mut Option<Created>,
) -> Outcome {
    let created = bounded("create", settings.start_timeout, engine.create(spec)).await;
    let id = match created {
        Ok(created) => container.insert(created).id.clone(),
        Err(error) => {
            return Outcome::Fault(create_failed(engine, settings, spec, error).await);
        }
    };
    let output = match bounded("attach", settings.start_timeout, engine.attach(&id)).await {
        Ok(output) => output,
        Err(error) => return Outcome::Fault(fault(&error)),
    };
    // Not interrupted half-way, because an abandoned start may still happen. A stop that came
    // during the start is noticed right after it.
    if let Err(error) = bounded("start", settings.start_timeout, engine.start(&id)).await {
        // The start may go on after its timeout. The forced removal ends it.
        return Outcome::Fault(fault(&error));
    }
    let started = Instant::now();
    let deadline = started.checked_add(settings.life_max()).unwrap_or(started);
    let ended = until_end(engine, &id, output, frames, stop(signals, deadline)).await;
    let (exit_code, killed) = match ended {
        Ended::Itself(Ok(exit_code)) => (exit_code, None),
        Ended::Itself(Err(error)) => return Outcome::Fault(fault(&error)),
        Ended::Stopped(stop) => match kill(engine, settings, &id, stop).await {
            Ok(exit_code) => match stop {
                Stop::Deadline => (exit_code, Some(Killed::Deadline)),
                Stop::Asked => (exit_code, Some(Killed::Asked)),
                Stop::Gone => return Outcome::Gone,
                Stop::Ending => return Outcome::Fault(ending()),
            },
            Err(error) => return Outcome::Fault(fault(&error)),
        },
    };
    let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Outcome::End(End {
        exit_code,
        // A check is one process, so the kernel enforces the memory limit with this signal only.
        // The engine's own flag adds nothing.
        out_of_memory: exit_code == EXIT_CODE_KILLED && killed.is_none(),
        killed,
        millis,
    })
}

/// Turns an engine error into the fault that the orchestrator and the operator see.
pub(crate) fn fault(error: &EngineError) -> LaunchFault {
    let (kind, source) = match error {
        EngineError::Down { source, .. } => (FaultKind::EngineDown, Some(source)),
        EngineError::NoSocket { .. } | EngineError::TimedOut { .. } => {
            (FaultKind::EngineDown, None)
        }
        EngineError::Refused { source, .. } | EngineError::Garbled { source, .. } => {
            (FaultKind::EngineError, Some(source))
        }
    };
    let mut text = error.to_string();
    let mut cause = source.map(|source| -> &(dyn std::error::Error + 'static) { source.as_ref() });
    // A client's errors are nested three deep. The bound is for an error that contains itself.
    for _ in 0..8 {
        let Some(error) = cause else { break };
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    LaunchFault {
        kind,
        message: escaped(text.as_bytes(), MESSAGE_BYTES_MAX),
    }
}

/// The fault of a launcher that is shutting down.
pub(crate) fn ending() -> LaunchFault {
    LaunchFault {
        kind: FaultKind::EngineDown,
        message: "the launcher is ending".to_owned(),
    }
}

/// The fault of an engine that lacks the checker image.
pub(crate) fn image_missing(image: &str) -> LaunchFault {
    LaunchFault {
        kind: FaultKind::ImageMissing,
        message: format!("the engine has no image {image}: build it, or set the image's name"),
    }
}

/// The fault of an engine that no longer has the image that was probed.
fn image_replaced(image: &str) -> LaunchFault {
    LaunchFault {
        kind: FaultKind::ImageMissing,
        message: format!(
            "the engine no longer has the image that checks ran from, and {image} is another one, which is probed next"
        ),
    }
}

/// The fault of a failed create. It queries the engine for the image, because Docker and Podman
/// report a missing one in different ways.
async fn create_failed<E: Engine>(
    engine: &E,
    settings: &Settings,
    spec: &Spec,
    error: EngineError,
) -> LaunchFault {
    if matches!(error, EngineError::Refused { .. }) {
        let id = engine.image_id(&spec.image);
        if let Ok(None) = bounded("image", settings.call_timeout, id).await {
            let named = engine.image_id(&settings.image);
            return match bounded("image", settings.call_timeout, named).await {
                Ok(Some(_)) => image_replaced(&settings.image),
                Ok(None) | Err(_) => image_missing(&settings.image),
            };
        }
    }
    fault(&error)
}

async fn stop(signals: &Signals, deadline: Instant) -> Stop {
    tokio::select! {
        biased;
        () = signals.gone.cancelled() => Stop::Gone,
        () = signals.ending.cancelled() => Stop::Ending,
        () = signals.asked.cancelled() => Stop::Asked,
        () = tokio::time::sleep_until(deadline) => Stop::Deadline,
    }
}

enum Ended {
    /// The container ended with this exit code, or the engine failed while it ran.
    Itself(Result<i64, EngineError>),
    /// The container has to be killed. Its output has been dropped.
    Stopped(Stop),
}

/// Passes the output on and then waits, until the container has ended or has to be stopped.
async fn until_end<E: Engine, W: AsyncWrite + Unpin>(
    engine: &E,
    id: &ContainerId,
    output: Output,
    frames: &mut FrameWriter<W>,
    stop: impl Future<Output = Stop>,
) -> Ended {
    let itself = async {
        match pass_on(output, frames).await {
            Passed::All => Ended::Itself(engine.wait(id).await),
            Passed::Broken(error) => Ended::Itself(Err(error)),
            Passed::NoReader => Ended::Stopped(Stop::Gone),
        }
    };
    // The stop comes first, so that a flood can't outrun it. `itself` holds the output and is
    // dropped before any kill: an engine never answers a kill while an attached stream is held open
    // and not read.
    tokio::select! {
        biased;
        stop = stop => Ended::Stopped(stop),
        ended = itself => ended,
    }
}

enum Passed {
    All,
    Broken(EngineError),
    NoReader,
}

/// Passes the output on, chunk by chunk. Only one chunk is held, so a slow reader slows the
/// container down.
async fn pass_on<W: AsyncWrite + Unpin>(mut output: Output, frames: &mut FrameWriter<W>) -> Passed {
    while let Some(chunk) = output.next().await {
        match chunk {
            Ok(chunk) => frames.push(chunk),
            Err(error) => return Passed::Broken(error),
        }
        if let Err(ReaderGone) = frames.flush().await {
            return Passed::NoReader;
        }
    }
    Passed::All
}

/// Kills the container and waits for its exit code.
async fn kill<E: Engine>(
    engine: &E,
    settings: &Settings,
    id: &ContainerId,
    why: Stop,
) -> Result<i64, EngineError> {
    tracing::debug!(container = %id, ?why, "a check's container is stopped");
    let killed = bounded("kill", settings.call_timeout, engine.kill(id)).await;
    if let Err(error) = killed {
        // The container may have ended in between. The engines refuse that kill in different ways,
        // and the wait shows what happened.
        tracing::debug!(container = %id, error = %fault(&error).message, "the kill failed");
    }
    bounded("wait", settings.call_timeout, engine.wait(id)).await
}

#[cfg(test)]
mod tests;
