//! Errors of reading and writing accounts.

use std::path::PathBuf;

use thiserror::Error;

/// Why accounts can't be read or written. No answer to a login reveals the reason.
#[derive(Debug, Error)]
pub enum AccountsError {
    #[error("{path}: the file of moderators' accounts can't be opened")]
    Open {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the file of moderators' accounts can't be read or written")]
    Sqlite(#[from] rusqlite::Error),
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
    #[error("{path}: the path of a copy must be UTF-8")]
    NotText { path: PathBuf },
    #[error(
        "{path} is a database, but not one of moderators' accounts: move it away, or name another"
    )]
    Foreign { path: PathBuf },
    #[error("the password can't be hashed: {0}")]
    Hash(String),
    #[error("{0:?} can't be an account's name: it takes 1 to 64 of a-z, 0-9, '-', '_' and '.'")]
    BadName(String),
    #[error("a password has {min} to {max} characters")]
    BadPassword { min: usize, max: usize },
    #[error("the account {0:?} exists already: reset it, or remove it first")]
    Exists(String),
    #[error("there is no account {0:?}: `fedicensus moderator list` shows all accounts")]
    Unknown(String),
}
