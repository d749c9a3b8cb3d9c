//! What the operator asks of the loop, over the control socket.

use dump::Force;
use protocol::Host;
use scheduler::event::Taken;
use tokio::sync::{mpsc, oneshot};

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

/// A check that the operator ordered.
#[derive(Debug)]
pub(super) struct Ordered {
    pub(super) watcher: mpsc::Sender<String>,
    /// The host, or why it is not checked.
    pub(super) taken: Result<Taken, String>,
}
