//! The page for Prometheus, served at a separate socket ([`MetricsServer`]).
//!
//! It holds the daemon's counters ([`crate::ground::meters`]), what `status` reads from the daemon,
//! the gateway and the launcher, and a survey of the database that is some seconds old
//! ([`Surveyor`]).

pub mod http;
pub mod page;
pub mod survey;

#[cfg(test)]
mod tests;

pub use self::http::MetricsServer;
pub use self::page::Source;
pub use self::survey::Surveyor;
