//! The few calls to the file system that a swap is made of: a seam, so that tests can let any of them fail or be the last.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Published files: everybody reads them, nginx among them as another user; nobody else writes.
const FILE_MODE: u32 = 0o644;

/// A file system, as far as a swap needs one.
pub(crate) trait Disk {
    /// A file that is open for writing.
    type File: Write;

    /// Makes a new file; an existing one is an error.
    fn create(&self, path: &Path) -> io::Result<Self::File>;

    /// Waits until the file's content is on the disk.
    fn sync_file(&self, file: &Self::File) -> io::Result<()>;

    /// Puts the file `from` in the place of `to`, at once.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Waits until the folder's names are on the disk.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// The names in a folder, at most `names_max` of them.
    fn list(&self, folder: &Path, names_max: usize) -> io::Result<Vec<OsString>>;
}

/// The operating system's file system.
#[derive(Debug)]
pub(crate) struct SystemDisk;

impl Disk for SystemDisk {
    type File = File;

    fn create(&self, path: &Path) -> io::Result<File> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(FILE_MODE)
            .open(path)?;
        // The umask may have taken bits away.
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
        Ok(file)
    }

    fn sync_file(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn list(&self, folder: &Path, names_max: usize) -> io::Result<Vec<OsString>> {
        fs::read_dir(folder)?
            .take(names_max)
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect()
    }
}
