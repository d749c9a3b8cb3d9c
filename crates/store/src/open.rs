//! Opens the database: takes the lock, applies SQLite's settings, and migrates the schema.
//!
//! Opening gives a [`Store`] (the only writer) or a [`Reader`]. It fails for a path that can't be
//! written, a second writer, a newer schema, and a file that is not a census.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use ::files::{Lock, create_private, make_private};
use rusqlite::{Connection, ErrorCode};

use crate::db::checkpoint::{BeginError, Checkpoints};
use crate::db::connection::{make_durable, read_only, read_write};
use crate::db::copy;
use crate::db::error::{OpenError, StoreError};
use crate::db::lock::lock;
use crate::db::migrate::{self, Found, SCHEMA, Schema};
use crate::db::reader::Reader;
use crate::db::tuning::Tuning;
use crate::known::KnownNames;
use crate::known::filling::Filling;
use crate::known::forgotten;
use crate::queue::handle::Writer;
use crate::queue::thread::{self, WriterThread};
use crate::upgrade;

/// The open database. Holds the lock that keeps other writers out, and owns the writer thread.
#[derive(Debug)]
pub struct Store {
    location: Location,
    /// Dropped before the writer thread, which closes the database.
    filling: Filling,
    thread: WriterThread,
    /// Released with the file handle, at the latest by the operating system when the process ends.
    _lock: Lock,
}

impl Store {
    /// A handle to the writer. There can be any number of them.
    pub fn writer(&self) -> Writer {
        self.thread.writer()
    }

    /// A new connection that reads.
    pub fn reader(&self) -> Result<Reader, StoreError> {
        let connection = read_only(&self.location.path)?;
        Ok(Reader::new(connection))
    }

    /// Waits until all known names are in memory. They are read in the background after the store
    /// is opened. For tests and benchmarks: without waiting, names that are not read yet are looked
    /// up.
    pub fn wait_for_names(&mut self) {
        self.filling.wait();
    }

    /// Where the file is. Cheap to clone.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Finishes all accepted requests, closes the database and releases the lock. Later requests
    /// get [`StoreError::Closed`].
    ///
    /// Blocks until the last write is on disk. Dropping the store does the same.
    pub fn close(self) {
        drop(self);
    }
}

/// The file that was opened, and its path.
#[derive(Debug, Clone)]
pub struct Location {
    path: Arc<Path>,
    identity: (u64, u64),
}

impl Location {
    /// Checks that the opened file is still at its path. An open file that was moved or removed
    /// still accepts writes, and they would be lost.
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

/// Opens the database for writing. Creates it if it is missing; otherwise keeps a copy and applies
/// missing migrations.
///
/// # Errors
/// Each cause has its variant, which says what to do. The database is unchanged then.
pub fn open(path: &Path) -> Result<Store, OpenError> {
    open_tuned(path, Tuning::default())
}

/// Opens the database for reading, whether or not another process writes to it.
///
/// # Errors
/// Each cause has its variant. A missing database and one that needs a migration are errors, since
/// a reader changes nothing.
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

/// Opens a census of any schema to copy it.
pub(crate) fn open_for_copy(path: &Path) -> Result<Connection, OpenError> {
    let (connection, found) = open_to_look(path)?;
    match found {
        Found::Census(_) => {}
        Found::Empty | Found::Foreign => return Err(foreign(path)),
    }
    // `VACUUM INTO` counts as a write, even though it writes to another file. The database itself
    // is open for reading only.
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
        Err(error) => return Err(OpenError::unwritable(path, &error)),
    }
    let connection = read_only(path).map_err(|error| explain(path, error))?;
    let found = migrate::look(&connection).map_err(|error| explain(path, error))?;
    Ok((connection, found))
}

pub(crate) fn open_tuned(path: &Path, tuning: Tuning) -> Result<Store, OpenError> {
    open_here(path, tuning).map_err(OpenError::on_its_file_system)
}

fn open_here(path: &Path, tuning: Tuning) -> Result<Store, OpenError> {
    let lock = lock(path)?;
    create_private(path).map_err(|error| OpenError::unwritable(path, &error))?;
    let mut connection = read_write(path, tuning).map_err(|error| explain(path, error))?;
    // Looks before the first write, even of the journal mode: another program's file stays
    // unchanged.
    let found = migrate::look(&connection).map_err(|error| explain(path, error))?;
    let known = tuning.schema.version();
    match found {
        Found::Foreign => return Err(foreign(path)),
        Found::Census(found) if found > known => return Err(newer(path, found, known)),
        Found::Census(_) | Found::Empty => {}
    }
    make_private(path).map_err(|error| OpenError::unwritable(path, &error))?;
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
    let identity = identity(path).map_err(|error| OpenError::unwritable(path, &error))?;
    let location = Location {
        path: Arc::from(path),
        identity,
    };
    let begun = Checkpoints::begin(path, &connection, tuning.log);
    let checkpoints = begun.map_err(|error| match error {
        BeginError::Sqlite(error) => explain(path, error),
        BeginError::Thread(error) => OpenError::Thread(error),
    })?;
    let key = forgotten::key(&connection).map_err(|error| explain(path, error))?;
    let known = Arc::new(KnownNames::new(key, tuning.names_max));
    let filling = Filling::begin(path, &known).map_err(OpenError::Thread)?;
    let thread = thread::start(connection, checkpoints, known).map_err(OpenError::Thread)?;
    Ok(Store {
        location,
        filling,
        thread,
        _lock: lock,
    })
}

/// Creates the schema of a new database. Does nothing if the database has it already.
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
        ) => OpenError::unwritable(path, &error),
        Some(_) | None => OpenError::Sqlite {
            path: path.to_owned(),
            source: error,
        },
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
