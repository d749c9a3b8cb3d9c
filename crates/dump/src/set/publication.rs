//! The published set: written beside the one that stands, judged, completed, swapped in.
//!
//! In: rows, one at a time, sorted. Out: in the public folder `nodes.json` and `nodes.json.gz`; below `data/` the same and the rows in all other formats,
//! compressed companions, schemas, and `index.json`, which tells of all of them and has companions itself. Refused: rows out of order.
//!
//! The order of a publication: [`write()`] the rows; let [`crate::guard()`] decide; [`Draft::add`] what else joins the set, made of [`Draft::rows`] and
//! [`crate::standing_rows`] if need be; [`Draft::seal`] it; [`Sealed::attach`] what is made of the index, such as its signature; [`Sealed::publish`].
//! Dropped at any step before the last, it takes itself away.

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
use crate::instance::{Instance, Moment};
use crate::swap::{self, Whose};

/// A set whose rows are written, and that other files may still join.
#[derive(Debug)]
pub struct Draft(draft::Draft<SystemDisk>);

/// A set that is complete and on the disk, and not yet published.
#[derive(Debug)]
pub struct Sealed(draft::Sealed<SystemDisk>);

/// Writes the rows of all formats beside the published set in `folder`.
///
/// `feed` is called once and hands each row to its argument, strictly ascending by the bytes of the names. It should end with the first error that it
/// gets; when it doesn't, the set is given up all the same. One set at a time is written in a folder: what an earlier one left behind is taken away
/// first. `made` is what the index says.
///
/// # Errors
/// What `feed` returned, else why writing failed. Nothing is left behind then.
pub fn write<E: From<DumpError>>(
    folder: &Path,
    made: Moment,
    feed: impl FnOnce(&mut dyn FnMut(&Instance) -> Result<(), DumpError>) -> Result<(), E>,
) -> Result<Draft, E> {
    // A disk that failed may not have let go of what was half written; it would take up the room that this set needs.
    clear(&SystemDisk, folder).ok();
    draft::Draft::write(SystemDisk, folder, made, feed).map(Draft)
}

/// Removes what a crash left beside the published files in `folder`, and tells how many files that were. For the start, before anything is written.
///
/// # Errors
/// When the folder can't be read or such a file can't be removed; so it is a check of the folder too.
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
    /// Rows in it.
    pub fn instances(&self) -> u64 {
        self.0.instances()
    }

    /// Has the index say that the rows are as old as this, and not as the set: they are those of one that stood, less some.
    pub fn rows_were_read(&mut self, at: Moment) {
        self.0.rows_were_read(at);
    }

    /// Has the index name the licence of the data, an SPDX expression.
    pub fn licensed_as(&mut self, licence: &str) {
        self.0.licensed_as(licence);
    }

    /// Its rows, read back from the disk.
    ///
    /// # Errors
    /// When they can't be opened.
    pub fn rows(&self) -> Result<Rows, DumpError> {
        let (file, _bytes) = self.0.swap().open(ROWS_PLACE)?;
        let path = self.0.swap().beside(ROWS_PLACE);
        Ok(Rows::new(path, Box::new(file)))
    }

    /// Takes a further file into the set: what `write` writes, at `name` in the folder of the index or in a folder there, which will tell of it and of its
    /// companions.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn add(
        &mut self,
        name: &str,
        media: &'static str,
        packing: Packing,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), DumpError> {
        self.0.add(name, media, packing, write)
    }

    /// Has the index tell of the files of changes, which are written by themselves and published
    /// just before this set.
    pub fn tell_of_changes(&mut self, written: &WrittenChanges) {
        self.0.tell_of_changes(written.files());
    }

    /// [`Self::seal`] ends early when `cancel` is called.
    pub fn cancel_on(&mut self, cancel: &Cancel) {
        self.0.cancel_on(cancel);
    }

    /// Makes the compressed companions and the index.
    ///
    /// # Errors
    /// When they can't be written, or are no longer wanted. Nothing is left behind then.
    pub fn seal(self) -> Result<Sealed, DumpError> {
        self.0.seal().map(Sealed)
    }
}

impl Sealed {
    /// The bytes of the index.
    pub fn index(&self) -> &[u8] {
        self.0.index()
    }

    /// Takes along a file that is made of the index and so is not in it, at `name` beside it: it is published just before the index.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn attach(&mut self, name: &str, bytes: &[u8]) -> Result<(), DumpError> {
        self.0.attach(name, bytes)
    }

    /// Puts all files in the places of the last set's, the index last.
    ///
    /// # Errors
    /// When a rename or a folder's sync fails. Each file is then the old one or the new one, whole.
    pub fn publish(self) -> Result<(), DumpError> {
        self.0.publish()
    }
}
