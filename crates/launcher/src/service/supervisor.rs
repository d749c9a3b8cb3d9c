//! Keeps the launcher fit to launch: finds the engine, reaps, probes, and sweeps from then on (design §4, invariants I1 and I4).
//!
//! Every launch looks at the [`Condition`] that this sets. A failure is logged once for every
//! change and tried again with a growing pause; launches are answered with the reason while it
//! lasts.

use std::sync::atomic::Ordering;
use std::time::Duration;

use protocol::{CheckId, ProbeReport, escaped};

use crate::client::{Container, Frame};
use crate::container::run::{Outcome, Signals, ending, fault, image_missing, run};
use crate::container::spec::Spec;
use crate::engine::{Engine, EngineKind, Identity, bounded};
use crate::service::probe::{advice, control_groups_advice, judge};
use crate::service::reaper::{Reaper, Sweep};
use crate::service::state::{Condition, Ready, Shared};
use crate::settings::{EgressSource, Settings};
use crate::wire::frames::FrameWriter;
use crate::wire::{FaultKind, LaunchFault};

/// A probe's time: it reads a dozen files and tries to write four. The slowest engine seen needed 3 s.
const PROBE_SECONDS_MAX: u64 = 15;

/// Sweeps until the next probe: an hour's by default. An engine may have been restarted with other
/// settings between two sweeps.
const SWEEPS_PER_PROBE: u32 = 60;

/// Room for what a probe prints, with its frames. Whoever prints more stands still until the probe's time is over.
const PROBE_BYTES_MAX: usize = 64 * 1024;

/// How much of a failed probe's stderr is shown.
const STDERR_SHOWN_BYTES: usize = 300;

/// Runs until the launcher ends, and then to the end of a probe that is under way.
pub(crate) async fn supervise<E: Engine>(shared: &Shared<E>) {
    let mut reaper = Reaper::default();
    let mut pause = shared.settings.backoff_min;
    let mut former = None;
    while !shared.ending.is_cancelled() {
        match prepare(shared, &mut reaper, former.as_deref()).await {
            // It says what it met because it was ending.
            _ if shared.ending.is_cancelled() => return,
            Ok(ready) => {
                pause = shared.settings.backoff_min;
                former = Some(ready.image.clone());
                turn(shared, Condition::Ready(ready.clone()));
                watch(shared, &mut reaper, &ready).await;
                // A launch that failed sends us here; it must not make us probe in a loop.
                until_ending(shared, pause).await;
            }
            Err(trouble) => {
                turn(shared, Condition::Trouble(trouble));
                until_ending(shared, pause).await;
                pause = pause.saturating_mul(2).min(shared.settings.backoff_max);
            }
        }
    }
}

/// A pause that an end cuts short.
async fn until_ending<E>(shared: &Shared<E>, pause: Duration) {
    tokio::time::timeout(pause, shared.ending.cancelled())
        .await
        .ok();
}

/// Takes on a condition, and says so when it is another than before.
fn turn<E>(shared: &Shared<E>, condition: Condition) {
    shared.condition.send_if_modified(|before| {
        if *before == condition {
            return false;
        }
        match &condition {
            Condition::Starting => {}
            Condition::Ready(ready) => {
                tracing::info!(engine = %ready.identity, "the engine is fit: checks can be launched");
                for warning in &ready.warnings {
                    tracing::warn!(warning, "a limit that is not required is not in force");
                }
            }
            Condition::Trouble(trouble) => {
                tracing::error!(kind = ?trouble.kind, reason = trouble.message, "no check can be launched");
            }
        }
        *before = condition;
        true
    });
}

/// From an unknown engine to one that is fit, or the reason why it isn't.
/// An image whose probe fails starts no check. The one that checks were started from before it goes
/// on, if it passes once more.
async fn prepare<E: Engine>(
    shared: &Shared<E>,
    reaper: &mut Reaper,
    former: Option<&str>,
) -> Result<Ready, LaunchFault> {
    // Nothing that is let go of here leaves anything behind.
    let (identity, named) = tokio::select! {
        () = shared.ending.cancelled() => return Err(ending()),
        known = survey(shared, reaper) => known?,
    };
    let complaint = match probe(shared, identity.kind, &named).await {
        Ok(warnings) => {
            return Ok(Ready {
                identity,
                image: named.clone(),
                named,
                sweeps: SWEEPS_PER_PROBE,
                warnings,
            });
        }
        Err(complaint) => complaint,
    };
    // An engine that was lost says nothing about the image.
    let is_of_image = complaint.kind != FaultKind::EngineDown;
    let Some(former) = former.filter(|former| is_of_image && *former != named) else {
        return Err(complaint);
    };
    let Ok(mut warnings) = probe(shared, identity.kind, former).await else {
        return Err(complaint);
    };
    warnings.push(format!(
        "image: {} has another image now, which starts no check: {}; checks are started from the image that had this name before",
        shared.settings.image, complaint.message
    ));
    Ok(Ready {
        identity,
        image: former.to_owned(),
        named,
        // Only a report says something lasting about the image.
        sweeps: if complaint.kind == FaultKind::NotConfined {
            SWEEPS_PER_PROBE
        } else {
            1
        },
        warnings,
    })
}

