//! Removes what a crash left behind (invariant I4).
//!
//! It lists the containers that carry both the installation's label and a check's label, and
//! removes all that are not in the registry. Too many failed removals are reported as trouble. The
//! installation's services carry no check label and are never touched.

use std::collections::HashSet;

use crate::container::slot::CONTAINERS_PER_SLOT;
use crate::container::spec::{LABEL_CHECK, LABEL_INSTANCE, check_labels};
use crate::engine::{ContainerId, Engine, EngineError, bounded};
use crate::run::fault;
use crate::service::registry::Registry;
use crate::settings::Settings;

/// Most removals tried in one sweep; the next sweep continues. Each takes up to the start timeout.
/// Checks wait for a sweep only at the launcher's start.
const SWEEP_MAX: usize = 256;

/// Timed-out removals before a sweep leaves the rest to the next one. With more, a sweep could take
/// hours.
const TIMEOUTS_MAX: usize = 8;

/// Which containers a sweep removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sweep {
    /// All unowned ones: at the start, and when the engine has come back.
    All,
    /// Those that were already unowned at the last sweep. A create that timed out may still be in
    /// progress.
    Stale,
}

/// What the reaper remembers between sweeps: listed containers only, so the engine's answer bounds
/// their number.
#[derive(Debug, Default)]
pub(crate) struct Reaper {
    unowned_before: HashSet<ContainerId>,
    /// Containers that could not be removed. They come last, so that they delay no others.
    stuck: HashSet<ContainerId>,
}

impl Reaper {
    /// Removes left-over containers and returns their number.
    ///
    /// A container that can't be removed, for example one that is "dead" with a busy device, is
    /// logged and left to the next sweep; checks continue. An engine with as many of these as may
    /// be under removal at once is out of order, because otherwise they would pile up without
    /// limit.
    ///
    /// # Errors
    /// Fails if the engine can't be reached or can't list, or if too many containers remain.
    pub(crate) async fn sweep<E: Engine>(
        &mut self,
        engine: &E,
        settings: &Settings,
        registry: &Registry,
        which: Sweep,
    ) -> Result<u64, EngineError> {
        let due = self.due(engine, settings, registry, which).await?;
        let mut reaped: u64 = 0;
        let mut timeouts: usize = 0;
        let mut last = None;
        for id in due {
            match bounded("remove", settings.start_timeout, engine.remove(&id)).await {
                Ok(()) => {
                    tracing::info!(container = %id, "removed a leftover container");
                    reaped = reaped.saturating_add(1);
                    self.unowned_before.remove(&id);
                    self.stuck.remove(&id);
                }
                Err(error @ EngineError::Down { .. }) => return Err(error),
                Err(error) => {
                    if matches!(error, EngineError::TimedOut { .. }) {
                        timeouts = timeouts.saturating_add(1);
                    }
                    if self.stuck.insert(id.clone()) {
                        tracing::warn!(container = %id, error = %fault(&error).message, "a leftover container can't be removed; the next sweep tries again");
                    }
                    last = Some(error);
                    if timeouts >= TIMEOUTS_MAX {
                        break;
                    }
                }
            }
        }
        let stuck_max = settings.checks_max.saturating_mul(CONTAINERS_PER_SLOT);
        match last {
            Some(error) if self.stuck.len() > stuck_max => Err(error),
            Some(_) | None => Ok(reaped),
        }
    }

