//! A tree while it is written.

use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use files::{Disk, Mode};

use crate::cancel::Cancel;
use crate::error::TreeError;
use crate::gzip::{GZIP_END, gzip};
use crate::place::{self, NAMES_MAX, TREE_START};

/// A smaller page is not compressed: it fits into one packet.
const GZIP_BYTES_MIN: usize = 1024;

const CHUNK_BYTES: usize = 64 * 1024;

/// A tree that is not published yet. Dropping it deletes it.
///
/// Places are paths from the tree's folder. Folders are made with their first file.
#[derive(Debug)]
pub struct Tree {
    disk: Disk,
    public: PathBuf,
    folder: PathBuf,
    former: Option<PathBuf>,
    cancel: Cancel,
}

/// A file of a tree, for writing.
#[derive(Debug)]
pub struct File {
    file: fs::File,
    disk: Disk,
}

impl File {
    /// What was written so far.
    pub fn bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.disk.begin("write")?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Tree {
    /// Begins a tree in the public folder, in which only one at a time can be written: what an
    /// earlier one left is deleted. Once `cancel` is called, no file is created.
    pub fn begin(disk: Disk, public: &Path, cancel: &Cancel) -> Result<Self, TreeError> {
        place::adopt(&disk, public)?;
        // After a disk error, deleting may have failed, and this tree needs the space.
        place::clear(&disk, public).ok();
        // Random, so that a reader who follows the link once never meets another tree's files.
        let name = format!("{TREE_START}{:016x}", RandomState::new().hash_one(public));
        let tree = Self {
            folder: public.join(name),
            former: place::published(public),
            public: public.to_owned(),
            cancel: cancel.clone(),
            disk,
        };
        let made = tree.disk.make_folder(&tree.folder);
        made.map_err(|source| {
            TreeError::from_open(public, &tree.folder, "creating the folder", source)
        })?;
        Ok(tree)
    }

    /// The folder that it is written to. Reading there as from a published tree is fine.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of the published tree, if there is one.
    pub fn former(&self) -> Option<&Path> {
        self.former.as_deref()
    }

    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    pub fn path(&self, place: &str) -> PathBuf {
        self.folder.join(place)
    }

    /// The error for a failed operation on one of its files.
    pub fn failed(&self, place: &str, doing: &'static str, source: io::Error) -> TreeError {
        TreeError::from_io(&self.public, &self.path(place), doing, source)
    }

    /// Creates a new file.
    pub fn create(&self, place: &str) -> Result<File, TreeError> {
        self.cancel.check()?;
        let path = self.ready(place)?;
        let file = self.disk.create(&path, Mode::Public);
        Ok(File {
            file: file.map_err(|source| self.failed(place, "creating", source))?,
            disk: self.disk.clone(),
        })
    }

    /// Opens a file to write at its end.
    pub fn append(&self, place: &str) -> Result<File, TreeError> {
        let file = fs::File::options().append(true).open(self.path(place));
        Ok(File {
            file: file.map_err(|source| self.failed(place, "opening", source))?,
            disk: self.disk.clone(),
        })
    }

    pub fn open(&self, place: &str) -> Result<fs::File, TreeError> {
        fs::File::open(self.path(place))
            .map_err(|source| self.failed(place, "reading back", source))
    }

    /// Writes a whole file.
    pub fn write(&self, place: &str, bytes: &[u8]) -> Result<(), TreeError> {
        let written = self.create(place)?.write_all(bytes);
        written.map_err(|source| self.failed(place, "writing", source))
    }

    /// Writes a whole page and, unless it is short, its compressed twin.
    pub fn write_page(&self, place: &str, bytes: &[u8]) -> Result<(), TreeError> {
        if bytes.len() < GZIP_BYTES_MIN {
            return self.write(place, bytes);
        }
        self.write_packed(place, bytes)
    }

    /// Writes a whole file and its compressed twin.
    pub fn write_packed(&self, place: &str, bytes: &[u8]) -> Result<(), TreeError> {
        self.write(place, bytes)?;
        let twin = format!("{place}{GZIP_END}");
        let mut packed = gzip(Vec::new());
        let packed = packed.write_all(bytes).and_then(|()| packed.finish());
        let packed = packed.map_err(|source| self.failed(&twin, "compressing", source))?;
        self.write(&twin, &packed)
    }

    /// Writes the compressed twin of a file that may not fit into memory.
    pub fn pack(&self, place: &str) -> Result<(), TreeError> {
        let twin = format!("{place}{GZIP_END}");
        let mut from = self.open(place)?;
        let to = self.create(&twin)?;
        let mut to = gzip(io::BufWriter::with_capacity(CHUNK_BYTES, to));
        io::copy(&mut from, &mut to)
            .and_then(|_bytes| to.finish())
            .and_then(|to| to.into_inner().map_err(io::IntoInnerError::into_error))
            .map(|_file| ())
            .map_err(|source| self.failed(&twin, "writing", source))
    }

    /// Keeps a file of the former tree, if there is one: as another name of it or, on a disk
    /// without such, as a copy of the same age. A web server's `ETag` is made of time and size.
    pub fn keep(&self, place: &str) -> Result<bool, TreeError> {
        let Some(from) = self.former.as_ref().map(|former| former.join(place)) else {
            return Ok(false);
        };
        if !from.symlink_metadata().is_ok_and(|found| found.is_file()) {
            return Ok(false);
        }
        self.cancel.check()?;
        let to = self.ready(place)?;
        if self.disk.link(&from, &to).is_ok() {
            return Ok(true);
        }
        let mut file = self.create(place)?;
        let copied = fs::File::open(&from).and_then(|mut from| {
            io::copy(&mut from, &mut file)?;
            self.disk.set_modified(&to, from.metadata()?.modified()?)
        });
        copied.map_err(|source| self.failed(place, "copying", source))?;
        Ok(true)
    }

    /// Keeps each file of the former tree that `stays`, by its place.
    pub fn keep_where(&self, stays: impl Fn(&str) -> bool) -> Result<(), TreeError> {
        let Some(former) = self.former() else {
            return Ok(());
        };
        for place in self.files_in(former)?.iter().filter(|place| stays(place)) {
            self.keep(place)?;
        }
        Ok(())
    }

    /// Deletes each file that is written already and that `goes`, by its place.
    pub fn remove_where(&self, goes: impl Fn(&str) -> bool) -> Result<(), TreeError> {
        let places = self.files_in(&self.folder)?;
        for place in places.iter().filter(|place| goes(place)) {
            self.disk
                .remove(&self.path(place))
                .map_err(|source| self.failed(place, "removing", source))?;
        }
        Ok(())
    }

    /// Publishes the tree in place of the former one, which is deleted.
    ///
    /// # Errors
    /// Fails if the tree can't be put on disk or the link can't be replaced. The former tree stays
    /// then. Only if syncing the public folder fails, readers see the new one, and a power cut may
    /// bring back the former one, which therefore stays until the next publication.
    pub fn publish(self) -> Result<(), TreeError> {
        self.share();
        let public = self.public.as_path();
        let at = |doing| move |source| TreeError::from_io(public, public, doing, source);
        self.disk.sync_all(public).map_err(at("syncing"))?;
        // It takes long, and a stop may have come meanwhile.
        self.cancel.check()?;
        place::point(&self.disk, public, &self.folder).map_err(at("replacing the link"))?;
        self.disk
            .sync_folder(public)
            .map_err(at("syncing the folder"))?;
        // If it can't be deleted, the next publication or start does it.
        place::clear(&self.disk, public).ok();
        Ok(())
    }

    /// Makes each file that has the bytes of the former one another name of it, or gives it the
    /// former one's time. If that fails, its readers fetch it once more.
    fn share(&self) {
        let Some(former) = self.former() else {
            return;
        };
        for place in files_in(&self.folder).unwrap_or_default() {
            let (old, new) = (former.join(&place), self.path(&place));
            let Ok(Some(modified)) = same(&old, &new) else {
                continue;
            };
            let link = self.path(".same");
            let linked = self.disk.link(&old, &link);
            if linked.and_then(|()| self.disk.rename(&link, &new)).is_err() {
                self.disk.remove(&link).ok();
                self.disk.set_modified(&new, modified).ok();
            }
        }
    }

    fn files_in(&self, tree: &Path) -> Result<Vec<String>, TreeError> {
        files_in(tree).map_err(|source| TreeError::from_io(&self.public, tree, "listing", source))
    }

    /// The path of a place, whose folder is made if it is missing.
    fn ready(&self, place: &str) -> Result<PathBuf, TreeError> {
        let path = self.path(place);
        let missing: Vec<_> = path
            .ancestors()
            .skip(1)
            .take_while(|folder| *folder != self.folder && !folder.is_dir())
            .collect();
        for folder in missing.iter().rev() {
            self.disk
                .make_folder(folder)
                .map_err(|source| self.failed(place, "creating the folder of", source))?;
        }
        Ok(path)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if place::published(&self.public).as_ref() != Some(&self.folder) {
            // If it can't be deleted now, the next publication or start does it.
            self.disk.remove_all(&self.folder).ok();
        }
    }
}

/// The places of all files in a tree, without hidden ones and symbolic links.
fn files_in(tree: &Path) -> io::Result<Vec<String>> {
    let mut places = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(tree.join(&folder))?.take(NAMES_MAX) {
            let entry = entry?;
            let kind = entry.file_type()?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            if name.starts_with('.') {
                continue;
            }
            if kind.is_dir() {
                folders.push(format!("{folder}{name}/"));
            } else if kind.is_file() {
                places.push(format!("{folder}{name}"));
            }
        }
    }
    Ok(places)
}

/// The time of the file `old`, if `new` is another file with the same bytes.
fn same(old: &Path, new: &Path) -> io::Result<Option<std::time::SystemTime>> {
    let (mut old, mut new) = (fs::File::open(old)?, fs::File::open(new)?);
    let (was, is) = (old.metadata()?, new.metadata()?);
    if was.len() != is.len() || (was.dev(), was.ino()) == (is.dev(), is.ino()) {
        return Ok(None);
    }
    let (mut chunk, mut other) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    let mut left = usize::try_from(is.len()).unwrap_or(usize::MAX);
    while left > 0 {
        let length = left.min(CHUNK_BYTES);
        chunk.truncate(length);
        other.truncate(length);
        new.read_exact(&mut chunk)?;
        old.read_exact(&mut other)?;
        if chunk != other {
            return Ok(None);
        }
        left = left.saturating_sub(length);
    }
    Ok(Some(was.modified()?))
}
