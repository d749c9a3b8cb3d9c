//! What the gate keeps in memory between two decisions, and the sizes of what it decides at once.

use admission::counters::Row;
use admission::{Counters, Waiting};
use census::time::Timestamp;

/// Names decided on at once, which is one transaction at most: the more they are, the longer a
/// verdict that comes meanwhile waits.
pub(super) const BATCH_MAX: usize = 500;

/// The same of a long list, whose neighbours share pages: each name writes less, the more they are.
/// `bench/RESULTS.md` has the figures.
pub(super) const LONG_BATCH_MAX: usize = 2000;

/// What is counted and who waits: as on disk, but for what is marked as unwritten.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) counters: Counters,
    pub(super) waiting: Waiting,
    /// Counters that were given back since they were written.
    pub(super) unwritten: Vec<Row>,
    /// Names refused in this window.
    pub(super) refused: u64,
    /// Names passed over in this window: they were not recognised, and there was neither room nor a
    /// place to wait.
    pub(super) passed_over: u64,
}

/// Seconds since 1970, for counters.
pub(super) fn seconds(now: Timestamp) -> u64 {
    u64::try_from(now.0.div_euclid(1000)).unwrap_or(0)
}