/// What has to be known and cleared away before the probe.
async fn survey<E: Engine>(
    shared: &Shared<E>,
    reaper: &mut Reaper,
) -> Result<(Identity, String), LaunchFault> {
    let (engine, settings) = (&shared.engine, &shared.settings);
    let call_timeout = settings.call_timeout;
    // No small call on Podman, which answers only when it has had the lock of every container, those among them that are being started or removed.
    let identity = bounded("version", settings.start_timeout, engine.identify())
        .await
        .map_err(|error| fault(&error))?;
    // Before anything may refuse: what a former life left behind goes even if nothing new can be started.
    sweep(shared, reaper, Sweep::All).await?;
    let image = bounded("image", call_timeout, engine.image_id(&settings.image))
        .await
        .map_err(|error| fault(&error))?
        .ok_or_else(|| image_missing(&settings.image))?;
    egress_present(engine, settings).await?;
    Ok((identity, image))
}

/// Sweeps and sees whether engine and image are still those that were probed; returns when that has
/// to be found out again.
async fn watch<E: Engine>(shared: &Shared<E>, reaper: &mut Reaper, ready: &Ready) {
    let settings = &shared.settings;
    for _ in 0..ready.sweeps {
        tokio::select! {
            () = shared.ending.cancelled() => return,
            () = shared.nudge.notified() => return,
            () = tokio::time::sleep(settings.sweep_interval) => {}
        }
        let identity = bounded("version", settings.start_timeout, shared.engine.identify()).await;
        let same = identity.is_ok_and(|identity| identity == ready.identity);
        if !same || sweep(shared, reaper, Sweep::Stale).await.is_err() {
            return;
        }
        let named = shared.engine.image_id(&settings.image);
        // An engine that gives no answer does no harm: checks are started by the id that was
        // probed.
        if bounded("image", settings.call_timeout, named)
            .await
            .is_ok_and(|named| named.as_ref() != Some(&ready.named))
        {
            return;
        }
    }
}

/// At an orderly end, for what could not be removed before: nobody may come after us.
pub(crate) async fn sweep_last<E: Engine>(shared: &Shared<E>) {
    if let Err(error) = sweep(shared, &mut Reaper::default(), Sweep::All).await {
        tracing::debug!(
            error = error.message,
            "no last sweep: the engine does not answer"
        );
    }
}

async fn sweep<E: Engine>(
    shared: &Shared<E>,
    reaper: &mut Reaper,
    which: Sweep,
) -> Result<(), LaunchFault> {
    let reaped = reaper
        .sweep(&shared.engine, &shared.settings, &shared.registry, which)
        .await
        .map_err(|error| fault(&error))?;
    shared.reaped_total.fetch_add(reaped, Ordering::Relaxed);
    Ok(())
}

/// A volume that is not there would be made by the engine for the first check, in vain and for
/// good.
async fn egress_present<E: Engine>(engine: &E, settings: &Settings) -> Result<(), LaunchFault> {
    let present = match &settings.egress {
        EgressSource::Directory(_) => true,
        EgressSource::Volume(volume) => {
            let answer = engine.volume_present(volume);
            bounded("volume", settings.call_timeout, answer)
                .await
                .map_err(|error| fault(&error))?
        }
    };
    if present {
        return Ok(());
    }
    Err(LaunchFault {
        kind: FaultKind::EngineError,
        message: format!(
            "the engine has no volume for {:?}: start the gateway, which makes it, or set its name",
            settings.egress
        ),
    })
}

