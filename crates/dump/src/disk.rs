//! The few calls to the file system that a publication is made of: a seam, so that tests can let any of them fail or be the last.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::set::formats::table::{SystemTable, Table};

/// Published files: everybody reads them, nginx among them as another user; nobody else writes.
const FILE_MODE: u32 = 0o644;

/// The same of the folders below the public one.
const FOLDER_MODE: u32 = 0o755;

/// A file system, as far as a publication needs one.
pub(crate) trait Disk {
    /// A file that is open for writing.
    type File: Write + Send;

    /// A file that is open for reading.
    type Reader: Read + Send;

    /// A file that rows are inserted into.
    type Table: Table;

    /// Makes a folder in one that is there; an existing one is fine.
    fn make_folder(&self, path: &Path) -> io::Result<()>;

    /// Makes a new file; an existing one is an error.
    fn create(&self, path: &Path) -> io::Result<Self::File>;

    /// The same for a table.
    fn create_table(&self, path: &Path) -> io::Result<Self::Table>;

    /// Opens a file to read it from its beginning, and tells its length.
    fn open(&self, path: &Path) -> io::Result<(Self::Reader, u64)>;

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
    type Reader = File;
    type Table = SystemTable;

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        match fs::DirBuilder::new().mode(FOLDER_MODE).create(path) {
            Ok(()) => fs::set_permissions(path, Permissions::from_mode(FOLDER_MODE)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            Err(error) => Err(error),
        }
    }

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

    fn create_table(&self, path: &Path) -> io::Result<SystemTable> {
        SystemTable::begin(self.create(path)?, path)
    }

    fn open(&self, path: &Path) -> io::Result<(File, u64)> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        Ok((file, bytes))
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
