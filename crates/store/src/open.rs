//! Opening the database: the lock, the settings of SQLite, the schema.
//!
//! In: a path. Out: a store (the one writer) or a reader. Refused: a path that can't be written, a second writer, a newer schema, a file that is no
//! census.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::migrate::{self, Found};
use crate::reader::Reader;
use crate::writer::{self, Writer, WriterThread};
use crate::{OpenError, StoreError};

/// How long to wait for another process that holds the write lock, such as a backup or somebody's `sqlite3`: a checkpoint takes well under a
/// second, and a check's slot waits meanwhile.
const BUSY_WAIT: Duration = Duration::from_secs(5);

/// SQLite's page cache of the writer: the rows of 10 000 hosts and all indexes fit in, and a million hosts don't make it grow.
const WRITER_CACHE_KIB: i64 = 16 * 1024;

/// The same of a reader, of which there may be a few.
const READER_CACHE_KIB: i64 = 4 * 1024;

/// Size to which the write-ahead log is cut after a long dump kept it from being emptied.
const LOG_BYTES_KEPT: i64 = 16 * 1024 * 1024;

/// Prepared statements kept a connection: all that there are.
const STATEMENTS_KEPT: usize = 64;

/// The open database. Holds the lock that keeps other writers out, and the thread that writes.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    /// Device and inode of the file that was opened.
    identity: (u64, u64),
    thread: WriterThread,
    /// Released with the file handle, by the operating system if need be.
    _lock: File,
}

impl Store {
    /// A handle to the writer; any number of them.
    pub fn writer(&self) -> Writer {
        self.thread.writer()
    }

    /// A new connection that reads.
    ///
    /// # Errors
    /// When the file can't be opened.
    pub fn reader(&self) -> Result<Reader, StoreError> {
        let connection = read_only(&self.path, BUSY_WAIT)?;
        Ok(Reader::new(connection))
    }

    /// Whether the file that was opened is still where it was. An open file that was moved or removed takes writes all the same, and nobody would
    /// find them again.
    ///
    /// # Errors
    /// [`StoreError::Away`] or [`StoreError::Replaced`].
    pub fn is_in_place(&self) -> Result<(), StoreError> {
        match identity(&self.path) {
            Ok(found) if found == self.identity => Ok(()),
            Ok(_other) => Err(StoreError::Replaced {
                path: self.path.clone(),
            }),
            Err(_not_there) => Err(StoreError::Away {
                path: self.path.clone(),
            }),
        }
    }

    /// Finishes what has been accepted, closes the database and releases the lock. Later requests get [`StoreError::Closed`].
    ///
    /// Blocks until the last write is on disk; dropping the store does the same.
    pub fn close(self) {
        drop(self);
    }
}

/// What tests make shorter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    pub(crate) busy_wait: Duration,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            busy_wait: BUSY_WAIT,
        }
    }
}

/// Opens the database for writing; creates it from nothing, and takes the migrations that are missing.
///
/// # Errors
/// A variant a cause, with what to do about it; nothing was changed then.
pub fn open(path: &Path) -> Result<Store, OpenError> {
    open_tuned(path, Tuning::default())
}

/// Opens the database for reading beside the process that writes it, or without one.
///
/// # Errors
/// A variant a cause; a missing database and one that has not been migrated yet among them, since a reader changes neither.
pub fn open_read_only(path: &Path) -> Result<Reader, OpenError> {
    match path.try_exists() {
        Ok(true) => {}
        Ok(false) => {
            let path = path.to_owned();
            return Err(OpenError::Missing { path });
        }
        Err(error) => return Err(unwritable(path, &error)),
    }
    let connection = read_only(path, BUSY_WAIT).map_err(|error| explain(path, error))?;
    let known = migrate::known_version();
    match migrate::look(&connection).map_err(|error| explain(path, error))? {
        Found::Census(found) if found == known => Ok(Reader::new(connection)),
        Found::Census(found) if found > known => Err(newer(path, found)),
        Found::Census(found) => Err(older(path, found)),
        Found::Empty => Err(older(path, 0)),
        Found::Foreign => Err(foreign(path)),
    }
}

pub(crate) fn open_tuned(path: &Path, tuning: Tuning) -> Result<Store, OpenError> {
    let lock = lock(path)?;
    let mut connection = read_write(path, tuning).map_err(|error| explain(path, error))?;
    // Looked at before the journal mode is set, which writes: another program's file is left as it is.
    match migrate::look(&connection).map_err(|error| explain(path, error))? {
        Found::Foreign => return Err(foreign(path)),
        Found::Census(found) if found > migrate::known_version() => return Err(newer(path, found)),
        Found::Census(_) | Found::Empty => {}
    }
    make_durable(&connection).map_err(|error| explain(path, error))?;
    migrate::to_latest(&mut connection).map_err(|error| OpenError::Migration {
        path: path.to_owned(),
        source: Box::new(error),
    })?;
    let identity = identity(path).map_err(|error| unwritable(path, &error))?;
    let thread = writer::start(connection).map_err(OpenError::Thread)?;
    Ok(Store {
        path: path.to_owned(),
        identity,
        thread,
        _lock: lock,
    })
}

fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    let metadata = std::fs::metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Takes the lock file beside the database. SQLite's own locks would let two daemons take turns and check the same hosts twice.
fn lock(path: &Path) -> Result<File, OpenError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(PathBuf::from(name))
        .map_err(|error| unwritable(path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse {
            path: path.to_owned(),
        }),
        Err(TryLockError::Error(error)) => Err(unwritable(path, &error)),
    }
}

fn read_write(path: &Path, tuning: Tuning) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(tuning.busy_wait)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    Ok(connection)
}

/// Readers don't block the writer (write-ahead log), and what is committed survives a power cut (`synchronous = FULL` syncs the log at each commit;
/// `NORMAL` would lose the last commits).
fn make_durable(connection: &Connection) -> rusqlite::Result<()> {
    connection
        .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0))?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES_KEPT, |row| {
        row.get::<_, i64>(0)
    })?;
    Ok(())
}

fn read_only(path: &Path, busy_wait: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(busy_wait)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

fn explain(path: &Path, error: rusqlite::Error) -> OpenError {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => foreign(path),
        Some(
            ErrorCode::CannotOpen
            | ErrorCode::ReadOnly
            | ErrorCode::PermissionDenied
            | ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure,
        ) => unwritable(path, &error),
        Some(_) | None => OpenError::Sqlite {
            path: path.to_owned(),
            source: error,
        },
    }
}

fn unwritable(path: &Path, reason: &dyn std::error::Error) -> OpenError {
    OpenError::Unwritable {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

fn newer(path: &Path, found: i64) -> OpenError {
    OpenError::Newer {
        path: path.to_owned(),
        found,
        known: migrate::known_version(),
    }
}

fn older(path: &Path, found: i64) -> OpenError {
    OpenError::Older {
        path: path.to_owned(),
        found,
        known: migrate::known_version(),
    }
}

fn foreign(path: &Path) -> OpenError {
    OpenError::NotADatabase {
        path: path.to_owned(),
    }
}

#[cfg(test)]
mod tests;
