//! Why accounts can't be read or written.

use std::path::PathBuf;

use thiserror::Error;

/// Why accounts can't be read or written. No answer to a login says which.
#[derive(Debug, Error)]
pub enum AccountsError {
    /// The file can't be made or opened.
    #[error("{path}: the file of moderators' accounts can't be opened")]
    Open {
        /// Where it is.
        path: PathBuf,
        /// What went wrong.
        source: std::io::Error,
    },
    /// SQLite failed.
    #[error("the file of moderators' accounts can't be read or written")]
    Sqlite(#[from] rusqlite::Error),
    /// The schema could not be brought up to date.
    #[error("the file of moderators' accounts can't be brought up to date")]
    Migration(#[from] rusqlite_migration::Error),
    /// A copy's path is not UTF-8, which SQLite needs.
    #[error("{path}: the path of a copy must be UTF-8")]
    NotText {
        /// The path.
        path: PathBuf,
    },
    /// It is another program's file.
    #[error(
        "{path} is a database, but not one of moderators' accounts: move it away, or name another"
    )]
    Foreign {
        /// Where it is.
        path: PathBuf,
    },
    /// A password can't be hashed: there is not enough memory.
    #[error("the password can't be hashed: {0}")]
    Hash(String),
    /// A name that no account can have.
    #[error("{0:?} can't be an account's name: it takes 1 to 64 of a-z, 0-9, '-', '_' and '.'")]
    BadName(String),
    /// A password that no account can have.
    #[error("a password takes {min} to {max} characters")]
    BadPassword {
        /// The fewest.
        min: usize,
        /// The most.
        max: usize,
    },
    /// The account is there already.
    #[error("there is an account {0:?} already: reset it, or remove it first")]
    Exists(String),
    /// There is no such account.
    #[error("there is no account {0:?}: `fedicensus moderator list` has all of them")]
    Unknown(String),
}
