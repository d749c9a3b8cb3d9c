//! Removes what a crash left behind (invariant I4).
//!
//! In: the containers that carry both the installation's label and a check's, and the table of those that somebody sees to. Out: the others,
//! removed. Services of the installation carry no check's label and are never touched.

use std::collections::HashSet;

use crate::engine::{ContainerId, Engine, EngineError, bounded};
use crate::run::fault;
use crate::settings::Settings;
use crate::spec::{LABEL_CHECK, LABEL_INSTANCE, check_labels};
use crate::table::Table;

/// Most containers removed in one sweep; the next goes on. Each takes up to a start's time-out, and checks wait meanwhile only at the start.
const SWEEP_MAX: usize = 256;

/// Which containers a sweep takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sweep {
    /// All that nobody sees to: at the start, and when the engine has come back.
    All,
    /// Those that nobody saw to at the last sweep either. A create whose answer was given up for lost may yet be under way.
    Stale,
}

/// What is remembered from sweep to sweep.
#[derive(Debug, Default)]
pub(crate) struct Reaper {
    unowned_before: HashSet<ContainerId>,
}

impl Reaper {
    /// Removes left-over containers, and says how many.
    ///
    /// # Errors
    /// When the engine doesn't list them. One that can't be removed is logged and left to the next sweep.
    pub(crate) async fn sweep<E: Engine>(
        &mut self,
        engine: &E,
        settings: &Settings,
        table: &Table,
        which: Sweep,
    ) -> Result<u64, EngineError> {
        let labels = check_labels(&settings.instance);
        let listed = bounded("list", settings.call_timeout, engine.list(&labels)).await?;
        let unowned: Vec<_> = listed
            .into_iter()
            // The engine has filtered; what is removed by force is worth a second look.
            .filter(|found| found.labels.get(LABEL_INSTANCE) == Some(&settings.instance))
            .filter_map(|found| {
                let check = found.labels.get(LABEL_CHECK)?;
                (!table.holds(check)).then_some(found.id)
            })
            .take(SWEEP_MAX)
            .collect();
        let mut left = HashSet::new();
        let mut reaped: u64 = 0;
        for id in unowned {
            if which == Sweep::Stale && !self.unowned_before.contains(&id) {
                left.insert(id);
                continue;
            }
            match bounded("remove", settings.start_timeout, engine.remove(&id)).await {
                Ok(()) => {
                    tracing::info!(container = %id, "removed a container that was left behind");
                    reaped = reaped.saturating_add(1);
                }
                Err(error) => {
                    tracing::warn!(container = %id, error = %fault(&error).message, "a container that was left behind can't be removed");
                    left.insert(id);
                }
            }
        }
        self.unowned_before = left;
        Ok(reaped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_engine::{FakeEngine, labels};
    use protocol::CheckId;

    async fn sweep(reaper: &mut Reaper, engine: &FakeEngine, table: &Table, which: Sweep) -> u64 {
        reaper
            .sweep(engine, &Settings::default(), table, which)
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
            sweep(&mut reaper, &engine, &Table::default(), Sweep::All).await,
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
        let table = Table::default();
        let entry = table.enter(&check).unwrap();
        let mut reaper = Reaper::default();
        assert_eq!(sweep(&mut reaper, &engine, &table, Sweep::All).await, 0);
        drop(entry);
        assert_eq!(
            sweep(&mut reaper, &engine, &table, Sweep::Stale).await,
            0,
            "first seen"
        );
        assert_eq!(
            sweep(&mut reaper, &engine, &table, Sweep::Stale).await,
            1,
            "seen again"
        );
    }
}
