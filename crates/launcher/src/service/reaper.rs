//! Removes what a crash left behind (invariant I4).
//!
//! In: the containers that carry both the installation's label and a check's, and the registry of
//! those that somebody sees to. Out: the others, removed, and trouble when too many can't be.
//! Services of the installation carry no check's label and are never touched.

use std::collections::HashSet;

use crate::container::run::fault;
use crate::container::slot::CONTAINERS_PER_SLOT;
use crate::container::spec::{LABEL_CHECK, LABEL_HOLDER, LABEL_INSTANCE, check_labels};
use crate::engine::{ContainerId, Engine, EngineError, bounded};
use crate::service::registry::Registry;
use crate::settings::Settings;

/// Most removals tried in one sweep; the next goes on. Each takes up to a start's time-out, and checks wait meanwhile only at the start.
const SWEEP_MAX: usize = 256;

/// Removals without an answer before a sweep leaves the rest to the next one: with more of them a sweep would take hours.
const TIMEOUTS_MAX: usize = 8;

/// Which containers a sweep takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sweep {
    /// All that nobody sees to: at the start, and when the engine has come back.
    All,
    /// Those that nobody saw to at the last sweep either. A create whose answer was given up for lost may yet be under way.
    Stale,
}

/// What is remembered from sweep to sweep: containers that were listed, so no more of them than an answer has room for.
#[derive(Debug, Default)]
pub(crate) struct Reaper {
    unowned_before: HashSet<ContainerId>,
    /// Those that could not be removed. They come last, so that they keep no other waiting.
    stuck: HashSet<ContainerId>,
}

impl Reaper {
    /// Removes left-over containers, and says how many.
    ///
    /// One that can't be removed, "dead" with a busy device for instance, is logged and left to the next sweep: checks go on beside it. An engine
    /// with as many of them as may be under removal at once is out of order, or they would pile up without end.
    ///
    /// # Errors
    /// When the engine can't be reached, doesn't list, or when too many containers stay.
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
                    tracing::info!(container = %id, "removed a container that was left behind");
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
                        tracing::warn!(container = %id, error = %fault(&error).message, "a container that was left behind can't be removed; every sweep tries again");
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

    /// Which containers to remove now, those last that could not be removed before; and remembers all that nobody sees to.
    async fn due<E: Engine>(
        &mut self,
        engine: &E,
        settings: &Settings,
        registry: &Registry,
        which: Sweep,
    ) -> Result<Vec<ContainerId>, EngineError> {
        let labels = check_labels(&settings.instance);
        let listed = bounded("list", settings.call_timeout, engine.list(&labels)).await?;
        let mut holders = HashSet::new();
        let unowned: HashSet<_> = listed
            .into_iter()
            // The engine has filtered; what is removed by force is worth a second look.
            .filter(|found| found.labels.get(LABEL_INSTANCE) == Some(&settings.instance))
            .filter_map(|found| {
                let check = found.labels.get(LABEL_CHECK)?;
                if found.labels.contains_key(LABEL_HOLDER) {
                    holders.insert(found.id.clone());
                }
                (!registry.holds(check)).then_some(found.id)
            })
            .collect();
        self.stuck.retain(|id| unowned.contains(id));
        let mut due: Vec<_> = unowned
            .iter()
            .filter(|id| which == Sweep::All || self.unowned_before.contains(*id))
            .cloned()
            .collect();
        // Podman removes no container whose namespace another one has joined.
        due.sort_by_key(|id| (self.stuck.contains(id), holders.contains(id)));
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

    /// Containers of checks that nobody sees to. Removals of those with a mishap go wrong.
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
        // They are tried again for as long as they are there.
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
