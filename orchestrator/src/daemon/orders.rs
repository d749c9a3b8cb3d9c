//! The operator's requests to the loop, over the control socket.

use dump::Force;
use protocol::Host;
use scheduler::event::Taken;
use tokio::sync::{mpsc, oneshot};

/// Queue of waiting orders. Each operator's command waits for its answer.
pub const ORDERS_MAX: usize = 16;

#[derive(Debug)]
pub enum Order {
    /// Names were admitted: look for due hosts.
    Look,
    /// The host's owner opted out, and the store has recorded it.
    LeaveAlone { host: Host },
    /// Publish a list soon: a host that may be on the current one withdrew, and the store knows.
    Unlist,
    /// Check this host now and report each step; the channel closes at the end.
    Check {
        host: Host,
        watcher: mpsc::Sender<String>,
    },
    Dump {
        /// Whether to publish a list that lost too many names.
        force: Force,
        /// Receives the number of names, or why there is no new list.
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
