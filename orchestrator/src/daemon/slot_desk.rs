//! Passes requests for slots from tasks to the scheduler, and its grants back.

use std::collections::HashMap;

use scheduler::Event;
use scheduler::event::{CheckNumber, SlotDemand, SlotHolder};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::running::Running;
use crate::check::slot_queue::{Lease, Signal};

/// Tasks that wait for a slot, and the leases that were granted.
#[derive(Debug, Default)]
pub(super) struct SlotDesk {
    checks: HashMap<CheckNumber, oneshot::Sender<()>>,
    readings: HashMap<u64, oneshot::Sender<Lease>>,
    readings_begun: u64,
    /// Each task ends when its lease is dropped.
    leases: JoinSet<u64>,
}

impl SlotDesk {
    /// `None` for a check that was aborted while its signal waited.
    pub(super) fn receive(&mut self, signal: Signal, checks: &Running) -> Option<Event> {
        Some(match signal {
            Signal::Opened { check, .. } | Signal::FirstOutput { check } if !checks.has(check) => {
                return None;
            }
            Signal::Opened {
                check,
                demand,
                grant,
            } => {
                if demand == SlotDemand::One {
                    self.checks.insert(check, grant);
                }
                Event::Opened { check, demand }
            }
            Signal::FirstOutput { check } => Event::FirstOutput { check },
            Signal::SlotWanted { grant } => {
                let reading = self.readings_begun;
                self.readings_begun = self.readings_begun.saturating_add(1);
                self.readings.insert(reading, grant);
                Event::SlotWanted { reading }
            }
        })
    }

    pub(super) fn grant(&mut self, holder: SlotHolder) {
        match holder {
            SlotHolder::Check(check) => {
                if let Some(grant) = self.checks.remove(&check) {
                    // A check that was aborted before holds nothing, and the scheduler knows that.
                    grant.send(()).ok();
                }
            }
            SlotHolder::Reading(reading) => {
                if let Some(grant) = self.readings.remove(&reading) {
                    let (lease, dropped) = Lease::new();
                    // A reading that no longer waits drops the lease at once.
                    grant.send(lease).ok();
                    self.leases.spawn(async move {
                        dropped.await.ok();
                        reading
                    });
                }
            }
        }
    }

    pub(super) fn turn_away(&mut self, holder: SlotHolder) {
        match holder {
            SlotHolder::Check(check) => drop(self.checks.remove(&check)),
            SlotHolder::Reading(reading) => drop(self.readings.remove(&reading)),
        }
    }

    pub(super) fn forget(&mut self, check: CheckNumber) {
        self.checks.remove(&check);
    }

    /// The next slot that is given back; `None` if no reading holds one.
    pub(super) async fn returned(&mut self) -> Option<Event> {
        loop {
            // The task can't panic, so an error would mean an abort, and nothing aborts it.
            if let Ok(reading) = self.leases.join_next().await? {
                return Some(Event::SlotReturned { reading });
            }
        }
    }
}
