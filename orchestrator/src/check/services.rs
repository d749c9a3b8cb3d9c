//! The services that every check uses: the two ways out of the orchestrator, the store, the rule
//! for names, time and random numbers.

#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use census::class::Class;
use census::time::{Calendar, Timestamp};
use gateway::GatewayClient;
use launcher::LauncherClient;
use protocol::Host;
use protocol::egress::Way;
use protocol::order::AskPeers;
use scheduler::command::Start;
use scheduler::event::Trigger;
use store::{StoreError, Writer};

use crate::admit::gate::{NameGate, Origin};
use crate::check::slot_queue::SlotQueue;
use crate::ground::clock::{Clock, Random};
use crate::ground::meters::Meters;

/// Peers are requested at the first `alive` and at every third one after it, twice a week: most
/// names on a list are known by then.
pub const PEERS_EVERY: u32 = 3;

/// The services of a check. Cheap to clone: everything in it is shared.
#[derive(Debug, Clone)]
pub struct Services {
    /// The only way to the network for a check, unless there is a second.
    pub gateway: GatewayClient,
    /// The gateway of the second way out, if there is one. Only checks take it.
    pub second_gateway: Option<GatewayClient>,
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
    /// The operator's seeds, whose lists a young census takes whole.
    pub seeds: Arc<[Host]>,
    /// Peers are requested at the first `alive` and at every one of this number after it.
    pub peers_every: u32,
    pub meters: Arc<Meters>,
}

impl Services {
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The gateway of a way out.
    pub fn gateway_of(&self, way: Way) -> &GatewayClient {
        let second = self.second_gateway.as_ref();
        second
            .filter(|_| way == Way::Second)
            .unwrap_or(&self.gateway)
    }

    /// A moment within the hour, at which a host without a verdict is due again.
    pub fn again_soon(&self) -> Timestamp {
        self.now()
            .plus(self.calendar.again_soon(self.random.jitter()))
    }

    /// Whether a check asks for peers: as the scheduler wants, but at a host's first response only
    /// while lists bring new names, or by chance. Seeds are always asked, and so is a host whose
    /// check the operator ordered.
    pub fn asks_peers(&self, start: &Start) -> AskPeers {
        let is_first = start.class != Class::Living && start.trigger != Trigger::Manual;
        let is_sampled = || self.gate.reads_first_list(self.random.jitter());
        if is_first && !self.seeds.contains(&start.host) && !is_sampled() {
            return AskPeers::Skip;
        }
        start.peers
    }

    /// Offers names that `by` lists, or to which it moved, to the gate as candidates. A known
    /// host's row is not changed (invariant I3).
    pub async fn learn(&self, hosts: Vec<Host>, by: &Host) -> Result<(), StoreError> {
        let origin = if self.seeds.contains(by) {
            Origin::Operators
        } else {
            Origin::Stranger
        };
        self.learn_from(hosts, by, origin).await
    }

    /// As [`Services::learn`], for names whose origin is known otherwise.
    pub async fn learn_from(
        &self,
        hosts: Vec<Host>,
        by: &Host,
        origin: Origin,
    ) -> Result<(), StoreError> {
        let names = self.gate.names();
        let admitted = hosts
            .into_iter()
            .filter_map(|host| names.admit_host(host).ok());
        let hosts = admitted.collect();
        self.gate.named(hosts, by, origin, self.now()).await
    }
}
