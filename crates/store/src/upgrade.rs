//! Upgrades an older database: keeps a copy, then applies the missing migrations. No migration runs
//! before the copy is complete and on disk.
//!
//! Invariant: all missing migrations are one transaction. After a crash or failure at any moment,
//! the database opens with its old or its new schema, and the next start continues from there.
//! Separate transactions would leave schemas that no version was made for.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::db::copy::{self, TemporaryFile};
use crate::db::error::{CopyError, OpenError};
use crate::db::tuning::{Moment, Tuning};

/// Copies of older schemas that are kept, each as large as the database was. One is from the last
/// upgrade, one from the upgrade before, for problems that are noticed late. Older copies have
/// verdicts and opt-outs that are too outdated to restore.
pub(crate) const COPIES_KEPT: usize = 2;

/// Separates the database's name from the schema version in a copy's name.
const SCHEMA: &str = ".schema-";

/// Keeps a copy of the database, whose schema version is `from`, and applies the missing
/// migrations.
pub(crate) fn upgrade(
    connection: &mut Connection,
    path: &Path,
    from: i64,
    tuning: &Tuning,
) -> Result<(), OpenError> {
    let to = tuning.schema.version();
    let copy = place(path, from);
    tracing::info!(from, to, copy = %copy.display(), "the database is of an older schema: keeping a copy of it, then migrating it");
    keep(connection, &copy, from, tuning).map_err(|source| OpenError::Copy {
        path: path.to_owned(),
        from,
        to,
        source,
    })?;
    (tuning.at)(Moment::Kept);
    tuning
        .schema
        .to_latest(connection)
        .map_err(|error| OpenError::Migration {
            path: path.to_owned(),
            source: Box::new(error),
        })?;
    tracing::info!(from, to, copy = %copy.display(), "the database is migrated; to go back to the version before, restore the copy");
    (tuning.at)(Moment::Migrated);
    forget_old(path, to);
    Ok(())
}

fn keep(connection: &Connection, copy: &Path, from: i64, tuning: &Tuning) -> Result<(), CopyError> {
    let temporary = TemporaryFile::new(copy)?;
    temporary.fill(connection)?;
    let found = temporary.check()?;
    if found != from {
        return Err(CopyError::Damaged(format!(
            "the copy has schema {found} and not {from}"
        )));
    }
    (tuning.at)(Moment::Copied);
    // Replaces an earlier copy of this schema: the database has changed since.
    temporary.put(copy)
}

/// Deletes surplus copies of older schemas. A failure only costs disk space.
fn forget_old(path: &Path, to: i64) {
    let mut schemas = copies(path);
    schemas.retain(|schema| *schema < to);
    for schema in schemas.into_iter().rev().skip(COPIES_KEPT) {
        let copy = place(path, schema);
        match std::fs::remove_file(&copy) {
            Ok(()) => tracing::info!(copy = %copy.display(), "removed an old copy of the database"),
            Err(error) => {
                tracing::warn!(copy = %copy.display(), %error, "can't remove an old copy of the database");
            }
        }
    }
}

/// The newest copy next to the database whose schema version is at most `known`.
pub(crate) fn usable_copy(path: &Path, known: i64) -> Option<PathBuf> {
    copies(path)
        .into_iter()
        .rfind(|schema| *schema <= known)
        .map(|schema| place(path, schema))
}

/// Schema versions that have a copy, ascending.
fn copies(path: &Path) -> Vec<i64> {
    let Some(name) = path.file_name().and_then(std::ffi::OsStr::to_str) else {
        return Vec::new();
    };
    let mut schemas: Vec<i64> = copy::names(path)
        .iter()
        .filter_map(|found| found.strip_prefix(name)?.strip_prefix(SCHEMA)?.parse().ok())
        .collect();
    schemas.sort_unstable();
    schemas
}

/// Path of the copy with this schema version. The version is in the name so that a program finds a
/// copy that it can use.
pub(crate) fn place(path: &Path, schema: i64) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!("{SCHEMA}{schema}"));
    PathBuf::from(name)
}

#[cfg(test)]
mod tests;