/// Runs the probe container from this image. Out: warnings, or what is missing.
async fn probe<E: Engine>(
    shared: &Shared<E>,
    kind: EngineKind,
    image: &str,
) -> Result<Vec<String>, LaunchFault> {
    let settings = Settings {
        deadline: Duration::from_secs(PROBE_SECONDS_MAX),
        grace: Duration::ZERO,
        ..shared.settings.clone()
    };
    let spec = Spec::probe(&settings, image, &CheckId::from_random(rand::random()));
    let signals = Signals {
        ending: shared.ending.clone(),
        ..Signals::default()
    };
    let (near, far) = tokio::io::duplex(PROBE_BYTES_MAX);
    let mut frames = FrameWriter::new(near);
    let mut container = None;
    let outcome = Box::pin(run(
        &shared.engine,
        &settings,
        &spec,
        &signals,
        &mut frames,
        &mut container,
    ))
    .await;
    drop(frames);
    shared.remove(container).await;
    let printed = printed(Container::new(Box::new(far))).await;
    let report = match outcome {
        Outcome::End(end) if end.exit_code == 0 => {
            ProbeReport::parse(printed.stdout.trim_ascii()).map_err(|error| error.to_string())
        }
        Outcome::End(end) => Err(format!("it ended with {end:?}")),
        Outcome::Fault(fault) => return Err(with_remedy(fault, &settings, kind)),
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
    let judgement = judge(&report, &settings.confinement, kind);
    if judgement.missing.is_empty() {
        Ok(judgement.warnings)
    } else {
        Err(LaunchFault {
            kind: FaultKind::NotConfined,
            message: advice(&judgement.missing, kind),
        })
    }
}

/// Podman finds out when it makes or starts a container that there is no such profile or that it may not limit anything, and what it says then names no
/// remedy.
fn with_remedy(fault: LaunchFault, settings: &Settings, kind: EngineKind) -> LaunchFault {
    if (kind, fault.kind) != (EngineKind::Podman, FaultKind::EngineError) {
        return fault;
    }
    let profile = settings.confinement.seccomp.as_ref();
    let path = profile.and_then(|profile| profile.path_on_engine.as_deref());
    // A hint for people, whatever words they are: nothing is decided by them.
    let is_of_limits = ["cgroup", "memory.", "pids."].map(|word| fault.message.contains(word));
    let remedy = if is_of_limits.contains(&true) {
        format!("; limits: {}", control_groups_advice(kind))
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

/// Takes the frames out of the pipe, which bounds them, up to the first that was cut off.
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
    use crate::client::LauncherClient;
    use crate::container::seccomp::SeccompProfile;
    use crate::service::server::Launcher;
    use crate::tests::fake_engine::{FakeEngine, REPORT, Script};
    use protocol::Host;
    use protocol::probe::CALLS_TRIED;
    use tokio_util::sync::CancellationToken;

    /// The first frame of a launch by a launcher whose probe reports this, and how many checks it counts as launched.
    async fn launched(report: &ProbeReport) -> (Frame, u64) {
        let engine = FakeEngine::new(Script::Print(0));
        engine.set_report(&serde_json::to_string(report).unwrap());
        let launcher = Launcher::new(Settings::default(), engine);
        let shutdown = CancellationToken::new();
        let keeping = tokio::spawn({
            let (launcher, shutdown) = (launcher.clone(), shutdown.clone());
            async move { launcher.keep(shutdown).await }
        });
        let client = LauncherClient::in_memory(&launcher);
        let check = CheckId::from_random(1);
        let host = Host::parse("a.example").unwrap();
        let first = client.launch(&check, &host).await.unwrap().next().await;
        let launches = client.status().await.unwrap().launches_total;
        shutdown.cancel();
        keeping.await.unwrap();
        (first.unwrap(), launches)
    }

    #[tokio::test(start_paused = true)]
    async fn no_check_is_made_where_a_single_call_is_allowed_that_our_profile_refuses() {
        let sound = ProbeReport::parse(REPORT.as_bytes()).unwrap();
        assert!(matches!(launched(&sound).await.0, Frame::Stdout(_)));
        for call in CALLS_TRIED {
            let mut report = sound.clone();
            report.calls_refused.retain(|refused| refused != call);
            let (first, launches) = launched(&report).await;
            let Frame::Fault(fault) = first else {
                panic!("{call}: {first:?}");
            };
            assert_eq!(fault.kind, FaultKind::NotConfined, "{call}");
            assert!(fault.message.contains(call), "{}", fault.message);
            assert_eq!(launches, 0, "{call}");
        }
    }

    #[test]
    fn a_podman_that_may_not_limit_comes_with_the_way_out() {
        let mut settings = Settings::default();
        settings.confinement.seccomp = Some(SeccompProfile::ours(Some("/etc/x.json".to_owned())));
        let refused = |kind| {
            let fault = LaunchFault {
                kind: FaultKind::EngineError,
                // As Podman 5.4 says it with crun 1.21.
                message: "attach: the engine refused: crun: opening file `memory.max` for writing: No such file or directory"
                    .to_owned(),
            };
            with_remedy(fault, &settings, kind).message
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
            with_remedy(refused, settings, kind).message
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
