//! Counters of admissions in fixed windows of 24 hours.
//!
//! In: what is counted, its limit, the time. Out: whether there was room, and a [`Receipt`] by which the admission can be given back.
//! Refused: what has no room, and a new counter when there are [`COUNTERS_MAX`] of them already.
//!
//! All counters share one window. The first use of all begins it; at exactly its start plus 24 hours the next one begins, with all counters at
//! zero; after idle days it is the one that holds the time, a whole number of windows later. A clock that goes backwards stays in the window that
//! it was in, so that it lets nothing more through; one that was far ahead for a while leaves a window that lasts until the true time gets there.
//!
//! State is what [`Counters::window_start_s`] and [`Counters::rows`] give, and the [`HashKey`]: counters made of these by [`Counters::resume`] and
//! [`Counters::put`] answer as the old ones would have.
//!
//! Counters are kept by a keyed hash of 45 bits of what they count, in little more than eight bytes each (`slots.rs`). Of ten million, one or two
//! pairs share a hash; they then share one limit, so that nothing more gets through. Who doesn't know the key can't choose who shares.

mod slots;
mod tables;

use std::fmt;

use siphasher::sip::SipHasher13;
use thiserror::Error;

use self::slots::ID_BITS;
pub use self::tables::Table;
use self::tables::Tables;
use crate::rules::Limit;

/// Length of a window: a day. Limits are said by the day, and a fixed window needs no memory of when within it each admission was.
pub const WINDOW_SECONDS: u64 = 24 * 60 * 60;

/// Most counters in each table: ten million registered domains in a day, which no operator has seen, and a fifth more. They take some 110 MB.
pub const COUNTERS_MAX: usize = 12_000_000;

/// What the one counter of [`Table::Total`] counts: all names.
pub(crate) const TOTAL: &[u8] = b"";

/// The secret that counters are hashed by: chosen by chance once, and kept beside the rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey(pub [u8; 16]);

/// All counters.
#[derive(Debug)]
pub struct Counters {
    hash_key: HashKey,
    window_start_s: Option<u64>,
    /// Of each table; [`COUNTERS_MAX`] outside tests.
    counters_max: usize,
    tables: Tables,
}

/// Whether there was room.
#[derive(Debug, PartialEq, Eq)]
pub enum Charge {
    /// There was, and the counter moved.
    Admitted {
        /// Admissions in this window before this one.
        count: u32,
        /// By which it can be taken back.
        receipt: Receipt,
    },
    /// There was none.
    Refused {
        /// Admissions in this window.
        count: u32,
    },
    /// There would have been, but no further counter can be kept.
    Full,
}

/// Proof of one admission, by which its count is given back, once: it can't be copied.
#[derive(Debug, PartialEq, Eq)]
pub struct Receipt {
    table: Table,
    id: u64,
    window_start_s: u64,
}

/// One counter as it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// What it counts.
    pub table: Table,
    /// Hash of which one it counts; below 2^45.
    pub id: u64,
    /// Start of its window, in seconds.
    pub window_start_s: u64,
    /// Admissions in that window. With 0, which [`Counters::rows`] never gives, the row is no longer wanted.
    pub count: u32,
}

/// Why a row can't be one that was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RowError {
    /// Its id is no hash of ours.
    #[error("counter {id} has an id of more than {ID_BITS} bits")]
    Id {
        /// The id.
        id: u64,
    },
    /// Its count is 0 or over [`Limit::MAX`].
    #[error(
        "counter {id} stands at {count}, which is not from 1 to {}",
        Limit::MAX
    )]
    Count {
        /// The id.
        id: u64,
        /// The count.
        count: u32,
    },
    /// It was there before.
    #[error("counter {id} is there twice")]
    Twice {
        /// The id.
        id: u64,
    },
    /// There are [`COUNTERS_MAX`] rows of its table already.
    #[error("there are more than {COUNTERS_MAX} counters of one kind")]
    Full,
}

impl Counters {
    /// Counters that were never used.
    pub fn new(hash_key: HashKey) -> Self {
        Self {
            hash_key,
            window_start_s: None,
            counters_max: COUNTERS_MAX,
            tables: Tables::default(),
        }
    }

    /// Counters in a window that began before, all at zero until [`Counters::put`] says otherwise.
    pub fn resume(hash_key: HashKey, window_start_s: Option<u64>) -> Self {
        Self {
            window_start_s,
            ..Self::new(hash_key)
        }
    }

