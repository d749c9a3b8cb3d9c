//! What one check is given.

use census::time::Timestamp;
use protocol::egress::Wish;
use protocol::{CheckId, CheckOrder, Host};
use scheduler::command::Start;
use scheduler::event::CheckNumber;
use tokio::sync::mpsc;

use crate::services::Services;

/// One look at one host.
#[derive(Debug)]
pub struct Check {
    /// The scheduler's number.
    pub number: CheckNumber,
    /// Its id, which names its container and its egress.
    pub id: CheckId,
    /// The host.
    pub host: Host,
    /// What is asked besides.
    pub order: CheckOrder,
    /// What its way should show to work.
    pub wish: Wish,
    /// When it began.
    pub began: Timestamp,
    /// Who watches its steps, if somebody does.
    watcher: Option<mpsc::Sender<String>>,
}

impl Check {
    /// A check that starts now.
    pub fn new(start: Start, services: &Services, watcher: Option<mpsc::Sender<String>>) -> Self {
        Self {
            number: start.check,
            id: services.random.check_id(),
            host: start.host,
            order: CheckOrder {
                contact: services.contact.to_string(),
                peers: start.peers,
                list: None,
                walk: None,
                delivery: None,
            },
            wish: start.wish,
            began: services.now(),
            watcher,
        }
    }

    /// Tells the watcher, if there is one who keeps up.
    pub fn step(&self, text: impl FnOnce() -> String) {
        if let Some(watcher) = &self.watcher {
            // Who does not read misses lines; a check never waits for its watcher.
            watcher.try_send(text()).ok();
        }
    }
}
