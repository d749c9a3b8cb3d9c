//! A set of files while it is written, on any disk.
//!
//! Takes rows in strictly ascending order of their names' bytes; a row out of order is an error.
//! Writes next to the published files: first all formats, then their compressed companions, then
//! the index and its companion. Memory doesn't grow with the rows.
//!
//! Rows go into all formats at once, so that the database is read only once and its snapshot is
//! released early. Hashes and companions are computed from the written files.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::formats::Format;
use super::formats::csv::Csv;
use super::formats::ndjson::Ndjson;
use super::formats::nodes::Nodes;
use super::formats::table::{Table, TableDisk};

use super::index::{Entry, Index, SCHEMA_VERSION, media};
use super::packing::{self, Failed, Job, Packed};
use super::places::{
    CHANGES_FOLDER, DATA_FOLDER, INDEX_FILE, NODES_FILE, ROWS_PLACE, SCHEMA_FOLDER,
};
use super::schema::SCHEMAS;
use super::software::{Counter, SOFTWARE_PLACE};
use crate::cancel::Cancel;
use crate::changes::ChangesFile;
use crate::compress::{self, BUFFER_BYTES, GZIP_END, Measure, Packing};
use crate::error::DumpError;
use crate::feed::ATOM_FILE;
use crate::row::{ListedRow, Moment};
use crate::swap::{Swap, Turn};

const TABLE_PLACE: &str = "data/instances.sqlite";

/// A file that is written before its companion.
#[derive(Debug)]
struct Plain {
    /// Path from the public folder.
    place: String,
    media: &'static str,
    packing: Packing,
}

/// The text files of rows. The list at the root is written twice instead of linked: a volume's file
/// system may not support links.
const TEXTS: [(&str, &str, Packing, Turn, &dyn Format); 4] = [
    (NODES_FILE, media::JSON, Packing::Gzip, Turn::Plain, &Nodes),
    (
        "data/nodes.json",
        media::JSON,
        Packing::Gzip,
        Turn::Plain,
        &Nodes,
    ),
    (
        "data/instances.csv",
        media::CSV,
        Packing::Gzip,
        Turn::Plain,
        &Csv,
    ),
    (
        ROWS_PLACE,
        media::NDJSON,
        Packing::Gzip,
        Turn::Rows,
        &Ndjson,
    ),
];

/// A set whose rows are written.
#[derive(Debug)]
pub(crate) struct Draft<D: TableDisk> {
    swap: Swap<D>,
    made: Moment,
    rows_read: Moment,
    licence: Option<String>,
    instances: u64,
    plain: Vec<Plain>,
    /// Index entries of files that another swap publishes.
    told: Vec<Entry>,
    cancel: Cancel,
}

impl<D: TableDisk> Draft<D> {
    /// Writes the rows that `feed` passes to its argument. The folders are those of
    /// [`crate::write`].
    pub(crate) fn write<E: From<DumpError>>(
        disk: D,
        folder: &Path,
        made: Moment,
        feed: impl FnOnce(&mut dyn FnMut(&ListedRow) -> Result<(), DumpError>) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut draft = Self {
            swap: Swap::new(disk, folder),
            made,
            rows_read: made,
            licence: None,
            instances: 0,
            plain: Vec::new(),
            told: Vec::new(),
            cancel: Cancel::default(),
        };
        draft.swap.make_folder(DATA_FOLDER)?;
        draft.swap.make_folder(SCHEMA_FOLDER)?;
        for (name, text) in SCHEMAS {
            let place = format!("{SCHEMA_FOLDER}/{name}");
            draft.add_plain(place, media::JSON, Packing::None, |file| {
                file.write_all(text.as_bytes())
            })?;
        }
        let mut writer = draft.begin_rows()?;
        feed(&mut |instance| writer.push(&draft.swap, instance))?;
        draft.end_rows(writer)?;
        Ok(draft)
    }

    pub(crate) fn instances(&self) -> u64 {
        self.instances
    }

    pub(crate) fn rows_were_read(&mut self, at: Moment) {
        self.rows_read = at;
    }

    pub(crate) fn licensed_as(&mut self, licence: &str) {
        self.licence = Some(licence.to_owned());
    }

    pub(crate) fn cancel_on(&mut self, cancel: &Cancel) {
        self.cancel = cancel.clone();
    }

    pub(crate) fn swap(&self) -> &Swap<D> {
        &self.swap
    }

