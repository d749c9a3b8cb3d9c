//! Step 7 of 7: reads rows in one transaction, and writes the set of files and the pages into a
//! tree, which is published at once.
//!
//! A list that lost more than 30 % of its names since the last full one is held back until an
//! operator forces it (invariant I11). The old set then stays, without the hosts that opted out
//! since (invariant I7).

mod changes;
mod day;
pub mod fixes;
pub mod pages;
pub(crate) mod progress;
pub mod round;
pub mod signature;

use std::path::{Path, PathBuf};

use ::publish::{Cancel, Tree, TreeError};
use admission::DomainList;
use census::time::{Calendar, Timestamp};
use dump::feed::About;
use dump::sign::keys::KeyError;
use dump::{DumpError, Force, HeldBack, ListedRow, ListedState, Moment, RowError};
use files::Disk;
use site::fixes::Fix;
use store::{Listed, Reader, SoftwareVersions, StateName, StoreError};
use thiserror::Error;

use crate::ground::meters::labels::Dumped;

/// Whether the published list has a host that must leave it, or can't be read.
pub fn names_withdrawn(public_dir: &Path, reader: &Reader) -> bool {
    let mut rows = dump::standing_rows(&::publish::current(public_dir))
        .ok()
        .flatten()
        .into_iter()
        .flatten();
    rows.any(|row| row.is_ok_and(|row| reader.is_withdrawn(&row.host).unwrap_or(true)))
}

/// Why a dump did not end well.
#[derive(Debug, Error)]
pub enum PublishError {
    #[error("no new list was published, the former one stays: {0}")]
    Store(#[from] StoreError),
    #[error("the new list was published, but could not be recorded: {0}")]
    Unrecorded(#[source] StoreError),
    #[error("no new list was published, the former one stays: {0}")]
    Dump(#[from] DumpError),
    /// The files were written, but not put on disk, or not in the place of the former ones.
    #[error(
        "the new list may not be published; readers see all of the former one or all of it: {0}"
    )]
    Swap(#[source] TreeError),
    #[error(
        "no new list was published, the former one stays: {0}; see the system's log for the disk behind it"
    )]
    ReadBack(#[source] RowError),
    /// Too many names were lost at once.
    #[error(transparent)]
    HeldBack(#[from] HeldBack),
    #[error("the new list was published, and is not signed: {0}")]
    Unsigned(#[source] KeyError),
    #[error(
        "the list is published, but new pages are not, and the former ones stay without hosts that left: {0}"
    )]
    Pages(#[source] pages::PagesError),
}

impl PublishError {
    /// What the metrics call it.
    pub fn outcome(&self) -> Dumped {
        match self {
            Self::HeldBack(_) => Dumped::HeldBack,
            Self::Unrecorded(_) | Self::Unsigned(_) | Self::Pages(_) => Dumped::Incomplete,
            Self::Store(_) | Self::Dump(_) | Self::ReadBack(_) | Self::Swap(_) => Dumped::Failed,
        }
    }
}

/// Where a census publishes, and under which name.
#[derive(Debug, Clone)]
pub struct Publisher {
    pub disk: Disk,
    pub public_dir: PathBuf,
    /// The private folder, which holds the signing key.
    pub data_dir: PathBuf,
    /// What the files say about the census.
    pub imprint: Imprint,
    /// Security fixes whose spread is published.
    pub fixes: Vec<Fix>,
}

/// What the published files say about the census itself.
#[derive(Debug, Clone)]
pub struct Imprint {
    pub title: String,
    pub operator: Option<String>,
    /// A URL or a mail address. It differs for each census: the feed's ids are derived from it.
    pub contact: String,
    /// The site's address, without a slash at its end.
    pub address: Option<String>,
    /// Licence of the data, an SPDX expression.
    pub licence: String,
}

/// The inputs of one dump.
#[derive(Debug, Clone, Copy)]
pub struct Occasion<'a> {
    /// The time of the dump.
    pub now: Timestamp,
    pub calendar: Calendar,
    /// Hosts that the operator denies.
    pub deny: &'a DomainList,
    /// Whether to publish a list that lost too many names.
    pub force: Force,
    /// Ends the dump before it is published.
    pub cancel: &'a Cancel,
}

#[derive(Debug)]
pub(crate) enum Set {
    New {
        names: u64,
        /// Whether later lists are compared with it.
        is_full: bool,
        /// Why it is not signed; `None` if it is.
        unsigned: Option<KeyError>,
        /// Its hosts by version, for the most frequent software.
        versions: Vec<SoftwareVersions>,
    },
    HeldBack {
        why: HeldBack,
        /// Whether hosts were removed from it.
        is_changed: bool,
    },
}

impl Publisher {
    pub(crate) fn begin(&self, cancel: &Cancel) -> Result<Tree, TreeError> {
        Tree::begin(self.disk.clone(), &self.public_dir, cancel)
    }

