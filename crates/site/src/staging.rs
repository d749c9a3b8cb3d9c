//! Files written beside their places and put there one after the other (invariant I6).
//!
//! In: bytes for some thousand files of a few folders. Out: each replaced by rename, after all of them are on the disk. One call syncs the whole file
//! system: one for each of some thousand files would take longer than making them. What a crash leaves beside them is hidden, and cleared at start.

use std::fs::{self, File, OpenOptions, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use dump::Cancel;
use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};

use crate::error::{SiteError, Skipped};

/// How a file's name ends until it is published. nginx shows nothing that ends in `.new` or begins with a dot.
const UNPUBLISHED: &str = ".site.new";

/// Published files and folders: everybody reads them, nginx among them as another user; nobody else writes.
const FILE_MODE: u32 = 0o644;
const FOLDER_MODE: u32 = 0o755;

/// Bytes below which a file is not gzipped: it goes into one packet as it is.
const GZIP_BYTES_MIN: usize = 1024;

/// Names that are looked at in one folder.
const FOLDER_NAMES_MAX: usize = 100_000;

/// The gzip header's code for "unknown" (RFC 1952 §2.3.1).
const GZIP_SYSTEM_UNKNOWN: u8 = 255;

/// What is compressed once and read often.
pub(crate) type Gzip<W> = GzEncoder<W>;

/// Gzips into `to`; equal bytes give equal bytes, for the header holds no time and no system.
pub(crate) fn gzip<W: Write>(to: W) -> Gzip<W> {
    GzBuilder::new()
        .mtime(0)
        .operating_system(GZIP_SYSTEM_UNKNOWN)
        .write(to, Compression::default())
}

/// Files that wait beside their places. Dropped, it takes them away.
#[derive(Debug)]
pub(crate) struct Staging {
    folder: PathBuf,
    /// Chance, so that no run ever meets another's files.
    suffix: String,
    /// In the order in which they take their places.
    waiting: Vec<Step>,
    /// Folders below the public one that files were made in.
    folders: Vec<PathBuf>,
    /// Pages that the rest is published without.
    skipped: Vec<Skipped>,
    cancel: Cancel,
}

#[derive(Debug)]
enum Step {
    /// A file takes its place.
    Rename { beside: PathBuf, place: PathBuf },
    /// The same for a page that the rest can do without; its path below the public folder.
    RenamePage {
        beside: PathBuf,
        place: PathBuf,
        page: String,
    },
    /// A file that is no longer made leaves its place.
    Remove { place: PathBuf },
}

impl Staging {
    /// Nothing waits in `folder` yet. No file is begun any more once `cancel` is called.
    pub(crate) fn new(folder: &Path, cancel: Cancel) -> Self {
        Self {
            folder: folder.to_owned(),
            suffix: format!("{:016x}{UNPUBLISHED}", RandomState::new().hash_one(folder)),
            waiting: Vec::new(),
            folders: vec![folder.to_owned()],
            skipped: Vec::new(),
            cancel,
        }
    }

    pub(crate) fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Whether what is being made is still wanted.
    pub(crate) fn check(&self) -> Result<(), SiteError> {
        self.cancel
            .check()
            .map_err(|_cancelled| SiteError::Cancelled)
    }

    /// Makes a folder below the public one, if it is not there.
    pub(crate) fn make_folder(&mut self, name: &str) -> Result<(), SiteError> {
        let path = self.folder.join(name);
        match fs::create_dir(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(SiteError::from_io(&path, "creating", error)),
        }
        // The umask may have taken bits away.
        fs::set_permissions(&path, Permissions::from_mode(FOLDER_MODE))
            .map_err(|error| SiteError::from_io(&path, "opening up", error))?;
        self.folders.push(path);
        Ok(())
    }

    /// Makes the file that is to be called `name`, a path below the public folder, beside its place.
    pub(crate) fn create(&mut self, name: &str) -> Result<File, SiteError> {
        let place = self.folder.join(name);
        let beside = beside(&place, &self.suffix);
        let file = self.new_file(&beside)?;
        self.waiting.push(Step::Rename { beside, place });
        Ok(file)
    }

