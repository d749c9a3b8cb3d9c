//! The published set: written next to the current one, checked, completed, and swapped in.
//!
//! In the public folder it has `nodes.json` and `nodes.json.gz`. Below `data/` it has the same
//! list, the rows in all other formats, compressed companions, schemas, and `index.json`, which
//! lists all files there and has a companion too.
//!
//! The steps of a publication:
//!
//! 1. [`write()`] the rows.
//! 2. [`crate::guard()`] decides whether to publish.
//! 3. [`Draft::add`] adds further files, which can be made from [`Draft::rows`] and
//!    [`crate::standing_rows`].
//! 4. [`Draft::seal`] writes companions and the index.
//! 5. [`Sealed::attach`] adds files made from the index, such as its signature.
//! 6. [`Sealed::publish`] swaps the set in.
//!
//! Dropping the set before the last step deletes its files.

use std::io::{self, Write};
use std::path::Path;

use files::{Disk, SystemDisk};

use super::draft;
use super::places::{CHANGES_FOLDER, DATA_FOLDER, NODES_FILE, ROWS_PLACE, SCHEMA_FOLDER};
use super::rows::Rows;
use crate::cancel::Cancel;
use crate::changes::WrittenChanges;
use crate::compress::Packing;
use crate::error::DumpError;
use crate::row::{ListedRow, Moment};
use crate::swap::{self, Whose};

/// A set whose rows are written, and to which files can still be added.
#[derive(Debug)]
pub struct Draft(draft::Draft<SystemDisk>);

/// A set that is complete and on disk, but not published yet.
#[derive(Debug)]
pub struct Sealed(draft::Sealed<SystemDisk>);

/// Writes the rows in all formats next to the published set in `folder`.
///
/// `feed` is called once and passes each row to its argument, in strictly ascending order of the
/// names' bytes. It should stop at the first error; even if it doesn't, the set is abandoned. Only
/// one set at a time can be written in a folder: files left by an earlier one are deleted first.
/// `made` is the time in the index.
///
/// # Errors
/// Fails with `feed`'s error, or if writing fails. No files are left behind then.
pub fn write<E: From<DumpError>>(
    folder: &Path,
    made: Moment,
    feed: impl FnOnce(&mut dyn FnMut(&ListedRow) -> Result<(), DumpError>) -> Result<(), E>,
) -> Result<Draft, E> {
    // After a disk error, deleting incomplete files may have failed, and this set needs their
    // space.
    clear(&SystemDisk, folder).ok();
    draft::Draft::write(SystemDisk, folder, made, feed).map(Draft)
}

/// Deletes what a crash left next to the published files in `folder`, and returns the number of
/// deleted files. Call it at start, before anything is written.
///
/// # Errors
/// Fails if the folder can't be read or a file can't be deleted, so it also tests the folder.
pub fn clear_stale(folder: &Path) -> Result<u32, DumpError> {
    clear(&SystemDisk, folder)
}

pub(crate) fn clear(disk: &impl Disk, folder: &Path) -> Result<u32, DumpError> {
    let mut cleared = swap::clear(disk, folder, Whose::Of(&[NODES_FILE]))?;
    for ours in [DATA_FOLDER, SCHEMA_FOLDER, CHANGES_FOLDER] {
        match swap::clear(disk, &folder.join(ours), Whose::All) {
            Ok(count) => cleared += count,
            // Nothing has been published yet.
            Err(DumpError::NoFolder { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(cleared)
}

impl Draft {
    pub fn instances(&self) -> u64 {
        self.0.instances()
    }

    /// Sets the time in the index at which the rows were read. For rows of an earlier set from
    /// which names were removed.
    pub fn rows_were_read(&mut self, at: Moment) {
        self.0.rows_were_read(at);
    }

    /// Sets the licence of the data in the index, an SPDX expression.
    pub fn licensed_as(&mut self, licence: &str) {
        self.0.licensed_as(licence);
    }

    /// Its rows, read back from the disk.
    pub fn rows(&self) -> Result<Rows, DumpError> {
        let (file, _bytes) = self.0.swap().open(ROWS_PLACE)?;
        let path = self.0.swap().temporary(ROWS_PLACE);
        Ok(Rows::new(path, Box::new(file)))
    }

    /// Adds a file that `write` writes. `name` is its path from the index's folder. The index lists
    /// it and its companion.
    pub fn add(
        &mut self,
        name: &str,
        media: &'static str,
        packing: Packing,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), DumpError> {
        self.0.add(name, media, packing, write)
    }

    /// Lists the files of changes in the index. They are written separately and published just
    /// before this set.
    pub fn tell_of_changes(&mut self, written: &WrittenChanges) {
        self.0.tell_of_changes(written.files());
    }

    /// [`Self::seal`] ends early when `cancel` is called.
    pub fn cancel_on(&mut self, cancel: &Cancel) {
        self.0.cancel_on(cancel);
    }

    /// Writes the compressed companions and the index.
    ///
    /// # Errors
    /// Fails if they can't be written or the dump was cancelled. No files are left behind then.
    pub fn seal(self) -> Result<Sealed, DumpError> {
        self.0.seal().map(Sealed)
    }
}

impl Sealed {
    /// The bytes of the index.
    pub fn index(&self) -> &[u8] {
        self.0.index()
    }

    /// Adds a file that is made from the index and therefore not listed in it, such as a signature.
    /// `name` is its name in the index's folder. It is published just before the index.
    pub fn attach(&mut self, name: &str, bytes: &[u8]) -> Result<(), DumpError> {
        self.0.attach(name, bytes)
    }

    /// Replaces all files of the last set, the index last.
    ///
    /// # Errors
    /// Fails if a rename or a folder's sync fails. Each file is then the complete old or new one.
    pub fn publish(self) -> Result<(), DumpError> {
        self.0.publish()
    }
}
