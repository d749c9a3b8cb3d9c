//! Databases that only their owner may read, since they hold keys or hashes.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use crate::disk::{Disk, Mode};

const OTHERS: u32 = 0o077;

/// Creates an empty file for a database. SQLite would create it for everybody. An existing file is
/// not opened, because closing it would release this process's locks on it.
pub fn create_private(database: &Path) -> io::Result<()> {
    match Disk::SYSTEM.create(database, Mode::Private) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Denies other users an existing database and its log. SQLite creates a log with the database's
/// mode.
pub fn make_private(database: &Path) -> io::Result<()> {
    for end in ["", "-wal", "-shm"] {
        let mut path = database.as_os_str().to_owned();
        path.push(end);
        match fs::metadata(&path) {
            Ok(found) if found.mode() & OTHERS == 0 => {}
            Ok(_) => fs::set_permissions(&path, Permissions::from_mode(Mode::Private.bits()))?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
