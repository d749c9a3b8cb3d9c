//! Backs up and restores the database.
//!
//! A backup is one file with all committed data, taken from a database that may be in use. A backup
//! never overwrites a file. A restore is refused for a damaged file, a file that is not a census,
//! and a newer schema. It is also refused while another process writes, or when [`REPLACED_MAX`]
//! replaced databases are kept already.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Seek as _, Write};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use crate::db::copy::{self, TemporaryFile};
use crate::db::error::CopyError;
use crate::db::lock::lock;
use crate::db::tuning::Tuning;
use crate::open;

/// Replaced databases that are kept next to the current one, each as large as the database was.
/// Nine are enough for an operator who tries one backup after the other. None is ever deleted
/// automatically.
pub(crate) const REPLACED_MAX: u32 = 9;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    pub schema: i64,
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The copy that was restored.
    pub copied: Copied,
    /// Where the replaced database is kept. `None` if there was none.
    pub replaced: Option<PathBuf>,
}

/// Writes all committed data into a new file. The database may be in use, and its schema may be
/// older or newer.
/// Each cause has its variant. The file is not created then.
pub fn backup(database: &Path, to: &Path) -> Result<Copied, CopyError> {
    if to.symlink_metadata().is_ok() {
        return Err(CopyError::Exists {
            path: to.to_owned(),
        });
    }
    let (temporary, copied) = copy_to_temporary(database, to)?;
    temporary.put(to)?;
    Ok(copied)
}

/// As [`backup`], into a stream. A temporary copy is made next to the database.
///
/// # Errors
/// Each cause has its variant. The output is incomplete then, and [`restore`] refuses it.
pub fn backup_into(database: &Path, out: &mut dyn Write) -> Result<Copied, CopyError> {
    let (mut temporary, copied) = copy_to_temporary(database, database)?;
    let file = temporary.file();
    file.rewind()
        .and_then(|()| io::copy(file, out))
        .and_then(|_bytes| out.flush())
        .map_err(CopyError::Stream)?;
    Ok(copied)
}

fn copy_to_temporary(database: &Path, place: &Path) -> Result<(TemporaryFile, Copied), CopyError> {
    let connection = open::open_for_copy(database)?;
    let temporary = TemporaryFile::new(place)?;
    temporary.fill(&connection)?;
    let schema = temporary.check()?;
    let copied = measured(temporary, schema)?;
    Ok(copied)
}

fn measured(
    mut temporary: TemporaryFile,
    schema: i64,
) -> Result<(TemporaryFile, Copied), CopyError> {
    let bytes = temporary
        .file()
        .metadata()
        .map_err(CopyError::Stream)?
        .len();
    Ok((temporary, Copied { schema, bytes }))
}

/// Replaces the database with a backup. The old database is kept next to it as `.replaced`, or as
/// `.replaced-2` to `.replaced-9` if that name is taken.
pub fn restore(database: &Path, from: &mut dyn Read) -> Result<Restored, CopyError> {
    restore_tuned(database, from, &Tuning::default())
}

pub(crate) fn restore_tuned(
    database: &Path,
    from: &mut dyn Read,
    tuning: &Tuning,
) -> Result<Restored, CopyError> {
    let _lock = lock(database)?;
    copy::clear(database);
    let kept = free_place(database)?;
    let mut temporary = TemporaryFile::new(database)?;
    io::copy(from, temporary.file()).map_err(CopyError::Stream)?;
    let schema = temporary.check()?;
    let known = tuning.schema.version();
    if schema > known {
        return Err(CopyError::Newer {
            found: schema,
            known,
        });
    }
    let (temporary, copied) = measured(temporary, schema)?;
    fold_log_in(database, tuning);
    let replaced = put_aside(database, &kept)
        .map_err(|error| CopyError::unwritable(database, &error))?
        .then_some(kept);
    temporary.put(database)?;
    Ok(Restored { copied, replaced })
}

fn free_place(database: &Path) -> Result<PathBuf, CopyError> {
    (1..=REPLACED_MAX)
        .map(|number| aside(database, number))
        // The log's name must be free too: a leftover log would be applied to the database next to
        // it.
        .find(|place| ["", "-wal"].iter().all(|end| is_free(&with(place, end))))
        .ok_or_else(|| CopyError::KeptTooMany {
            first: aside(database, 1),
            last: aside(database, REPLACED_MAX),
        })
}

fn aside(database: &Path, number: u32) -> PathBuf {
    match number {
        1 => with(database, ".replaced"),
        _ => with(database, &format!(".replaced-{number}")),
    }
}

/// A path that can't be examined counts as taken.
fn is_free(path: &Path) -> bool {
    path.symlink_metadata()
        .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Checkpoints the log into the database, so that a crash before the backup is in place loses
/// nothing (invariant I6).
///
/// Errors are ignored: a damaged database is being replaced, and keeps its log.
fn fold_log_in(database: &Path, tuning: &Tuning) {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let folded = Connection::open_with_flags(database, flags).and_then(|connection| {
        connection.busy_timeout(tuning.busy_wait)?;
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_row| Ok(()))
    });
    folded.ok();
}

/// Gives the existing database a second name and moves its log away, which SQLite would apply to
/// the file that replaces it. Returns whether there was a database.
///
/// The database keeps its own name until then: after a crash it is still there, and no daemon
/// creates an empty one. No file is overwritten.
fn put_aside(database: &Path, kept: &Path) -> io::Result<bool> {
    let was_there = present(fs::hard_link(database, kept))?;
    present(fs::rename(with(database, "-wal"), with(kept, "-wal")))?;
    present(fs::remove_file(with(database, "-shm")))?;
    present(fs::remove_file(with(database, "-journal")))?;
    copy::sync_folder(database)?;
    Ok(was_there)
}

fn with(path: &Path, end: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// `false` if the file was not there.
fn present(done: io::Result<()>) -> io::Result<bool> {
    match done {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
