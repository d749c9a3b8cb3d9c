//! A newer version on an older database: a copy first, then the steps that are missing.
//!
//! In: an open database of an older schema. Out: one of this program's. Refused: to take a step before the copy is whole and on the disk.
//!
//! Invariant: all missing steps are one transaction, so a crash or a failure at any moment leaves a database that opens, as it was or migrated as a
//! whole, and the next start goes on from there. Steps of their own would leave schemas that no version was ever made for.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::db::error::{CopyError, OpenError};
use crate::db::tuning::{Moment, Tuning};
use crate::files::copy::{self, Beside};

/// Copies of older schemas that are kept, each as large as the database was: that of the last upgrade, and that of the one before for whoever
/// notices late. What is older has verdicts and opt-outs that nobody would want back.
pub(crate) const COPIES_KEPT: usize = 2;

/// What stands between the database's name and the schema in a copy's name.
const SCHEMA: &str = ".schema-";

/// Keeps a copy of the database, whose schema is `from`, and takes the steps that are missing.
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
    let beside = Beside::new(copy)?;
    beside.fill(connection)?;
    let found = beside.check()?;
    if found != from {
        return Err(CopyError::Damaged(format!(
            "the copy has schema {found} and not {from}"
        )));
    }
    (tuning.at)(Moment::Copied);
    // In the place of a former copy of this schema, if there is one: the database went on from there.
    beside.put(copy)
}

/// Removes the copies of older schemas that are too many. Failing to, it only costs room.
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

/// The newest copy beside the database that a program can use which knows schemas up to `known`.
pub(crate) fn usable_copy(path: &Path, known: i64) -> Option<PathBuf> {
    copies(path)
        .into_iter()
        .rfind(|schema| *schema <= known)
        .map(|schema| place(path, schema))
}

/// The schemas that there are copies of, in ascending order.
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

/// Where the copy of a schema is kept. It is called after the schema that it has, so that a program finds the one that it can use.
pub(crate) fn place(path: &Path, schema: i64) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!("{SCHEMA}{schema}"));
    PathBuf::from(name)
}

#[cfg(test)]
mod tests;
