//! The lines of a file of changes, and their sections.
//!
//! Parses a file's bytes into sections, and writes sections as bytes. Anything that differs by a
//! byte from what was written is rejected, so that a flipped bit on the disk is never read as a
//! change.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::row::{ListedState, Moment, Row};

/// The members of a row that its first digest covers.
#[derive(Serialize)]
struct FirstMembers<'r> {
    host: &'r str,
    software: Option<&'r str>,
    version: Option<&'r str>,
    state: ListedState,
    first_seen: Moment,
}

impl<'r> From<&'r Row> for FirstMembers<'r> {
    fn from(row: &'r Row) -> Self {
        Self {
            host: &row.host,
            software: row.instance.software.as_deref(),
            version: row.instance.version.as_deref(),
            state: row.state,
            first_seen: row.first_seen,
        }
    }
}

/// Digests of the rows of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowDigests {
    /// As [`Header::rows_sha256`].
    pub rows_sha256: Sha256Hex,
    /// As [`Header::full_rows_sha256`].
    pub full_rows_sha256: Sha256Hex,
}

/// Computes the digests of rows that are sorted by name.
#[derive(Default)]
pub(super) struct RowsDigest {
    first_members: Sha256,
    full: Sha256,
}

impl RowsDigest {
    pub(super) fn update(&mut self, row: &Row) {
        add_line(&mut self.first_members, &FirstMembers::from(row));
        add_line(&mut self.full, row);
    }

    pub(super) fn finish(self) -> RowDigests {
        RowDigests {
            rows_sha256: Sha256Hex::from_digest(self.first_members),
            full_rows_sha256: Sha256Hex::from_digest(self.full),
        }
    }
}

fn add_line(digest: &mut Sha256, row: &impl Serialize) {
    // A row has only strings and words, so serialising it can't fail. A failure would change the
    // digest, which is safe.
    digest.update(serde_json::to_vec(row).unwrap_or_default());
    digest.update(b"\n");
}

/// A SHA-256 in lower-case hex.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sha256Hex(String);

impl Sha256Hex {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_digest(Sha256::new_with_prefix(bytes))
    }

    pub(crate) fn from_digest(digest: Sha256) -> Self {
        Self(hex::encode(digest.finalize()))
    }

    /// The 64 hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Sha256Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Number of hosts by kind of change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// New in the list, and not known to have been listed before.
    pub appeared: u64,
    pub returned: u64,
    /// Still in the list, with another software, version or state.
    pub changed: u64,
    pub died: u64,
    /// Permanently redirected to another host.
    pub moved: u64,
    /// Removed for a reason that is not published.
    pub left: u64,
}

impl Counts {
    pub fn total(&self) -> u64 {
        let Self {
            appeared,
            returned,
            changed,
            died,
            moved,
            left,
        } = self;
        [appeared, returned, changed, died, moved, left]
            .into_iter()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Changes of the names in the list.
    pub fn of_names(&self) -> u64 {
        self.total().saturating_sub(self.changed)
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        for (sum, count) in [
            (&mut self.appeared, other.appeared),
            (&mut self.returned, other.returned),
            (&mut self.changed, other.changed),
            (&mut self.died, other.died),
            (&mut self.moved, other.moved),
            (&mut self.left, other.left),
        ] {
            *sum = sum.saturating_add(count);
        }
    }

    pub(crate) fn add(&mut self, change: &Change) {
        let count = match change {
            Change::Appeared(_) => &mut self.appeared,
            Change::Returned(_) => &mut self.returned,
            Change::Changed(_) => &mut self.changed,
            Change::Died { .. } => &mut self.died,
            Change::Moved { .. } => &mut self.moved,
            Change::Left { .. } => &mut self.left,
        };
        *count = count.saturating_add(1);
    }
}

/// The first line of a section: a dump, and the dump from which the lines below lead to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub time: Moment,
    /// The dump that the lines below start from. `None` if it is unknown: a mirror then has to
    /// fetch the whole list.
    pub since: Option<Moment>,
    /// Whether the lines below are all changes. If not, there were too many, and a mirror has to
    /// fetch the whole list.
    pub complete: bool,
    /// Number of hosts in the dump.
    pub hosts: u64,
    /// Number of changes, as counted when the dump was made.
    pub counts: Counts,
    /// Digest of the dump's names, sorted by their bytes, each followed by a newline.
    pub names_sha256: Sha256Hex,
    /// Digest of the dump's rows as JSON, sorted by name, each followed by a newline. It covers
    /// only the first five members, so that mirrors without the later ones can use it.
    pub rows_sha256: Sha256Hex,
    /// The same digest over all members of [`Row`].
    pub full_rows_sha256: Sha256Hex,
    /// Number of lines below, up to the next section.
    pub lines: u64,
    /// Digest of this line with an empty string in this member, and of the lines below, each
    /// followed by a newline.
    pub section_sha256: Sha256Hex,
}

