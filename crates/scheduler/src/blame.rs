//! Is it them or us? Whether a failed check counts against its host (invariant I5).

pub mod blackout;
pub(crate) mod canaries;
pub mod doubt;
pub mod faults;
pub(crate) mod outage;
