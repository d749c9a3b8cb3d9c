//! The daemon's sockets: commands, the intake, the console, Prometheus.

pub mod console;
pub mod control;
pub mod intake;
pub mod metrics;

mod socket;
