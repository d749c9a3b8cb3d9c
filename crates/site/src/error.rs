//! What can go wrong while the site is written: a variant a cause, each with the path.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why there is no new site. Until [`crate::Staged::publish`] the one before stands untouched; from then on each file is the old one or the new one.
#[derive(Debug, Error)]
pub enum SiteError {
    /// No room left, or over the quota.
    #[error("{}: no room left for the site; free some space", path.display())]
    DiskFull {
        /// The file that was being written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Anything else that the system refused.
    #[error("{}: {doing} failed ({source}); look whether whoever runs fedicensus may write there", path.display())]
    Failed {
        /// The file or folder.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A name is not greater than the one before it: our own mistake, and the list is read in this order.
    #[error("the rows for the site came out of order at `{name}`; please report this")]
    OutOfOrder {
        /// The name.
        name: String,
    },
    /// A picture could not be drawn: our own mistake.
    #[error("a picture could not be drawn ({why}); please report this")]
    Picture {
        /// What the library said.
        why: String,
    },
    /// [`dump::Cancel::cancel`] was called.
    #[error("the census is ending")]
    Cancelled,
}

/// A page that could not be written. The rest of the site is published without it.
#[derive(Debug)]
pub struct Skipped {
    /// Its path below the public folder.
    pub page: String,
    /// Why.
    pub why: SiteError,
}

impl SiteError {
    /// Whether it is about this one name, which something else has taken or the file system does
    /// not take, and not about the disk or the folder, which all files share.
    pub(crate) fn is_about_the_name(&self) -> bool {
        match self {
            Self::Failed { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::AlreadyExists
                    | io::ErrorKind::IsADirectory
                    | io::ErrorKind::InvalidFilename
            ),
            Self::DiskFull { .. }
            | Self::OutOfOrder { .. }
            | Self::Picture { .. }
            | Self::Cancelled => false,
        }
    }

    /// The variant for what the system said of `path`.
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
