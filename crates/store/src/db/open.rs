//! Opening the database: the lock, the settings of SQLite, the schema.
//!
//! In: a path. Out: a store (the one writer) or a reader. Refused: a path that can't be written, a second writer, a newer schema, a file that is no
//! census.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::db::checkpoint::{self, BeginError, Checkpoints, TakeOver};
use crate::db::error::{OpenError, StoreError};
use crate::db::migrate::{self, Found, SCHEMA, Schema};
use crate::db::statements;
use crate::db::upgrade::{self, Moment};
use crate::files::copy;
use crate::queries::reader::Reader;
use crate::tables::forgotten;
use crate::tables::known::{Filling, KnownNames, NAMES_MAX};
use crate::writer::{self, Writer, WriterThread};

/// How long to wait for another process that holds the write lock, such as a backup or somebody's `sqlite3`: a checkpoint takes well under a
/// second, and a check's slot waits meanwhile.
const BUSY_WAIT: Duration = Duration::from_secs(5);

/// SQLite's page cache of the writer: the rows of 10 000 hosts and all indexes fit in, and a million hosts don't make it grow.
const WRITER_CACHE_KIB: i64 = 16 * 1024;

/// Nothing of the file is mapped into memory: a page that the disk can't give would end the whole daemon by a signal instead of failing one request.
const MAPPED_BYTES: i64 = 0;

/// SQLite's page cache of a reader, of which there may be a few.
const READER_CACHE_KIB: i64 = 4 * 1024;

/// Size to which the write-ahead log's file is cut when it begins anew, after a long dump kept it from that.
const LOG_BYTES_KEPT: i64 = 16 * 1024 * 1024;

/// Prepared statements kept a connection: all that there are, and those that begin and end transactions.
const STATEMENTS_KEPT: usize = statements::ALL.len() + 8;

/// The open database. Holds the lock that keeps other writers out, and the thread that writes.
#[derive(Debug)]
pub struct Store {
    location: Location,
    /// Ends before the thread that writes, which closes the database.
    filling: Filling,
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
        let connection = read_only(&self.location.path, BUSY_WAIT)?;
        Ok(Reader::new(connection))
    }

    /// Waits until all known names are in memory; they are read in the background since the store was opened. For tests and benchmarks: whoever does not
    /// wait has the others looked up.
    pub fn wait_for_names(&mut self) {
        self.filling.wait();
    }

    /// Where the file is. Cheap to clone.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Finishes what has been accepted, closes the database and releases the lock. Later requests
    /// get [`StoreError::Closed`].
    ///
    /// Blocks until the last write is on disk; dropping the store does the same.
    pub fn close(self) {
        drop(self);
    }
}

/// The file that was opened, and where.
#[derive(Debug, Clone)]
pub struct Location {
    path: Arc<Path>,
    /// Device and inode.
    identity: (u64, u64),
}

impl Location {
    /// Whether the file that was opened is still where it was. An open file that was moved or
    /// removed takes writes all the same, and nobody would find them again.
    ///
    /// # Errors
    /// [`StoreError::Away`] or [`StoreError::Replaced`].
    pub fn check(&self) -> Result<(), StoreError> {
        match identity(&self.path) {
            Ok(found) if found == self.identity => Ok(()),
            Ok(_other) => Err(StoreError::Replaced {
                path: self.path.to_path_buf(),
            }),
            Err(_not_there) => Err(StoreError::Away {
                path: self.path.to_path_buf(),
            }),
        }
    }
}

/// What tests make shorter, longer, or stop at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    pub(crate) busy_wait: Duration,
    pub(crate) schema: &'static Schema,
    pub(crate) at: fn(Moment),
    pub(crate) opening: Opening,
    pub(crate) log: checkpoint::Bounds,
    pub(crate) names_max: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            busy_wait: BUSY_WAIT,
            schema: &SCHEMA,
            at: |_moment| {},
            opening: Opening::default(),
            log: checkpoint::Bounds::default(),
            names_max: NAMES_MAX,
        }
    }
}

