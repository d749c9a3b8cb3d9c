//! Subscriptions whose endpoint belongs to another push service: which services are served, what
//! the daemon is asked to post, and when.
//!
//! Strangers name these endpoints and answer at them, so this process never talks to one: a
//! container does, which the daemon starts.

mod fate;
mod queue;
mod services;
pub mod wire;

pub use fate::Fate;
pub use queue::{Attempt, Cursor, Next, Queue};
pub use services::{Endpoint, PushServices};

/// Push services other than this one.
#[derive(Debug)]
pub struct Elsewhere {
    /// Services that messages may go to.
    pub services: PushServices,
    /// Has messages posted.
    pub daemon: wire::Daemon,
}

/// Seconds for which a message is worth sending, here and at a push service: a day.
pub const TTL_SECONDS: i64 = 86_400;
