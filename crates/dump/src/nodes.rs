//! `nodes.json`: the sorted JSON array of the listed host names, and the same gzipped.
//!
//! In: names, strictly ascending by their bytes. Out: `["a.example","b.example"]` and a newline, on one line as today's consumers of this kind
//! of list know it. Memory doesn't grow with the list. Refused: a name out of order.
//!
//! Equal lists give equal bytes, gzipped as well: its header holds no time and no system.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};

use crate::disk::{Disk, SystemDisk};
use crate::error::DumpError;
use crate::swap::{self, Swap};

/// The published list.
pub const NODES_FILE: &str = "nodes.json";

/// The same gzipped, for nginx's `gzip_static`.
pub const NODES_GZIP_FILE: &str = "nodes.json.gz";

/// Bytes that are gathered before the system is asked to write.
const BUFFER_BYTES: usize = 64 * 1024;

/// The gzip header's code for "unknown" (RFC 1952 §2.3.1).
const GZIP_SYSTEM_UNKNOWN: u8 = 255;

/// A dump that is written, complete and on the disk, and not yet published. Dropped, it is taken away again.
pub struct Staged {
    size: Size,
    swap: Swap<SystemDisk>,
}

impl Staged {
    /// Names in it.
    pub fn names(&self) -> u64 {
        self.size.names
    }

    /// Bytes of the plain file.
    pub fn bytes(&self) -> u64 {
        self.size.bytes
    }

    /// Puts the files in the place of the last dump's: the gzipped one first, so that whoever was told of a new `nodes.json` never gets an
    /// older one by asking for it gzipped.
    ///
    /// # Errors
    /// When a rename or the folder's sync fails. Each of the two files is then the old one or the new one, whole.
    pub fn publish(self) -> Result<(), DumpError> {
        self.swap.publish()
    }
}

impl fmt::Debug for Staged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staged")
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

/// Writes the list beside the published one in `folder`; [`crate::guard()`] decides and [`Staged::publish`] publishes.
///
/// `feed` is called once and hands each name to its argument, strictly ascending. It should end with the first error that it gets; when it
/// doesn't, the dump is given up all the same. One list at a time is written in a folder: what an earlier one left behind is taken away first.
///
/// # Errors
/// What `feed` returned, else why writing failed. Nothing is left behind then.
pub fn write_nodes<E: From<DumpError>>(
    folder: &Path,
    feed: impl FnOnce(&mut dyn FnMut(&str) -> Result<(), DumpError>) -> Result<(), E>,
) -> Result<Staged, E> {
    let (swap, size) = stage(SystemDisk, folder, feed)?;
    Ok(Staged { size, swap })
}

/// Removes what a crash left beside the published files in `folder`, and tells how many files that were. For the start, before anything is written.
///
/// # Errors
/// When the folder can't be read or such a file can't be removed; so it is a check of the folder too.
pub fn clear_stale(folder: &Path) -> Result<u32, DumpError> {
    swap::clear(&SystemDisk, folder, &[NODES_FILE])
}

/// How much was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    names: u64,
    bytes: u64,
}

fn stage<D: Disk, E: From<DumpError>>(
    disk: D,
    folder: &Path,
    feed: impl FnOnce(&mut dyn FnMut(&str) -> Result<(), DumpError>) -> Result<(), E>,
) -> Result<(Swap<D>, Size), E> {
    // A disk that failed may not have let go of what was half written; it would take up the room that this list needs.
    swap::clear(&disk, folder, &[NODES_FILE]).ok();
    let mut swap = Swap::new(disk, folder);
    let gzip = swap.create(NODES_GZIP_FILE)?;
    let plain = swap.create(NODES_FILE)?;
    let mut list = List::new(folder, plain, gzip);
    feed(&mut |name| list.push(name))?;
    let (plain, gzip, size) = list.finish()?;
    swap.sync(&gzip, NODES_GZIP_FILE)?;
    swap.sync(&plain, NODES_FILE)?;
    Ok((swap, size))
}

/// The list while it grows: one name goes to both files, and nothing of it is kept but the name.
struct List<F: Write> {
    folder: PathBuf,
    plain: BufWriter<F>,
    gzip: GzEncoder<BufWriter<F>>,
    size: Size,
    last: String,
    /// The bytes of one name, kept for its allocation.
    piece: Vec<u8>,
    /// A piece is missing, so this can't become a list any more.
    is_broken: bool,
}

impl<F: Write> List<F> {
    fn new(folder: &Path, plain: F, gzip: F) -> Self {
        Self {
            folder: folder.to_owned(),
            plain: BufWriter::with_capacity(BUFFER_BYTES, plain),
            gzip: GzBuilder::new()
                .mtime(0)
                .operating_system(GZIP_SYSTEM_UNKNOWN)
                .write(
                    BufWriter::with_capacity(BUFFER_BYTES, gzip),
                    Compression::best(),
                ),
            size: Size { names: 0, bytes: 0 },
            last: String::new(),
            piece: Vec::new(),
            is_broken: false,
        }
    }

    fn push(&mut self, name: &str) -> Result<(), DumpError> {
        if self.is_broken {
            return Err(DumpError::GivenUp);
        }
        let pushed = self.try_push(name);
        self.is_broken = pushed.is_err();
        pushed
    }

    fn try_push(&mut self, name: &str) -> Result<(), DumpError> {
        if self.size.names > 0 && name <= self.last.as_str() {
            return Err(DumpError::OutOfOrder {
                name: name.to_owned(),
            });
        }
        self.piece.clear();
        self.piece
            .push(if self.size.names == 0 { b'[' } else { b',' });
        // Host names need no escaping, but that they don't is not for this crate to trust.
        serde_json::to_writer(&mut self.piece, name)
            .map_err(|error| self.failed_at(NODES_FILE, error.into()))?;
        self.write_piece()?;
        self.size.names += 1;
        self.last.clear();
        self.last.push_str(name);
        Ok(())
    }

    fn finish(mut self) -> Result<(F, F, Size), DumpError> {
        if self.is_broken {
            return Err(DumpError::GivenUp);
        }
        self.piece.clear();
        if self.size.names == 0 {
            self.piece.push(b'[');
        }
        self.piece.extend_from_slice(b"]\n");
        self.write_piece()?;
        let Self {
            folder,
            plain,
            gzip,
            size,
            ..
        } = self;
        let failed =
            |name: &str, source| DumpError::from_io(&folder, &folder.join(name), "writing", source);
        let plain = plain
            .into_inner()
            .map_err(|error| failed(NODES_FILE, error.into_error()))?;
        let gzip = gzip
            .finish()
            .and_then(|buffer| buffer.into_inner().map_err(|error| error.into_error()))
            .map_err(|source| failed(NODES_GZIP_FILE, source))?;
        Ok((plain, gzip, size))
    }

    fn write_piece(&mut self) -> Result<(), DumpError> {
        self.plain
            .write_all(&self.piece)
            .map_err(|source| self.failed_at(NODES_FILE, source))?;
        self.gzip
            .write_all(&self.piece)
            .map_err(|source| self.failed_at(NODES_GZIP_FILE, source))?;
        self.size.bytes += u64::try_from(self.piece.len()).unwrap_or(u64::MAX);
        Ok(())
    }

    fn failed_at(&self, name: &str, source: io::Error) -> DumpError {
        DumpError::from_io(&self.folder, &self.folder.join(name), "writing", source)
    }
}

#[cfg(test)]
mod tests;
