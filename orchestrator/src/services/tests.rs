//! Tools for tests of what works with them: the real store and clock, chance from a seed, and no parts but whom the test plays.

use std::path::Path;
use std::sync::Arc;

use census::time::Calendar;
use gateway::GatewayClient;
use launcher::LauncherClient;
use store::Store;

use super::Tools;
use crate::services::clock::{Dice, SystemClock};

/// Tools with a gateway at this socket, if anybody listens there, and no launcher.
pub(crate) fn tools(store: &Store, gateway: &Path) -> Tools {
    Tools {
        gateway: GatewayClient::new(gateway.to_owned()),
        launcher: LauncherClient::socket("/nonexistent"),
        writer: store.writer(),
        door: crate::names::gate::tests::fresh(store),
        clock: Arc::new(SystemClock),
        dice: Arc::new(Dice::seeded(1)),
        calendar: Calendar::REAL,
        slots: crate::check::slots::SlotQueue::unlimited(),
        contact: "".into(),
        peers_every: 3,
        meters: Arc::default(),
    }
}