    /// Adds a file to the set. `name` is its path from the index's folder.
    pub(crate) fn add(
        &mut self,
        name: &str,
        media: &'static str,
        packing: Packing,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), DumpError> {
        if let Some((folder, _)) = name.rsplit_once('/') {
            self.swap.make_folder(&format!("{DATA_FOLDER}/{folder}"))?;
        }
        self.add_plain(format!("{DATA_FOLDER}/{name}"), media, packing, write)
    }

    /// Adds index entries for files of changes.
    pub(crate) fn tell_of_changes(&mut self, files: &[ChangesFile]) {
        let folder = CHANGES_FOLDER.rsplit('/').next().unwrap_or(CHANGES_FOLDER);
        self.told.extend(files.iter().map(|file| {
            let media = match file.name.as_str() {
                ATOM_FILE => media::ATOM,
                _ => media::NDJSON,
            };
            let measure = Measure {
                bytes: file.bytes,
                sha256: file.sha256.as_str().to_owned(),
            };
            Entry::new(format!("{folder}/{}", file.name), media, measure, self.made)
        }));
    }

    fn add_plain(
        &mut self,
        place: String,
        media: &'static str,
        packing: Packing,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), DumpError> {
        let file = self.swap.create(&place, Turn::Plain)?;
        let mut buffer = BufWriter::with_capacity(BUFFER_BYTES, file);
        write(&mut buffer).map_err(|source| self.swap.failed(&place, "writing", source))?;
        end(&self.swap, &place, buffer)?;
        self.plain.push(Plain {
            place,
            media,
            packing,
        });
        Ok(())
    }

    fn begin_rows(&mut self) -> Result<RowWriter<D>, DumpError> {
        let table = self.swap.create_table(TABLE_PLACE, Turn::Plain)?;
        let mut texts = Vec::with_capacity(TEXTS.len());
        for (place, _media, _packing, turn, format) in TEXTS {
            let file = self.swap.create(place, turn)?;
            let mut buffer = BufWriter::with_capacity(BUFFER_BYTES, file);
            buffer
                .write_all(format.head())
                .map_err(|source| self.swap.failed(place, "writing", source))?;
            texts.push((place, format, buffer));
        }
        Ok(RowWriter {
            texts,
            table,
            rows: 0,
            last: String::new(),
            piece: Vec::new(),
            is_broken: false,
        })
    }

    fn end_rows(&mut self, writer: RowWriter<D>) -> Result<(), DumpError> {
        if writer.is_broken {
            return Err(DumpError::GivenUp);
        }
        self.instances = writer.rows;
        for (place, format, mut buffer) in writer.texts {
            buffer
                .write_all(format.tail())
                .map_err(|source| self.swap.failed(place, "writing", source))?;
            end(&self.swap, place, buffer)?;
        }
        for (place, media, packing, _turn, _format) in TEXTS {
            self.plain.push(Plain {
                place: place.to_owned(),
                media,
                packing,
            });
        }
        let mut counter = Counter::new();
        writer
            .table
            .finish(&mut |count| counter.push(count))
            .map_err(|source| self.swap.failed(TABLE_PLACE, "writing", source))?;
        self.plain.push(Plain {
            place: TABLE_PLACE.to_owned(),
            media: media::SQLITE,
            packing: Packing::Gzip,
        });
        let software = counter.finish();
        let place = SOFTWARE_PLACE.to_owned();
        self.add_plain(place, media::JSON, Packing::Gzip, |file| {
            serde_json::to_writer(&mut *file, &software)?;
            file.write_all(b"\n")
        })
    }

    /// Writes the companions and the index. No file can be added after that.
    pub(crate) fn seal(mut self) -> Result<Sealed<D>, DumpError> {
        let mut files = std::mem::take(&mut self.told);
        files.extend(self.pack()?);
        files.sort_by(|one, other| one.name.cmp(&other.name));
        let index = Index {
            schema_version: SCHEMA_VERSION,
            made: self.made,
            rows_read: self.rows_read,
            licence: self.licence,
            instances: self.instances,
            files,
        };
        let place = format!("{DATA_FOLDER}/{INDEX_FILE}");
        let bytes = index
            .to_bytes()
            .map_err(|error| self.swap.failed(&place, "writing", error.into()))?;
        let mut sealed = Sealed {
            swap: self.swap,
            index: Vec::new(),
        };
        let packed = compress::companion(&bytes)
            .map_err(|error| sealed.swap.failed(&place, "compressing", error))?;
        let packed_place = format!("{place}{GZIP_END}");
        sealed.swap.put(&packed_place, Turn::PackedIndex, &packed)?;
        sealed.swap.put(&place, Turn::Index, &bytes)?;
        sealed.index = bytes;
        Ok(sealed)
    }

