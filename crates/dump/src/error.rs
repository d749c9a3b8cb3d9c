//! What can go wrong while a dump is written: a variant a cause, each with the path and what to do.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why there is no new dump. From [`crate::Sealed::publish`]: each file is the old one or the new one. From all others: the one before stands untouched.
#[derive(Debug, Error)]
pub enum DumpError {
    /// The public folder is not there, or is no folder.
    #[error("public folder {}: not found; create it, or mount the public volume there", folder.display())]
    NoFolder {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The public folder may not be written to.
    #[error(
        "public folder {}: can't be written ({source}); give it to the user who runs fedicensus, or mount the volume writable",
        folder.display()
    )]
    Unwritable {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No room left, or over the quota.
    #[error("{}: no room left for the new dump; free some space", path.display())]
    DiskFull {
        /// The file that was being written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Anything else.
    #[error("{}: {doing} failed ({source}); see the system's log for the disk behind it", path.display())]
    Failed {
        /// The file or folder.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A name is not greater than the one before it: our own mistake, and consumers rely on the order.
    #[error("the names for the dump came out of order at `{name}`; please report this")]
    OutOfOrder {
        /// The name.
        name: String,
    },
    /// Another error came first, and whoever fed the names passed over it.
    #[error("the dump was given up after an earlier error; please report this")]
    GivenUp,
    /// [`crate::Cancel::cancel`] was called.
    #[error("the census is ending")]
    Cancelled,
}

impl DumpError {
    /// The variant for what the system said when it was to create or list something in `folder`.
    pub(crate) fn from_open(
        folder: &Path,
        path: &Path,
        doing: &'static str,
        source: io::Error,
    ) -> Self {
        if matches!(
            source.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        ) {
            Self::NoFolder {
                folder: folder.to_owned(),
                source,
            }
        } else {
            Self::from_io(folder, path, doing, source)
        }
    }

    /// The variant for what the system said of `path`, a file of `folder` or the folder itself, once the folder was there.
    pub(crate) fn from_io(
        folder: &Path,
        path: &Path,
        doing: &'static str,
        source: io::Error,
    ) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::Unwritable {
                    folder: folder.to_owned(),
                    source,
                }
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull {
                path: path.to_owned(),
                source,
            },
            // The rest of this open-ended list calls for a look at the machine.
            _ => Self::Failed {
                path: path.to_owned(),
                doing,
                source,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: io::ErrorKind, expect: &str) {
        let error = DumpError::from_open(
            Path::new("/public"),
            Path::new("/public/.nodes.json.1-0.new"),
            "writing",
            io::Error::from(kind),
        );
        let text = error.to_string();
        assert!(text.contains("/public"), "{text}");
        assert!(text.contains(expect), "{text}");
        assert!(!text.contains('\n'), "{text}");
    }

    #[test]
    fn each_cause_says_where_and_what_to_do() {
        check(io::ErrorKind::NotFound, "create it");
        check(io::ErrorKind::NotADirectory, "create it");
        check(io::ErrorKind::PermissionDenied, "give it to the user");
        check(
            io::ErrorKind::ReadOnlyFilesystem,
            "mount the volume writable",
        );
        check(io::ErrorKind::StorageFull, "free some space");
        check(io::ErrorKind::QuotaExceeded, "free some space");
        check(io::ErrorKind::Other, "writing failed");
    }
}