    /// The containers to remove now, with those that could not be removed before at the end.
    /// Remembers all unowned ones.
    async fn due<E: Engine>(
        &mut self,
        engine: &E,
        settings: &Settings,
        registry: &Registry,
        which: Sweep,
    ) -> Result<Vec<ContainerId>, EngineError> {
        let labels = check_labels(&settings.instance);
        let listed = bounded("list", settings.call_timeout, engine.list(&labels)).await?;
        let unowned: HashSet<_> = listed
            .into_iter()
            // The engine has filtered already. A forced removal is worth a second check.
            .filter(|found| found.labels.get(LABEL_INSTANCE) == Some(&settings.instance))
            .filter_map(|found| {
                let check = found.labels.get(LABEL_CHECK)?;
                (!registry.holds(check)).then_some(found.id)
            })
            .collect();
        self.stuck.retain(|id| unowned.contains(id));
        let mut due: Vec<_> = unowned
            .iter()
            .filter(|id| which == Sweep::All || self.unowned_before.contains(*id))
            .cloned()
            .collect();
        due.sort_by_key(|id| self.stuck.contains(id));
        due.truncate(SWEEP_MAX);
        self.unowned_before = unowned;
        Ok(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fake_engine::{FakeEngine, Mishap, labels};
    use protocol::CheckId;

    /// Adds unowned containers of checks. If `mishap` is set, their removals fail.
    fn plant(engine: &FakeEngine, name: &str, count: usize, mishap: Option<Mishap>) {
        for number in 0..count {
            let name = format!("{name}{number:03}");
            let check = CheckId::from_random(1).to_string();
            engine.plant(
                &name,
                labels(&[(LABEL_INSTANCE, "fedicensus"), (LABEL_CHECK, &check)]),
            );
            engine.set_removal(&name, mishap);
        }
    }

    fn removals(engine: &FakeEngine) -> usize {
        let calls = engine.calls();
        calls.iter().filter(|call| **call == "remove").count()
    }

    async fn sweep(
        reaper: &mut Reaper,
        engine: &FakeEngine,
        registry: &Registry,
        which: Sweep,
    ) -> u64 {
        reaper
            .sweep(engine, &Settings::default(), registry, which)
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn at_the_start_all_checks_of_this_installation_go_and_nothing_else() {
        let engine = FakeEngine::default();
        let check = CheckId::from_random(1).to_string();
        engine.plant(
            "ours",
            labels(&[(LABEL_INSTANCE, "fedicensus"), (LABEL_CHECK, &check)]),
        );
        engine.plant(
            "theirs",
            labels(&[(LABEL_INSTANCE, "other"), (LABEL_CHECK, &check)]),
        );
        engine.plant("a service", labels(&[(LABEL_INSTANCE, "fedicensus")]));
        engine.plant("a stranger", labels(&[]));
        let mut reaper = Reaper::default();
        assert_eq!(
            sweep(&mut reaper, &engine, &Registry::default(), Sweep::All).await,
            1
        );
        assert_eq!(engine.names(), ["a service", "a stranger", "theirs"]);
    }

    #[tokio::test]
    async fn a_running_check_is_never_reaped() {
        let engine = FakeEngine::default();
        let check = CheckId::from_random(1);
        engine.plant(
            "ours",
            labels(&[
                (LABEL_INSTANCE, "fedicensus"),
                (LABEL_CHECK, check.as_str()),
            ]),
        );
        let registry = Registry::default();
        let entry = registry.enter(&check).unwrap();
        let mut reaper = Reaper::default();
        assert_eq!(sweep(&mut reaper, &engine, &registry, Sweep::All).await, 0);
        drop(entry);
        assert_eq!(
            sweep(&mut reaper, &engine, &registry, Sweep::Stale).await,
            0,
            "first seen"
        );
        assert_eq!(
            sweep(&mut reaper, &engine, &registry, Sweep::Stale).await,
            1,
            "seen again"
        );
    }

    fn stuck_max() -> usize {
        Settings::default()
            .checks_max
            .saturating_mul(CONTAINERS_PER_SLOT)
    }

    #[tokio::test]
    async fn containers_that_can_not_be_removed_keep_no_other_waiting_and_no_check() {
        let engine = FakeEngine::default();
        plant(&engine, "dead", stuck_max(), Some(Mishap::Refused));
        plant(&engine, "left", 3, None);
        let (mut reaper, registry) = (Reaper::default(), Registry::default());
        assert_eq!(sweep(&mut reaper, &engine, &registry, Sweep::All).await, 3);
        assert_eq!(engine.names().len(), stuck_max(), "only the dead stay");
        // The reaper retries them as long as they exist.
        plant(&engine, "dead", stuck_max(), None);
        let freed = sweep(&mut reaper, &engine, &registry, Sweep::Stale).await;
        assert_eq!(usize::try_from(freed), Ok(stuck_max()));
    }

    #[tokio::test]
    async fn more_containers_that_stay_than_may_be_under_removal_are_trouble_until_they_go() {
        let engine = FakeEngine::default();
        plant(&engine, "dead", stuck_max() + 1, Some(Mishap::Refused));
        plant(&engine, "left", 3, None);
        let (settings, registry) = (Settings::default(), Registry::default());
        let mut reaper = Reaper::default();
        let swept = reaper
            .sweep(&engine, &settings, &registry, Sweep::All)
            .await;
        assert!(
            matches!(swept, Err(EngineError::Refused { .. })),
            "{swept:?}"
        );
        assert_eq!(engine.names().len(), stuck_max() + 1, "only the dead stay");
        engine.set_removal("dead000", None);
        assert_eq!(sweep(&mut reaper, &engine, &registry, Sweep::All).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn removals_without_an_answer_end_a_sweep_and_starve_nobody() {
        let engine = FakeEngine::default();
        let hanging = TIMEOUTS_MAX + 4;
        plant(&engine, "hang", hanging, Some(Mishap::Hang));
        let (mut reaper, registry) = (Reaper::default(), Registry::default());
        assert_eq!(sweep(&mut reaper, &engine, &registry, Sweep::All).await, 0);
        assert_eq!(removals(&engine), TIMEOUTS_MAX);
        plant(&engine, "left", 30, None);
        let mut reaped = 0;
        for _ in 0..2 {
            reaped += sweep(&mut reaper, &engine, &registry, Sweep::All).await;
        }
        assert_eq!(reaped, 30);
        assert_eq!(engine.names().len(), hanging);
    }

    #[tokio::test]
    async fn an_engine_that_is_gone_is_not_asked_again_in_the_same_sweep() {
        let engine = FakeEngine::default();
        plant(&engine, "left", 3, Some(Mishap::Down));
        let (settings, registry) = (Settings::default(), Registry::default());
        let mut reaper = Reaper::default();
        let swept = reaper
            .sweep(&engine, &settings, &registry, Sweep::All)
            .await;
        assert!(matches!(swept, Err(EngineError::Down { .. })), "{swept:?}");
        assert_eq!(removals(&engine), 1);
    }
}
