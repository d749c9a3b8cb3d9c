//! Files that are written next to their final paths and then renamed one by one (invariant I6).
//!
//! Takes some thousand files of a few folders. Replaces each by rename, after all of them are on
//! disk. One call syncs the whole file system: syncing each of some thousand files would take
//! longer than writing them. Files left by a crash are hidden, and deleted at start.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use dump::Cancel;
use files::{ClearError, Disk as _, Mode, SystemDisk, Waiting};
use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};

use crate::error::{SiteError, Skipped};

/// Suffix of a file's name until it is published. nginx serves no file that ends in `.new` or
/// begins with a dot.
const UNPUBLISHED: &str = ".site.new";

/// Mode of published folders: everybody may read them, since nginx runs as another user; only the
/// owner writes.
const FOLDER_MODE: u32 = 0o755;

/// A smaller file is not gzipped: it fits into one packet.
const GZIP_BYTES_MIN: usize = 1024;

/// Maximum number of names read in one folder.
const FOLDER_NAMES_MAX: usize = 100_000;

/// The gzip header's code for "unknown" (RFC 1952 §2.3.1).
const GZIP_SYSTEM_UNKNOWN: u8 = 255;

/// The encoder: files are compressed once and read often.
pub(crate) type Gzip<W> = GzEncoder<W>;

/// Gzips into `to`. Equal input gives equal output, since the header contains no time or system.
pub(crate) fn gzip<W: Write>(to: W) -> Gzip<W> {
    GzBuilder::new()
        .mtime(0)
        .operating_system(GZIP_SYSTEM_UNKNOWN)
        .write(to, Compression::default())
}

/// Unpublished files next to their final paths. Dropping it removes them.
#[derive(Debug)]
pub(crate) struct Staging {
    folder: PathBuf,
    /// In the order of publication. The tag is the path of a page that may be skipped.
    waiting: Waiting<SystemDisk, Option<String>>,
    /// Folders below the public one that contain new files.
    folders: Vec<PathBuf>,
    skipped: Vec<Skipped>,
    cancel: Cancel,
}

impl Staging {
    /// A staging area for `folder` without files. After `cancel` is called, no file is created.
    pub(crate) fn new(folder: &Path, cancel: Cancel) -> Self {
        Self {
            folder: folder.to_owned(),
            waiting: Waiting::new(SystemDisk, UNPUBLISHED),
            folders: vec![folder.to_owned()],
            skipped: Vec::new(),
            cancel,
        }
    }

    pub(crate) fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Fails if the work is cancelled.
    pub(crate) fn check(&self) -> Result<(), SiteError> {
        self.cancel
            .check()
            .map_err(|_cancelled| SiteError::Cancelled)
    }

    /// Makes a folder below the public one, if it does not exist.
    pub(crate) fn make_folder(&mut self, name: &str) -> Result<(), SiteError> {
        let path = self.folder.join(name);
        SystemDisk
            .make_folder(&path)
            .map_err(|error| SiteError::from_io(&path, "creating", error))?;
        // A crash before this call may have left the folder unreadable.
        fs::set_permissions(&path, Permissions::from_mode(FOLDER_MODE))
            .map_err(|error| SiteError::from_io(&path, "opening up", error))?;
        self.folders.push(path);
        Ok(())
    }

    /// Makes the file for the path `name` below the public folder, next to that path.
    pub(crate) fn create(&mut self, name: &str) -> Result<File, SiteError> {
        self.create_as(name, None)
    }

    /// Makes the folder for the path `name` below the public folder, next to that path, which must
    /// not exist yet. Returns the temporary path; [`Self::new_file`] makes files in it.
    pub(crate) fn create_folder(&mut self, name: &str) -> Result<PathBuf, SiteError> {
        let place = self.folder.join(name);
        let temporary = self.waiting.temporary(&place);
        self.waiting
            .create_by(&place, None, |_disk, temporary| {
                fs::create_dir(temporary)?;
                fs::set_permissions(temporary, Permissions::from_mode(FOLDER_MODE))
            })
            .map_err(|error| SiteError::from_io(&temporary, "creating", error))?;
        Ok(temporary)
    }

