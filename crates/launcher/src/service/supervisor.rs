//! Keeps the launcher able to launch: finds the engine, reaps, probes, and then sweeps regularly
//! (invariants I1 and I4).
//!
//! Every launch reads the [`Condition`] that this sets. A failure is logged once per change and
//! retried with growing pauses. Until it passes, launches are answered with the reason.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::container::run::{ending, fault, image_missing};
use crate::container::spec::CRUN;
use crate::engine::{Engine, Identity, bounded};
use crate::service::guest::{Namespaces, Way};
use crate::service::probe_container::probe;
use crate::service::reaper::{Reaper, Sweep};
use crate::service::state::{Condition, Ready, Shared};
use crate::service::trial::Trial;
use crate::settings::{EgressSource, Settings, SlotMode};
use crate::wire::{FaultKind, LaunchFault};

/// Sweeps until the next probe: an hour with the default interval. An engine may restart with other
/// settings between two sweeps.
const SWEEPS_PER_PROBE: u32 = 60;

/// Runs until the launcher shuts down, and finishes a probe in progress.
pub(crate) async fn supervise<E: Engine>(shared: &Shared<E>) {
    let mut reaper = Reaper::default();
    let mut pause = shared.settings.backoff_min;
    let mut former = None;
    let mut trial = None;
    while !shared.ending.is_cancelled() {
        match prepare(shared, &mut reaper, former.as_deref(), &mut trial).await {
            // The failure was caused by the shutdown.
            _ if shared.ending.is_cancelled() => return,
            Ok(ready) => {
                pause = shared.settings.backoff_min;
                former = Some(ready.image.clone());
                turn(shared, Condition::Ready(ready.clone()));
                watch(shared, &mut reaper, &ready).await;
                // A failed launch woke the supervisor. The pause prevents probes in a loop.
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

/// Sleeps for `pause`, or until the shutdown.
async fn until_ending<E>(shared: &Shared<E>, pause: Duration) {
    tokio::time::timeout(pause, shared.ending.cancelled())
        .await
        .ok();
}

/// Sets the condition, and logs it if it changed.
fn turn<E>(shared: &Shared<E>, condition: Condition) {
    shared.condition.send_if_modified(|before| {
        if *before == condition {
            return false;
        }
        match &condition {
            Condition::Starting => {}
            Condition::Ready(ready) => {
                tracing::info!(engine = ready.engine(), slots = ready.namespaces_why, "the engine enforces the required limits: checks can start");
                for warning in &ready.warnings {
                    tracing::warn!(warning, "checks can start, with a warning");
                }
            }
            Condition::Trouble(trouble) => {
                tracing::error!(kind = ?trouble.kind, reason = trouble.message, "no check can start");
            }
        }
        *before = condition;
        true
    });
}

/// Examines an unknown engine: it is fit, or the reason why not. An image that fails its probe
/// starts no check. Checks continue with the previous image, if that passes the probe again.
async fn prepare<E: Engine>(
    shared: &Shared<E>,
    reaper: &mut Reaper,
    former: Option<&str>,
    trial: &mut Option<Measured>,
) -> Result<Ready, LaunchFault> {
    // Cancelling these calls leaves nothing behind.
    let (identity, named) = tokio::select! {
        () = shared.ending.cancelled() => return Err(ending()),
        known = survey(shared, reaper) => known?,
    };
    let complaint = match fit(shared, &identity, &named, trial).await {
        Ok(fit) => {
            return Ok(Ready {
                identity,
                image: named.clone(),
                named,
                way: fit.way,
                namespaces_why: fit.namespaces_why,
                sweeps: SWEEPS_PER_PROBE,
                warnings: fit.warnings,
            });
        }
        Err(complaint) => complaint,
    };
    // A lost engine proves nothing about the image.
    let is_of_image = complaint.kind != FaultKind::EngineDown;
    let Some(former) = former.filter(|former| is_of_image && *former != named) else {
        return Err(complaint);
    };
    let Ok(mut fit) = fit(shared, &identity, former, trial).await else {
        return Err(complaint);
    };
    fit.warnings.push(format!(
        "image: {} is a new image, and no check can start from it: {}; checks use the former image",
        shared.settings.image, complaint.message
    ));
    Ok(Ready {
        identity,
        image: former.to_owned(),
        named,
        way: fit.way,
        namespaces_why: fit.namespaces_why,
        // Only a report is lasting evidence about the image.
        sweeps: if complaint.kind == FaultKind::NotConfined {
            SWEEPS_PER_PROBE
        } else {
            1
        },
        warnings: fit.warnings,
    })
}

/// A way to run containers in which a probe found all required limits in force.
struct Fit {
    way: Way,
    namespaces_why: String,
    warnings: Vec<String>,
}

/// What a trial measured, with its engine and runtime.
struct Measured {
    identity: Identity,
    runtime: Option<&'static str>,
    trial: Trial,
}

/// Finds the way to run containers of an image: with [`CRUN`] if the engine lists it and the probe
/// passes, otherwise with the engine's default runtime.
async fn fit<E: Engine>(
    shared: &Shared<E>,
    identity: &Identity,
    image: &str,
    trial: &mut Option<Measured>,
) -> Result<Fit, LaunchFault> {
    let mut refusal = None;
    if lists_crun(shared).await {
        match fit_with(shared, identity, image, Some(CRUN), trial).await {
            Err(fault) if fault.kind != FaultKind::EngineDown => {
                refusal = Some(format!(
                    "runtime: the engine lists {CRUN}, which can't run checks: {}; the default runtime runs them",
                    fault.message
                ));
            }
            found => return found,
        }
    }
    let mut fit = fit_with(shared, identity, image, None, trial).await?;
    fit.warnings.extend(refusal);
    Ok(fit)
}

async fn lists_crun<E: Engine>(shared: &Shared<E>) -> bool {
    let listed = shared.engine.has_runtime(CRUN);
    match bounded("info", shared.settings.call_timeout, listed).await {
        Ok(listed) => listed,
        Err(error) => {
            tracing::debug!(error = %fault(&error).message, "the engine's runtimes are not known");
            false
        }
    }
}

async fn fit_with<E: Engine>(
    shared: &Shared<E>,
    identity: &Identity,
    image: &str,
    runtime: Option<&'static str>,
    trial: &mut Option<Measured>,
) -> Result<Fit, LaunchFault> {
    let (namespaces, namespaces_why) = choose(shared, identity, image, runtime, trial).await;
    let way = Way {
        namespaces,
        runtime,
    };
    let warnings = probe(shared, identity.kind, image, way).await?;
    Ok(Fit {
        way,
        namespaces_why,
        warnings,
    })
}

/// Where checks have their network namespace, and why. A trial's result is kept until the engine or
/// the runtime changes.
async fn choose<E: Engine>(
    shared: &Shared<E>,
    identity: &Identity,
    image: &str,
    runtime: Option<&'static str>,
    trial: &mut Option<Measured>,
) -> (Namespaces, String) {
    match shared.settings.slots {
        SlotMode::On => return (Namespaces::Slots, "on, as set".to_owned()),
        SlotMode::Off => return (Namespaces::Own, "off, as set".to_owned()),
        SlotMode::Auto => {}
    }
    let of = |measured: &Measured| measured.identity == *identity && measured.runtime == runtime;
    let known = trial.as_ref().filter(|measured| of(measured));
    let measured = match known.map(|measured| measured.trial) {
        Some(known) => known,
        None => match Trial::run(shared, identity.kind, image, runtime).await {
            Ok(measured) => {
                *trial = Some(Measured {
                    identity: identity.clone(),
                    runtime,
                    trial: measured,
                });
                measured
            }
            // The probe finds and reports what is wrong with every container.
            Err(fault) => return (Namespaces::Own, format!("off: {}", fault.message)),
        },
    };
    let (namespaces, word) = match measured.chosen() {
        Namespaces::Slots => (Namespaces::Slots, "on"),
        Namespaces::Own => (Namespaces::Own, "off"),
    };
    (namespaces, format!("{word}: {measured}"))
}

/// Collects facts and removes leftovers before the probe.
async fn survey<E: Engine>(
    shared: &Shared<E>,
    reaper: &mut Reaper,
) -> Result<(Identity, String), LaunchFault> {
    let (engine, settings) = (&shared.engine, &shared.settings);
    let call_timeout = settings.call_timeout;
    // Uses the start timeout: Podman answers only after it has taken the lock of every container,
    // including those that are being started or removed.
    let identity = bounded("version", settings.start_timeout, engine.identify())
        .await
        .map_err(|error| fault(&error))?;
    // Before any check that may fail, so that leftovers are removed even if nothing can be started.
    // A restarted engine has ended its holders.
    shared.holders.give_up();
    sweep(shared, reaper, Sweep::All).await?;
    let image = bounded("image", call_timeout, engine.image_id(&settings.image))
        .await
        .map_err(|error| fault(&error))?
        .ok_or_else(|| image_missing(&settings.image))?;
    egress_present(engine, settings).await?;
    Ok((identity, image))
}

/// Sweeps, and checks whether engine and image are still those of the probe. Returns once a new
/// probe is needed.
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
        // An engine that does not answer is harmless: checks start from the probed id.
        if bounded("image", settings.call_timeout, named)
            .await
            .is_ok_and(|named| named.as_ref() != Some(&ready.named))
        {
            return;
        }
    }
}

/// Sweeps once more at an orderly shutdown, because no other launcher may follow.
pub(crate) async fn sweep_last<E: Engine>(shared: &Shared<E>) {
    shared.holders.give_up();
    if let Err(error) = sweep(shared, &mut Reaper::default(), Sweep::All).await {
        tracing::debug!(
            error = error.message,
            "no last sweep for leftover containers: the engine does not answer"
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

/// For a missing volume, the engine would create a new one at the first check, and that volume
/// would be useless and permanent.
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
            "the engine has no volume for {:?}: start the gateway, which creates it, or set its name",
            settings.egress
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Frame, LauncherClient};
    use crate::service::server::Launcher;
    use crate::tests::fake_engine::{FakeEngine, REPORT, Script};
    use protocol::probe::CALLS_TRIED;
    use protocol::{CheckId, Host, ProbeReport};
    use tokio::task::JoinHandle;
    use tokio_util::sync::CancellationToken;

    /// A launcher, the token that ends it, and a handle to wait for its end.
    fn kept(
        settings: Settings,
        engine: FakeEngine,
    ) -> (Launcher<FakeEngine>, CancellationToken, JoinHandle<()>) {
        let launcher = Launcher::new(settings, engine);
        let shutdown = CancellationToken::new();
        let keeping = tokio::spawn({
            let (launcher, shutdown) = (launcher.clone(), shutdown.clone());
            async move { launcher.keep(shutdown).await }
        });
        (launcher, shutdown, keeping)
    }

    /// The first frame of a launch after this probe report, and the number of launches.
    async fn launched(report: &ProbeReport) -> (Frame, u64) {
        let engine = FakeEngine::new(Script::Print(0));
        engine.set_report(&serde_json::to_string(report).unwrap());
        let (launcher, shutdown, keeping) = kept(Settings::default(), engine);
        let client = LauncherClient::in_memory(&launcher);
        let check = CheckId::from_random(1);
        let host = Host::parse("a.example").unwrap();
        let first = client.launch(&check, &host).await.unwrap().next().await;
        let launches = client.status().await.unwrap().launches_total;
        shutdown.cancel();
        keeping.await.unwrap();
        (first.unwrap(), launches)
    }

    /// The status of the slots with this setting, on an engine that takes this time for a
    /// namespace; and the containers that are left after the launcher has ended.
    async fn slots(mode: SlotMode, namespace_takes: Duration) -> (String, Vec<String>) {
        let engine = FakeEngine::new(Script::Print(0));
        engine.set_namespace_takes(namespace_takes);
        let settings = Settings {
            slots: mode,
            ..Settings::default()
        };
        let (launcher, shutdown, keeping) = kept(settings, engine);
        let client = LauncherClient::in_memory(&launcher);
        let check = CheckId::from_random(1);
        let host = Host::parse("a.example").unwrap();
        let mut container = client.launch(&check, &host).await.unwrap();
        while !matches!(container.next().await.unwrap(), Frame::End(_)) {}
        let listed = client.list().await.unwrap();
        assert!(!listed.iter().any(|listed| *listed != check), "{listed:?}");
        let said = client.status().await.unwrap().slots.unwrap();
        shutdown.cancel();
        keeping.await.unwrap();
        (said, launcher.engine().names())
    }

    #[tokio::test(start_paused = true)]
    async fn slots_are_used_as_set_or_where_a_namespace_takes_time() {
        let (none, long) = (Duration::ZERO, Duration::from_millis(200));
        for (mode, takes, expect) in [
            (SlotMode::On, none, "on, as set"),
            (SlotMode::Off, long, "off, as set"),
            (
                SlotMode::Auto,
                none,
                "off: a container takes 0 ms in a slot and 0 ms",
            ),
            (
                SlotMode::Auto,
                long,
                "on: a container takes 0 ms in a slot and 200 ms",
            ),
        ] {
            let (said, left) = slots(mode, takes).await;
            assert!(said.starts_with(expect), "{mode:?}: {said}");
            assert!(left.is_empty(), "{mode:?}: {left:?}");
        }
    }

    /// The engine and the first warning in the status, and the runtime of the last container, a
    /// check's.
    async fn with_second_runtime(
        starts: Option<bool>,
    ) -> (String, Option<String>, Option<&'static str>) {
        let engine = FakeEngine::new(Script::Print(0));
        if let Some(starts) = starts {
            engine.set_second_runtime(starts);
        }
        let (launcher, shutdown, keeping) = kept(Settings::default(), engine);
        let client = LauncherClient::in_memory(&launcher);
        let check = CheckId::from_random(1);
        let host = Host::parse("a.example").unwrap();
        let mut container = client.launch(&check, &host).await.unwrap();
        while !matches!(container.next().await.unwrap(), Frame::End(_)) {}
        let mut status = client.status().await.unwrap();
        shutdown.cancel();
        keeping.await.unwrap();
        let runtime = launcher.engine().specs().last().unwrap().runtime;
        (status.engine.unwrap(), status.warnings.pop(), runtime)
    }

    #[tokio::test(start_paused = true)]
    async fn crun_runs_checks_where_it_is_listed_and_can() {
        let plain = "Docker 0 (API 1.41)".to_owned();
        let found = with_second_runtime(None).await;
        assert_eq!(found, (plain.clone(), None, None));
        let found = with_second_runtime(Some(true)).await;
        assert_eq!(found, (format!("{plain} with crun"), None, Some("crun")));
        let (engine, warning, runtime) = with_second_runtime(Some(false)).await;
        assert_eq!((engine, runtime), (plain, None));
        let warning = warning.unwrap();
        assert!(
            warning.contains("which can't run checks: start:"),
            "{warning}"
        );
        assert!(warning.contains("the runtime can't"), "{warning}");
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
}
