//! Backups, and putting them back.
//!
//! In: a database, which may be in use, or a file that was one. Out: one file that holds all of it; or the file in the database's place. Refused:
//! writing over a file; putting back what is damaged, no census or of a newer schema; putting anything back while another process writes, or when
//! [`REPLACED_MAX`] databases are kept already that others took the place of.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Seek as _, Write};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use crate::db::error::CopyError;
use crate::db::lock::lock;
use crate::db::open;
use crate::db::tuning::Tuning;
use crate::files::copy::{self, Beside};

/// Databases that are kept beside the one that took their place, each as large as that. Whoever tries one backup after the other has tried enough by
/// then, and none is ever removed without being asked.
pub(crate) const REPLACED_MAX: u32 = 9;

/// What was copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// Its schema.
    pub schema: i64,
    /// Its size.
    pub bytes: u64,
}

/// What was put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The copy.
    pub copied: Copied,
    /// Where the database is kept that it took the place of, if there was one.
    pub replaced: Option<PathBuf>,
}

/// Writes all that is committed now into a new file. The database may be in use, and of an older or a newer schema.
///
/// # Errors
/// A variant a cause; there is no such file then.
pub fn backup(database: &Path, to: &Path) -> Result<Copied, CopyError> {
    if to.symlink_metadata().is_ok() {
        return Err(CopyError::Exists {
            path: to.to_owned(),
        });
    }
    let (beside, copied) = copy_beside(database, to)?;
    beside.put(to)?;
    Ok(copied)
}

/// The same, into a stream. While it is made, the copy lies beside the database.
///
/// # Errors
/// A variant a cause; what has been written until then is not whole, and is refused by [`restore`].
pub fn backup_into(database: &Path, out: &mut dyn Write) -> Result<Copied, CopyError> {
    let (mut beside, copied) = copy_beside(database, database)?;
    let file = beside.file();
    file.rewind()
        .and_then(|()| io::copy(file, out))
        .and_then(|_bytes| out.flush())
        .map_err(CopyError::Stream)?;
    Ok(copied)
}

fn copy_beside(database: &Path, place: &Path) -> Result<(Beside, Copied), CopyError> {
    let connection = open::open_for_copy(database)?;
    let beside = Beside::new(place)?;
    beside.fill(&connection)?;
    let schema = beside.check()?;
    let copied = measured(beside, schema)?;
    Ok(copied)
}

fn measured(mut beside: Beside, schema: i64) -> Result<(Beside, Copied), CopyError> {
    let bytes = beside.file().metadata().map_err(CopyError::Stream)?.len();
    Ok((beside, Copied { schema, bytes }))
}

/// Puts a backup in the database's place. What was there is kept beside it, as `.replaced` or, when there are such already, `.replaced-2` and so on
/// up to `.replaced-9`.
///
/// # Errors
/// A variant a cause; the database is as it was then.
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
    let mut beside = Beside::new(database)?;
    io::copy(from, beside.file()).map_err(CopyError::Stream)?;
    let schema = beside.check()?;
    let known = tuning.schema.version();
    if schema > known {
        return Err(CopyError::Newer {
            found: schema,
            known,
        });
    }
    let (beside, copied) = measured(beside, schema)?;
    fold_log_in(database, tuning);
    let replaced = put_aside(database, &kept)
        .map_err(|error| CopyError::unwritable(database, &error))?
        .then_some(kept);
    beside.put(database)?;
    Ok(Restored { copied, replaced })
}

/// Where the database will be kept that a backup takes the place of.
fn free_place(database: &Path) -> Result<PathBuf, CopyError> {
    (1..=REPLACED_MAX)
        .map(|number| aside(database, number))
        // A log without its database would be applied to the one that is put beside it.
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

/// What can't be looked at is taken for a file.
fn is_free(path: &Path) -> bool {
    path.symlink_metadata()
        .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Takes the log over into the database: a crash before the backup is in its place leaves one that has lost nothing (invariant I6).
///
/// As far as it goes: what is damaged is being replaced, and keeps its log.
fn fold_log_in(database: &Path, tuning: &Tuning) {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let folded = Connection::open_with_flags(database, flags).and_then(|connection| {
        connection.busy_timeout(tuning.busy_wait)?;
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_row| Ok(()))
    });
    folded.ok();
}

/// Gives the database that is there a second name, and takes its log away, which would be applied to whatever file takes its place. Tells whether
/// there was one.
///
/// The database keeps its own name until then: after a crash there is one, and no daemon makes an empty one. Nor is a file written over.
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

/// Whether the file was there that something was done with.
fn present(done: io::Result<()>) -> io::Result<bool> {
    match done {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
