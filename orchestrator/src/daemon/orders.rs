//! What the operator asks of the loop, over the control socket.

use dump::Force;
use protocol::Host;
use scheduler::Event;
use scheduler::event::{Taken, Trigger};
use tokio::sync::{mpsc, oneshot};

use super::{Daemon, take};

/// Orders that wait at most. Each operator's command waits for its answer.
pub const ORDERS_MAX: usize = 16;

/// What the operator asks.
#[derive(Debug)]
pub enum Order {
    /// Names came in: look for what is due.
    Look,
    /// The host's owner asked to be left alone, and the store knows.
    LeaveAlone {
        /// The host.
        host: Host,
    },
    /// Check this host now and report each step; the channel closes at the end.
    Check {
        /// The host.
        host: Host,
        /// Where the steps go.
        watcher: mpsc::Sender<String>,
    },
    /// Publish now.
    Dump {
        /// Whether a list that lost too many names goes out.
        force: Force,
        /// The outcome: names, or why not.
        answer: oneshot::Sender<Result<u64, String>>,
    },
}

impl Daemon {
    pub(super) fn obey(&mut self, order: Order) {
        match order {
            Order::Look => self.handle(Event::RowsChanged),
            Order::LeaveAlone { host } => self.handle(Event::OptedOut { host }),
            Order::Check { host, watcher } => self.check_now(host, watcher),
            Order::Dump { force, answer } => self.publish_now(force, answer),
        }
    }

    fn check_now(&mut self, host: Host, watcher: mpsc::Sender<String>) {
        if let Some((what, _since)) = self.scheduler.outage() {
            let why = format!("not checked, because of an outage: {what}");
            watcher.try_send(why).ok();
            return;
        }
        let (services, now) = (self.services.clone(), self.services.now());
        self.ordered.spawn(async move {
            let taken = take::take_one(host, &services, now).await;
            Ordered { watcher, taken }
        });
    }

    /// An ordered check's host was taken, or could not be.
    pub(super) fn start_ordered(&mut self, Ordered { watcher, taken }: Ordered) {
        match taken {
            Ok(taken) => {
                self.watcher = Some(watcher);
                let trigger = Trigger::Manual;
                self.handle(Event::TakenOne { taken, trigger });
            }
            Err(why_not) => {
                watcher.try_send(format!("not checked: {why_not}")).ok();
            }
        }
    }
}

/// A check that the operator ordered.
#[derive(Debug)]
pub(super) struct Ordered {
    watcher: mpsc::Sender<String>,
    /// The host, or why it is not checked.
    pub(super) taken: Result<Taken, String>,
}
