//! Errors of writing the site: a variant for each cause, with the path.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why there is no new site. The published one stays untouched until [`crate::Staged::publish`];
/// from then on each file is either the old or the new one.
#[derive(Debug, Error)]
pub enum SiteError {
    /// The disk is full or the quota is used up.
    #[error("{}: no room left for the site; free some space", path.display())]
    DiskFull {
        /// The file that was being written.
        path: PathBuf,
        source: io::Error,
    },
    /// Any other error of the system.
    #[error("{}: {doing} failed ({source}); check that the user of fedicensus may write there", path.display())]
    Failed {
        path: PathBuf,
        doing: &'static str,
        source: io::Error,
    },
    /// A name is not greater than the one before it: a bug of ours. Readers of the list rely on the
    /// order.
    #[error("the rows for the site came out of order at `{name}`; please report this")]
    OutOfOrder {
        /// The name out of order.
        name: String,
    },
    /// [`dump::Cancel::cancel`] was called.
    #[error("the census is ending")]
    Cancelled,
}

/// A page that could not be written. The site is published without it.
#[derive(Debug)]
pub struct Skipped {
    /// Its path below the public folder.
    pub page: String,
    pub why: SiteError,
}

impl SiteError {
    /// Whether the error concerns only this name, which is taken or which the file system rejects.
    /// Errors of the disk or the folder concern all files.
    pub(crate) fn is_about_the_name(&self) -> bool {
        match self {
            Self::Failed { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::AlreadyExists
                    | io::ErrorKind::IsADirectory
                    | io::ErrorKind::InvalidFilename
            ),
            Self::DiskFull { .. } | Self::OutOfOrder { .. } | Self::Cancelled => false,
        }
    }

    /// The variant for the system's error at `path`.
    pub(crate) fn from_io(path: &Path, doing: &'static str, source: io::Error) -> Self {
        if matches!(
            source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        ) {
            Self::DiskFull {
                path: path.to_owned(),
                source,
            }
        } else {
            Self::Failed {
                path: path.to_owned(),
                doing,
                source,
            }
        }
    }
}
