//! Whole copies of a database: one file each, written beside and put in its place at once.
//!
//! In: a connection, or bytes. Out: a file that is complete, checked and on the disk. Refused: to call anything a copy that is damaged, or no census.
//! A crash at any moment leaves each place with its old file or its new one; what it leaves beside them is hidden, and cleared when the database is
//! next opened for writing.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use ::files::folder_of;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::db::error::CopyError;
use crate::db::migrate::{self, Found};

/// How the names begin and end of files that are not in their places yet.
const BEGIN: &str = ".fedicensus-copy.";
const END: &str = ".new";

/// Names that are looked at in the database's folder: it holds a dozen.
const FOLDER_NAMES_MAX: usize = 100_000;

/// A file in the making, in the folder where its place is. Dropped, it takes itself away.
#[derive(Debug)]
pub(crate) struct Beside {
    path: PathBuf,
    /// Locked, so that who clears up can tell it from what a crash left.
    file: File,
}

impl Beside {
    /// An empty file beside `place`.
    pub(crate) fn new(place: &Path) -> Result<Self, CopyError> {
        // By chance, since process ids repeat from container to container.
        let chance = RandomState::new().hash_one(place);
        let path = folder_of(place).join(format!("{BEGIN}{chance:016x}{END}"));
        let make = || -> io::Result<File> {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .open(&path)?;
            file.try_lock().map_err(io::Error::from)?;
            Ok(file)
        };
        match make() {
            Ok(file) => Ok(Self { path, file }),
            Err(error) => Err(CopyError::unwritable(&path, &error)),
        }
    }

    /// For who writes it by other means than SQLite's.
    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Fills it with all that is committed, as the connection sees it now; others go on reading and writing meanwhile.
    pub(crate) fn fill(&self, from: &Connection) -> Result<(), CopyError> {
        let to = ValueRef::Text(self.path.as_os_str().as_bytes());
        let to = rusqlite::types::ToSqlOutput::Borrowed(to);
        // Not the backup interface: it begins anew whenever somebody else writes, and a census always writes.
        from.execute("VACUUM INTO ?1", [to])
            .map(drop)
            .map_err(|error| match error.sqlite_error_code() {
                Some(ErrorCode::DiskFull) => self.no_room(from),
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                    CopyError::Damaged(error.to_string())
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

    /// Makes sure that it is one whole file and a census, and tells its schema. Reads all of it.
    pub(crate) fn check(&self) -> Result<i64, CopyError> {
        let damaged = |error: rusqlite::Error| match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => CopyError::NotACensus,
            Some(_) | None => CopyError::Damaged(error.to_string()),
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
        // A file that was copied while it was open asks for a log beside it, which a copy has none of.
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
        // SQLite reads what is missing of the last page as zeros, and complains only when something else stood there.
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

    /// Waits until its content is on the disk, puts it in its place, in the same folder, and waits until that is on the disk too.
    pub(crate) fn put(self, place: &Path) -> Result<(), CopyError> {
        let put = || -> io::Result<()> {
            self.file.sync_all()?;
            std::fs::rename(&self.path, place)?;
            sync_folder(place)
        };
        put().map_err(|error| CopyError::unwritable(place, &error))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // After the rename there is nothing under this name; and what can't be removed now is cleared later.
        std::fs::remove_file(&self.path).ok();
    }
}

/// Removes what crashes left in the database's folder. What can't be removed only takes room.
pub(crate) fn clear(database: &Path) {
    for name in names(database) {
        if !(name.starts_with(BEGIN) && name.ends_with(END)) {
            continue;
        }
        let path = folder_of(database).join(&name);
        // One that is locked is being made.
        let is_left = File::open(&path).is_ok_and(|file| file.try_lock().is_ok());
        if is_left && std::fs::remove_file(&path).is_ok() {
            tracing::info!(path = %path.display(), "removed a copy of the database that was never finished");
        }
    }
}

/// The names in the database's folder; none when it can't be read.
pub(crate) fn names(database: &Path) -> Vec<String> {
    std::fs::read_dir(folder_of(database))
        .into_iter()
        .flatten()
        .take(FOLDER_NAMES_MAX)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect()
}

/// Waits until the names in a file's folder are on the disk.
pub(crate) fn sync_folder(place: &Path) -> io::Result<()> {
    ::files::sync_folder(folder_of(place))
}
