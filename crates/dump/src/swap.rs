//! Writes files next to their places and renames them into place together (invariant I6).
//!
//! Each file is complete and on disk before the first rename, so a crash at any moment leaves each
//! place with its complete old or new file. The rows are durably in place before all others, and
//! all others before the index. Files that a crash leaves are hidden, and deleted at the next
//! start.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use files::{ClearError, Disk, Waiting};

use crate::error::DumpError;
use crate::set::formats::table::TableDisk;

/// How a file's name ends until it is published.
pub(crate) const UNPUBLISHED: &str = ".new";

/// Order in which files are renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Turn {
    /// Rows come first, since names are removed from a published set by its rows. Until the index
    /// follows, the two don't match, and that tells the code which removes names that other files
    /// may be of either set.
    Rows,
    /// Compressed files, so that a reader who learned of a new file never gets an older one by
    /// requesting it compressed.
    Packed,
    Plain,
    /// Files that accompany the index.
    Companion,
    /// The compressed index. A reader who learned of a new index never gets an older one by
    /// requesting it compressed, nor a new one before the files that it lists.
    PackedIndex,
    /// The index of all others.
    Index,
}

/// Files that wait next to their places. Dropping this deletes them.
#[derive(Debug)]
pub(crate) struct Swap<D: Disk> {
    folder: PathBuf,
    waiting: Waiting<D, Turn>,
}

impl<D: Disk> Swap<D> {
    /// A swap in `folder`, without files.
    pub(crate) fn new(disk: D, folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            waiting: Waiting::new(disk, UNPUBLISHED),
        }
    }

    /// Creates a subfolder if it is missing.
    pub(crate) fn make_folder(&self, name: &str) -> Result<(), DumpError> {
        let path = self.folder.join(name);
        self.waiting
            .disk()
            .make_folder(&path)
            .map_err(|source| DumpError::from_open(&self.folder, &path, "creating", source))
    }

    /// Creates the temporary file for `place`.
    pub(crate) fn create(&mut self, place: &str, turn: Turn) -> Result<D::File, DumpError> {
        let made = self.waiting.create(&self.folder.join(place), turn);
        self.created(place, made)
    }

    fn created<T>(&self, place: &str, made: std::io::Result<T>) -> Result<T, DumpError> {
        made.map_err(|source| {
            DumpError::from_open(&self.folder, &self.temporary(place), "creating", source)
        })
    }

    /// Path of a file of this swap until it is published.
    pub(crate) fn temporary(&self, place: &str) -> PathBuf {
        self.waiting.temporary(&self.folder.join(place))
    }

    /// Writes a complete temporary file and syncs it.
    pub(crate) fn put(&mut self, place: &str, turn: Turn, bytes: &[u8]) -> Result<(), DumpError> {
        let mut file = self.create(place, turn)?;
        file.write_all(bytes)
            .map_err(|source| self.failed(place, "writing", source))?;
        self.sync(&file, place)
    }

    /// Opens a waiting file and returns its length.
    pub(crate) fn open(&self, place: &str) -> Result<(D::Reader, u64), DumpError> {
        self.waiting
            .disk()
            .open(&self.temporary(place))
            .map_err(|source| self.failed(place, "reading back", source))
    }

    pub(crate) fn sync(&self, file: &D::File, place: &str) -> Result<(), DumpError> {
        self.waiting
            .disk()
            .sync_file(file)
            .map_err(|source| self.failed(place, "syncing", source))
    }

    /// The error for a failed operation on one of the files.
    pub(crate) fn failed(
        &self,
        place: &str,
        doing: &'static str,
        source: std::io::Error,
    ) -> DumpError {
        DumpError::from_io(&self.folder, &self.folder.join(place), doing, source)
    }

    /// Renames all files to their places, and syncs the folders.
    pub(crate) fn publish(mut self) -> Result<(), DumpError> {
        self.waiting.sort_by_key(|turn| *turn);
        let folders: BTreeSet<PathBuf> = self
            .waiting
            .places()
            .filter_map(|place| place.parent().map(Path::to_owned))
            .collect();
        let mut turn = Turn::Rows;
        while let Some(next) = self.waiting.next_tag().copied() {
            // A power cut must not leave new files with old rows, or a new index with any old file.
            if next != turn && (turn == Turn::Rows || next >= Turn::PackedIndex) {
                self.sync_folders(&folders)?;
            }
            turn = next;
            if let Some(put) = self.waiting.put_next() {
                put.result.map_err(|source| {
                    DumpError::from_io(&self.folder, &put.place, put.doing, source)
                })?;
            }
        }
        self.sync_folders(&folders)
    }

    fn sync_folders(&self, folders: &BTreeSet<PathBuf>) -> Result<(), DumpError> {
        for folder in folders {
            self.waiting.disk().sync_folder(folder).map_err(|source| {
                DumpError::from_io(&self.folder, folder, "syncing the folder", source)
            })?;
        }
        Ok(())
    }
}

impl<D: TableDisk> Swap<D> {
    /// As [`Self::create`], for a table.
    pub(crate) fn create_table(&mut self, place: &str, turn: Turn) -> Result<D::Table, DumpError> {
        let make = |disk: &D, temporary: &Path| disk.create_table(temporary);
        let made = self.waiting.create_by(&self.folder.join(place), turn, make);
        self.created(place, made)
    }
}

/// Which files a folder is cleared of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Whose<'n> {
    /// Files for one of these places, or for a place whose name continues after a dot.
    Of(&'n [&'n str]),
    /// All files: no other code uses the folder.
    All,
}

/// Deletes what crashed swaps left in `folder`, and returns the number of deleted files.
pub(crate) fn clear(disk: &impl Disk, folder: &Path, whose: Whose<'_>) -> Result<u32, DumpError> {
    files::clear(disk, folder, |name| is_stale(name, whose)).map_err(|error| match error {
        ClearError::List(source) => DumpError::from_open(folder, folder, "listing", source),
        ClearError::Remove { path, source } => {
            DumpError::from_io(folder, &path, "removing", source)
        }
    })
}

fn is_stale(name: &str, whose: Whose<'_>) -> bool {
    let is_ours = match whose {
        Whose::Of(places) => places
            .iter()
            .any(|place| name.starts_with(&format!(".{place}."))),
        Whose::All => true,
    };
    is_ours && name.ends_with(UNPUBLISHED)
}
