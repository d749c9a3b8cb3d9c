//! The services that every check uses: the two ways out of the orchestrator, the store, the rule
//! for names, time and random numbers.

#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use census::time::{Calendar, Timestamp};
use gateway::GatewayClient;
use launcher::LauncherClient;
use protocol::Host;
use store::{Candidate, StoreError, Writer};

use crate::admit::gate::{self, NameGate};
use crate::check::slot_queue::SlotQueue;
use crate::ground::clock::{Clock, Random};
use crate::ground::meters::Meters;

/// Peers are requested at the first `alive` and at every third one after it, twice a week: most
/// names on a list are known by then.
pub const PEERS_EVERY: u32 = 3;

/// The services of a check. Cheap to clone: everything in it is shared.
#[derive(Debug, Clone)]
pub struct Services {
    /// The only way to the network for a check.
    pub gateway: GatewayClient,
    /// The only way to a container.
    pub launcher: LauncherClient,
    /// The only writer of the database.
    pub writer: Writer,
    /// The only gate for new names.
    pub gate: NameGate,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<Random>,
    pub calendar: Calendar,
    pub slots: SlotQueue,
    /// The contact of the census's operator.
    pub contact: Arc<str>,
    /// Peers are requested at the first `alive` and at every one of this number after it.
    pub peers_every: u32,
    pub meters: Arc<Meters>,
}

impl Services {
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A moment within the hour, at which a host without a verdict is due again.
    pub fn again_soon(&self) -> Timestamp {
        self.now()
            .plus(self.calendar.again_soon(self.random.jitter()))
    }

    /// Offers names that `by` lists, or to which it moved, to the gate as candidates. A known
    /// host's row is not changed (invariant I3).
    pub async fn learn(&self, hosts: Vec<Host>, by: &Host) -> Result<(), StoreError> {
        let (now, names) = (self.now(), self.gate.names());
        let candidates = hosts
            .into_iter()
            .filter_map(|host| names.admit_host(host).ok())
            .map(|host| self.candidate(host, now))
            .collect();
        self.gate.named(candidates, by, now).await
    }

    /// A candidate that is first checked within a day if it is admitted now.
    pub fn candidate(&self, host: Host, now: Timestamp) -> Candidate {
        gate::candidate(host, now, self.calendar, self.random.jitter())
    }
}
