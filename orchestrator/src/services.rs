//! What every check works with: the two ways out of the orchestrator, the store, the rule for names, time and chance.

pub mod clock;
pub mod meters;

#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use census::time::{Calendar, Timestamp};
use gateway::GatewayClient;
use launcher::LauncherClient;
use protocol::Host;
use store::{Candidate, StoreError, Writer};

use crate::check::slot_queue::SlotQueue;
use crate::config::Config;
use crate::meters::Meters;
use crate::names::gate::NameGate;
use crate::services::clock::{Clock, Random};

/// Peers are asked for at the first `alive` and at every third one after it, twice a week: most
/// names on a list are known by then.
const PEERS_EVERY: u32 = 3;

/// The services of the path. Cheap to clone: everything in it is shared.
#[derive(Debug, Clone)]
pub struct Services {
    /// The only way out for a check.
    pub gateway: GatewayClient,
    /// The only way to a container.
    pub launcher: LauncherClient,
    /// The one writer.
    pub writer: Writer,
    /// The one way in for names.
    pub gate: NameGate,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub random: Arc<Random>,
    /// All intervals.
    pub calendar: Calendar,
    /// Slots among the containers.
    pub slots: SlotQueue,
    /// Who runs this census.
    pub contact: Arc<str>,
    /// Peers are asked for at the first `alive` and every so many after.
    pub peers_every: u32,
    /// What is counted.
    pub meters: Arc<Meters>,
}

impl Services {
    /// The services that the settings ask for.
    pub fn new(
        config: &Config,
        writer: Writer,
        gate: NameGate,
        clock: Arc<dyn Clock>,
        random: Random,
        slots: SlotQueue,
    ) -> Self {
        Self {
            gateway: GatewayClient::new(config.gateway_socket.clone()),
            launcher: LauncherClient::socket(config.launcher_socket.clone()),
            writer,
            gate,
            clock,
            random: Arc::new(random),
            calendar: config.calendar,
            slots,
            contact: config.imprint.contact.as_str().into(),
            peers_every: PEERS_EVERY,
            meters: Arc::default(),
        }
    }

    /// Now.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Some time within the hour: when a host is due that no verdict came in for.
    pub fn again_soon(&self) -> Timestamp {
        self.now()
            .plus(self.calendar.again_soon(self.random.jitter()))
    }

    /// Names that `by` lists or moved to become candidates, as far as the gate has room for them; a
    /// known host's row is not touched (invariant I3).
    ///
    /// # Errors
    /// When the store does not take them.
    pub async fn learn(&self, hosts: Vec<Host>, by: &Host) -> Result<(), StoreError> {
        let (now, names) = (self.now(), self.gate.names());
        let candidates = hosts
            .into_iter()
            .filter_map(|host| names.admit_host(host).ok())
            .map(|host| self.candidate(host, now))
            .collect();
        self.gate.named(candidates, by, now).await
    }

    /// A name that is asked first within a day, if it enters now.
    pub fn candidate(&self, host: Host, now: Timestamp) -> Candidate {
        Candidate {
            host,
            due: now.plus(self.calendar.first_check(self.random.jitter())),
            first_seen: now,
        }
    }
}
