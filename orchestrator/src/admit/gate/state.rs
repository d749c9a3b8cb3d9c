//! What the gate keeps in memory between two decisions, and the sizes of its batches.

use admission::counters::Row;
use admission::{Counters, Waiting};
use census::time::Timestamp;

/// Names decided on at once, in one transaction: the more there are, the longer a concurrent
/// verdict waits.
pub(super) const BATCH_MAX: usize = 500;

/// The batch size for a long list, whose neighbouring names share pages: the larger the batch, the
/// less each name writes. `bench/RESULTS.md` has the figures.
pub(super) const LONG_BATCH_MAX: usize = 2000;

/// Most names that a census knows while it takes its seeds' lists whole: twice as many as the
/// largest list had, and as many as one list may have.
pub(super) const YOUNG_NAMES_MAX: usize = 250_000;

/// Whose names these are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Stranger,
    /// A seed or a public list, both named by the operator.
    Operators,
}

/// Counters and waiting names. They equal those on disk, except for what is marked as unwritten.
#[derive(Debug)]
pub(super) struct GateState {
    pub(super) counters: Counters,
    pub(super) waiting: Waiting,
    /// Counters that were undone since they were written.
    pub(super) unwritten: Vec<Row>,
    pub(super) refused: u64,
    /// Names skipped in this window: memory did not recognise them, and they had neither room nor a
    /// place to wait.
    pub(super) passed_over: u64,
    /// Names admitted in this window since the start that the total did not count, because the
    /// operator's own lists brought them in youth.
    pub(super) beyond_total: u32,
    /// Seconds for which the census is young, from its first list with a name on.
    pub(super) young_left_s: u32,
}

/// Seconds since 1970, for counters.
pub(super) fn seconds(now: Timestamp) -> u64 {
    u64::try_from(now.0.div_euclid(1000)).unwrap_or(0)
}
