//! The limits on this process: those that it sets itself, and a report of those that the engine
//! set.

pub mod probe;
pub mod rlimits;
