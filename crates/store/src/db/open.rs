//! Opening the database: the lock, the settings of SQLite, the schema.
//!
//! In: a path. Out: a store (the one writer) or a reader. Refused: a path that can't be written, a second writer, a newer schema, a file that is no
//! census.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, ErrorCode};

use crate::db::checkpoint::{BeginError, Checkpoints, TakeOver};
use crate::db::connection::{make_durable, read_only, read_write};
use crate::db::error::{OpenError, StoreError};
use crate::db::lock::lock;
use crate::db::migrate::{self, Found, SCHEMA, Schema};
use crate::db::reader::Reader;
use crate::db::tuning::{Opening, Tuning};
use crate::db::upgrade;
use crate::files::copy;
use crate::tables::forgotten;
use crate::tables::known::KnownNames;
use crate::tables::known::filling::Filling;
use crate::writer::handle::Writer;
use crate::writer::thread::{self, WriterThread};

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
        let connection = read_only(&self.location.path)?;
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

/// Opens the database for writing; creates it from nothing, and takes the migrations that are missing, after a copy was kept.
///
/// # Errors
/// A variant a cause, with what to do about it; nothing was changed then.
pub fn open(path: &Path) -> Result<Store, OpenError> {
    open_tuned(path, Tuning::default())
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
        Err(error) => return Err(OpenError::unwritable(path, &error)),
    }
    let connection = read_only(path).map_err(|error| explain(path, error))?;
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
    let identity = identity(path).map_err(|error| OpenError::unwritable(path, &error))?;
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
    let thread = thread::start(connection, checkpoints, known).map_err(OpenError::Thread)?;
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