    /// Makes an unpublished file at this path.
    pub(crate) fn new_file(&self, path: &Path) -> Result<File, SiteError> {
        self.check()?;
        SystemDisk
            .create(path, Mode::Public)
            .map_err(|error| SiteError::from_io(path, "creating", error))
    }

    /// Writes a whole file and, unless it is short, its gzipped twin. The twin is published first,
    /// so that a client that knows of the new file gets no older gzipped one.
    pub(crate) fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), SiteError> {
        self.write_as(name, bytes, None)
    }

    /// Writes a whole file that does not profit from gzip.
    pub(crate) fn write_plain(&mut self, name: &str, bytes: &[u8]) -> Result<(), SiteError> {
        self.create_with(name, bytes, None)
    }

    /// Like [`Self::write`], for a page that may be skipped: if its name can't be used, the page is
    /// skipped and the result is `false`. Other problems are errors.
    pub(crate) fn write_page(&mut self, page: &str, bytes: &[u8]) -> Result<bool, SiteError> {
        let before = self.waiting.len();
        let written = self.write_as(page, bytes, Some(page));
        self.made_or_skipped(page, before, written)
    }

    /// Whether a page was made. A page whose name can't be used is skipped, with all files that
    /// were made after the first `before`.
    fn made_or_skipped<T>(
        &mut self,
        page: &str,
        before: usize,
        made: Result<T, SiteError>,
    ) -> Result<bool, SiteError> {
        match made {
            Err(why) if why.is_about_the_name() => {
                self.waiting.truncate(before);
                self.skipped.push(Skipped {
                    page: page.to_owned(),
                    why,
                });
                Ok(false)
            }
            made => made.map(|_made| true),
        }
    }

    /// Makes two empty files that may be skipped, and their compressed twins, for [`Self::append`]
    /// and [`Self::pack`]. If a name can't be used, it makes none and returns `false`.
    pub(crate) fn begin_pages(&mut self, pages: [&str; 2]) -> Result<bool, SiteError> {
        let before = self.waiting.len();
        let [first, _] = pages;
        let made = pages.into_iter().try_for_each(|page| {
            self.create_as(&format!("{page}.gz"), Some(page))?;
            self.create_as(page, Some(page)).map(|_file| ())
        });
        self.made_or_skipped(first, before, made)
    }

    /// Appends to a file made by [`Self::begin_pages`].
    pub(crate) fn append(&self, page: &str, bytes: &[u8]) -> Result<(), SiteError> {
        let path = self.waiting.temporary(&self.folder.join(page));
        OpenOptions::new()
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(bytes))
            .map_err(|error| SiteError::from_io(&path, "writing", error))
    }

    /// Fills the compressed twin of a complete file.
    pub(crate) fn pack(&self, page: &str) -> Result<(), SiteError> {
        self.check()?;
        let from = self.waiting.temporary(&self.folder.join(page));
        let to = self
            .waiting
            .temporary(&self.folder.join(format!("{page}.gz")));
        let packed = || -> io::Result<()> {
            let mut zipped = gzip(OpenOptions::new().write(true).open(&to)?);
            io::copy(&mut File::open(&from)?, &mut zipped)?;
            zipped.finish().map(|_file| ())
        };
        packed().map_err(|error| SiteError::from_io(&to, "writing", error))
    }

    fn write_as(&mut self, name: &str, bytes: &[u8], page: Option<&str>) -> Result<(), SiteError> {
        let zipped_name = format!("{name}.gz");
        let failed = |error| SiteError::from_io(&self.folder.join(name), "writing", error);
        if bytes.len() < GZIP_BYTES_MIN {
            // Otherwise nginx would serve the gzipped twin of a former, longer file.
            let place = self.folder.join(&zipped_name);
            self.waiting.retire(place, None);
        } else {
            let mut zipped = gzip(Vec::new());
            let zipped = zipped
                .write_all(bytes)
                .and_then(|()| zipped.finish())
                .map_err(failed)?;
            self.create_with(&zipped_name, &zipped, page)?;
        }
        self.create_with(name, bytes, page)
    }

    fn create_with(
        &mut self,
        name: &str,
        bytes: &[u8],
        page: Option<&str>,
    ) -> Result<(), SiteError> {
        self.create_as(name, page)?
            .write_all(bytes)
            .map_err(|error| SiteError::from_io(&self.folder.join(name), "writing", error))
    }

    fn create_as(&mut self, name: &str, page: Option<&str>) -> Result<File, SiteError> {
        self.check()?;
        let place = self.folder.join(name);
        self.waiting
            .create(&place, page.map(str::to_owned))
            .map_err(|error| SiteError::from_io(&self.waiting.temporary(&place), "creating", error))
    }

    /// Removes these files after all others are published. A missing file is no error.
    pub(crate) fn retire(&mut self, names: &[&str]) {
        for name in names {
            self.waiting.retire(self.folder.join(name), None);
        }
    }

    /// Removes all files and folders of `folder` that are not made again, after all others are
    /// published.
    pub(crate) fn retire_others(&mut self, folder: &str) -> Result<(), SiteError> {
        let folder = self.folder.join(folder);
        let made: BTreeSet<&Path> = self.waiting.places().collect();
        let mut retired = Vec::new();
        for name in names(&folder)? {
            let place = folder.join(&name);
            if !name.as_encoded_bytes().starts_with(b".") && !made.contains(place.as_path()) {
                retired.push(place);
            }
        }
        for place in retired {
            self.waiting.retire(place, None);
        }
        Ok(())
    }

    /// Waits until all written data is on disk. Checks `cancel` only afterwards.
    pub(crate) fn sync(&self) -> Result<(), SiteError> {
        let failed = |error| SiteError::from_io(&self.folder, "syncing", error);
        let folder = File::open(&self.folder).map_err(failed)?;
        rustix::fs::syncfs(&folder).map_err(|error| failed(error.into()))?;
        self.check()
    }

    /// Renames all files to their final paths, and waits until that is on disk. Returns the skipped
    /// pages.
    pub(crate) fn publish(mut self) -> Result<Vec<Skipped>, SiteError> {
        while let Some(put) = self.waiting.put_next() {
            let Err(error) = put.result else {
                continue;
            };
            let why = SiteError::from_io(&put.place, put.doing, error);
            match put.tag {
                Some(page) if why.is_about_the_name() => {
                    self.skipped.push(Skipped { page, why });
                }
                Some(_) | None => return Err(why),
            }
        }
        for folder in &self.folders {
            files::sync_folder(folder)
                .map_err(|error| SiteError::from_io(folder, "syncing", error))?;
        }
        Ok(self.skipped)
    }
}

