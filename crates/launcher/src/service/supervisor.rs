//! Keeps the launcher able to launch: finds the engine, reaps, probes, and then sweeps regularly
//! (invariants I1 and I4).
//!
//! Every launch reads the [`Condition`] that this sets. A failure is logged once per change and
//! retried with growing pauses. Until it passes, launches are answered with the reason.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use crate::container::spec::CRUN;
use crate::engine::{Engine, EngineError, Identity, Info, bounded};
use crate::run::{ending, fault, image_missing};
use crate::service::probe_container::probe;
use crate::service::reaper::{Reaper, Sweep};
use crate::service::state::{Condition, Ready, Shared};
use crate::settings::{EgressSource, Settings};
use crate::wire::{FaultKind, LaunchFault};

/// Sweeps until the next probe: an hour with the default interval. An engine may restart with other
/// settings between two sweeps.
const SWEEPS_PER_PROBE: u32 = 60;

/// Time for which a socket may be missing or refused before the launcher ends. A container keeps
/// the socket that was mounted at its start: with Docker's live-restore, a restarted engine listens
/// at a new one, which only a restarted launcher sees.
const SOCKET_GONE_MAX: Duration = Duration::from_mins(1);

/// Runs until the launcher shuts down, and finishes a probe in progress.
/// Fails once no engine has listened for [`SOCKET_GONE_MAX`].
pub(crate) async fn supervise<E: Engine>(shared: &Shared<E>) -> Result<(), LaunchFault> {
    let mut reaper = Reaper::default();
    let mut pause = shared.settings.backoff_min;
    let mut gone_since: Option<Instant> = None;
    while !shared.ending.is_cancelled() {
        match prepare(shared, &mut reaper, &mut gone_since).await {
            // The failure was caused by the shutdown.
            _ if shared.ending.is_cancelled() => return Ok(()),
            Ok(ready) => {
                pause = shared.settings.backoff_min;
                turn(shared, Condition::Ready(ready.clone()));
                // Afterwards, since the name may be the last one of the image that checks ran from.
                if let Some(warning) = name_probed(shared, &ready.image).await {
                    let mut unnamed = ready.clone();
                    unnamed.warnings.push(warning);
                    turn(shared, Condition::Ready(unnamed));
                }
                watch(shared, &mut reaper, &ready).await;
                // A failed launch woke the supervisor. The pause prevents probes in a loop.
                until_ending(shared, pause).await;
            }
            Err(trouble) => {
                if gone_since.is_some_and(|since| since.elapsed() >= SOCKET_GONE_MAX) {
                    return Err(trouble);
                }
                turn(shared, Condition::Trouble(trouble));
                until_ending(shared, pause).await;
                pause = pause.saturating_mul(2).min(shared.settings.backoff_max);
            }
        }
    }
    Ok(())
}

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
                tracing::info!(engine = ready.engine(), "the engine enforces the required limits: checks can start");
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
    gone_since: &mut Option<Instant>,
) -> Result<Ready, LaunchFault> {
    // Cancelling these calls leaves nothing behind.
    let (identity, info, named) = tokio::select! {
        () = shared.ending.cancelled() => return Err(ending()),
        known = survey(shared, reaper, gone_since) => known?,
    };
    let complaint = match fit(shared, &identity, &info, &named).await {
        Ok(fit) => {
            return Ok(Ready {
                identity,
                image: named.clone(),
                named,
                runtime: fit.runtime,
                sweeps: SWEEPS_PER_PROBE,
                warnings: fit.warnings,
            });
        }
        Err(complaint) => complaint,
    };
    // A lost engine proves nothing about the image.
    if complaint.kind == FaultKind::EngineDown {
        return Err(complaint);
    }
    let probed = shared.settings.probed_image();
    let former = shared.engine.image_id(&probed);
    let former = bounded("image", shared.settings.call_timeout, former).await;
    let Some(former) = former.ok().flatten().filter(|former| *former != named) else {
        return Err(complaint);
    };
    let Ok(mut fit) = fit(shared, &identity, &info, &former).await else {
        return Err(complaint);
    };
    fit.warnings.push(format!(
        "image: {} is a new image, and no check can start from it: {}; checks use the former image",
        shared.settings.image, complaint.message
    ));
    Ok(Ready {
        identity,
        image: former,
        named,
        runtime: fit.runtime,
        // Only a report is lasting evidence about the image.
        sweeps: if complaint.kind == FaultKind::NotConfined {
            SWEEPS_PER_PROBE
        } else {
            1
        },
        warnings: fit.warnings,
    })
}

/// Gives a probed image the launcher's own name, so that a build that moves the configured name
/// does not take it away. The warning if that fails.
async fn name_probed<E: Engine>(shared: &Shared<E>, image: &str) -> Option<String> {
    let name = shared.settings.probed_image();
    let tagged = shared.engine.tag(image, &name);
    let failed = bounded("tag", shared.settings.call_timeout, tagged)
        .await
        .err()?;
    Some(format!(
        "image: a build may take away the image that checks run from, since it could not be named {name}: {}",
        fault(&failed).message
    ))
}

/// What a probe found, with all required limits in force.
struct Fit {
    runtime: Option<&'static str>,
    warnings: Vec<String>,
}