/// Opens the database for writing; creates it from nothing, and takes the migrations that are missing, after a copy was kept.
///
/// # Errors
/// A variant a cause, with what to do about it; nothing was changed then.
pub fn open(path: &Path) -> Result<Store, OpenError> {
    open_tuned(path, Tuning::default())
}

/// What benchmarks compare; the default is what the census goes by.
#[derive(Debug, Clone, Copy)]
pub struct Opening {
    /// Who takes the log over.
    pub take_over: TakeOver,
    /// SQLite's page cache of the writer, in KiB.
    pub cache_kib: i64,
    /// How much of the file is mapped into memory, in bytes.
    pub mapped_bytes: i64,
}

impl Default for Opening {
    fn default() -> Self {
        Self {
            take_over: TakeOver::default(),
            cache_kib: WRITER_CACHE_KIB,
            mapped_bytes: MAPPED_BYTES,
        }
    }
}

/// As [`open`], otherwise than the census does it: for benchmarks.
///
/// # Errors
/// As [`open`].
pub fn open_with(path: &Path, opening: Opening) -> Result<Store, OpenError> {
    let tuning = Tuning {
        opening,
        ..Tuning::default()
    };
    open_tuned(path, tuning)
}

/// Opens the database for reading beside the process that writes it, or without one.
///
/// # Errors
/// A variant a cause; a missing database and one that has not been migrated yet among them, since a reader changes neither.
pub fn open_read_only(path: &Path) -> Result<Reader, OpenError> {
    open_read_only_tuned(path, &SCHEMA)
}

pub(crate) fn open_read_only_tuned(path: &Path, schema: &Schema) -> Result<Reader, OpenError> {
    let (connection, found) = open_to_look(path)?;
    let known = schema.version();
    match found {
        Found::Census(found) if found == known => Ok(Reader::new(connection)),
        Found::Census(found) if found > known => Err(newer(path, found, known)),
        Found::Census(found) => Err(older(path, found, known)),
        Found::Empty => Err(older(path, 0, known)),
        Found::Foreign => Err(foreign(path)),
    }
}

/// Opens a census of any schema for copying it.
pub(crate) fn open_for_copy(path: &Path) -> Result<Connection, OpenError> {
    let (connection, found) = open_to_look(path)?;
    match found {
        Found::Census(_) => {}
        Found::Empty | Found::Foreign => return Err(foreign(path)),
    }
    // SQLite counts the file that it copies into among the writes; the database itself is open for reading only.
    connection
        .pragma_update(None, "query_only", false)
        .map_err(|error| explain(path, error))?;
    Ok(connection)
}

fn open_to_look(path: &Path) -> Result<(Connection, Found), OpenError> {
    match path.try_exists() {
        Ok(true) => {}
        Ok(false) => {
            let path = path.to_owned();
            return Err(OpenError::Missing { path });
        }
        Err(error) => return Err(unwritable(path, &error)),
    }
    let connection = read_only(path, BUSY_WAIT).map_err(|error| explain(path, error))?;
    let found = migrate::look(&connection).map_err(|error| explain(path, error))?;
    Ok((connection, found))
}

