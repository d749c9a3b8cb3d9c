//! The table `dumps`: what was published when. A dump that shrank too much is noticed even after a
//! restart (invariant I11).

use census::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::db::error::StoreError;
use crate::db::reader::Reader;

/// Dumps kept: about a year of them.
const DUMPS_MAX: i64 = 1500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DumpRecord {
    pub at: Timestamp,
    pub names: u64,
    /// Whether every due name had been checked once, or an operator forced the list.
    pub is_full: bool,
}

pub(crate) const RECORD: &str =
    "INSERT INTO dumps (at, names, is_full) VALUES (?1, ?2, ?3) RETURNING id";
pub(crate) const PRUNE: &str = "DELETE FROM dumps WHERE id <= ?1";
pub(crate) const LAST: &str = "SELECT at, names, is_full FROM dumps ORDER BY id DESC LIMIT 1";
pub(crate) const LAST_FULL: &str =
    "SELECT names FROM dumps WHERE is_full = 1 ORDER BY id DESC LIMIT 1";
pub(crate) const FIRST: &str = "SELECT at FROM dumps WHERE names >= ?1 ORDER BY id LIMIT 1";

impl Reader {
    /// The last published dump. `None` if there is none.
    pub fn last_dump(&self) -> Result<Option<DumpRecord>, StoreError> {
        last(self.connection())
    }

    /// Names in the last full dump. `None` if there is none.
    pub fn last_full_dump(&self) -> Result<Option<u64>, StoreError> {
        let names: Option<i64> = self
            .connection()
            .prepare_cached(LAST_FULL)?
            .query_row([], |row| row.get(0))
            .optional()?;
        Ok(names.map(|names| u64::try_from(names).unwrap_or(0)))
    }

    /// When the first remembered dump with at least so many names was made.
    pub fn first_dump(&self, names_min: u32) -> Result<Option<Timestamp>, StoreError> {
        let first = self
            .connection()
            .prepare_cached(FIRST)?
            .query_row([names_min], |row| row.get(0).map(Timestamp));
        Ok(first.optional()?)
    }
}

pub(crate) fn record(connection: &Connection, dump: DumpRecord) -> Result<(), StoreError> {
    let names = i64::try_from(dump.names).unwrap_or(i64::MAX);
    let id: i64 = connection
        .prepare_cached(RECORD)?
        .query_row(params![dump.at.0, names, dump.is_full], |row| row.get(0))?;
    connection
        .prepare_cached(PRUNE)?
        .execute([id.saturating_sub(DUMPS_MAX)])?;
    Ok(())
}

pub(crate) fn last(connection: &Connection) -> Result<Option<DumpRecord>, StoreError> {
    let last = connection
        .prepare_cached(LAST)?
        .query_row([], |row| {
            Ok(DumpRecord {
                at: Timestamp(row.get(0)?),
                names: u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0),
                is_full: row.get(2)?,
            })
        })
        .optional()?;
    Ok(last)
}