    /// Writes the files of the listed hosts, without those that the operator denies, into a tree.
    /// Blocks; the caller publishes and records it.
    /// See [`PublishError`]. The tree may have some of the files then.
    pub(crate) fn write(
        &self,
        tree: &Tree,
        reader: &Reader,
        occasion: Occasion<'_>,
    ) -> Result<Set, PublishError> {
        let previous = reader.last_full_dump()?;
        // Names that are paced, held or deferred are due later. A name in flight is being checked.
        let has_unchecked = reader.due_by_class(occasion.now, 1)?.new > 0;
        // An operator who forces a list has accepted its size.
        let is_full = !has_unchecked || occasion.force == Force::Yes;
        let mut draft = dump::write(tree, moment(occasion.now), |row| {
            let take = |listed: Listed<'_>| -> Result<(), PublishError> {
                occasion.cancel.check()?;
                match public(listed) {
                    Some(instance) if occasion.deny.covers_text(&instance.host).is_none() => {
                        Ok(row(&instance)?)
                    }
                    Some(_) | None => Ok(()),
                }
            };
            let hosts = reader.listed(occasion.now, occasion.calendar, take);
            hosts.map(|_hosts| ())
        })?;
        let names = draft.instances();
        let dump = Dump {
            publisher: self,
            tree,
            reader,
            occasion,
        };
        // Before the rest of the work: a list that is held back is tried again every few minutes.
        if let Err(why) = dump::guard(previous, names, occasion.force) {
            tree.remove_where(dump::is_of_set)?;
            let is_changed = dump.retract()?;
            return Ok(Set::HeldBack { why, is_changed });
        }
        let versions = draft.take_versions();
        let unsigned = dump.finish(draft, &versions)?;
        Ok(Set::New {
            names,
            is_full,
            unsigned,
            versions,
        })
    }
}

impl Occasion<'_> {
    /// Whether a host may be named: neither withdrawn nor denied.
    fn stays(&self, reader: &Reader, name: &str) -> Result<bool, PublishError> {
        self.cancel.check()?;
        Ok(self.deny.covers_text(name).is_none() && !reader.is_withdrawn(name)?)
    }
}

struct Dump<'a> {
    publisher: &'a Publisher,
    tree: &'a Tree,
    reader: &'a Reader,
    occasion: Occasion<'a>,
}

