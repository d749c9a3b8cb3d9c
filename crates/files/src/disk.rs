//! The file system calls that this crate uses. Tests can replace them to make any call fail, or be
//! the last one.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Mode of published folders: everybody can read them, such as nginx as another user, and only the
/// owner can write.
const FOLDER_MODE: u32 = 0o755;

/// Who may read a file. Only its owner may write to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Public,
    /// Only its owner: for secrets.
    Private,
}

impl Mode {
    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::Public => 0o644,
            Self::Private => 0o600,
        }
    }
}

pub trait Disk {
    type File: Write + Send;

    type Reader: Read + Send;

    /// Creates a public folder in an existing one. An existing folder is not an error.
    fn make_folder(&self, path: &Path) -> io::Result<()>;

    /// Creates a new file. An existing file or symbolic link is an error.
    ///
    /// # Errors
    /// Fails with the system's error. The file may exist then, unless the kind is `AlreadyExists`.
    fn create(&self, path: &Path, mode: Mode) -> io::Result<Self::File>;

    /// Opens a file for reading and returns its length.
    fn open(&self, path: &Path) -> io::Result<(Self::Reader, u64)>;

    /// Waits until the file's content is on disk.
    fn sync_file(&self, file: &Self::File) -> io::Result<()>;

    /// Replaces `to` by `from` atomically.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Waits until the folder's names are on disk.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Deletes a file, or a folder with everything in it. A symbolic link is deleted, not followed.
    fn remove_all(&self, path: &Path) -> io::Result<()>;

    /// The names in a folder, at most `names_max`.
    fn list(&self, folder: &Path, names_max: usize) -> io::Result<Vec<OsString>>;
}

#[derive(Debug, Clone, Copy)]
pub struct SystemDisk;

impl Disk for SystemDisk {
    type File = File;
    type Reader = File;

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        match fs::DirBuilder::new().mode(FOLDER_MODE).create(path) {
            // The umask may have removed bits.
            Ok(()) => fs::set_permissions(path, Permissions::from_mode(FOLDER_MODE)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn create(&self, path: &Path, mode: Mode) -> io::Result<File> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(mode.bits())
            .open(path)?;
        // The umask may have removed bits.
        file.set_permissions(Permissions::from_mode(mode.bits()))?;
        Ok(file)
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
        sync_folder(folder)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_all(&self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => fs::remove_dir_all(path),
            removed => removed,
        }
    }

    fn list(&self, folder: &Path, names_max: usize) -> io::Result<Vec<OsString>> {
        fs::read_dir(folder)?
            .take(names_max)
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect()
    }
}

/// Waits until the folder's names are on disk.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The folder of a file; `.` for a bare name.
pub fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    }
}
