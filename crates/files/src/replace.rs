//! Replaces one small file as a whole.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::disk::{Disk, Mode, folder_of};

/// A new file, synced, next to its place. Dropping this deletes it.
#[derive(Debug)]
pub struct Written {
    disk: Disk,
    temporary: PathBuf,
    place: PathBuf,
    is_put: bool,
}

/// Replaces the file at `place`, or creates it.
///
/// Once it returns, the new file survives a power cut. A crash before that leaves the complete old
/// or new file. Two writers of one place need a lock, since the temporary name is always
/// `.NAME.new`.
///
/// # Errors
/// Fails with the system's error. The old file is still there, unless only syncing the folder
/// failed.
pub fn replace(place: &Path, mode: Mode, bytes: &[u8]) -> io::Result<()> {
    write(Disk::SYSTEM, place, mode, bytes)?.put()
}

/// The first half of [`replace`]: the file is on disk, but not in its place.
/// Fails with the system's error. No temporary file is left then.
pub fn write(disk: Disk, place: &Path, mode: Mode, bytes: &[u8]) -> io::Result<Written> {
    let mut name = std::ffi::OsString::from(".");
    name.push(place.file_name().unwrap_or_default());
    name.push(".new");
    let temporary = folder_of(place).join(name);
    match disk.remove(&temporary) {
        // A crash left an incomplete file. It is not overwritten: it may have another mode, or be a
        // link.
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let written = Written {
        disk,
        temporary,
        place: place.to_owned(),
        is_put: false,
    };
    let mut file = written.disk.create(&written.temporary, mode)?;
    file.write_all(bytes)?;
    written.disk.sync_file(&file)?;
    Ok(written)
}

impl Written {
    /// The second half of [`replace`]: renames the file into place and syncs the folder.
    ///
    /// # Errors
    /// Fails with the system's error. The old file is still there, unless only syncing the folder
    /// failed.
    pub fn put(mut self) -> io::Result<()> {
        self.disk.rename(&self.temporary, &self.place)?;
        self.is_put = true;
        self.disk.sync_folder(folder_of(&self.place))
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        if !self.is_put {
            // If it can't be deleted now, the next writer deletes it.
            self.disk.remove(&self.temporary).ok();
        }
    }
}
