//! What can go wrong with the database: one variant per cause.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::files::{advice, folder_of, shared_file_system};
use protocol::Host;
use rusqlite::ErrorCode;
use thiserror::Error;

/// Why a database can't be opened. Each message says what to do.
#[derive(Debug, Error)]
pub enum OpenError {
    #[error("there is no database at {path}: check the path, or start the daemon once, which creates it", path = .path.display())]
    Missing { path: PathBuf },
    #[error("can't write the database {path} or its directory: check that the directory exists, belongs to the daemon's user, and that the disk is mounted for writing and not full ({reason})", path = .path.display())]
    Unwritable {
        path: PathBuf,
        /// The operating system's or SQLite's message.
        reason: String,
    },
    /// It failed on a file system that may not be able to hold it.
    #[error("can't open the database {path}: it is on a file system of the kind {kind}, which may lack the locks and the shared memory that SQLite needs; use a local disk", path = .path.display())]
    SharedFileSystem {
        path: PathBuf,
        kind: &'static str,
        source: Box<Self>,
    },
    #[error("the database {path} is in use by another process: stop that one, or talk to it through its control socket", path = .path.display())]
    InUse { path: PathBuf },
    #[error("the database {path} has schema {found}, made by a newer version; this one, {version}, knows {known} at most and leaves it as it is: use the newer version again, or {back}", path = .path.display(), version = env!("CARGO_PKG_VERSION"), back = way_back(.copy.as_deref()))]
    Newer {
        path: PathBuf,
        found: i64,
        known: i64,
        /// The newest copy next to the database that this program can use.
        copy: Option<PathBuf>,
    },
    #[error("the database {path} has schema {found}, this program needs {known}: start the daemon once, which migrates it", path = .path.display())]
    Older {
        path: PathBuf,
        found: i64,
        known: i64,
    },
    #[error("{path} is no census database: check the path; if it was one, restore a copy", path = .path.display())]
    NotADatabase { path: PathBuf },
    /// The damage is so severe that not even the schema can be read.
    #[error("the database {path} is damaged: restore a copy", path = .path.display())]
    Damaged {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error("can't keep a copy of the database {path} before it is migrated from schema {from} to {to}; it is as it was", path = .path.display())]
    Copy {
        path: PathBuf,
        from: i64,
        to: i64,
        #[source]
        source: CopyError,
    },
    #[error("can't migrate the database {path}; it is as it was", path = .path.display())]
    Migration {
        path: PathBuf,
        #[source]
        source: Box<rusqlite_migration::Error>,
    },
    #[error(
        "can't start the thread that writes the database: too many threads or too little memory"
    )]
    Thread(#[source] std::io::Error),
    #[error("can't open the database {path}", path = .path.display())]
    Sqlite {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
}

fn way_back(copy: Option<&Path>) -> String {
    copy.map_or_else(
        || {
            "restore a backup that was made before the upgrade (there is no copy next to it)"
                .to_owned()
        },
        |copy| {
            format!(
                "go back to the copy that was made before the upgrade with `fedicensus restore {}`",
                copy.display()
            )
        },
    )
}

/// Why a database can't be copied or restored. Each message says what to do.
#[derive(Debug, Error)]
pub enum CopyError {
    #[error(transparent)]
    Open(Box<OpenError>),
    #[error("{path} is there already: name another file, or move that one away", path = .path.display())]
    Exists { path: PathBuf },
    #[error("no room for the copy: it takes up to {mebibytes} MiB in {folder}; free that much, or move older copies and backups away from there", folder = .folder.display())]
    NoRoom { folder: PathBuf, mebibytes: i64 },
    #[error("the databases {first} to {last}, which earlier restores replaced, still exist: remove those that are no longer needed, then try again", first = .first.display(), last = .last.display())]
    KeptTooMany { first: PathBuf, last: PathBuf },
    #[error("can't write {path}: {reason} (in a container, only the data directory can be written)", path = .path.display())]
    Unwritable {
        path: PathBuf,
        /// The operating system's or SQLite's message.
        reason: String,
    },
    #[error("the copy broke off")]
    Stream(#[source] std::io::Error),
    #[error("it is damaged or not whole ({0}): take another copy")]
    Damaged(String),
    #[error("it is no census database")]
    NotACensus,
    #[error(
        "it has schema {found}, made by a newer version; this one knows {known} at most: use the newer version, or an older copy"
    )]
    Newer { found: i64, known: i64 },
}

