//! Errors of the file.

use std::io;

use thiserror::Error;

#[derive(Debug, Error)]
pub enum OpenError {
    #[error("{0} is not a database of the push service")]
    Foreign(String),
    #[error("{0} can't be read ({1}); the push service makes it at its first start")]
    Missing(String, #[source] io::Error),
    #[error("the database {0} can't be opened: {why}", why = coded(.1))]
    Sqlite(String, #[source] rusqlite::Error),
    #[error(
        "{0} or its lock can't be written ({1}): check that the directory exists, belongs to this user, and that the disk is mounted for writing and not full"
    )]
    Unwritable(String, #[source] io::Error),
    #[error(
        "{path} has schema {found}, made by a newer version; this one knows {known} at most and leaves it as it is: use the newer version again, or restore a backup that was made before the upgrade"
    )]
    Newer {
        path: String,
        found: i64,
        known: usize,
    },
    #[error("the schema of {0}: {1}")]
    Schema(String, #[source] rusqlite_migration::Error),
}

/// SQLite's text with its extended code. Many causes share one text, such as "disk I/O error".
pub(super) fn coded(error: &rusqlite::Error) -> String {
    match error.sqlite_error() {
        Some(code) => format!("{error}, SQLite's code {}", code.extended_code),
        None => error.to_string(),
    }
}
