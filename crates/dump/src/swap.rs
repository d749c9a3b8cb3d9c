//! Files written beside their places and put there at once (invariant I6).
//!
//! In: bytes for some files of a folder and of folders in it. Out: all of them replaced by rename. Each file is complete and on the disk before the
//! first rename, so a crash at any moment leaves each place with its old file or its new one, whole; the rows are in their place for good before all
//! others, and all others before the index. What a crash leaves beside them is hidden, and cleared at start.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use files::{ClearError, Disk, Waiting};

use crate::error::DumpError;
use crate::set::formats::table::TableDisk;

/// How a file's name ends until it is published.
pub(crate) const UNPUBLISHED: &str = ".new";

/// When a file is renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Turn {
    /// First the rows by which names are taken off a set that stands. From then on until the index follows them these two don't fit each other, and
    /// whoever takes names off knows that others may be of either set.
    Rows,
    /// Compressed ones, so that whoever was told of a new file never gets an older one by asking for it compressed.
    Packed,
    /// The files themselves.
    Plain,
    /// What goes with the index.
    Beside,
    /// The index compressed: who was told of a new index gets no older one by asking for it compressed, nor a new one before what it tells of.
    PackedIndex,
    /// What tells of all others.
    Index,
}

/// Files that wait beside their places. Dropped, it removes them.
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

    /// Makes a folder in the folder, if it is not there.
    pub(crate) fn make_folder(&self, name: &str) -> Result<(), DumpError> {
        let path = self.folder.join(name);
        self.waiting
            .disk()
            .make_folder(&path)
            .map_err(|source| DumpError::from_open(&self.folder, &path, "creating", source))
    }

    /// Makes the file that is to be at `place`, beside it.
    pub(crate) fn create(&mut self, place: &str, turn: Turn) -> Result<D::File, DumpError> {
        let made = self.waiting.create(&self.folder.join(place), turn);
        self.created(place, made)
    }

    fn created<T>(&self, place: &str, made: std::io::Result<T>) -> Result<T, DumpError> {
        made.map_err(|source| {
            DumpError::from_open(&self.folder, &self.beside(place), "creating", source)
        })
    }

    /// Where a file of this swap lies until it is published.
    pub(crate) fn beside(&self, place: &str) -> PathBuf {
        self.waiting.beside(&self.folder.join(place))
    }

    /// Makes a whole file beside its place and waits until it is on the disk.
    pub(crate) fn put(&mut self, place: &str, turn: Turn, bytes: &[u8]) -> Result<(), DumpError> {
        let mut file = self.create(place, turn)?;
        file.write_all(bytes)
            .map_err(|source| self.failed(place, "writing", source))?;
        self.sync(&file, place)
    }

    /// Opens a file that waits, and tells its length.
    pub(crate) fn open(&self, place: &str) -> Result<(D::Reader, u64), DumpError> {
        self.waiting
            .disk()
            .open(&self.beside(place))
            .map_err(|source| self.failed(place, "reading back", source))
    }

    /// Waits until a file's content is on the disk.
    pub(crate) fn sync(&self, file: &D::File, place: &str) -> Result<(), DumpError> {
        self.waiting
            .disk()
            .sync_file(file)
            .map_err(|source| self.failed(place, "syncing", source))
    }

    /// What went wrong with one of the files.
    pub(crate) fn failed(
        &self,
        place: &str,
        doing: &'static str,
        source: std::io::Error,
    ) -> DumpError {
        DumpError::from_io(&self.folder, &self.folder.join(place), doing, source)
    }

    /// Puts all files in their places, and waits until that is on the disk.
    pub(crate) fn publish(mut self) -> Result<(), DumpError> {
        self.waiting.sort_by_key(|turn| *turn);
        let folders: BTreeSet<PathBuf> = self
            .waiting
            .places()
            .filter_map(|place| place.parent().map(Path::to_owned))
            .collect();
        let mut turn = Turn::Rows;
        while let Some(next) = self.waiting.next_tag().copied() {
            // No power cut may leave the others new and the rows old, or the index new and any other one old.
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
    /// Like [`Self::create`], for a table.
    pub(crate) fn create_table(&mut self, place: &str, turn: Turn) -> Result<D::Table, DumpError> {
        let make = |disk: &D, beside: &Path| disk.create_table(beside);
        let made = self.waiting.create_by(&self.folder.join(place), turn, make);
        self.created(place, made)
    }
}

/// Which files a folder is cleared of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Whose<'n> {
    /// What was to be at one of these places, or at one whose name goes on after a dot.
    Of(&'n [&'n str]),
    /// Any: the folder is ours alone.
    All,
}

/// Removes what crashed swaps left in `folder`, and tells how many files that were.
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
