//! Whole copies of a database: one file each, written next to its place and renamed into it.
//!
//! The source is a connection or a stream of bytes. A copy is complete, checked and on disk;
//! damaged files and files that are not a census are rejected. After a crash at any moment, each
//! place has its old or its new file. Leftover temporary files are hidden, and are deleted when the
//! database is next opened for writing.

use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use ::files::{Disk, Mode, folder_of};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::db::error::{CopyError, coded};
use crate::db::migrate::{self, Found};

/// How names of temporary files begin and end.
const BEGIN: &str = ".fedicensus-copy.";
const END: &str = ".new";

/// What SQLite adds to the name of a copy that ran out of room, with what it had not undone.
const JOURNAL: &str = "-journal";

/// Names that are read from the database's folder, which usually has a dozen.
const FOLDER_NAMES_MAX: usize = 100_000;

/// A temporary file in the folder of its place. Dropping it deletes it.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    path: PathBuf,
    /// Locked, so that [`clear`] can tell it from the leftovers of a crash.
    file: File,
}

impl TemporaryFile {
    /// An empty file next to `place`.
    pub(crate) fn new(place: &Path) -> Result<Self, CopyError> {
        // Random, since process ids repeat from container to container.
        let chance = RandomState::new().hash_one(place);
        let path = folder_of(place).join(format!("{BEGIN}{chance:016x}{END}"));
        let make = || -> io::Result<File> {
            let file = Disk::SYSTEM.create(&path, Mode::Private)?;
            file.try_lock().map_err(io::Error::from)?;
            Ok(file)
        };
        match make() {
            Ok(file) => Ok(Self { path, file }),
            Err(error) => Err(CopyError::unwritable(&path, &error)),
        }
    }

    /// For callers that write to it without SQLite.
    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Fills the file with all data that is committed now. Others can read and write the database
    /// while it runs.
    pub(crate) fn fill(&self, from: &Connection) -> Result<(), CopyError> {
        let to = ValueRef::Text(self.path.as_os_str().as_bytes());
        let to = rusqlite::types::ToSqlOutput::Borrowed(to);
        // Not SQLite's backup interface: it starts over whenever another connection writes, and a
        // census always writes.
        from.execute("VACUUM INTO ?1", [to])
            .map(drop)
            .map_err(|error| match error.sqlite_error_code() {
                Some(ErrorCode::DiskFull) => self.no_room(from),
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                    CopyError::Damaged(coded(&error))
                }
                Some(_) | None => CopyError::unwritable(&self.path, &error),
            })
    }

    fn no_room(&self, from: &Connection) -> CopyError {
        let pragma = |name| from.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let (pages, page_bytes) = (
            pragma("page_count").unwrap_or(0),
            pragma("page_size").unwrap_or(0),
        );
        CopyError::NoRoom {
            folder: folder_of(&self.path).to_owned(),
            mebibytes: pages.saturating_mul(page_bytes) / (1024 * 1024) + 1,
        }
    }

    /// Checks that the file is a complete census and returns its schema version. Reads all of it.
    pub(crate) fn check(&self) -> Result<i64, CopyError> {
        let damaged = |error: rusqlite::Error| match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => CopyError::NotACensus,
            Some(_) | None => CopyError::Damaged(coded(&error)),
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags).map_err(damaged)?;
        connection
            .pragma_update(None, "trusted_schema", false)
            .map_err(damaged)?;
        let found = migrate::look(&connection).map_err(damaged)?;
        let Found::Census(version) = found else {
            return Err(CopyError::NotACensus);
        };
        // A file that was copied while it was open needs a log next to it, which a copy does not
        // have.
        connection
            .pragma_update_and_check(None, "journal_mode", "delete", |row| {
                row.get::<_, String>(0)
            })
            .map_err(damaged)?;
        let complaint: String = connection
            .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
            .map_err(damaged)?;
        if complaint != "ok" {
            return Err(CopyError::Damaged(complaint));
        }
        // SQLite reads the missing part of a truncated last page as zeros, and only complains if
        // something else was there.
        let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        let pages = number("PRAGMA page_count").map_err(damaged)?;
        let page_bytes = number("PRAGMA page_size").map_err(damaged)?;
        let metadata = self.file.metadata().map_err(CopyError::Stream)?;
        if u64::try_from(pages.saturating_mul(page_bytes)) == Ok(metadata.len()) {
            Ok(version)
        } else {
            Err(CopyError::Damaged("its last page is cut off".to_owned()))
        }
    }

    /// Syncs the content, renames the file to `place` in the same folder, and syncs the folder.
    pub(crate) fn put(self, place: &Path) -> Result<(), CopyError> {
        let put = || -> io::Result<()> {
            self.file.sync_all()?;
            std::fs::rename(&self.path, place)?;
            sync_folder(place)
        };
        put().map_err(|error| CopyError::unwritable(place, &error))
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // After the rename there is no file of this name. A file that can't be deleted now is
        // cleared later.
        std::fs::remove_file(&self.path).ok();
        let mut journal = self.path.clone().into_os_string();
        journal.push(JOURNAL);
        std::fs::remove_file(journal).ok();
    }
}

/// Deletes temporary files that a crash left in the database's folder. A failure only costs disk
/// space.
pub(crate) fn clear(database: &Path) {
    for name in names(database) {
        let copy = name.strip_suffix(JOURNAL).unwrap_or(&name);
        if !(copy.starts_with(BEGIN) && copy.ends_with(END)) {
            continue;
        }
        let path = folder_of(database).join(&name);
        // A locked file is still being written.
        let is_left = match File::open(folder_of(database).join(copy)) {
            Ok(file) => file.try_lock().is_ok(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if is_left && std::fs::remove_file(&path).is_ok() {
            tracing::info!(path = %path.display(), "removed a copy of the database that was never finished");
        }
    }
}

/// Names in the database's folder. Empty if it can't be read.
pub(crate) fn names(database: &Path) -> Vec<String> {
    std::fs::read_dir(folder_of(database))
        .into_iter()
        .flatten()
        .take(FOLDER_NAMES_MAX)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect()
}

/// Waits until the names in a file's folder are on disk.
pub(crate) fn sync_folder(place: &Path) -> io::Result<()> {
    ::files::sync_folder(folder_of(place))
}
