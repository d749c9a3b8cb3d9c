//! Compares two dumps in one pass over both.
//!
//! Both are sorted by name. The result has the changes, at most as many as a day's file may hold,
//! and the digests of both dumps. Memory doesn't grow with the dumps. New rows out of order are an
//! error. Former rows that can't be read or are out of order count as damage, and nothing is
//! compared after it.

use std::cmp::Ordering;

use sha2::{Digest as _, Sha256};

use super::limits::CHANGES_A_DAY_MAX;
use super::recent_names::RecentNames;
use crate::error::DumpError;
use crate::line::{Change, Counts, RowDigests, RowsDigest, Sha256Hex};
use crate::row::{ListedRow, Row};

/// What the census publicly says about a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is in the list that is being published.
    Listed,
    /// It is no longer found alive, or nothing is known about it any more.
    Died,
    /// It redirects to another host permanently.
    Moved {
        /// The other host. It is named only if its standing is [`Standing::Listed`].
        to: Option<String>,
    },
    /// It opted out, asked to be hidden, is marked gone by its owner, or is denied, held back or
    /// parked. Its name appears nowhere from now on.
    Withdrawn,
}

/// The difference between two dumps.
#[derive(Debug)]
pub(super) struct Diff {
    /// Digests of the former rows. `None` if there was no former dump, or it is damaged.
    pub(super) former_rows: Option<RowDigests>,
    /// What is wrong with the former dump.
    pub(super) former_damage: Option<String>,
    /// Sorted by name. `None` if there are too many.
    pub(super) changes: Option<Vec<Change>>,
    pub(super) counts: Counts,
    /// Number of hosts in the new dump.
    pub(super) hosts: u64,
    /// Their names, as far as memory allows: a listed host has not left.
    pub(super) listed: RecentNames,
    pub(super) names_sha256: Sha256Hex,
    pub(super) rows: RowDigests,
}

/// Compares the dumps. A host that only `new` has becomes [`Change::Appeared`], since this function
/// can't know whether it was listed earlier.
pub(super) fn diff<E: From<DumpError>, F: ToString>(
    former: Option<impl Iterator<Item = Result<ListedRow, F>>>,
    new: impl Iterator<Item = Result<ListedRow, E>>,
    standing: &mut impl FnMut(&str) -> Result<Standing, E>,
) -> Result<Diff, E> {
    let mut former = Former::new(former);
    let mut collected = Collected::default();
    let (mut names, mut rows) = (Sha256::new(), RowsDigest::default());
    let mut hosts: u64 = 0;
    let mut listed = RecentNames::default();
    let mut last: Option<String> = None;
    let mut was = former.next();
    for instance in new {
        let row = Row::from(instance?);
        if last.as_ref().is_some_and(|last| *last >= row.host) {
            return Err(DumpError::OutOfOrder { name: row.host }.into());
        }
        while let Some(gone) = was.take_if(|was| was.host < row.host) {
            collected.push(missing(gone.host, standing)?);
            was = former.next();
        }
        hosts = hosts.saturating_add(1);
        listed.insert(&row.host);
        names.update(row.host.as_bytes());
        names.update(b"\n");
        rows.update(&row);
        last = Some(row.host.clone());
        match was.as_ref().map(|was| was.host.cmp(&row.host)) {
            Some(Ordering::Equal) => {
                if was.as_ref() != Some(&row) {
                    collected.push(Change::Changed(row));
                }
                was = former.next();
            }
            Some(Ordering::Greater | Ordering::Less) | None => {
                collected.push(Change::Appeared(row));
            }
        }
    }
    while let Some(gone) = was {
        collected.push(missing(gone.host, standing)?);
        was = former.next();
    }
    let (former_rows, former_damage) = former.finish();
    Ok(Diff {
        former_rows,
        former_damage,
        changes: collected.changes,
        counts: collected.counts,
        hosts,
        listed,
        names_sha256: Sha256Hex::from_digest(names),
        rows: rows.finish(),
    })
}

/// The change for a host that is no longer in the list.
fn missing<E>(
    host: String,
    standing: &mut impl FnMut(&str) -> Result<Standing, E>,
) -> Result<Change, E> {
    Ok(match standing(&host)? {
        Standing::Died => Change::Died { host },
        Standing::Moved { to } => {
            let to = match to {
                // A host that is not in the list is not named here, not even as the target of a
                // redirect.
                Some(to) if matches!(standing(&to)?, Standing::Listed) => Some(to),
                Some(_) | None => None,
            };
            Change::Moved { host, to }
        }
        // Listed, but missing from the given list: the caller leaves it out, which is reason enough
        // not to name it.
        Standing::Withdrawn | Standing::Listed => Change::Left {
            host_sha256: Sha256Hex::of(host.as_bytes()),
        },
    })
}

struct Collected {
    changes: Option<Vec<Change>>,
    counts: Counts,
}

impl Default for Collected {
    fn default() -> Self {
        Self {
            changes: Some(Vec::new()),
            counts: Counts::default(),
        }
    }
}

impl Collected {
    fn push(&mut self, change: Change) {
        self.counts.add(&change);
        self.changes = self
            .changes
            .take()
            .filter(|changes| changes.len() < CHANGES_A_DAY_MAX);
        if let Some(changes) = &mut self.changes {
            changes.push(change);
        }
    }
}

/// The former dump while it is read.
struct Former<I> {
    /// `None` if there was no former dump, or once it is damaged.
    rows: Option<I>,
    digest: RowsDigest,
    last: Option<String>,
    damage: Option<String>,
    was_there: bool,
}

impl<F: ToString, I: Iterator<Item = Result<ListedRow, F>>> Former<I> {
    fn new(rows: Option<I>) -> Self {
        Self {
            was_there: rows.is_some(),
            rows,
            digest: RowsDigest::default(),
            last: None,
            damage: None,
        }
    }

    fn next(&mut self) -> Option<Row> {
        let row = match self.rows.as_mut()?.next()? {
            Ok(instance) => Row::from(instance),
            Err(error) => {
                self.damage = Some(error.to_string());
                self.rows = None;
                return None;
            }
        };
        if self.last.as_ref().is_some_and(|last| *last >= row.host) {
            self.damage = Some("names out of order".to_owned());
            self.rows = None;
            return None;
        }
        self.digest.update(&row);
        self.last = Some(row.host.clone());
        Some(row)
    }

    fn finish(self) -> (Option<RowDigests>, Option<String>) {
        let is_whole = self.was_there && self.damage.is_none();
        (is_whole.then(|| self.digest.finish()), self.damage)
    }
}
