//! Subscriptions with an endpoint at another push service: which services are allowed, the requests
//! to the daemon, and their times.
//!
//! Strangers choose these endpoints and control the answers, so this process never connects to one.
//! A container that the daemon starts does that.

mod fate;
mod queue;
mod services;
pub mod wire;

pub use fate::Fate;
pub use queue::{Attempt, Cursor, Next, Queue};
pub use services::{Endpoint, PushServices};

#[derive(Debug)]
pub struct Elsewhere {
    pub services: PushServices,
    pub daemon: wire::Daemon,
}

/// Seconds for which a message is worth sending, here and at a push service: a day.
pub const TTL_SECONDS: i64 = 86_400;
