//! Services for tests: the real store and clock, seeded random numbers, and no parts except those
//! that the test simulates.

use std::path::Path;
use std::sync::Arc;

use census::time::Calendar;
use gateway::GatewayClient;
use launcher::LauncherClient;
use store::Store;

use super::Services;
use crate::ground::clock::{Random, SystemClock};

/// Services with a gateway at this socket, if the test listens there, and no launcher.
pub(crate) fn services(store: &Store, gateway: &Path) -> Services {
    Services {
        gateway: GatewayClient::new(gateway.to_owned()),
        second_gateway: None,
        launcher: LauncherClient::socket("/nonexistent"),
        writer: store.writer(),
        gate: crate::admit::gate::tests::fresh(store),
        clock: Arc::new(SystemClock),
        random: Arc::new(Random::seeded(1)),
        calendar: Calendar::REAL,
        slots: crate::check::slot_queue::SlotQueue::unlimited(),
        contact: "".into(),
        seeds: Arc::default(),
        peers_every: 3,
        meters: Arc::default(),
    }
}