/// Removes files that a crash left next to the published ones in `folder`. Returns the number of
/// removed files and folders; 0 if the folder does not exist.
pub(crate) fn clear(folder: &Path) -> Result<u32, SiteError> {
    match files::clear(&SystemDisk, folder, |name| name.ends_with(UNPUBLISHED)) {
        Err(ClearError::List(error)) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(ClearError::List(error)) => Err(SiteError::from_io(folder, "listing", error)),
        Err(ClearError::Remove { path, source }) => {
            Err(SiteError::from_io(&path, "removing", source))
        }
        Ok(cleared) => Ok(cleared),
    }
}

fn names(folder: &Path) -> Result<Vec<OsString>, SiteError> {
    match SystemDisk.list(folder, FOLDER_NAMES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed.map_err(|error| SiteError::from_io(folder, "listing", error)),
    }
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
    fn of_two_files_that_belong_together_both_are_made_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let mut staging = Staging::new(folder.path(), Cancel::default());
        assert!(staging.begin_pages(["a.json", "a.ndjson"]).unwrap());
        assert!(!staging.begin_pages(["b.json", "a.ndjson"]).unwrap());
        staging.append("a.json", b"[]").unwrap();
        staging.publish().unwrap();
        let expect = ["a.json", "a.json.gz", "a.ndjson", "a.ndjson.gz"];
        assert_eq!(listed(folder.path()), expect);
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
        // Like a full disk: the problem does not concern this page's name.
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
