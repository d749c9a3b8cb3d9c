//! Subscriptions with an endpoint at another push service: which services are allowed, the requests
//! to the daemon, and their times.
//!
//! Strangers choose these endpoints and control the answers, so this process never connects to one.
//! A container that the daemon starts does that.

mod outcome;
mod queue;
mod services;
pub mod wire;

pub use outcome::AttemptResult;
pub use queue::{Attempt, Cursor, Next, Queue};
pub use services::{Endpoint, PushServices};

#[derive(Debug)]
pub struct Remote {
    pub services: PushServices,
    pub daemon: wire::Daemon,
}

/// Seconds for which a message is worth sending, here and at a push service: a day.
pub const TTL_SECONDS: i64 = 86_400;
