//! The published set, in a tree that is written: at the root `nodes.json` and its companion; below
//! `data/` the same list, the rows in all other formats, compressed companions, schemas, and
//! `index.json`, which lists all files there.
//!
//! 1. [`write()`] the rows.
//! 2. [`crate::guard()`] decides whether to publish.
//! 3. [`Draft::add`] adds further files, which can be made from [`Draft::rows`].
//! 4. [`Draft::seal`] writes companions and the index.
//! 5. [`Sealed::attach`] adds files made from the index, such as its signature.
//!
//! Rows go into all formats at once, so that the database is read only once and its snapshot is
//! released early. Hashes and companions are computed from the written files. Memory doesn't grow
//! with the rows.

use std::io::{self, BufWriter, Write};

use publish::{File, GZIP_END, Tree, TreeError};
use store::SoftwareVersions;

use super::by_software::{FILES_MAX, Groups};
use super::formats::Format;
use super::formats::csv::Csv;
use super::formats::ndjson::Ndjson;
use super::formats::nodes::Nodes;
use super::formats::table::Table;

use super::index::{Entry, Index, SCHEMA_VERSION, media};
use super::packing::{self, Failed, Job, Packed};
use super::rows::{RowError, Rows};
use super::schema::SCHEMAS;
use super::software::{Counter, SOFTWARE_PLACE};
use crate::changes::{ChangesFile, WrittenChanges};
use crate::compress::{BUFFER_BYTES, Measure, Packing};
use crate::error::DumpError;
use crate::paths::{
    ATOM_FILE, BY_SOFTWARE_PLACE, CHANGES_FOLDER, DATA_FOLDER, INDEX_FILE, NODES_FILE, ROWS_PLACE,
    SCHEMA_FOLDER, SOFTWARE_FOLDER, WEEKLY_ATOM_FILE,
};
use crate::row::{ListedRow, Moment};
use crate::slugs::{Slugs, sha256};

/// Files that are open at once while companions are written; each of them has a second one.
const FILES_AT_ONCE: usize = 32;

const TABLE_PLACE: &str = "data/instances.sqlite";

/// A file that is written before its companion.
#[derive(Debug)]
struct Plain {
    /// Path from the tree's folder.
    place: String,
    media: &'static str,
    packing: Packing,
}

/// The text files of rows. The list at the root is written twice instead of linked: a volume's file
/// system may not support links.
const TEXTS: [(&str, &str, Packing, &dyn Format); 4] = [
    (NODES_FILE, media::JSON, Packing::Gzip, &Nodes),
    ("data/nodes.json", media::JSON, Packing::Gzip, &Nodes),
    ("data/instances.csv", media::CSV, Packing::Gzip, &Csv),
    (ROWS_PLACE, media::NDJSON, Packing::Gzip, &Ndjson),
];

/// A set whose rows are written, and to which files can still be added.
#[derive(Debug)]
pub struct Draft<'t> {
    tree: &'t Tree,
    made: Moment,
    rows_read: Moment,
    licence: Option<String>,
    instances: u64,
    /// Software, the most common first.
    ranking: Vec<Option<String>>,
    versions: Vec<SoftwareVersions>,
    plain: Vec<Plain>,
    /// Index entries of the files of changes.
    changes: Vec<Entry>,
}

/// Writes the rows in all formats into a tree.
///
/// `feed` is called once and passes each row to its argument, in strictly ascending order of the
/// names' bytes. It should stop at the first error; even if it doesn't, the set is abandoned.
/// `made` is the time in the index.
///
/// # Errors
/// Fails with `feed`'s error, or if writing fails. The tree can't be published then.
pub fn write<E: From<DumpError>>(
    tree: &Tree,
    made: Moment,
    feed: impl FnOnce(&mut dyn FnMut(&ListedRow) -> Result<(), DumpError>) -> Result<(), E>,
) -> Result<Draft<'_>, E> {
    let mut draft = Draft {
        tree,
        made,
        rows_read: made,
        licence: None,
        instances: 0,
        ranking: Vec::new(),
        versions: Vec::new(),
        plain: Vec::new(),
        changes: Vec::new(),
    };
    for (name, text) in SCHEMAS {
        let place = format!("{SCHEMA_FOLDER}/{name}");
        draft.add_plain(place, media::JSON, Packing::None, |file| {
            file.write_all(text.as_bytes())
        })?;
    }
    let mut writer = draft.begin_rows()?;
    feed(&mut |instance| writer.push(tree, instance))?;
    draft.end_rows(writer)?;
    Ok(draft)
}

