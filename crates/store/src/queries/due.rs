//! When hosts are due, and how many are.

use census::class::{Class, PerClass};
use census::time::Timestamp;
use rusqlite::OptionalExtension as _;

use crate::db::error::StoreError;
use crate::db::reader::Reader;
use crate::queries::counts::count;
use crate::tables::hosts::take;

pub(crate) const COUNT_DUE: &str = "SELECT count(*) FROM hosts WHERE in_flight = 0 AND due IS NOT NULL AND class IN (0, 1, 2, 3) AND due <= ?1";

/// Stops counting at a limit, so that the cost does not grow with the backlog.
pub(crate) const COUNT_DUE_BETWEEN: &str = "SELECT count(*) FROM (SELECT 1 FROM hosts WHERE in_flight = 0 AND due IS NOT NULL \
     AND class IN (0, 1, 2, 3) AND due > ?1 AND due <= ?2 LIMIT ?3)";

pub(crate) const NEXT_DUE: &str = "SELECT due FROM hosts WHERE in_flight = 0 AND due IS NOT NULL AND class = ?1 ORDER BY due LIMIT 1";

impl Reader {
    /// Number of hosts that are due and not in flight.
    pub fn due(&self, now: Timestamp) -> Result<u64, StoreError> {
        count(self.connection(), COUNT_DUE, [now.0])
    }

    /// The earliest due time of a host that is not in flight. `None` if no host has one.
    pub fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let mut statement = self.connection().prepare_cached(NEXT_DUE)?;
        let mut next: Option<Timestamp> = None;
        for class in Class::ALL {
            let first = statement
                .query_row([class.number()], |row| row.get(0).map(Timestamp))
                .optional()?;
            next = [next, first].into_iter().flatten().min();
        }
        Ok(next)
    }

    /// Number of hosts of each class that are due and not in flight, counted up to `most`.
    pub fn due_by_class(&self, now: Timestamp, most: u32) -> Result<PerClass<u32>, StoreError> {
        take::due_by_class(self.connection(), now, most)
    }

    /// Number of hosts not in flight that come due after `after` and until `until`, counted up to
    /// `most`.
    pub fn due_between(
        &self,
        after: Timestamp,
        until: Timestamp,
        most: u32,
    ) -> Result<u32, StoreError> {
        Ok(self
            .connection()
            .prepare_cached(COUNT_DUE_BETWEEN)?
            .query_row([after.0, until.0, i64::from(most)], |row| row.get(0))?)
    }
}