impl Dump<'_> {
    /// The steps after the rows are written, the same for a new set and for one from which names
    /// are removed. `today` has the versions of a new set, and none otherwise. Returns why the set
    /// is not signed, if so.
    fn finish(
        &self,
        mut draft: dump::Draft<'_>,
        today: &[SoftwareVersions],
    ) -> Result<Option<KeyError>, PublishError> {
        let Publisher {
            data_dir,
            imprint,
            fixes,
            ..
        } = self.publisher;
        draft.licensed_as(&imprint.licence);
        changes::write(&mut draft, self.tree, &self.about(), &self.witness())?;
        let (reader, now) = (self.reader, self.occasion.now);
        fixes::Counts { reader, now, today }.write(&mut draft, fixes)?;
        let sealed = draft.seal()?;
        signature::attach(&sealed, data_dir, moment(self.occasion.now))
    }

    fn about(&self) -> About {
        changes::about(&self.publisher.imprint)
    }

    fn witness(&self) -> changes::Witness<'_> {
        let Occasion {
            now,
            calendar,
            deny,
            cancel,
            ..
        } = self.occasion;
        changes::Witness {
            reader: self.reader,
            deny,
            now,
            calendar,
            cancel,
        }
    }

    /// Writes the former set without hosts that opted out, asked not to be listed, or are denied,
    /// from its remaining rows, unchanged. Hosts without a row may still be named among former
    /// changes: hosts that died, and ask now not to be listed. Returns whether any was removed.
    fn retract(&self) -> Result<bool, PublishError> {
        let Some(former) = self.tree.former() else {
            return Ok(false);
        };
        let Some(mut rows) = dump::standing_rows(former)? else {
            return Ok(false);
        };
        let mut all_stay = true;
        for row in &mut rows {
            if self.kept(row)?.is_none() {
                all_stay = false;
                break;
            }
        }
        let has_index = dump::standing_rows_read(former).is_some();
        if all_stay && has_index && changes::are_current(former, &self.witness())? {
            self.tree.keep_where(dump::is_of_set)?;
            return Ok(false);
        }
        let rows_read = self.rows_read(former)?;
        let mut draft = dump::write(self.tree, moment(self.occasion.now), |row| {
            for standing in dump::standing_rows(former)?.into_iter().flatten() {
                if let Some(instance) = self.kept(standing)? {
                    row(&instance)?;
                }
            }
            Ok::<(), PublishError>(())
        })?;
        draft.rows_were_read(rows_read);
        self.finish(draft, &[])?;
        Ok(true)
    }

    /// When the former rows were read from the database: as their index says, or at the last dump
    /// if the disk has damaged the index.
    fn rows_read(&self, former: &Path) -> Result<Moment, PublishError> {
        if let Some(at) = dump::standing_rows_read(former) {
            return Ok(at);
        }
        let last = self.reader.last_dump()?.map(|dump| dump.at);
        Ok(moment(last.unwrap_or(self.occasion.now)))
    }

    /// The row, if it stays. A row damaged by the disk is dropped: it names no host that could be
    /// looked up.
    fn kept(&self, row: Result<ListedRow, RowError>) -> Result<Option<ListedRow>, PublishError> {
        match row {
            Ok(instance) => {
                let stays = self.occasion.stays(self.reader, &instance.host)?;
                Ok(stays.then_some(instance))
            }
            Err(RowError::Damaged { .. }) => Ok(None),
            Err(RowError::Unreadable(error)) => Err(error.into()),
        }
    }
}

impl From<TreeError> for PublishError {
    fn from(error: TreeError) -> Self {
        Self::Dump(error.into())
    }
}

/// The public part of a listed host; `None` if its state is never listed.
fn public(listed: Listed<'_>) -> Option<ListedRow> {
    let state = match listed.state {
        StateName::Alive => ListedState::Alive,
        StateName::Dying => ListedState::Dying,
        StateName::Moving => ListedState::Moving,
        StateName::Discovered
        | StateName::Dead
        | StateName::Moved
        | StateName::OptedOut
        | StateName::Parked => return None,
    };
    Some(ListedRow {
        host: listed.host.to_owned(),
        state,
        first_seen: moment(listed.first_seen),
        last_alive: moment(listed.last_alive),
        instance: listed.instance,
    })
}

fn moment(at: Timestamp) -> Moment {
    Moment::from_milliseconds(at.0)
}

#[cfg(test)]
mod tests;
