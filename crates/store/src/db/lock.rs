//! The lock file next to the database, which keeps a second writer out.

use std::path::{Path, PathBuf};

use ::files::Lock;

use crate::db::error::OpenError;

/// Locks the file next to the database. SQLite's own locks would let two daemons alternate and
/// check the same hosts twice.
pub(crate) fn lock(path: &Path) -> Result<Lock, OpenError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    Lock::take(&PathBuf::from(name))
        .map_err(|error| OpenError::unwritable(path, &error))?
        .ok_or_else(|| OpenError::InUse {
            path: path.to_owned(),
        })
}
