//! A mirror that follows: what any reader of the files does, in the form of a library.
//!
//! In: rows that were taken whole once, and files of changes. Out: the rows of the newest dump. Refused: to go on over a gap, and rows whose
//! digest isn't the newest dump's; the mirror then stands as it was, and the whole list has to be taken.

use std::collections::BTreeMap;

use thiserror::Error;

use super::line::{self, Change, Damaged, Row, RowDigests, RowsDigest, Section, Sha256Hex};
use crate::instance::Moment;

/// Rows, and which dump they are of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mirror {
    rows: BTreeMap<String, Row>,
    at: Option<Moment>,
}

/// Why a mirror has to take the whole list.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Gap {
    /// A file was not fetched whole, or not in the order of its days.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// No section starts from the rows that the mirror has: it was away for too long, or a dump of ours was lost.
    #[error("no section starts from these rows")]
    NotFound,
    /// A section starts from no dump, from another one than the one before it, or had too many changes to name.
    #[error("the section of {time} does not go on from the one before it")]
    Broken {
        /// The section's.
        time: Moment,
    },
    /// All sections were followed, and the rows are not the newest dump's.
    #[error("the rows are not those of {time} when all is followed")]
    Differs {
        /// The newest section's.
        time: Moment,
    },
}

impl Mirror {
    /// Rows as they were taken whole. Of which dump they are is told by their digest.
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

    /// The dump that they are of; none until files were followed.
    pub fn at(&self) -> Option<Moment> {
        self.at
    }

    /// The rows' digests, as a section's first line has them.
    pub fn digests(&self) -> RowDigests {
        let mut digest = RowsDigest::default();
        self.rows.values().for_each(|row| digest.update(row));
        digest.finish()
    }

    /// Goes on to the newest dump of `files`, which are whole, in the order of their days, and of all days since the mirror's dump.
    ///
    /// # Errors
    /// See [`Gap`]: the whole list has to be taken, and the mirror is as it was.
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

    /// The newest dump whose rows these are.
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
