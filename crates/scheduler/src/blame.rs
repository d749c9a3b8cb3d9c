//! Decides whether a failed check counts against its host, or whether we may be the cause
//! (invariant I5).

pub mod blackout;
pub(crate) mod canaries;
pub mod doubt;
pub mod faults;
pub(crate) mod outage;
pub(crate) mod ways;
