//! What can go wrong while a tree is written: one variant per cause, with the path and what to do.

use std::io;
use std::path::{Path, PathBuf};

use ::files::advice;
use thiserror::Error;

/// Why there is no new tree. The published one is unchanged, unless [`crate::Tree::publish`] says
/// otherwise.
#[derive(Debug, Error)]
pub enum TreeError {
    #[error("public folder {}: not found; create it, or mount the public volume there", folder.display())]
    NoFolder { folder: PathBuf, source: io::Error },
    #[error(
        "public folder {}: can't be written ({source}); {}",
        folder.display(),
        advice(folder, source).unwrap_or_else(|| "give it to the user who runs fedicensus, or mount the volume writable".to_owned())
    )]
    Unwritable { folder: PathBuf, source: io::Error },
    #[error("{}: no room left for the new dump; free some space", path.display())]
    DiskFull {
        /// The file that was being written.
        path: PathBuf,
        source: io::Error,
    },
    #[error("{}: {doing} failed ({source}); see the system's log for the disk behind it", path.display())]
    Failed {
        path: PathBuf,
        doing: &'static str,
        source: io::Error,
    },
    #[error("the census is ending")]
    Cancelled,
}

impl TreeError {
    /// The variant for an error of the system when creating or listing something in `folder`.
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

    /// The variant for an error of the system about `path`, which is `folder` or below it, after
    /// the folder was found to exist.
    pub fn from_io(folder: &Path, path: &Path, doing: &'static str, source: io::Error) -> Self {
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
            // All other kinds of this open-ended list: the operator has to look at the machine.
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
        let error = TreeError::from_open(
            Path::new("/public"),
            Path::new("/public/tree.0/nodes.json"),
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
