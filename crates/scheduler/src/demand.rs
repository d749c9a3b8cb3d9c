//! Which hosts are taken, and how fast.

pub(crate) mod deferral;
pub(crate) mod in_progress;
pub mod shares;
pub mod start_rate;

pub use in_progress::OPENINGS_PER_SLOT;
