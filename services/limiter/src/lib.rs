//! Limits an expensive computation, such as a password hash, and hides how it ended.
//!
//! [`Limiter`]: every call takes the same time, few computations run in parallel, waiting is
//! bounded. [`LoginLimiter`] also bans addresses and locks users. The rules are those of Anansi's
//! limiter (`Jach/anansi`), without its timing leaks.
//!
//! This crate uses no HTTP, SQL or threads. The time of day and random numbers are arguments.
//! Tokio's timer measures durations, and tests pause it.

pub mod call;
mod inside;
pub mod limits;

pub mod address;
pub mod login;
pub mod metrics;

pub use address::address_key;
pub use call::{Call, Limiter, Permit, Status, Times};
pub use limits::{Limits, Unfit, WorkTime};
pub use login::{LoginLimiter, LoginLimits};
pub use metrics::Metrics;
