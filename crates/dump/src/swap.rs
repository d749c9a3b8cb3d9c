//! Files written beside their places and put there at once (invariant I6).
//!
//! In: bytes for some files of one folder. Out: all of them replaced by rename. Each file is complete and on the disk before the first rename,
//! so a crash at any moment leaves each place with its old file or its new one, whole. What a crash leaves beside them is hidden, and cleared at start.

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

use crate::disk::Disk;
use crate::error::DumpError;

/// How a file's name ends until it is published.
const UNPUBLISHED: &str = ".new";

/// Names that are looked at when a folder is cleared: the public folder holds a handful.
const FOLDER_NAMES_MAX: usize = 100_000;

/// Files that wait beside their places. Dropped, it takes them away.
#[derive(Debug)]
pub(crate) struct Swap<D: Disk> {
    disk: D,
    folder: PathBuf,
    /// Chance, so that no swap ever meets another's files: process ids repeat from container to container.
    suffix: String,
    /// In the order in which they are renamed.
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    beside: PathBuf,
    place: PathBuf,
}

impl<D: Disk> Swap<D> {
    /// A swap in `folder`, without files.
    pub(crate) fn new(disk: D, folder: &Path) -> Self {
        let suffix = format!("{:016x}{UNPUBLISHED}", RandomState::new().hash_one(folder));
        Self {
            disk,
            folder: folder.to_owned(),
            suffix,
            waiting: Vec::new(),
        }
    }

    /// Makes the file that is to be called `name`, beside its place. Files are renamed in the order in which they were made.
    pub(crate) fn create(&mut self, name: &str) -> Result<D::File, DumpError> {
        let beside = self.folder.join(format!(".{name}.{}", self.suffix));
        let file = self
            .disk
            .create(&beside)
            .map_err(|source| DumpError::from_open(&self.folder, &beside, "creating", source))?;
        self.waiting.push(Waiting {
            beside,
            place: self.folder.join(name),
        });
        Ok(file)
    }

    /// Waits until a file's content is on the disk.
    pub(crate) fn sync(&self, file: &D::File, name: &str) -> Result<(), DumpError> {
        self.disk.sync_file(file).map_err(|source| {
            DumpError::from_io(&self.folder, &self.folder.join(name), "syncing", source)
        })
    }

    /// Puts all files in their places, and waits until that is on the disk.
    pub(crate) fn publish(mut self) -> Result<(), DumpError> {
        // From the front, so that what is left when a rename fails is taken away by Drop.
        while let Some(file) = self.waiting.first() {
            self.disk
                .rename(&file.beside, &file.place)
                .map_err(|source| {
                    DumpError::from_io(&self.folder, &file.place, "renaming", source)
                })?;
            self.waiting.remove(0);
        }
        self.disk.sync_folder(&self.folder).map_err(|source| {
            DumpError::from_io(&self.folder, &self.folder, "syncing the folder", source)
        })
    }
}

impl<D: Disk> Drop for Swap<D> {
    fn drop(&mut self) {
        for file in &self.waiting {
            // What can't be removed now is hidden, and cleared at the next start.
            self.disk.remove(&file.beside).ok();
        }
    }
}

/// Removes what crashed swaps left beside any of `names` in `folder`, and tells how many files that were.
pub(crate) fn clear(disk: &impl Disk, folder: &Path, names: &[&str]) -> Result<u32, DumpError> {
    let found = disk
        .list(folder, FOLDER_NAMES_MAX)
        .map_err(|source| DumpError::from_open(folder, folder, "listing", source))?;
    let mut cleared = 0;
    for name in found {
        let is_stale = name.to_str().is_some_and(|name| {
            name.ends_with(UNPUBLISHED)
                && names
                    .iter()
                    .any(|place| name.starts_with(&format!(".{place}.")))
        });
        if is_stale {
            let path = folder.join(name);
            disk.remove(&path)
                .map_err(|source| DumpError::from_io(folder, &path, "removing", source))?;
            cleared += 1;
        }
    }
    Ok(cleared)
}
