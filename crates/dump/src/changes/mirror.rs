//! A mirror that follows the changes: the reader's side as a library.
//!
//! It starts from rows that were fetched once, and applies files of changes. It rejects a gap, and
//! rows that don't match the newest dump's digest. The mirror is unchanged then, and its owner has
//! to fetch the whole list.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::line::{self, Change, Damaged, RowDigests, RowsDigest, Section, Sha256Hex};
use crate::row::{Moment, Row};

/// Rows, and the dump that they belong to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mirror {
    rows: BTreeMap<String, Row>,
    at: Option<Moment>,
}

/// Why a mirror has to fetch the whole list.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Gap {
    /// A file is incomplete, or the files are not in the order of their days.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// No section starts from the mirror's rows: the mirror was away for too long, or the publisher
    /// lost a dump.
    #[error("no section starts from these rows")]
    NotFound,
    /// A section starts from no dump or from another than the one before it, or had too many
    /// changes to list.
    #[error("the section of {time} does not go on from the one before it")]
    Broken { time: Moment },
    #[error("the rows are not those of {time} when all is followed")]
    Differs { time: Moment },
}

impl Mirror {
    /// Rows from a whole list. Their digest shows which dump they belong to.
    pub fn new(rows: impl IntoIterator<Item = Row>) -> Self {
        Self {
            rows: rows
                .into_iter()
                .map(|row| (row.host.clone(), row))
                .collect(),
            at: None,
        }
    }

    /// The rows, sorted by name.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.values()
    }

    /// The dump that the rows belong to. `None` until files were followed.
    pub fn at(&self) -> Option<Moment> {
        self.at
    }

    /// The rows' digests, as in a section's header.
    pub fn digests(&self) -> RowDigests {
        let mut digest = RowsDigest::default();
        self.rows.values().for_each(|row| digest.update(row));
        digest.finish()
    }

    /// Follows to the newest dump of `files`. They must be complete, in the order of their days,
    /// and cover all days since the mirror's dump.
    ///
    /// # Errors
    /// See [`Gap`]: the mirror is unchanged, and the whole list has to be fetched.
    pub fn follow<'a>(&mut self, files: impl IntoIterator<Item = &'a [u8]>) -> Result<(), Gap> {
        let mut sections = Vec::new();
        for file in files {
            sections.extend(line::parse(file)?);
        }
        let newest = sections.last().ok_or(Gap::NotFound)?.header.clone();
        let at = match self.at {
            Some(at) => at,
            None => self.position(&sections).ok_or(Gap::NotFound)?,
        };
        let mut next = self.clone();
        next.at = Some(at);
        if at != newest.time {
            let first = sections
                .iter()
                .position(|section| section.header.since == Some(at))
                .ok_or(Gap::NotFound)?;
            for section in sections.drain(..).skip(first) {
                next.apply(section)?;
            }
        }
        if !newest.has_rows(&next.digests()) {
            return Err(Gap::Differs { time: newest.time });
        }
        *self = next;
        Ok(())
    }

    /// The newest dump with these rows.
    fn position(&self, sections: &[Section]) -> Option<Moment> {
        let digests = self.digests();
        sections
            .iter()
            .rev()
            .find(|section| section.header.has_rows(&digests))
            .map(|section| section.header.time)
    }

    fn apply(&mut self, section: Section) -> Result<(), Gap> {
        let Section { header, changes } = section;
        if header.since != self.at || !header.complete {
            return Err(Gap::Broken { time: header.time });
        }
        let mut left = std::collections::HashSet::new();
        for change in changes {
            match change {
                Change::Appeared(row) | Change::Returned(row) | Change::Changed(row) => {
                    self.rows.insert(row.host.clone(), row);
                }
                Change::Died { host } | Change::Moved { host, .. } => {
                    self.rows.remove(&host);
                }
                Change::Left { host_sha256 } => {
                    left.insert(host_sha256);
                }
            }
        }
        if !left.is_empty() {
            self.rows
                .retain(|host, _| !left.contains(&Sha256Hex::of(host.as_bytes())));
        }
        self.at = Some(header.time);
        Ok(())
    }
}