    /// Makes the folder that is to be called `name`, a path below the public folder, beside its
    /// place, which no earlier one may have. Gives its path until then: files are made in it by
    /// [`Self::new_file`].
    pub(crate) fn create_folder(&mut self, name: &str) -> Result<PathBuf, SiteError> {
        let place = self.folder.join(name);
        let beside = beside(&place, &self.suffix);
        let failed = |error| SiteError::from_io(&beside, "creating", error);
        fs::create_dir(&beside).map_err(failed)?;
        self.waiting.push(Step::Rename {
            beside: beside.clone(),
            place,
        });
        fs::set_permissions(&beside, Permissions::from_mode(FOLDER_MODE)).map_err(failed)?;
        Ok(beside)
    }

    /// Makes a file at this path, which is not published yet.
    pub(crate) fn new_file(&self, path: &Path) -> Result<File, SiteError> {
        self.check()?;
        let failed = |error| SiteError::from_io(path, "creating", error);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(FILE_MODE)
            .open(path)
            .map_err(failed)?;
        file.set_permissions(Permissions::from_mode(FILE_MODE))
            .map_err(failed)?;
        Ok(file)
    }

    /// Writes a whole file and, unless it is short, the same gzipped, which comes first: whoever was told of the new one gets no older one gzipped.
    pub(crate) fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), SiteError> {
        let zipped_name = format!("{name}.gz");
        let failed = |error| SiteError::from_io(&self.folder.join(name), "writing", error);
        if bytes.len() < GZIP_BYTES_MIN {
            // A twin of a former, longer file would be served in its place.
            let place = self.folder.join(&zipped_name);
            self.waiting.push(Step::Remove { place });
        } else {
            let mut zipped = gzip(Vec::new());
            let zipped = zipped
                .write_all(bytes)
                .and_then(|()| zipped.finish())
                .map_err(failed)?;
            self.create_with(&zipped_name, &zipped)?;
        }
        self.create_with(name, bytes)
    }

    /// Like [`Self::write`], for a page that the rest can do without: if its name can't be used,
    /// the page is skipped and the result is `false`. What concerns the whole site is an error as
    /// ever.
    pub(crate) fn write_page(&mut self, page: &str, bytes: &[u8]) -> Result<bool, SiteError> {
        let before = self.waiting.len();
        let written = self.write(page, bytes);
        let steps = self.waiting.split_off(before);
        match written {
            Err(why) if why.is_about_the_name() => {
                steps.iter().for_each(Step::drop_file);
                self.skipped.push(Skipped {
                    page: page.to_owned(),
                    why,
                });
                Ok(false)
            }
            written => {
                let steps = steps.into_iter().map(|step| step.of_page(page));
                self.waiting.extend(steps);
                written.map(|()| true)
            }
        }
    }

    fn create_with(&mut self, name: &str, bytes: &[u8]) -> Result<(), SiteError> {
        self.create(name)?
            .write_all(bytes)
            .map_err(|error| SiteError::from_io(&self.folder.join(name), "writing", error))
    }

    /// Removes all files and folders of `folder` that are not made again, after all others took
    /// their places.
    pub(crate) fn retire_others(&mut self, folder: &str) -> Result<(), SiteError> {
        let folder = self.folder.join(folder);
        let made: std::collections::BTreeSet<&Path> =
            self.waiting.iter().map(Step::place).collect();
        let mut retired = Vec::new();
        for name in names(&folder)? {
            let place = folder.join(name);
            let is_ours = place
                .file_name()
                .is_some_and(|name| !name.as_encoded_bytes().starts_with(b"."));
            if is_ours && !made.contains(place.as_path()) {
                retired.push(Step::Remove { place });
            }
        }
        self.waiting.extend(retired);
        Ok(())
    }

    /// Waits until all that was written is on the disk, as long as the disk takes: `cancel` is checked after it.
    pub(crate) fn sync(&self) -> Result<(), SiteError> {
        let failed = |error| SiteError::from_io(&self.folder, "syncing", error);
        let folder = File::open(&self.folder).map_err(failed)?;
        rustix::fs::syncfs(&folder).map_err(|error| failed(error.into()))?;
        self.check()
    }

    /// Puts all files in their places, and waits until that is on the disk. Gives the pages that
    /// were skipped.
    pub(crate) fn publish(mut self) -> Result<Vec<Skipped>, SiteError> {
        let mut steps = std::mem::take(&mut self.waiting).into_iter();
        while let Some(step) = steps.next() {
            if let Err(error) = step.take() {
                if let Step::RenamePage { page, .. } = &step
                    && error.is_about_the_name()
                {
                    step.drop_file();
                    self.skipped.push(Skipped {
                        page: page.clone(),
                        why: error,
                    });
                    continue;
                }
                // Taken away by Drop, with all that did not get its turn.
                self.waiting.push(step);
                self.waiting.extend(steps);
                return Err(error);
            }
        }
        for folder in &self.folders {
            File::open(folder)
                .and_then(|folder| folder.sync_all())
                .map_err(|error| SiteError::from_io(folder, "syncing", error))?;
        }
        Ok(std::mem::take(&mut self.skipped))
    }
}

