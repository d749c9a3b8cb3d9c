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
}

pub(crate) const RECORD: &str = "INSERT INTO dumps (at, names) VALUES (?1, ?2) RETURNING id";
pub(crate) const PRUNE: &str = "DELETE FROM dumps WHERE id <= ?1";
pub(crate) const LAST: &str = "SELECT at, names FROM dumps ORDER BY id DESC LIMIT 1";

impl Reader {
    /// The last published dump. `None` if there is none.
    pub fn last_dump(&self) -> Result<Option<DumpRecord>, StoreError> {
        last(self.connection())
    }
}

pub(crate) fn record(connection: &Connection, dump: DumpRecord) -> Result<(), StoreError> {
    let names = i64::try_from(dump.names).unwrap_or(i64::MAX);
    let id: i64 = connection
        .prepare_cached(RECORD)?
        .query_row(params![dump.at.0, names], |row| row.get(0))?;
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
            })
        })
        .optional()?;
    Ok(last)
}
