//! Errors of reading and writing accounts.

use std::path::PathBuf;

use thiserror::Error;

/// Why accounts can't be read or written. No answer to a login reveals the reason.
#[derive(Debug, Error)]
pub enum AccountsError {
    /// The file can't be created or opened.
    #[error("{path}: the file of moderators' accounts can't be opened")]
    Open {
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    #[error("the file of moderators' accounts can't be read or written")]
    Sqlite(#[from] rusqlite::Error),
    /// The schema could not be brought up to date.
    #[error("the file of moderators' accounts can't be brought up to date")]
    Migration(#[from] rusqlite_migration::Error),
    #[error(
        "{path} has schema {found}, made by a newer version; this one knows {known} at most and leaves it as it is: use the newer version again, or put back a backup that was made before the upgrade"
    )]
    Newer {
        path: PathBuf,
        found: i64,
        known: usize,
    },
    /// A copy's path is not UTF-8, which SQLite needs.
    #[error("{path}: the path of a copy must be UTF-8")]
    NotText { path: PathBuf },
    /// The file is another program's database.
    #[error(
        "{path} is a database, but not one of moderators' accounts: move it away, or name another"
    )]
    Foreign { path: PathBuf },
    /// A password can't be hashed: there is not enough memory.
    #[error("the password can't be hashed: {0}")]
    Hash(String),
    /// The name is not valid for an account.
    #[error("{0:?} can't be an account's name: it takes 1 to 64 of a-z, 0-9, '-', '_' and '.'")]
    BadName(String),
    /// The password is too short or too long.
    #[error("a password has {min} to {max} characters")]
    BadPassword { min: usize, max: usize },
    /// An account of this name exists already.
    #[error("the account {0:?} exists already: reset it, or remove it first")]
    Exists(String),
    /// There is no account of this name.
    #[error("there is no account {0:?}: `fedicensus moderator list` shows all accounts")]
    Unknown(String),
}