impl Step {
    fn place(&self) -> &Path {
        match self {
            Self::Rename { place, .. }
            | Self::RenamePage { place, .. }
            | Self::Remove { place } => place,
        }
    }

    fn of_page(self, page: &str) -> Self {
        match self {
            Self::Rename { beside, place } => Self::RenamePage {
                beside,
                place,
                page: page.to_owned(),
            },
            other @ (Self::RenamePage { .. } | Self::Remove { .. }) => other,
        }
    }

    /// Removes the file that did not take its place.
    fn drop_file(&self) {
        match self {
            Self::Rename { beside, .. } | Self::RenamePage { beside, .. } => {
                // What can't be removed now is hidden, and cleared at the next start.
                remove(beside).ok();
            }
            Self::Remove { .. } => {}
        }
    }

    fn take(&self) -> Result<(), SiteError> {
        match self {
            Self::Rename { beside, place } | Self::RenamePage { beside, place, .. } => {
                fs::rename(beside, place)
                    .map_err(|error| SiteError::from_io(place, "renaming", error))
            }
            Self::Remove { place } => match remove(place) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(SiteError::from_io(place, "removing", error))
                }
                Ok(()) | Err(_) => Ok(()),
            },
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        self.waiting.iter().for_each(Step::drop_file);
    }
}

/// Removes what a crash left beside the published files of `folder`, and gives how many files and
/// folders that were. A folder that is not there holds none.
pub(crate) fn clear(folder: &Path) -> Result<u32, SiteError> {
    let mut cleared = 0_u32;
    for name in names(folder)? {
        let bytes = name.as_encoded_bytes();
        if bytes.starts_with(b".") && bytes.ends_with(UNPUBLISHED.as_bytes()) {
            let path = folder.join(&name);
            remove(&path).map_err(|error| SiteError::from_io(&path, "removing", error))?;
            cleared = cleared.saturating_add(1);
        }
    }
    Ok(cleared)
}

/// Removes a file, or a folder with all that is in it.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => fs::remove_dir_all(path),
        removed => removed,
    }
}

fn names(folder: &Path) -> Result<Vec<std::ffi::OsString>, SiteError> {
    let failed = |error| SiteError::from_io(folder, "listing", error);
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    entries
        .take(FOLDER_NAMES_MAX)
        .map(|entry| entry.map(|entry| entry.file_name()).map_err(failed))
        .collect()
}