impl OpenError {
    pub(crate) fn unwritable(path: &Path, reason: &(dyn std::error::Error + 'static)) -> Self {
        let mut text = coded(reason);
        let io = reason.downcast_ref::<std::io::Error>();
        if let Some(advice) = io.and_then(|error| advice(folder_of(path), error)) {
            text = format!("{text}; {advice}");
        }
        Self::Unwritable {
            path: path.to_owned(),
            reason: text,
        }
    }

    /// The same error, with the file system if that may be the cause.
    pub(crate) fn on_its_file_system(self) -> Self {
        let (Self::Unwritable { path, .. }
        | Self::InUse { path }
        | Self::Migration { path, .. }
        | Self::Sqlite { path, .. }) = &self
        else {
            return self;
        };
        let Some(kind) = shared_file_system(folder_of(path)) else {
            return self;
        };
        Self::SharedFileSystem {
            path: path.clone(),
            kind,
            source: Box::new(self),
        }
    }
}

impl From<OpenError> for CopyError {
    fn from(error: OpenError) -> Self {
        Self::Open(Box::new(error))
    }
}

impl CopyError {
    pub(crate) fn unwritable(path: &Path, reason: &(dyn std::error::Error + 'static)) -> Self {
        Self::Unwritable {
            path: path.to_owned(),
            reason: coded(reason),
        }
    }
}

/// Why a request to the open database failed. Nothing of the request is written then.
///
/// All causes are faults on our side: none counts against a host (invariant I5).
#[derive(Debug, Clone, Error)]
pub enum StoreError {
    /// The disk or the quota is full. The writer continues once there is room again.
    #[error("the database's disk is full: free some space; the census then continues automatically ({})", coded(.0.as_ref()))]
    Full(#[source] Arc<rusqlite::Error>),
    /// Another process holds the database's write lock, and waiting for it timed out.
    #[error(
        "the database is locked by another process: end what else writes it, such as a backup or an sqlite3 shell ({})", coded(.0.as_ref())
    )]
    Busy(#[source] Arc<rusqlite::Error>),
    #[error("the database is damaged: stop the daemon and restore a copy ({})", coded(.0.as_ref()))]
    Corrupt(#[source] Arc<rusqlite::Error>),
    /// The file can't be read or written: an input/output error, or it became read-only.
    #[error(
        "the database's file can't be read or written: see that its directory is there and mounted for writing, and the system's log for the disk behind it ({})", coded(.0.as_ref())
    )]
    Unwritable(#[source] Arc<rusqlite::Error>),
    #[error("the database is no longer at {path}: put its directory back; what is learned meanwhile goes into the file that was there", path = .path.display())]
    Away { path: PathBuf },
    #[error("another database was put at {path} while this one was open: start again, to use that one", path = .path.display())]
    Replaced { path: PathBuf },
    #[error("the database was closed")]
    Closed,
    #[error("{host} is being checked already")]
    InFlight { host: Host },
    /// The host is never checked, because its owner or a moderator opted it out, or because it is
    /// parked (invariant I7).
    #[error("{host} is never asked: it opted out, or it is parked")]
    NeverAsked { host: Host },
    #[error(
        "{host} is not asked: the operator denies its group; `fedicensus explain {host}` says why"
    )]
    GroupDenied { host: Host },
    #[error("{host} is not in the database")]
    Unknown { host: Host },
    #[error("row {id} of the database holds no valid {column}")]
    BadRow { id: i64, column: &'static str },
    #[error("can't start a thread for the database: too many threads or too little memory")]
    Thread(#[source] Arc<std::io::Error>),
    #[error("the database failed ({})", coded(.0.as_ref()))]
    Sqlite(#[source] Arc<rusqlite::Error>),
}

/// An error, SQLite's with its extended code: many causes share one text, such as "disk I/O error".
pub(crate) fn coded(error: &(dyn std::error::Error + 'static)) -> String {
    let of_sqlite = error.downcast_ref::<rusqlite::Error>();
    match of_sqlite.and_then(rusqlite::Error::sqlite_error) {
        Some(code) => format!("{error}, SQLite's code {}", code.extended_code),
        None => error.to_string(),
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let code = error.sqlite_error_code();
        let error = Arc::new(error);
        match code {
            Some(ErrorCode::DiskFull) => Self::Full(error),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy(error),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt(error),
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied,
            ) => Self::Unwritable(error),
            Some(_) | None => Self::Sqlite(error),
        }
    }
}