impl Header {
    /// Whether the dump's rows match `digests` in all members.
    pub fn has_rows(&self, digests: &RowDigests) -> bool {
        self.full_rows_sha256 == digests.full_rows_sha256
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Appeared(Row),
    /// It is in the list again, after it was removed within the days that are kept.
    Returned(Row),
    /// It is still in the list, and this is its new row.
    Changed(Row),
    /// It was no longer found alive.
    Died {
        host: String,
    },
    /// It redirects permanently to another host.
    Moved {
        host: String,
        /// The other host, if it is listed itself.
        to: Option<String>,
    },
    /// It is no longer in the list, or has asked since to be left out. The digest identifies it to
    /// readers who have the name, and reveals nothing to others.
    Left {
        host_sha256: Sha256Hex,
    },
}

impl Change {
    /// The host's name, if the change has it.
    pub fn host(&self) -> Option<&str> {
        match self {
            Self::Appeared(row) | Self::Returned(row) | Self::Changed(row) => Some(&row.host),
            Self::Died { host } | Self::Moved { host, .. } => Some(host),
            Self::Left { .. } => None,
        }
    }
}

/// A dump and its changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Describes the dump and the one before it.
    pub header: Header,
    /// The changes, sorted by name when they were written.
    pub changes: Vec<Change>,
}

/// A line as JSON: an object whose member `change` gives its kind.
#[derive(Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
enum Line {
    Dump(Header),
    Appeared(Listed),
    Returned(Listed),
    Changed(Listed),
    Died {
        time: Moment,
        host: String,
    },
    Moved {
        time: Moment,
        host: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
    },
    Left {
        time: Moment,
        host_sha256: Sha256Hex,
    },
}

#[derive(Serialize, Deserialize)]
struct Listed {
    time: Moment,
    #[serde(flatten)]
    row: Row,
}

impl Line {
    fn new(time: Moment, change: Change) -> Self {
        match change {
            Change::Appeared(row) => Self::Appeared(Listed { time, row }),
            Change::Returned(row) => Self::Returned(Listed { time, row }),
            Change::Changed(row) => Self::Changed(Listed { time, row }),
            Change::Died { host } => Self::Died { time, host },
            Change::Moved { host, to } => Self::Moved { time, host, to },
            Change::Left { host_sha256 } => Self::Left { time, host_sha256 },
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("damaged at line {line}")]
pub struct Damaged {
    /// Number of the line, from 1, or of the header of its section.
    pub line: usize,
}

impl Section {
    /// Writes the section's bytes. Sets its header's `lines` and `section_sha256`.
    pub fn write(&mut self, to: &mut Vec<u8>) -> serde_json::Result<()> {
        let mut below = Vec::new();
        for change in &self.changes {
            serde_json::to_writer(&mut below, &Line::new(self.header.time, change.clone()))?;
            below.push(b'\n');
        }
        self.header.lines = u64::try_from(self.changes.len()).unwrap_or(u64::MAX);
        self.header.section_sha256 = seal(&self.header, &below)?;
        serde_json::to_writer(&mut *to, &Line::Dump(self.header.clone()))?;
        to.push(b'\n');
        to.append(&mut below);
        Ok(())
    }
}

fn seal(header: &Header, below: &[u8]) -> serde_json::Result<Sha256Hex> {
    let mut open = header.clone();
    open.section_sha256 = Sha256Hex(String::new());
    let mut sealed = serde_json::to_vec(&Line::Dump(open))?;
    sealed.push(b'\n');
    let mut digest = Sha256::new_with_prefix(&sealed);
    digest.update(below);
    Ok(Sha256Hex::from_digest(digest))
}

/// Whether a section is byte for byte as written: its header is in the canonical spelling, and the
/// digest covers the rest.
fn is_as_written(header: &Header, first: &[u8], below: &[u8]) -> bool {
    let spelt = serde_json::to_vec(&Line::Dump(header.clone())).ok();
    spelt.as_deref() == first.strip_suffix(b"\n")
        && seal(header, below).ok().as_ref() == Some(&header.section_sha256)
}

/// The sections of a file of changes, in its order.
///
/// # Errors
/// Fails if a line is invalid, or if a section is shorter than its header says or does not match
/// its digest.
pub fn parse(file: &[u8]) -> Result<Vec<Section>, Damaged> {
    let mut sections = Vec::new();
    let mut lines = file
        .split_inclusive(|byte| *byte == b'\n')
        .zip(1..)
        .peekable();
    while let Some((first, number)) = lines.next() {
        let damaged = Damaged { line: number };
        let Ok(Line::Dump(header)) = serde_json::from_slice(first) else {
            return Err(damaged);
        };
        let mut below = Vec::new();
        let mut changes = Vec::new();
        while u64::try_from(changes.len()).is_ok_and(|read| read < header.lines) {
            let (line, number) = lines.next().ok_or(damaged)?;
            changes.push(change(line).ok_or(Damaged { line: number })?);
            below.extend_from_slice(line);
        }
        if !is_as_written(&header, first, &below) {
            return Err(damaged);
        }
        sections.push(Section { header, changes });
    }
    Ok(sections)
}

/// The change in a line. Its time must be its section's, which the section's digest covers.
fn change(line: &[u8]) -> Option<Change> {
    Some(match serde_json::from_slice(line).ok()? {
        Line::Dump(_) => return None,
        Line::Appeared(Listed { row, .. }) => Change::Appeared(row),
        Line::Returned(Listed { row, .. }) => Change::Returned(row),
        Line::Changed(Listed { row, .. }) => Change::Changed(row),
        Line::Died { host, .. } => Change::Died { host },
        Line::Moved { host, to, .. } => Change::Moved { host, to },
        Line::Left { host_sha256, .. } => Change::Left { host_sha256 },
    })
}