    /// Takes a row back that [`Counters::rows`] gave under the same [`HashKey`]. One of a former window is left aside; one of a later window than
    /// was known begins it.
    ///
    /// # Errors
    /// When it can't be such a row; what was put before stays.
    pub fn put(&mut self, row: Row) -> Result<(), RowError> {
        let Row { id, count, .. } = row;
        if id >> ID_BITS != 0 {
            return Err(RowError::Id { id });
        }
        if count == 0 || Limit::new(count).is_none() {
            return Err(RowError::Count { id, count });
        }
        if self
            .window_start_s
            .is_some_and(|start| row.window_start_s < start)
        {
            return Ok(());
        }
        self.begin(row.window_start_s);
        let counters_max = self.counters_max;
        let slots = self.tables.of_mut(row.table);
        if slots.count(id) != 0 {
            return Err(RowError::Twice { id });
        }
        if slots.len() >= counters_max {
            return Err(RowError::Full);
        }
        slots.set(id, count);
        Ok(())
    }

    /// Every counter above zero, in no order that means anything.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        let window_start_s = self.window_start_s.unwrap_or_default();
        self.tables.iter().map(move |(table, id, count)| Row {
            table,
            id,
            window_start_s,
            count,
        })
    }

    /// Start of the window, in seconds; none before the first use.
    pub fn window_start_s(&self) -> Option<u64> {
        self.window_start_s
    }

    /// When the next window begins, in seconds, and whoever found no room may try again; none before the first use.
    pub fn window_end_s(&self) -> Option<u64> {
        self.window_start_s
            .map(|start| start.saturating_add(WINDOW_SECONDS))
    }

    /// Goes to the window that holds `now_s`. The first call of all begins the first one.
    pub fn enter(&mut self, now_s: u64) {
        let start = match self.window_start_s {
            None => now_s,
            Some(start) => {
                let since = now_s.saturating_sub(start);
                let into = since.checked_rem(WINDOW_SECONDS).unwrap_or_default();
                start.saturating_add(since.saturating_sub(into))
            }
        };
        self.begin(start);
    }

    /// Counts one admission of `item` when fewer than `limit` were counted in the window that holds `now_s`.
    pub fn charge(&mut self, table: Table, item: &[u8], limit: Limit, now_s: u64) -> Charge {
        self.charge_id(table, self.id(item), limit, now_s)
    }

    /// As [`Counters::charge`], of what has the id [`Counters::id`].
    pub(crate) fn charge_id(&mut self, table: Table, id: u64, limit: Limit, now_s: u64) -> Charge {
        self.enter(now_s);
        let counters_max = self.counters_max;
        let slots = self.tables.of_mut(table);
        let count = slots.count(id);
        if count >= limit.get() {
            return Charge::Refused { count };
        }
        if count == 0 && slots.len() >= counters_max {
            return Charge::Full;
        }
        slots.set(id, count.saturating_add(1));
        let receipt = Receipt {
            table,
            id,
            window_start_s: self.window_start_s.unwrap_or(now_s),
        };
        Charge::Admitted { count, receipt }
    }

    /// Whether [`Counters::charge_id`] would admit at a time within the window that was entered last.
    pub(crate) fn has_room(&self, table: Table, id: u64, limit: Limit) -> bool {
        let slots = self.tables.of(table);
        let count = slots.count(id);
        count < limit.get() && (count > 0 || slots.len() < self.counters_max)
    }

    /// Admissions of all kinds that are counted in total in this window.
    pub fn total(&self) -> u32 {
        self.tables.of(Table::Total).count(self.id(TOTAL))
    }

    /// Takes an admission back, for what came to nothing: the counter as it is now, or nothing when the receipt's window is over.
    pub fn give_back(&mut self, receipt: Receipt) -> Option<Row> {
        if self.window_start_s != Some(receipt.window_start_s) {
            return None;
        }
        let slots = self.tables.of_mut(receipt.table);
        let count = slots.count(receipt.id).saturating_sub(1);
        slots.set(receipt.id, count);
        Some(self.row(&receipt))
    }

    /// The counter of an admission as it is now.
    pub fn row(&self, receipt: &Receipt) -> Row {
        let slots = self.tables.of(receipt.table);
        let is_current = self.window_start_s == Some(receipt.window_start_s);
        Row {
            table: receipt.table,
            id: receipt.id,
            window_start_s: receipt.window_start_s,
            count: if is_current {
                slots.count(receipt.id)
            } else {
                0
            },
        }
    }

    /// Makes the window that begins at `start_s` the current one; its counters stay when it is that already.
    fn begin(&mut self, start_s: u64) {
        if self.window_start_s != Some(start_s) {
            *self = Self {
                counters_max: self.counters_max,
                ..Self::resume(self.hash_key, Some(start_s))
            };
        }
    }

    /// What a counter of `item` is kept by, below 2^45.
    pub(crate) fn id(&self, item: &[u8]) -> u64 {
        SipHasher13::new_with_key(&self.hash_key.0).hash(item) >> (u64::BITS - ID_BITS)
    }
}

/// Says nothing of it.
impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKey(..)")
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