pub(crate) fn open_tuned(path: &Path, tuning: Tuning) -> Result<Store, OpenError> {
    let lock = lock(path)?;
    let mut connection = read_write(path, tuning).map_err(|error| explain(path, error))?;
    // Looked at before anything is written, the journal mode among it: what is not for us is left as it is.
    let found = migrate::look(&connection).map_err(|error| explain(path, error))?;
    let known = tuning.schema.version();
    match found {
        Found::Foreign => return Err(foreign(path)),
        Found::Census(found) if found > known => return Err(newer(path, found, known)),
        Found::Census(_) | Found::Empty => {}
    }
    make_durable(&connection).map_err(|error| explain(path, error))?;
    copy::clear(path);
    match found {
        Found::Census(found) if found < known => {
            upgrade::upgrade(&mut connection, path, found, &tuning)?;
        }
        Found::Census(_) | Found::Empty | Found::Foreign => {
            make_schema(&mut connection, path, tuning.schema)?;
        }
    }
    let identity = identity(path).map_err(|error| unwritable(path, &error))?;
    let location = Location {
        path: Arc::from(path),
        identity,
    };
    let checkpoints = match tuning.opening.take_over {
        TakeOver::Within => None,
        TakeOver::Beside => {
            let begun = Checkpoints::begin(path, &connection, tuning.log);
            Some(begun.map_err(|error| match error {
                BeginError::Sqlite(error) => explain(path, error),
                BeginError::Thread(error) => OpenError::Thread(error),
            })?)
        }
    };
    let key = forgotten::key(&connection).map_err(|error| explain(path, error))?;
    let known = Arc::new(KnownNames::new(key, tuning.names_max));
    let filling = Filling::begin(path, &known).map_err(OpenError::Thread)?;
    let thread = writer::start(connection, checkpoints, known).map_err(OpenError::Thread)?;
    Ok(Store {
        location,
        filling,
        thread,
        _lock: lock,
    })
}

/// For a new database. One that has its schema already is as it was.
fn make_schema(connection: &mut Connection, path: &Path, schema: &Schema) -> Result<(), OpenError> {
    schema
        .to_latest(connection)
        .map_err(|error| OpenError::Migration {
            path: path.to_owned(),
            source: Box::new(error),
        })
}

fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    let metadata = std::fs::metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Takes the lock file beside the database. SQLite's own locks would let two daemons take turns and check the same hosts twice.
pub(crate) fn lock(path: &Path) -> Result<File, OpenError> {
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
    connection.pragma_update(None, "cache_size", -tuning.opening.cache_kib)?;
    connection.pragma_update_and_check(None, "mmap_size", tuning.opening.mapped_bytes, |row| {
        row.get::<_, i64>(0)
    })?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    keep_plans(&connection)?;
    // Else closing one that is refused would move its log into it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

/// Readers don't block the writer (write-ahead log), and what is committed survives a power cut (`synchronous = FULL` syncs the log at each commit;
/// `NORMAL` would lose the last commits).
fn make_durable(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    connection
        .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0))?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES_KEPT, |row| {
        row.get::<_, i64>(0)
    })?;
    Ok(())
}

/// A connection that reads, for whoever has no store.
pub(crate) fn to_read(path: &Path) -> rusqlite::Result<Connection> {
    read_only(path, BUSY_WAIT)
}

fn read_only(path: &Path, busy_wait: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(busy_wait)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    keep_plans(&connection)?;
    Ok(connection)
}

/// Has SQLite make a statement's plan once, without a look at what is bound to it. Otherwise whatever has `LIMIT ?` is compiled anew whenever another
/// value is bound, which takes longer than to look one row up; and its plan is another one than what tests see.
fn keep_plans(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

fn explain(path: &Path, error: rusqlite::Error) -> OpenError {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => foreign(path),
        Some(ErrorCode::DatabaseCorrupt) => OpenError::Damaged {
            path: path.to_owned(),
            source: error,
        },
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

fn newer(path: &Path, found: i64, known: i64) -> OpenError {
    OpenError::Newer {
        path: path.to_owned(),
        found,
        known,
        copy: upgrade::usable_copy(path, known),
    }
}

fn older(path: &Path, found: i64, known: i64) -> OpenError {
    OpenError::Older {
        path: path.to_owned(),
        found,
        known,
    }
}

fn foreign(path: &Path) -> OpenError {
    OpenError::NotADatabase {
        path: path.to_owned(),
    }
}

#[cfg(test)]
mod tests;
