//! Files written beside their places and put there at once (invariant I6).
//!
//! In: bytes for some files of a folder and of folders in it. Out: all of them replaced by rename. Each file is complete and on the disk before the
//! first rename, so a crash at any moment leaves each place with its old file or its new one, whole; the rows are in their place for good before all
//! others, and all others before the index. What a crash leaves beside them is hidden, and cleared at start.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::disk::Disk;
use crate::error::DumpError;

/// How a file's name ends until it is published.
pub(crate) const UNPUBLISHED: &str = ".new";

/// Names that are looked at when a folder is cleared: the public folder holds a handful.
const FOLDER_NAMES_MAX: usize = 100_000;

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

/// Files that wait beside their places. Dropped, it takes them away.
#[derive(Debug)]
pub(crate) struct Swap<D: Disk> {
    disk: D,
    folder: PathBuf,
    /// Chance, so that no swap ever meets another's files: process ids repeat from container to container.
    suffix: String,
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    turn: Turn,
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

    /// Makes a folder in the folder, if it is not there.
    pub(crate) fn make_folder(&self, name: &str) -> Result<(), DumpError> {
        let path = self.folder.join(name);
        self.disk
            .make_folder(&path)
            .map_err(|source| DumpError::from_open(&self.folder, &path, "creating", source))
    }

    /// Makes the file that is to be at `place`, beside it.
    pub(crate) fn create(&mut self, place: &str, turn: Turn) -> Result<D::File, DumpError> {
        let beside = self.beside(place);
        let file = self.disk.create(&beside);
        self.created(place, turn, file)
    }

    /// The same for a table.
    pub(crate) fn create_table(&mut self, place: &str, turn: Turn) -> Result<D::Table, DumpError> {
        let beside = self.beside(place);
        let table = self.disk.create_table(&beside);
        self.created(place, turn, table)
    }

    fn created<T>(
        &mut self,
        place: &str,
        turn: Turn,
        made: std::io::Result<T>,
    ) -> Result<T, DumpError> {
        let beside = self.beside(place);
        let failed = made.as_ref().err().map(std::io::Error::kind);
        // Another's of the same name is no more than 64 bits of chance away; a table may have failed after its file was made.
        if failed != Some(std::io::ErrorKind::AlreadyExists) {
            self.waiting.push(Waiting {
                turn,
                beside: beside.clone(),
                place: self.folder.join(place),
            });
        }
        made.map_err(|source| DumpError::from_open(&self.folder, &beside, "creating", source))
    }

    /// Where a file of this swap lies until it is published.
    pub(crate) fn beside(&self, place: &str) -> PathBuf {
        let (folder, name) = place.rsplit_once('/').unwrap_or(("", place));
        self.folder
            .join(folder)
            .join(format!(".{name}.{}", self.suffix))
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
        self.disk
            .open(&self.beside(place))
            .map_err(|source| self.failed(place, "reading back", source))
    }

    /// Waits until a file's content is on the disk.
    pub(crate) fn sync(&self, file: &D::File, place: &str) -> Result<(), DumpError> {
        self.disk
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
        self.waiting.sort_by_key(|file| file.turn);
        let folders: BTreeSet<PathBuf> = self
            .waiting
            .iter()
            .filter_map(|file| file.place.parent().map(Path::to_owned))
            .collect();
        let mut turn = Turn::Rows;
        // From the front, so that what is left when a rename fails is taken away by Drop.
        while let Some(file) = self.waiting.first() {
            // No power cut may leave the others new and the rows old, or the index new and any other one old.
            if file.turn != turn && (turn == Turn::Rows || file.turn >= Turn::PackedIndex) {
                self.sync_folders(&folders)?;
            }
            turn = file.turn;
            self.disk
                .rename(&file.beside, &file.place)
                .map_err(|source| {
                    DumpError::from_io(&self.folder, &file.place, "renaming", source)
                })?;
            self.waiting.remove(0);
        }
        self.sync_folders(&folders)
    }

    fn sync_folders(&self, folders: &BTreeSet<PathBuf>) -> Result<(), DumpError> {
        for folder in folders {
            self.disk.sync_folder(folder).map_err(|source| {
                DumpError::from_io(&self.folder, folder, "syncing the folder", source)
            })?;
        }
        Ok(())
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
    let found = disk
        .list(folder, FOLDER_NAMES_MAX)
        .map_err(|source| DumpError::from_open(folder, folder, "listing", source))?;
    let mut cleared = 0;
    for name in found {
        if name.to_str().is_some_and(|name| is_stale(name, whose)) {
            let path = folder.join(name);
            disk.remove(&path)
                .map_err(|source| DumpError::from_io(folder, &path, "removing", source))?;
            cleared += 1;
        }
    }
    Ok(cleared)
}

fn is_stale(name: &str, whose: Whose<'_>) -> bool {
    let is_ours = match whose {
        Whose::Of(places) => places
            .iter()
            .any(|place| name.starts_with(&format!(".{place}."))),
        Whose::All => name.starts_with('.'),
    };
    is_ours && name.ends_with(UNPUBLISHED)
}
