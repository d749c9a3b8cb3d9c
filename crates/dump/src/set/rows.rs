//! Reads `instances.ndjson` back, to remove names from a published set and to compare two sets.
//!
//! The disk may have failed since the file was written. A line that is not a row, or too long for
//! one, is reported and skipped.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use publish::TreeError;
use thiserror::Error;

use super::index::Index;
use crate::error::DumpError;
use crate::paths::{DATA_FOLDER, INDEX_FILE, ROWS_PLACE};
use crate::row::{ListedRow, Moment};

/// Bytes of a line. A row has a name of 253 bytes, two texts of 128 bytes that escaping can make
/// six times as long, and 190 other bytes.
const LINE_BYTES_MAX: usize = 4096;

/// Bytes of an index, which has some tens of files.
const INDEX_BYTES_MAX: u64 = 1024 * 1024;

/// Why a row can't be returned.
#[derive(Debug, Error)]
pub enum RowError {
    #[error("line {line} of {} is damaged", path.display())]
    Damaged {
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
    },
    /// The file can't be read. No row comes after this error.
    #[error(transparent)]
    Unreadable(#[from] DumpError),
}

pub struct Rows {
    path: PathBuf,
    lines: BufReader<Box<dyn Read + Send>>,
    line: Vec<u8>,
    number: u64,
    has_ended: bool,
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows")
            .field("path", &self.path)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// The rows of the set in a tree's `folder`. `None` if there is no set.
pub fn standing_rows(folder: &Path) -> Result<Option<Rows>, DumpError> {
    let path = folder.join(ROWS_PLACE);
    match File::open(&path) {
        Ok(file) => Ok(Some(Rows::new(path, Box::new(file)))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(TreeError::from_io(folder, &path, "reading", error).into()),
    }
}

impl Rows {
    pub(crate) fn new(path: PathBuf, from: Box<dyn Read + Send>) -> Self {
        Self {
            path,
            lines: BufReader::new(from),
            line: Vec::new(),
            number: 0,
            has_ended: false,
        }
    }

    /// Reads the next line without its end, however long it is, and keeps it up to the bound.
    /// `None` at the end of the file.
    fn read_line(&mut self) -> io::Result<Option<bool>> {
        self.line.clear();
        let mut fits = true;
        let mut has_begun = false;
        loop {
            let buffer = match self.lines.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                // A last line without a newline is truncated.
                return Ok(has_begun.then_some(false));
            }
            has_begun = true;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let piece = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or(buffer);
            fits &= self.line.len() + piece.len() <= LINE_BYTES_MAX;
            if fits {
                self.line.extend_from_slice(piece);
            }
            let taken = piece.len() + usize::from(end.is_some());
            self.lines.consume(taken);
            if end.is_some() {
                return Ok(Some(fits));
            }
        }
    }
}

impl Iterator for Rows {
    type Item = Result<ListedRow, RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let read = self.read_line();
        self.number += 1;
        match read {
            Ok(Some(is_whole)) => {
                let row = is_whole.then(|| serde_json::from_slice(&self.line).ok());
                Some(row.flatten().ok_or_else(|| RowError::Damaged {
                    path: self.path.clone(),
                    line: self.number,
                }))
            }
            Ok(None) => {
                self.has_ended = true;
                None
            }
            Err(source) => {
                self.has_ended = true;
                let folder = self.path.parent().unwrap_or(&self.path);
                let error = TreeError::from_io(folder, &self.path, "reading", source);
                Some(Err(DumpError::from(error).into()))
            }
        }
    }
}

/// When the rows of the set in a tree's `folder` were read from the database, if its index says so.
pub fn standing_rows_read(folder: &Path) -> Option<Moment> {
    standing_index(folder).map(|index| index.rows_read)
}

/// The published set, as its index describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublishedSet {
    /// Number of listed instances. `None` if there is no set, or its index can't be read.
    pub instances: Option<u64>,
    /// Its files, sorted by name.
    pub files: Vec<PublishedFile>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedFile {
    /// Path from the index's folder.
    pub name: String,
    pub bytes: u64,
}

/// Reads the index of the set in a tree's `folder`.
pub fn published_set(folder: &Path) -> PublishedSet {
    let Some(index) = standing_index(folder) else {
        return PublishedSet::default();
    };
    let files = index.files.into_iter().map(|file| PublishedFile {
        name: file.name,
        bytes: file.bytes,
    });
    PublishedSet {
        instances: Some(index.instances),
        files: files.collect(),
    }
}

/// The published index, if it can be read.
fn standing_index(folder: &Path) -> Option<Index> {
    let file = File::open(folder.join(DATA_FOLDER).join(INDEX_FILE)).ok()?;
    let mut bytes = Vec::new();
    file.take(INDEX_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(bytes: Vec<u8>) -> Rows {
        Rows::new(PathBuf::from("rows"), Box::new(io::Cursor::new(bytes)))
    }

    fn line(host: &str) -> String {
        serde_json::to_string(&ListedRow::example(host)).unwrap()
    }

    #[test]
    fn a_damaged_line_is_told_and_the_others_are_read() {
        let long = line(&"x".repeat(LINE_BYTES_MAX));
        let text = format!(
            "{}\n{{\n{long}\n\n{}\n{}",
            line("a.example"),
            line("b.example"),
            line("cut.example")
        );
        let found: Vec<_> = rows(text.into_bytes())
            .map(|row| match row {
                Ok(instance) => instance.host,
                Err(error) => error.to_string(),
            })
            .collect();
        let damaged = |line| format!("line {line} of rows is damaged");
        let expect = [
            "a.example".to_owned(),
            damaged(2),
            damaged(3),
            damaged(4),
            "b.example".to_owned(),
            damaged(6),
        ];
        assert_eq!(found, expect);
    }

    #[test]
    fn the_longest_row_of_ours_fits() {
        let text = "\u{1}".repeat(128);
        let longest = ListedRow {
            instance: kit::software(&text, &text),
            ..ListedRow::example(&"x".repeat(253))
        };
        let line = serde_json::to_string(&longest).unwrap() + "\n";
        assert!(
            line.len() > 1900 && line.len() < LINE_BYTES_MAX,
            "{}",
            line.len()
        );
        assert_eq!(rows(line.into_bytes()).next().unwrap().unwrap(), longest);
    }

    #[test]
    fn a_file_that_can_not_be_read_ends_with_its_error() {
        struct Failing;
        impl Read for Failing {
            fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::from_raw_os_error(5))
            }
        }
        let mut rows = Rows::new(PathBuf::from("rows"), Box::new(Failing));
        assert!(matches!(rows.next(), Some(Err(RowError::Unreadable(_)))));
        assert!(rows.next().is_none());
    }
}
