//! Runs the container that examines its own limits, and reads its report.

use std::time::Duration;

use protocol::{CheckId, ProbeReport, escaped};

use crate::client::{Container, Frame};
use crate::container::spec::Spec;
use crate::engine::{Engine, EngineKind, Info};
use crate::run::{Outcome, Signals, ending, run};
use crate::service::probe::{advice, control_groups_advice, judge};
use crate::service::state::Shared;
use crate::settings::Settings;
use crate::wire::frames::FrameWriter;
use crate::wire::{FaultKind, LaunchFault};

/// Deadline of a probe, which reads a dozen files and tries to write four. The slowest engine
/// needed 3 s.
const PROBE_SECONDS_MAX: u64 = 15;

/// Bytes that a probe may print, frames included. A program that prints more blocks until the
/// probe's deadline.
const PROBE_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a failed probe's stderr that are shown.
const STDERR_SHOWN_BYTES: usize = 300;

/// Runs the probe container from this image with this runtime.
///
/// - `Ok(warnings)` if all required limits are in force
/// - `Err(fault)` if one is missing, or the container could not be run
pub(crate) async fn probe<E: Engine>(
    shared: &Shared<E>,
    kind: EngineKind,
    info: &Info,
    image: &str,
    runtime: Option<&'static str>,
) -> Result<Vec<String>, LaunchFault> {
    let settings = Settings {
        deadline: Duration::from_secs(PROBE_SECONDS_MAX),
        grace: Duration::ZERO,
        ..shared.settings.clone()
    };
    let check = CheckId::from_random(rand::random());
    let spec = Spec {
        runtime,
        ..Spec::probe(&settings, image, &check)
    };
    let signals = Signals {
        ending: shared.ending.clone(),
        ..Signals::default()
    };
    let (near, far) = tokio::io::duplex(PROBE_BYTES_MAX);
    let mut frames = FrameWriter::new(near);
    let (engine, mut container) = (&shared.engine, None);
    let running = run(
        engine,
        &settings,
        &spec,
        &signals,
        &mut frames,
        &mut container,
    );
    let outcome = Box::pin(running).await;
    drop(frames);
    let warnings = container
        .as_ref()
        .map_or(Vec::new(), |made| made.warnings.clone());
    shared.remove(container).await;
    let printed = printed(Container::new(Box::new(far))).await;
    let report = match outcome {
        Outcome::End(end) if end.exit_code == 0 && !printed.stdout.ends_with(b"\n") => {
            // Docker reads for two seconds after a container's end. The supervisor tries again.
            return Err(LaunchFault {
                kind: FaultKind::EngineError,
                message: "output lost: the engine passed on only a part of what the probe printed, or the image is not of this launcher's version".to_owned(),
            });
        }
        Outcome::End(end) if end.exit_code == 0 => {
            ProbeReport::parse(printed.stdout.trim_ascii()).map_err(|error| error.to_string())
        }
        Outcome::End(end) => Err(format!("it ended with {end:?}")),
        Outcome::Fault(fault) => {
            return Err(with_remedy(fault, &settings, kind, info));
        }
        Outcome::Gone => return Err(ending()),
    };
    let report = report.map_err(|reason| LaunchFault {
        kind: FaultKind::NotConfined,
        message: format!(
            "the probe of the image {} gave no report: {reason}; stderr: {}; is the image of this launcher's version?",
            settings.image,
            escaped(&printed.stderr, STDERR_SHOWN_BYTES)
        ),
    })?;
    let judgement = judge(&report, &settings.confinement, kind, info);
    if judgement.missing.is_empty() {
        Ok(judgement.warnings)
    } else {
        Err(LaunchFault {
            kind: FaultKind::NotConfined,
            message: advice(&judgement.missing, &warnings, kind, info),
        })
    }
}

/// Adds a remedy to Podman's error. Podman notices a missing profile or missing delegation only
/// when it creates or starts a container, and its message names no remedy.
fn with_remedy(
    fault: LaunchFault,
    settings: &Settings,
    kind: EngineKind,
    info: &Info,
) -> LaunchFault {
    if (kind, fault.kind) != (EngineKind::Podman, FaultKind::EngineError) {
        return fault;
    }
    let profile = settings.confinement.seccomp.as_ref();
    let path = profile.and_then(|profile| profile.path_on_engine.as_deref());
    // The words only select a hint for people. No decision depends on them.
    let is_of_limits = ["cgroup", "memory.", "pids."].map(|word| fault.message.contains(word));
    let remedy = if is_of_limits.contains(&true) {
        format!("; limits: {}", control_groups_advice(kind, info))
    } else if let Some(path) = path {
        format!("; is {path}, on the engine's machine, what `fedicensus seccomp-profile` prints?")
    } else {
        String::new()
    };
    LaunchFault {
        message: fault.message + &remedy,
        ..fault
    }
}

#[derive(Default)]
struct Printed {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// Reads the frames from the bounded pipe, up to the first incomplete one.
async fn printed(mut container: Container) -> Printed {
    let mut printed = Printed::default();
    while let Ok(frame) = container.next().await {
        match frame {
            Frame::Stdout(bytes) => printed.stdout.extend_from_slice(&bytes),
            Frame::Stderr(bytes) => printed.stderr.extend_from_slice(&bytes),
            Frame::End(_) | Frame::Fault(_) => break,
        }
    }
    printed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::seccomp::SeccompProfile;

    #[test]
    fn a_podman_that_may_not_limit_comes_with_the_way_out() {
        let mut settings = Settings::default();
        settings.confinement.seccomp = Some(SeccompProfile::ours(Some("/etc/x.json".to_owned())));
        let refused = |kind| {
            let fault = LaunchFault {
                kind: FaultKind::EngineError,
                // The message of Podman 5.4 with crun 1.21.
                message: "attach: the engine refused: crun: opening file `memory.max` for writing: No such file or directory"
                    .to_owned(),
            };
            with_remedy(fault, &settings, kind, &Info::default()).message
        };
        let podman = refused(EngineKind::Podman);
        assert!(podman.contains("Delegate=cpu memory pids"), "{podman}");
        assert!(!podman.contains("/etc/x.json"), "{podman}");
        assert!(!refused(EngineKind::Docker).contains("Delegate"));
    }

    #[test]
    fn a_profile_that_podman_can_not_read_is_named() {
        let mut settings = Settings::default();
        let message = |settings: &Settings, kind, fault| {
            let refused = LaunchFault {
                kind: fault,
                message: "start: the engine refused: no such file".to_owned(),
            };
            with_remedy(refused, settings, kind, &Info::default()).message
        };
        let plain = "start: the engine refused: no such file";
        let refused = FaultKind::EngineError;
        assert_eq!(message(&settings, EngineKind::Podman, refused), plain);
        settings.confinement.seccomp = Some(SeccompProfile::ours(Some("/etc/x.json".to_owned())));
        let named = message(&settings, EngineKind::Podman, refused);
        assert!(
            named.contains("is /etc/x.json, on the engine's machine, what"),
            "{named}"
        );
        assert_eq!(message(&settings, EngineKind::Docker, refused), plain);
        assert_eq!(
            message(&settings, EngineKind::Podman, FaultKind::EngineDown),
            plain
        );
    }
}
