//! Counts admissions in fixed windows of 24 hours.
//!
//! [`Counters::charge`] takes the counted item, its limit and the time. It returns whether there
//! was room, with a [`Receipt`] that can give the admission back. It refuses items without room,
//! and new counters once there are [`COUNTERS_MAX`].
//!
//! All counters share one window. The first use of any counter begins it. Exactly 24 hours after
//! its start the next window begins, with all counters at zero. After idle days the current window
//! is the one that contains the time, a whole number of windows later. If the clock goes backwards,
//! the window stays, so that no more names are admitted. If the clock was far ahead for a while,
//! the window lasts until the true time gets there.
//!
//! The state consists of [`Counters::window_start_s`], [`Counters::rows`] and the [`HashKey`].
//! Counters restored from it by [`Counters::resume`] and [`Counters::put`] answer as the old ones
//! would have.
//!
//! Each counter is identified by a keyed hash of 45 bits and takes little more than eight bytes
//! (`slots.rs`). Among ten million items, one or two pairs share a hash. They then share one limit,
//! so that no more gets through. Without the key, nobody can choose items that share a hash.

mod slots;
mod tables;

use std::fmt;

use siphasher::sip::SipHasher13;
use thiserror::Error;

use self::slots::ID_BITS;
pub use self::tables::Table;
use self::tables::Tables;
use crate::rules::Limit;

/// Length of a window: a day. Operators set limits per day, and a fixed window need not store the
/// time of each admission.
pub const WINDOW_SECONDS: u64 = 24 * 60 * 60;

/// Most counters in each table: ten million registered domains in a day, which no operator has
/// seen, and a fifth more. They take about 110 MB.
pub const COUNTERS_MAX: usize = 12_000_000;

/// The item of the only counter in [`Table::Total`], which counts all names.
pub(crate) const TOTAL: &[u8] = b"";

/// The secret key of the counters' hashes. It is chosen at random once, and stored with the rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey(pub [u8; 16]);

#[derive(Debug)]
pub struct Counters {
    hash_key: HashKey,
    window_start_s: Option<u64>,
    /// For each table. [`COUNTERS_MAX`] outside tests.
    counters_max: usize,
    tables: Tables,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Charge {
    /// There was room, and the counter was incremented.
    Admitted {
        /// Admissions in this window before this one.
        count: u32,
        receipt: Receipt,
    },
    Refused {
        count: u32,
    },
    /// There is room, but no further counter can be stored.
    Full,
}

/// Proof of one admission. It gives the count back once, because it can't be copied.
#[derive(Debug, PartialEq, Eq)]
pub struct Receipt {
    table: Table,
    id: u64,
    window_start_s: u64,
}

/// One counter in the form in which it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub table: Table,
    /// Hash of the counted item, below 2^45.
    pub id: u64,
    /// Start of its window, in seconds.
    pub window_start_s: u64,
    /// Admissions in that window. A row with 0 can be deleted. [`Counters::rows`] never returns 0.
    pub count: u32,
}

/// Why a row is not one that [`Counters::rows`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RowError {
    #[error("counter {id} has an id of more than {ID_BITS} bits")]
    Id { id: u64 },
    #[error("counter {id} is {count}, which is not from 1 to {}", Limit::MAX)]
    Count { id: u64, count: u32 },
    #[error("counter {id} occurs twice")]
    Twice { id: u64 },
    #[error("there are more than {COUNTERS_MAX} counters of one kind")]
    Full,
}

impl Counters {
    /// Counters without any window or admission.
    pub fn new(hash_key: HashKey) -> Self {
        Self {
            hash_key,
            window_start_s: None,
            counters_max: COUNTERS_MAX,
            tables: Tables::default(),
        }
    }

    /// Counters in an existing window, all at zero until [`Counters::put`] restores them.
    pub fn resume(hash_key: HashKey, window_start_s: Option<u64>) -> Self {
        Self {
            window_start_s,
            ..Self::new(hash_key)
        }
    }

    /// Restores a row of [`Counters::rows`] under the same [`HashKey`]. Ignores a row of an earlier
    /// window. A row of a later window begins that window.
    /// Fails if no such row can exist. Rows restored before stay.
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

    /// All counters above zero, in no particular order.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        let window_start_s = self.window_start_s.unwrap_or_default();
        self.tables.iter().map(move |(table, id, count)| Row {
            table,
            id,
            window_start_s,
            count,
        })
    }

    /// Start of the window, in seconds. `None` before the first use.
    pub fn window_start_s(&self) -> Option<u64> {
        self.window_start_s
    }

    /// Start of the next window, in seconds, at which there is room again. `None` before the first
    /// use.
    pub fn window_end_s(&self) -> Option<u64> {
        self.window_start_s
            .map(|start| start.saturating_add(WINDOW_SECONDS))
    }

    /// Enters the window that contains `now_s`. The very first call begins the first window.
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

    /// Counts one admission of `item` if fewer than `limit` were counted in the window that
    /// contains `now_s`.
    pub fn charge(&mut self, table: Table, item: &[u8], limit: Limit, now_s: u64) -> Charge {
        self.charge_id(table, self.id(item), limit, now_s)
    }

    /// Like [`Counters::charge`], for the item with this [`Counters::id`].
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

    /// Whether [`Counters::charge_id`] would admit within the current window.
    pub(crate) fn has_room(&self, table: Table, id: u64, limit: Limit) -> bool {
        let slots = self.tables.of(table);
        let count = slots.count(id);
        count < limit.get() && (count > 0 || slots.len() < self.counters_max)
    }

    /// All admissions in this window that count towards the total.
    pub fn total(&self) -> u32 {
        self.tables.of(Table::Total).count(self.id(TOTAL))
    }

    /// Gives an admission back, for a name that was not added after all. Returns the counter's new
    /// state, or `None` if the receipt's window is over.
    pub fn give_back(&mut self, receipt: Receipt) -> Option<Row> {
        if self.window_start_s != Some(receipt.window_start_s) {
            return None;
        }
        let slots = self.tables.of_mut(receipt.table);
        let count = slots.count(receipt.id).saturating_sub(1);
        slots.set(receipt.id, count);
        Some(self.row(&receipt))
    }

    /// The current state of an admission's counter.
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

    /// Begins the window at `start_s` with all counters at zero, unless it is the current one.
    fn begin(&mut self, start_s: u64) {
        if self.window_start_s != Some(start_s) {
            *self = Self {
                counters_max: self.counters_max,
                ..Self::resume(self.hash_key, Some(start_s))
            };
        }
    }

    /// The hash of `item`, below 2^45.
    pub(crate) fn id(&self, item: &[u8]) -> u64 {
        SipHasher13::new_with_key(&self.hash_key.0).hash(item) >> (u64::BITS - ID_BITS)
    }
}

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKey(..)")
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