    /// Measures all files and writes their companions. Returns their entries in the index.
    fn pack(&mut self) -> Result<Vec<Entry>, DumpError> {
        let plains = std::mem::take(&mut self.plain);
        let mut jobs = Vec::with_capacity(plains.len());
        for plain in plains {
            jobs.push(self.job(plain)?);
        }
        let packed = packing::pack(jobs, &self.cancel).map_err(|failed| match failed {
            Failed::At {
                place,
                doing,
                source,
            } => self.swap.failed(&place, doing, source),
            Failed::Cancelled(error) => error,
        })?;
        let mut entries = Vec::new();
        for Packed {
            place,
            media,
            measure,
            companion,
        } in packed
        {
            let mut of_this = vec![self.entry(&place, media, measure)];
            if let Some((place, file, measure)) = companion {
                self.swap.sync(&file, &place)?;
                of_this.push(self.entry(&place, media::GZIP, measure));
            }
            // The list at the root is not in the index's folder.
            if place != NODES_FILE {
                entries.append(&mut of_this);
            }
        }
        Ok(entries)
    }

    fn job(&mut self, plain: Plain) -> Result<Job<D::Reader, D::File>, DumpError> {
        let (from, bytes) = self.swap.open(&plain.place)?;
        let companion = match plain.packing {
            Packing::None => None,
            Packing::Gzip => {
                let place = format!("{}{GZIP_END}", plain.place);
                let file = self.swap.create(&place, Turn::Packed)?;
                Some((place, file))
            }
        };
        Ok(Job {
            place: plain.place,
            media: plain.media,
            from,
            bytes,
            companion,
        })
    }

    fn entry(&self, place: &str, media: &str, measure: Measure) -> Entry {
        let name = place.strip_prefix(DATA_FOLDER).unwrap_or(place);
        Entry::new(
            name.trim_start_matches('/').to_owned(),
            media,
            measure,
            self.made,
        )
    }
}

/// A set that is complete and on disk, next to the published files.
#[derive(Debug)]
pub(crate) struct Sealed<D: TableDisk> {
    swap: Swap<D>,
    index: Vec<u8>,
}

impl<D: TableDisk> Sealed<D> {
    pub(crate) fn index(&self) -> &[u8] {
        &self.index
    }

    /// Adds a file that is published with the index but not listed in it.
    pub(crate) fn attach(&mut self, name: &str, bytes: &[u8]) -> Result<(), DumpError> {
        let place = format!("{DATA_FOLDER}/{name}");
        self.swap.put(&place, Turn::Companion, bytes)
    }

    pub(crate) fn publish(self) -> Result<(), DumpError> {
        self.swap.publish()
    }
}

/// Flushes the buffer and syncs the file.
fn end<D: TableDisk>(
    swap: &Swap<D>,
    place: &str,
    buffer: BufWriter<D::File>,
) -> Result<(), DumpError> {
    let file = buffer
        .into_inner()
        .map_err(|error| swap.failed(place, "writing", error.into_error()))?;
    swap.sync(&file, place)
}

/// All files of rows while they are written. A row goes to each of them, and only its name is kept.
struct RowWriter<D: TableDisk> {
    texts: Vec<(&'static str, &'static dyn Format, BufWriter<D::File>)>,
    table: D::Table,
    rows: u64,
    last: String,
    /// The bytes of one row. Reused to save allocations.
    piece: Vec<u8>,
    /// A row was written only in part, so this can't become a set any more.
    is_broken: bool,
}

impl<D: TableDisk> RowWriter<D> {
    fn push(&mut self, swap: &Swap<D>, instance: &ListedRow) -> Result<(), DumpError> {
        if self.is_broken {
            return Err(DumpError::GivenUp);
        }
        let pushed = self.try_push(swap, instance);
        self.is_broken = pushed.is_err();
        pushed
    }

    fn try_push(&mut self, swap: &Swap<D>, instance: &ListedRow) -> Result<(), DumpError> {
        if self.rows > 0 && instance.host <= self.last {
            return Err(DumpError::OutOfOrder {
                name: instance.host.clone(),
            });
        }
        for (place, format, buffer) in &mut self.texts {
            self.piece.clear();
            format
                .row(self.rows, instance, &mut self.piece)
                .and_then(|()| buffer.write_all(&self.piece))
                .map_err(|source| swap.failed(place, "writing", source))?;
        }
        self.table
            .push(instance)
            .map_err(|source| swap.failed(TABLE_PLACE, "writing", source))?;
        self.rows += 1;
        self.last.clone_from(&instance.host);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
