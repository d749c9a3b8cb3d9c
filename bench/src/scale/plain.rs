//! The plain way to take a host: one index of due times, one host, one update per host.

use std::path::Path;

use anyhow::{Context as _, Result};
use bench::shared::cost::{Cost, Meter};
use rusqlite::{Connection, params};

/// Without histories, groups, classes and validation; with the same durability and page cache as
/// the store's.
const COPY: &str = "\
    CREATE TABLE hosts (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, state TEXT NOT NULL, software TEXT, version TEXT, \
        first_seen INTEGER NOT NULL, last_alive INTEGER, last_checked INTEGER, due INTEGER NOT NULL);\
    INSERT INTO hosts SELECT id, name, state, software, version, first_seen, last_alive, last_checked, due FROM census.hosts ORDER BY id;\
    CREATE INDEX hosts_due ON hosts (due);";

const PICK: &str =
    "SELECT id, name, state, software, version, last_alive, due FROM hosts ORDER BY due LIMIT 1";

const PUT_OFF: &str = "UPDATE hosts SET due = ?2 WHERE id = ?1";

/// Time until a taken host is due again: the ordinary day.
const DAY_MILLIS: i64 = 29 * 3_600_000;

/// A file next to the census.
pub(crate) struct Plain(Connection);

impl Plain {
    pub(crate) fn copy(census: &Path) -> Result<Self> {
        let path = census.with_extension("plain");
        let connection = Connection::open(&path)?;
        connection.pragma_update(None, "synchronous", "off")?;
        let bytes = std::fs::metadata(census)?.len();
        let cache_kib = i64::try_from(bytes / 4 / 1024)?.max(64 * 1024);
        connection.pragma_update(None, "cache_size", -cache_kib)?;
        let census = census.to_str().context("a path that is text")?;
        connection.execute("ATTACH ?1 AS census", [census])?;
        connection.execute_batch(&format!("BEGIN; {COPY} COMMIT; DETACH census"))?;
        connection.close().map_err(|(_open, error)| error)?;
        let connection = Connection::open(&path)?;
        let word = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
        connection.pragma_update_and_check(None, "journal_mode", "wal", word)?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection.pragma_update(None, "cache_size", -16 * 1024)?;
        Ok(Self(connection))
    }

    /// Takes this many hosts, one after the other.
    pub(crate) fn picks(&self, many: u32) -> Result<Cost> {
        let mut pick = self.0.prepare_cached(PICK)?;
        let mut put_off = self.0.prepare_cached(PUT_OFF)?;
        let meter = Meter::begin();
        for _ in 0..many {
            let read = |row: &rusqlite::Row<'_>| -> rusqlite::Result<(i64, String, i64)> {
                Ok((row.get(0)?, row.get(1)?, row.get(6)?))
            };
            let (id, _name, due) = pick.query_row([], read)?;
            put_off.execute(params![id, due + DAY_MILLIS])?;
        }
        Ok(meter.end(usize::try_from(many)?))
    }
}
