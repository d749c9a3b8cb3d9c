//! Connections to the database file, with the SQLite settings that each kind needs.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::db::tuning::{BUSY_WAIT, MAPPED_BYTES, Tuning, WRITER_CACHE_KIB};

/// SQLite's page cache of a reader. There may be several readers.
const READER_CACHE_KIB: i64 = 4 * 1024;

/// Size to which the write-ahead log's file is truncated when the log is reset. A long dump delays
/// the reset and lets the file grow.
const LOG_BYTES_KEPT: i64 = 16 * 1024 * 1024;

/// Prepared statements kept per connection: all of the crate's, and those that begin and end
/// transactions.
pub(crate) const STATEMENTS_KEPT: usize = 176;

pub(crate) fn read_write(path: &Path, tuning: Tuning) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(tuning.busy_wait)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    connection
        .pragma_update_and_check(None, "mmap_size", MAPPED_BYTES, |row| row.get::<_, i64>(0))?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    keep_plans(&connection)?;
    // Otherwise closing a refused database would checkpoint its log.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

/// Readers don't block the writer (write-ahead log), and committed data survives a power cut:
/// `synchronous = FULL` syncs the log at each commit, while `NORMAL` would lose the last commits.
pub(crate) fn make_durable(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    connection
        .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0))?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES_KEPT, |row| {
        row.get::<_, i64>(0)
    })?;
    Ok(())
}

pub(crate) fn read_only(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_WAIT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    keep_plans(&connection)?;
    Ok(connection)
}

/// Makes SQLite plan a statement once, without looking at bound values. Otherwise a statement with
/// `LIMIT ?` is recompiled for each new value, which takes longer than looking up a row, and its
/// plan differs from the one that tests see.
fn keep_plans(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}
