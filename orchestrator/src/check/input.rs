//! The input of one check.

use census::time::Timestamp;
use protocol::egress::{Way, Wish};
use protocol::{CheckId, CheckOrder, Host};
use scheduler::command::Start;
use scheduler::event::CheckNumber;
use tokio::sync::mpsc;

use crate::check::services::Services;

#[derive(Debug)]
pub struct Check {
    /// The scheduler's number of the check.
    pub number: CheckNumber,
    /// Names its container and its egress.
    pub id: CheckId,
    pub host: Host,
    /// What to ask beyond NodeInfo.
    pub order: CheckOrder,
    /// What the connection should show to work.
    pub wish: Wish,
    pub began: Timestamp,
    /// Receives the check's steps, if an operator watches.
    watcher: Option<mpsc::Sender<String>>,
}

impl Check {
    /// A check that starts now.
    pub fn new(start: Start, services: &Services, watcher: Option<mpsc::Sender<String>>) -> Self {
        Self {
            number: start.check,
            id: services.random.check_id().by(start.wish.way),
            order: CheckOrder::check(&*services.contact, services.asks_peers(&start)),
            host: start.host,
            wish: start.wish,
            began: services.now(),
            watcher,
        }
    }

    /// The gateway that it takes, in the steps' words.
    pub(super) fn gateway(&self) -> &'static str {
        match self.wish.way {
            Way::First => "gateway",
            Way::Second => "second gateway",
        }
    }

    /// Sends a step to the watcher, if there is one and it keeps up.
    pub fn step(&self, text: impl FnOnce() -> String) {
        if let Some(watcher) = &self.watcher {
            // A slow watcher misses lines: a check never waits for it.
            watcher.try_send(text()).ok();
        }
    }
}
