//! What the daemon answers at its sockets: commands, the intake, Prometheus.

pub mod control;
pub mod intake;
pub mod metrics;

mod socket;
