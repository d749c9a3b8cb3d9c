//! The daemon's sockets: commands, the intake, the console, the push process, Prometheus.

pub mod console;
pub mod control;
pub mod intake;
pub mod metrics;
pub mod push;

mod socket;