fn beside(place: &Path, suffix: &str) -> PathBuf {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    place.with_file_name(format!(".{name}.{suffix}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = names(folder)
            .unwrap()
            .into_iter()
            .map(|name| name.into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn nothing_is_seen_before_it_is_published_and_nothing_is_left_when_it_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut staging = Staging::new(folder.path(), Cancel::default());
        staging.make_folder("sub").unwrap();
        staging.write("sub/a", b"old").unwrap();
        let answers = staging.create_folder("sub/answers").unwrap();
        staging.new_file(&answers.join("0.json")).unwrap();
        assert!(!folder.path().join("sub/a").exists());
        assert!(!folder.path().join("sub/answers").exists());
        drop(staging);
        assert_eq!(listed(&folder.path().join("sub")), Vec::<String>::new());
    }

    #[test]
    fn a_file_that_became_short_loses_its_gzipped_twin() {
        let folder = tempfile::tempdir().unwrap();
        let publish = |bytes: &[u8]| {
            let mut staging = Staging::new(folder.path(), Cancel::default());
            staging.write("a", bytes).unwrap();
            staging.sync().unwrap();
            staging.publish().unwrap();
            listed(folder.path())
        };
        assert_eq!(publish(&[b'x'; 5000]), ["a", "a.gz"]);
        assert_eq!(publish(b"x"), ["a"]);
    }

    #[test]
    fn what_is_no_longer_made_leaves_and_what_a_crash_left_is_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let sub = folder.path().join("sub");
        let mut staging = Staging::new(folder.path(), Cancel::default());
        staging.make_folder("sub").unwrap();
        staging.write("sub/kept", b"1").unwrap();
        fs::write(sub.join("gone.html"), "x").unwrap();
        let stale = format!(".b.0{UNPUBLISHED}");
        fs::create_dir(sub.join(&stale)).unwrap();
        for file in ["gone/0.json".to_owned(), format!("{stale}/0.json")] {
            fs::create_dir_all(sub.join(&file).parent().unwrap()).unwrap();
            fs::write(sub.join(file), "x").unwrap();
        }
        staging.retire_others("sub").unwrap();
        staging.publish().unwrap();
        assert_eq!(listed(&sub), [stale, "kept".to_owned()]);
        assert_eq!(clear(&sub).unwrap(), 1);
        assert_eq!(listed(&sub), ["kept"]);
        assert_eq!(clear(&sub.join("nowhere")).unwrap(), 0);
    }

    #[test]
    fn a_page_whose_name_is_taken_costs_that_page_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("b")).unwrap();
        let mut staging = Staging::new(folder.path(), Cancel::default());
        let bytes = [b'x'; 5000];
        assert!(staging.write_page("a", &bytes).unwrap());
        assert!(!staging.write_page("a", &bytes).unwrap(), "as written");
        assert!(staging.write_page("b", b"x").unwrap());
        assert!(staging.write_page("c", b"x").unwrap());
        let skipped = staging.publish().unwrap();
        let pages: Vec<_> = skipped.iter().map(|skipped| &skipped.page).collect();
        assert_eq!(pages, ["a", "b"]);
        assert_eq!(listed(folder.path()), ["a", "a.gz", "b", "c"]);
    }

    #[test]
    fn a_page_that_no_disk_has_room_for_costs_the_whole_site() {
        let folder = tempfile::tempdir().unwrap();
        let mut staging = Staging::new(folder.path(), Cancel::default());
        // As with a full disk: what is wrong is not about this page's name.
        staging.write_page("nowhere/a", b"x").unwrap_err();
        assert!(staging.publish().unwrap().is_empty());
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::PermissionDenied] {
            let error = SiteError::from_io(folder.path(), "writing", kind.into());
            assert!(!error.is_about_the_name(), "{error}");
        }
    }

    #[test]
    fn a_place_that_cannot_be_taken_ends_the_rest_and_leaves_nothing_beside() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("b")).unwrap();
        let mut staging = Staging::new(folder.path(), Cancel::default());
        for name in ["a", "b", "c"] {
            staging.write(name, b"x").unwrap();
        }
        let error = staging.publish().unwrap_err().to_string();
        assert!(error.contains("renaming"), "{error}");
        assert_eq!(listed(folder.path()), ["a", "b"]);
    }
}
