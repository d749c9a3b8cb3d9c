//! The published `instances.sqlite`: a file with one table, for readers who prefer SQL to parsing.
//!
//! It is written from rows sorted by host into an empty file. The writer also counts the rows of
//! each version and variant of each software. After an error the caller must discard the file.
//!
//! It has neither a journal nor a write-ahead log, since it is complete before it is moved to its
//! place. Readers can open it from a read-only disk. Equal rows give equal bytes.

use std::io;
use std::path::Path;

use protocol::Instance;
use rusqlite::{Connection, ErrorCode, OpenFlags, params};

/// SQLite's page cache while the file is written. Rows are inserted into the index at some
/// thousands of positions, one per version and variant of a software, and a page of 4 KiB for each
/// should fit in. More positions are slower and take no more memory.
const CACHE_KIB: i64 = 24 * 1024;

/// `WITHOUT ROWID`: rows arrive in key order and are appended. The application id, `FedP` in ASCII,
/// tells the file from a census.
pub(crate) const TABLE: &str = "PRAGMA application_id = 1181049936;
PRAGMA user_version = 1;
CREATE TABLE instances (
    host       TEXT NOT NULL PRIMARY KEY,
    software   TEXT,
    version    TEXT,
    state      TEXT NOT NULL, -- alive, dying or moving
    first_seen TEXT NOT NULL, -- RFC 3339 in UTC
    last_alive TEXT NOT NULL, -- RFC 3339 in UTC
    open_registrations INTEGER CHECK (open_registrations IN (0, 1)), -- NULL: it does not say
    variant    TEXT           -- NULL: nothing names a fork
) STRICT, WITHOUT ROWID;
CREATE INDEX instances_software ON instances (software, version, variant);";

pub(crate) const INSERT: &str = "INSERT INTO instances (host, software, version, state, first_seen, last_alive, open_registrations, variant) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

/// Reads only the index, in its order, so a million rows are counted without sorting.
pub(crate) const COUNT: &str = "SELECT software, version, variant, count(*) FROM instances GROUP BY software, version, variant";

/// A row, with the texts of the published files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceRow<'r> {
    pub host: &'r str,
    pub state: &'r str,
    /// When it was first seen, as RFC 3339.
    pub first_seen: &'r str,
    /// When it was last found alive, as RFC 3339.
    pub last_alive: &'r str,
    pub instance: &'r Instance,
}

/// Number of rows with this software, version and variant. Each may be unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionCount<'r> {
    pub software: Option<&'r str>,
    pub version: Option<&'r str>,
    pub variant: Option<&'r str>,
    pub instances: u64,
}

/// The file while it is written.
#[derive(Debug)]
pub struct InstancesFile {
    connection: Connection,
}

impl InstancesFile {
    /// Begins to write into the empty file at `path`.
    ///
    /// # Errors
    /// Fails if the file can't be written. The error's kind tells a full disk and a missing
    /// permission from other causes.
    pub fn begin(path: &Path) -> io::Result<Self> {
        Self::try_begin(path).map_err(io_error)
    }

    fn try_begin(path: &Path) -> rusqlite::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        let text = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
        // No rollback is needed: an unfinished file is deleted, and the caller syncs.
        connection.pragma_update_and_check(None, "journal_mode", "off", text)?;
        connection.pragma_update_and_check(None, "locking_mode", "exclusive", text)?;
        connection.pragma_update(None, "synchronous", "off")?;
        connection.execute_batch(TABLE)?;
        connection.execute_batch("BEGIN")?;
        Ok(Self { connection })
    }

    /// Writes a row. Hosts must be in ascending order.
    ///
    /// # Errors
    /// Fails if the file can't be written, or if it has the host already.
    pub fn push(&mut self, row: InstanceRow<'_>) -> io::Result<()> {
        let insert = |connection: &Connection| {
            connection.prepare_cached(INSERT)?.execute(params![
                row.host,
                row.instance.software,
                row.instance.version,
                row.state,
                row.first_seen,
                row.last_alive,
                row.instance.open_registrations,
                row.instance.variant
            ])
        };
        insert(&self.connection).map(drop).map_err(io_error)
    }

    /// Finishes the file and counts its rows. `visit` gets the versions of one software after the
    /// other, sorted by bytes, unknown ones first.
    pub fn finish(self, visit: &mut dyn FnMut(VersionCount<'_>)) -> io::Result<()> {
        self.try_finish(visit).map_err(io_error)
    }

    fn try_finish(self, visit: &mut dyn FnMut(VersionCount<'_>)) -> rusqlite::Result<()> {
        self.connection.execute_batch("COMMIT")?;
        let mut statement = self.connection.prepare(COUNT)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            visit(VersionCount {
                software: row.get_ref(0)?.as_str_or_null()?,
                version: row.get_ref(1)?.as_str_or_null()?,
                variant: row.get_ref(2)?.as_str_or_null()?,
                instances: u64::try_from(row.get::<_, i64>(3)?).unwrap_or(0),
            });
        }
        drop(rows);
        drop(statement);
        self.connection.close().map_err(|(_open, error)| error)
    }
}

fn io_error(error: rusqlite::Error) -> io::Error {
    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => io::ErrorKind::StorageFull,
        Some(ErrorCode::ReadOnly) => io::ErrorKind::ReadOnlyFilesystem,
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            io::ErrorKind::PermissionDenied
        }
        // All other codes of this open-ended list: the operator has to look at the machine.
        Some(_) | None => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

#[cfg(test)]
mod tests;
