//! The file system calls that writers use. Tests can make any of them fail, or be the last one.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

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

type Before = dyn Fn(&'static str) -> io::Result<()> + Send + Sync;

/// A disk. Clones share one hook.
#[derive(Clone)]
pub struct Disk(Option<Arc<Before>>);

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Disk").field(&self.0.is_some()).finish()
    }
}

impl Disk {
    pub const SYSTEM: Self = Self(None);

    /// A disk for tests: `before` is called before each call, by the call's name. An error of
    /// `before` is the call's, and nothing is done then. It never waits for the hardware.
    pub fn hooked(before: impl Fn(&'static str) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(before)))
    }

    /// Runs the hook for a call that is not one of these, such as a write to an open file.
    pub fn begin(&self, call: &'static str) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), |before| before(call))
    }

    /// Creates a public folder in an existing one. An existing folder is not an error.
    pub fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.begin("make_folder")?;
        match fs::DirBuilder::new().mode(FOLDER_MODE).create(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
            made => made?,
        }
        // The umask may have removed bits, or a crash before this call.
        fs::set_permissions(path, Permissions::from_mode(FOLDER_MODE))
    }

    /// Creates a new file. An existing file or symbolic link is an error.
    ///
    /// # Errors
    /// Fails with the system's error. The file may exist then, unless the kind is `AlreadyExists`.
    pub fn create(&self, path: &Path, mode: Mode) -> io::Result<File> {
        self.begin("create")?;
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

    /// Waits until the file's content is on disk.
    pub fn sync_file(&self, file: &File) -> io::Result<()> {
        self.sync("sync_file", || file.sync_all())
    }

    /// Replaces `to` by `from` atomically.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.begin("rename")?;
        fs::rename(from, to)
    }

    /// Makes `to` another name of the file `from`.
    pub fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.begin("link")?;
        fs::hard_link(from, to)
    }

    /// Makes the symbolic link `at`.
    pub fn symlink(&self, target: &Path, at: &Path) -> io::Result<()> {
        self.begin("symlink")?;
        std::os::unix::fs::symlink(target, at)
    }

    pub fn set_modified(&self, path: &Path, at: SystemTime) -> io::Result<()> {
        self.begin("set_modified")?;
        File::options().append(true).open(path)?.set_modified(at)
    }

    /// Waits until the folder's names are on disk.
    pub fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.sync("sync_folder", || sync_folder(folder))
    }

    /// Waits until everything is on disk that was written to the file system of this folder.
    pub fn sync_all(&self, folder: &Path) -> io::Result<()> {
        self.sync("sync_all", || Ok(rustix::fs::syncfs(File::open(folder)?)?))
    }

    fn sync(&self, call: &'static str, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.begin(call)?;
        if self.0.is_some() { Ok(()) } else { sync() }
    }

    pub fn remove(&self, path: &Path) -> io::Result<()> {
        self.begin("remove")?;
        fs::remove_file(path)
    }

    /// Deletes a file, or a folder with everything in it. A symbolic link is deleted, not followed.
    pub fn remove_all(&self, path: &Path) -> io::Result<()> {
        self.begin("remove_all")?;
        match fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => fs::remove_dir_all(path),
            removed => removed,
        }
    }

    /// The names in a folder, at most `names_max`.
    pub fn list(&self, folder: &Path, names_max: usize) -> io::Result<Vec<OsString>> {
        self.begin("list")?;
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
