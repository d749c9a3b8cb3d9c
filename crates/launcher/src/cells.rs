//! Network namespaces in which checks take turns.
//!
//! Making a network namespace costs an engine more than all the rest of a start (`bench/RESULTS.md`). So each place in flight has a cell: a container
//! that holds an empty one and does nothing, confined like a check. A check joins it, and is its only guest: the next one comes when the process of the
//! former has ended. What could pass from one to the next in there would have to outlive its process, and nothing that a check may make does: sockets
//! end with it, and `bind`, netlink and every address are out of its reach anyway.
//!
//! In: nothing. Out: a [`Cell`], made when none is free. Refused: a second guest. A cell whose guest did not end in good order is not used again; it
//! leaves the table, and the reaper takes it.

use std::sync::{Mutex, PoisonError};

use protocol::CheckId;

use crate::engine::{ContainerId, Engine, bounded};
use crate::run::{fault, image_missing};
use crate::settings::Settings;
use crate::spec::{Network, Spec};
use crate::table::{Entry, Table};
use crate::wire::{FaultKind, LaunchFault};

/// Cells that are free. Never more in all than were in use at the same time.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    free: Mutex<Free>,
}

#[derive(Debug, Default)]
struct Free {
    cells: Vec<Cell>,
    /// How often all cells were given up. What was taken before comes back to nobody.
    epoch: u64,
}

/// A cell, in the hands of its one guest or free.
#[derive(Debug)]
pub(crate) struct Cell {
    container: ContainerId,
    epoch: u64,
    /// As long as it stands in the table, the reaper leaves its container alone.
    _entry: Entry,
}

impl Cell {
    /// For the specification of its guest.
    pub(crate) fn network(&self) -> Network {
        Network::Of(self.container.clone())
    }
}

impl Cells {
    /// A free cell, or a new one.
    ///
    /// # Errors
    /// When the engine can't make one; what it may have made falls to the reaper.
    pub(crate) async fn take<E: Engine>(
        &self,
        engine: &E,
        settings: &Settings,
        table: &Table,
    ) -> Result<Cell, LaunchFault> {
        let epoch = {
            let mut free = self.free();
            if let Some(cell) = free.cells.pop() {
                return Ok(cell);
            }
            free.epoch
        };
        let check = CheckId::from_random(rand::random());
        let entry = table.enter(&check).ok_or_else(|| LaunchFault {
            kind: FaultKind::EngineError,
            message: format!("two cells have the name {check}"),
        })?;
        let spec = Spec::cell(settings, &check);
        let created = bounded("create", settings.start_timeout, engine.create(&spec)).await;
        let container = match created {
            Ok(container) => container,
            Err(error) => {
                let present = engine.image_present(&spec.image);
                return Err(
                    match bounded("image", settings.call_timeout, present).await {
                        Ok(false) => image_missing(&spec.image),
                        Ok(true) | Err(_) => fault(&error),
                    },
                );
            }
        };
        bounded("start", settings.start_timeout, engine.start(&container))
            .await
            .map_err(|error| fault(&error))?;
        Ok(Cell {
            container,
            epoch,
            _entry: entry,
        })
    }

    /// Takes back a cell whose guest has ended.
    pub(crate) fn give_back(&self, cell: Cell) {
        let mut free = self.free();
        if cell.epoch == free.epoch {
            free.cells.push(cell);
        }
    }

    /// Gives all cells up, those in use when their guests have ended: another engine, or one that began anew, has none of them, and one that is being
    /// left is to keep none.
    pub(crate) fn give_up(&self) {
        let mut free = self.free();
        free.epoch = free.epoch.saturating_add(1);
        free.cells.clear();
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fake_engine::{FakeEngine, Mishap};

    struct Bench {
        cells: Cells,
        engine: FakeEngine,
        table: Table,
    }

    fn bench() -> Bench {
        Bench {
            cells: Cells::default(),
            engine: FakeEngine::default(),
            table: Table::default(),
        }
    }

    impl Bench {
        async fn take(&self) -> Result<Cell, LaunchFault> {
            self.cells
                .take(&self.engine, &Settings::default(), &self.table)
                .await
        }
    }

    #[tokio::test]
    async fn a_cell_is_used_again_and_never_by_two_at_once() {
        let bench = bench();
        let (first, second) = (bench.take().await.unwrap(), bench.take().await.unwrap());
        assert_ne!(first.network(), second.network());
        let network = first.network();
        bench.cells.give_back(first);
        let third = bench.take().await.unwrap();
        assert_eq!(third.network(), network);
        assert_eq!(bench.engine.cells(), 2);
        drop((second, third));
        assert_eq!(bench.engine.cells(), 2, "their removal is the reaper's");
    }

    #[tokio::test]
    async fn cells_that_were_given_up_come_back_to_nobody() {
        let bench = bench();
        let (free, used) = (bench.take().await.unwrap(), bench.take().await.unwrap());
        let networks = [free.network(), used.network()];
        bench.cells.give_back(free);
        bench.cells.give_up();
        bench.cells.give_back(used);
        let fresh = bench.take().await.unwrap();
        assert!(!networks.contains(&fresh.network()));
    }

    #[tokio::test]
    async fn a_cell_that_can_not_be_made_is_a_fault_and_its_place_in_the_table_goes() {
        for (nth, mishap) in [
            (0, Mishap::Refused),
            (1, Mishap::Refused),
            (0, Mishap::Down),
        ] {
            let bench = bench();
            bench.engine.go_wrong(nth, mishap);
            assert!(bench.take().await.is_err(), "{nth} {mishap:?}");
            assert!(bench.table.is_empty());
        }
        let bench = bench();
        bench.engine.set_image(false);
        let fault = bench.take().await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::ImageMissing);
    }
}