impl<'t> Draft<'t> {
    pub fn instances(&self) -> u64 {
        self.instances
    }

    /// Its instances by version, for the most frequent software. Returns them once.
    pub fn take_versions(&mut self) -> Vec<SoftwareVersions> {
        std::mem::take(&mut self.versions)
    }

    /// Sets the time in the index at which the rows were read. For rows of an earlier set from
    /// which names were removed.
    pub fn rows_were_read(&mut self, at: Moment) {
        self.rows_read = at;
    }

    /// Sets the licence of the data in the index, an SPDX expression.
    pub fn licensed_as(&mut self, licence: &str) {
        self.licence = Some(licence.to_owned());
    }

    /// Its rows, read back from the disk.
    pub fn rows(&self) -> Result<Rows, DumpError> {
        let file = self.tree.open(ROWS_PLACE)?;
        Ok(Rows::new(self.tree.path(ROWS_PLACE), Box::new(file)))
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
        self.add_plain(format!("{DATA_FOLDER}/{name}"), media, packing, write)
    }

    /// Lists the files of changes in the index.
    pub fn tell_of_changes(&mut self, written: &WrittenChanges) {
        let folder = CHANGES_FOLDER.rsplit('/').next().unwrap_or(CHANGES_FOLDER);
        self.changes
            .extend(written.files.iter().map(|file: &ChangesFile| {
                let media = match file.name.as_str() {
                    ATOM_FILE | WEEKLY_ATOM_FILE => media::ATOM,
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
        let file = self.tree.create(&place)?;
        let mut buffer = BufWriter::with_capacity(BUFFER_BYTES, file);
        let written = write(&mut buffer).and_then(|()| buffer.flush());
        written.map_err(|source| self.tree.failed(&place, "writing", source))?;
        self.plain.push(Plain {
            place,
            media,
            packing,
        });
        Ok(())
    }

    fn begin_rows(&self) -> Result<RowWriter, DumpError> {
        // SQLite opens the created file.
        self.tree.create(TABLE_PLACE)?;
        let table = Table::begin(&self.tree.path(TABLE_PLACE))
            .map_err(|source| self.tree.failed(TABLE_PLACE, "writing", source))?;
        let mut texts = Vec::with_capacity(TEXTS.len());
        for (place, _media, _packing, format) in TEXTS {
            let file = self.tree.create(place)?;
            let mut buffer = BufWriter::with_capacity(BUFFER_BYTES, file);
            buffer
                .write_all(format.head())
                .map_err(|source| self.tree.failed(place, "writing", source))?;
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

    fn end_rows(&mut self, writer: RowWriter) -> Result<(), DumpError> {
        if writer.is_broken {
            return Err(DumpError::GivenUp);
        }
        self.instances = writer.rows;
        for (place, format, mut buffer) in writer.texts {
            buffer
                .write_all(format.tail())
                .and_then(|()| buffer.flush())
                .map_err(|source| self.tree.failed(place, "writing", source))?;
        }
        for (place, media, packing, _format) in TEXTS {
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
            .map_err(|source| self.tree.failed(TABLE_PLACE, "writing", source))?;
        self.plain.push(Plain {
            place: TABLE_PLACE.to_owned(),
            media: media::SQLITE,
            packing: Packing::Gzip,
        });
        let (software, versions) = counter.finish();
        self.ranking = software.ranking();
        self.versions = versions;
        let place = SOFTWARE_PLACE.to_owned();
        self.add_plain(place, media::JSON, Packing::Gzip, |file| {
            serde_json::to_writer(&mut *file, &software)?;
            file.write_all(b"\n")
        })
    }

    /// Writes the hosts by software.
    fn add_by_software(&mut self) -> Result<(), DumpError> {
        let tree = self.tree;
        let failed = |source| tree.failed(BY_SOFTWARE_PLACE, "writing", source);
        let ranking = std::mem::take(&mut self.ranking);
        let mut groups = Groups::new(tree.folder(), &ranking).map_err(failed)?;
        for row in self.rows()? {
            tree.cancel().check()?;
            let row = row.map_err(|error| match error {
                RowError::Unreadable(error) => error,
                RowError::Damaged { .. } => {
                    let source = io::ErrorKind::InvalidData.into();
                    tree.failed(ROWS_PLACE, "reading back", source).into()
                }
            })?;
            groups
                .push(&row.instance.software, &row.host)
                .map_err(failed)?;
        }
        let place = BY_SOFTWARE_PLACE.to_owned();
        self.add_plain(place, media::JSON, Packing::Gzip, |file| groups.write(file))?;
        let mut slugs = Slugs::new(sha256);
        for (index, software) in ranking.iter().enumerate().take(FILES_MAX) {
            let Some(software) = software else { continue };
            let place = format!("{SOFTWARE_FOLDER}/{}.json", slugs.take(software));
            self.add_plain(place, media::JSON, Packing::Gzip, |file| {
                groups.write_hosts(index, file)?;
                file.write_all(b"\n")
            })?;
        }
        Ok(())
    }

    /// Writes the hosts by software, the compressed companions and the index.
    pub fn seal(mut self) -> Result<Sealed<'t>, DumpError> {
        self.add_by_software()?;
        let mut files = std::mem::take(&mut self.changes);
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
        let index = index
            .to_bytes()
            .map_err(|error| self.tree.failed(&place, "writing", error.into()))?;
        self.tree.write_packed(&place, &index)?;
        let tree = self.tree;
        Ok(Sealed { tree, index })
    }

    /// Measures all files and writes their companions. Returns their entries in the index.
    fn pack(&mut self) -> Result<Vec<Entry>, DumpError> {
        let mut packed = Vec::new();
        let mut plains = std::mem::take(&mut self.plain).into_iter().peekable();
        while plains.peek().is_some() {
            let jobs = plains.by_ref().take(FILES_AT_ONCE);
            let jobs = jobs
                .map(|plain| self.job(plain))
                .collect::<Result<_, _>>()?;
            let some = packing::pack(jobs, self.tree.cancel()).map_err(|failed| match failed {
                Failed::At {
                    place,
                    doing,
                    source,
                } => self.tree.failed(&place, doing, source),
                Failed::Cancelled => TreeError::Cancelled,
            })?;
            packed.extend(some);
        }
        let mut entries = Vec::new();
        for Packed {
            place,
            media,
            measure,
            companion,
        } in packed
        {
            let mut of_this = vec![self.entry(&place, media, measure)];
            if let Some((place, _file, measure)) = companion {
                of_this.push(self.entry(&place, media::GZIP, measure));
            }
            // The list at the root is not in the index's folder.
            if place != NODES_FILE {
                entries.append(&mut of_this);
            }
        }
        Ok(entries)
    }

    fn job(&self, plain: Plain) -> Result<Job<std::fs::File, File>, DumpError> {
        let from = self.tree.open(&plain.place)?;
        let bytes = from
            .metadata()
            .map_err(|source| self.tree.failed(&plain.place, "reading back", source))?
            .len();
        let companion = match plain.packing {
            Packing::None => None,
            Packing::Gzip => {
                let place = format!("{}{GZIP_END}", plain.place);
                let file = self.tree.create(&place)?;
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

/// A set that is complete.
#[derive(Debug)]
pub struct Sealed<'t> {
    tree: &'t Tree,
    index: Vec<u8>,
}

impl Sealed<'_> {
    /// The bytes of the index.
    pub fn index(&self) -> &[u8] {
        &self.index
    }

    /// Adds a file that is made from the index and therefore not listed in it, such as a signature.
    /// `name` is its name in the index's folder.
    pub fn attach(&self, name: &str, bytes: &[u8]) -> Result<(), DumpError> {
        Ok(self.tree.write(&format!("{DATA_FOLDER}/{name}"), bytes)?)
    }
}

/// All files of rows while they are written. A row goes to each of them, and only its name is kept.
struct RowWriter {
    texts: Vec<(&'static str, &'static dyn Format, BufWriter<File>)>,
    table: Table,
    rows: u64,
    last: String,
    /// The bytes of one row. Reused to save allocations.
    piece: Vec<u8>,
    /// A row was written only in part, so this can't become a set any more.
    is_broken: bool,
}

impl RowWriter {
    fn push(&mut self, tree: &Tree, instance: &ListedRow) -> Result<(), DumpError> {
        if self.is_broken {
            return Err(DumpError::GivenUp);
        }
        let pushed = self.try_push(tree, instance);
        self.is_broken = pushed.is_err();
        pushed
    }

    fn try_push(&mut self, tree: &Tree, instance: &ListedRow) -> Result<(), DumpError> {
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
                .map_err(|source| tree.failed(place, "writing", source))?;
        }
        self.table
            .push(instance)
            .map_err(|source| tree.failed(TABLE_PLACE, "writing", source))?;
        self.rows += 1;
        self.last.clone_from(&instance.host);
        Ok(())
    }
}