/// Finds the runtime for containers of an image: [`CRUN`] if the engine lists it and the probe
/// passes, otherwise the engine's default.
async fn fit<E: Engine>(
    shared: &Shared<E>,
    identity: &Identity,
    info: &Info,
    image: &str,
) -> Result<Fit, LaunchFault> {
    let mut refusal = None;
    if info.adds_crun {
        match probe(shared, identity.kind, info, image, Some(CRUN)).await {
            Err(fault) if fault.kind != FaultKind::EngineDown => {
                refusal = Some(format!(
                    "runtime: the engine lists {CRUN}, which can't run checks: {}; the default runtime runs them",
                    fault.message
                ));
            }
            found => {
                return found.map(|warnings| Fit {
                    runtime: Some(CRUN),
                    warnings,
                });
            }
        }
    }
    let mut warnings = probe(shared, identity.kind, info, image, None).await?;
    warnings.extend(refusal);
    Ok(Fit {
        runtime: None,
        warnings,
    })
}

/// Collects facts and removes leftovers before the probe. Returns the id of the image that has the
/// configured name, too.
async fn survey<E: Engine>(
    shared: &Shared<E>,
    reaper: &mut Reaper,
    gone_since: &mut Option<Instant>,
) -> Result<(Identity, Info, String), LaunchFault> {
    let (engine, settings) = (&shared.engine, &shared.settings);
    let call_timeout = settings.call_timeout;
    // Uses the start timeout: Podman answers only after it has taken the lock of every container,
    // including those that are being started or removed.
    let identified = bounded("version", settings.start_timeout, engine.identify()).await;
    *gone_since = match &identified {
        Err(EngineError::NoSocket { .. }) => gone_since.or_else(|| Some(Instant::now())),
        Ok(_) | Err(_) => None,
    };
    let identity = identified.map_err(|error| fault(&error))?;
    // Before any check that may fail, so that leftovers are removed even if nothing can be started.
    sweep(shared, reaper, Sweep::All).await?;
    let named = bounded("image", call_timeout, engine.image_id(&settings.image))
        .await
        .map_err(|error| fault(&error))?
        .ok_or_else(|| image_missing(&settings.image))?;
    egress_present(engine, settings).await?;
    let info = bounded("info", call_timeout, engine.info()).await;
    let info = info.unwrap_or_else(|error| {
        tracing::debug!(error = %fault(&error).message, "the engine's runtimes are not known");
        Info::default()
    });
    Ok((identity, info, named))
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
    use crate::tests::fake_engine::{FakeEngine, IMAGE_ID, Mishap, Script};
    use protocol::{CheckId, Host};
    use tokio::task::JoinHandle;
    use tokio_util::sync::CancellationToken;

    /// A launcher, the token that ends it, and a handle to wait for its end.
    fn kept(
        settings: Settings,
        engine: FakeEngine,
    ) -> (
        Launcher<FakeEngine>,
        CancellationToken,
        JoinHandle<Result<(), LaunchFault>>,
    ) {
        let launcher = Launcher::new(settings, engine);
        let shutdown = CancellationToken::new();
        let keeping = tokio::spawn({
            let (launcher, shutdown) = (launcher.clone(), shutdown.clone());
            async move { launcher.keep(shutdown).await }
        });
        (launcher, shutdown, keeping)
    }

    /// A container keeps the socket that was mounted at its start.
    #[tokio::test(start_paused = true)]
    async fn a_launcher_ends_after_a_minute_without_a_socket() {
        let ended_after = async |mishap| {
            let engine = FakeEngine::new(Script::Print(0));
            engine.break_calls(&["version"], mishap);
            let start = Instant::now();
            let launcher = Launcher::new(Settings::default(), engine);
            let kept = launcher.keep(CancellationToken::new());
            let ended = tokio::time::timeout(Duration::from_hours(1), kept).await;
            ended.map(|ended| (start.elapsed(), ended.unwrap_err().message))
        };
        let (after, why) = ended_after(Mishap::NoSocket).await.unwrap();
        assert!((60..=120).contains(&after.as_secs()), "{after:?}");
        assert!(why.contains("no engine at /run/engine.sock"), "{why}");
        assert!(ended_after(Mishap::Down).await.is_err(), "it may come back");
    }

    #[tokio::test(start_paused = true)]
    async fn a_next_launcher_finds_the_image_that_passed() {
        let engine = FakeEngine::new(Script::Print(0));
        let settings = Settings::default();
        let (launcher, shutdown, keeping) = kept(settings.clone(), engine);
        let client = LauncherClient::in_memory(&launcher);
        while client.status().await.unwrap().engine.is_none() {
            tokio::task::yield_now().await;
        }
        shutdown.cancel();
        keeping.await.unwrap().unwrap();
        let engine = launcher.engine();
        let probed = settings.probed_image();
        assert_eq!(engine.image_id(&probed).await.unwrap().unwrap(), IMAGE_ID);
        // A build moves the configured name to an image that fails.
        engine.set_images(&[IMAGE_ID, "sha256:2"]);
        engine.set_readable(&["sha256:2"]);
        let next = Shared::new(settings, FakeEngine::clone(engine));
        let ready = prepare(&next, &mut Reaper::default(), &mut None)
            .await
            .unwrap();
        assert_eq!(
            (ready.image.as_str(), ready.named.as_str()),
            (IMAGE_ID, "sha256:2")
        );
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
        keeping.await.unwrap().unwrap();
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
}
