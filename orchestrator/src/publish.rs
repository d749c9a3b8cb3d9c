//! Step 7 of 7: reads rows in one transaction, writes the set of files behind nginx, and swaps it
//! in at once.
//!
//! A list that lost more than 30 % of its names since the last one is held back until an operator
//! forces it (invariant I11). The old set then stays, without the hosts that opted out since
//! (invariant I7).

mod changes;
mod day;
pub mod pages;
pub mod round;
pub mod signature;

use std::path::{Path, PathBuf};

use admission::DomainList;
use census::time::{Calendar, Timestamp};
use dump::feed::About;
use dump::sign::keys::KeyError;
use dump::{Cancel, DumpError, Force, HeldBack, ListedRow, ListedState, Moment, RowError};
use store::{Listed, Reader, StateName, StoreError};
use thiserror::Error;

/// Whether the published list has a host that must leave it, or can't be read.
pub fn names_withdrawn(public_dir: &Path, reader: &Reader) -> bool {
    let mut rows = dump::standing_rows(public_dir)
        .ok()
        .flatten()
        .into_iter()
        .flatten();
    rows.any(|row| row.is_ok_and(|row| reader.is_withdrawn(&row.host).unwrap_or(true)))
}

/// Why a dump did not end well.
#[derive(Debug, Error)]
pub enum PublishError {
    /// The database could not be read.
    #[error("no new list was published, the former one stays: {0}")]
    Store(#[from] StoreError),
    /// The new list is published, but the database could not record it.
    #[error("the new list was published, but could not be recorded: {0}")]
    Unrecorded(#[source] StoreError),
    /// The files could not be written.
    #[error("no new list was published, the former one stays: {0}")]
    Dump(#[from] DumpError),
    /// The files were written, but not all could be renamed or synced to the disk.
    #[error(
        "the new list may be published in part, though each file is complete; the next publication repairs that: {0}"
    )]
    Half(#[source] DumpError),
    /// Reading back what was just written gave something else.
    #[error(
        "no new list was published, the former one stays: {0}; see the system's log for the disk behind it"
    )]
    ReadBack(#[source] RowError),
    /// Too many names were lost at once.
    #[error(transparent)]
    HeldBack(#[from] HeldBack),
    /// The list is published without a signature.
    #[error("the new list was published, and is not signed: {0}")]
    Unsigned(#[source] KeyError),
    /// The list is published, but its pages are not.
    #[error("the new list was published, but its pages were not, and the former ones stay: {0}")]
    Pages(#[source] pages::PagesError),
}

/// Where a census publishes, and under which name.
#[derive(Debug, Clone)]
pub struct Publisher {
    pub public_dir: PathBuf,
    /// The private folder, which holds the signing key.
    pub data_dir: PathBuf,
    /// What the files say about the census.
    pub imprint: Imprint,
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
pub struct Published {
    pub names: u64,
    /// Why it is not signed; `None` if it is.
    pub unsigned: Option<KeyError>,
}

impl Publisher {
    /// Writes the files of the listed hosts, without those that the operator denies, and swaps them
    /// in. Blocks; the caller records the dump.
    ///
    /// # Errors
    /// See [`PublishError`]. Each published file is then the old one or the new one, whole.
    pub fn publish(
        &self,
        reader: &Reader,
        occasion: Occasion<'_>,
    ) -> Result<Published, PublishError> {
        let previous = reader.last_dump()?.map(|dump| dump.names);
        let draft = dump::write(&self.public_dir, moment(occasion.now), |row| {
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
        let dump = Dump {
            publisher: self,
            reader,
            occasion,
        };
        // Before the rest of the work: a list that is held back is tried again every few minutes.
        if let Err(held_back) = dump::guard(previous, draft.instances(), occasion.force) {
            drop(draft);
            dump.retract()?;
            return Err(held_back.into());
        }
        let names = draft.instances();
        let unsigned = dump.finish(draft)?;
        Ok(Published { names, unsigned })
    }
}

struct Dump<'a> {
    publisher: &'a Publisher,
    reader: &'a Reader,
    occasion: Occasion<'a>,
}

impl Dump<'_> {
    /// The steps after the rows are written, the same for a new set and for one from which names
    /// are removed. Returns why the set is not signed, if so.
    fn finish(&self, mut draft: dump::Draft) -> Result<Option<KeyError>, PublishError> {
        let Publisher {
            public_dir,
            data_dir,
            imprint,
        } = self.publisher;
        let (about, witness) = (self.about(), self.witness());
        draft.licensed_as(&imprint.licence);
        let changes = changes::stage(&mut draft, public_dir, &about, &witness)?;
        draft.cancel_on(witness.cancel);
        let mut sealed = draft.seal()?;
        let keys = signature::attach(&mut sealed, data_dir, moment(witness.now))?;
        changes.publish().map_err(PublishError::Half)?;
        sealed.publish().map_err(PublishError::Half)?;
        match keys {
            Ok(keys) => {
                signature::remove_others(&keys, public_dir);
                Ok(None)
            }
            Err(error) => Ok(Some(error)),
        }
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

    /// Removes hosts that opted out, asked not to be listed, or are denied from the published set.
    /// All files are written again from its remaining rows, unchanged. Hosts without a row may
    /// still be named among former changes: hosts that died, and ask now not to be listed.
    fn retract(&self) -> Result<(), PublishError> {
        let directory = self.publisher.public_dir.as_path();
        let Some(mut rows) = dump::standing_rows(directory)? else {
            return Ok(());
        };
        let mut all_stay = true;
        for row in &mut rows {
            if self.kept(row)?.is_none() {
                all_stay = false;
                break;
            }
        }
        // A crash between two renames may have left files of an older set, with names that these
        // rows don't have.
        if all_stay
            && rows.are_those_of_the_index(directory)
            && changes::stand(directory, &self.about(), &self.witness())?
        {
            return Ok(());
        }
        let rows_read = self.rows_read()?;
        let mut draft = dump::write(directory, moment(self.occasion.now), |row| {
            for standing in dump::standing_rows(directory)?.into_iter().flatten() {
                if let Some(instance) = self.kept(standing)? {
                    row(&instance)?;
                }
            }
            Ok::<(), PublishError>(())
        })?;
        draft.rows_were_read(rows_read);
        self.finish(draft)?;
        Ok(())
    }

    /// When the published rows were read from the database: as their index says, or at the last
    /// dump if the disk has damaged the index.
    fn rows_read(&self) -> Result<Moment, PublishError> {
        if let Some(at) = dump::standing_rows_read(&self.publisher.public_dir) {
            return Ok(at);
        }
        let last = self.reader.last_dump()?.map(|dump| dump.at);
        Ok(moment(last.unwrap_or(self.occasion.now)))
    }

    fn stays(&self, name: &str) -> Result<bool, PublishError> {
        self.occasion.cancel.check()?;
        let is_denied = self.occasion.deny.covers_text(name).is_some();
        Ok(!is_denied && !self.reader.is_withdrawn(name)?)
    }

    /// The row, if it stays. A row damaged by the disk is dropped: it names no host that could be
    /// looked up.
    fn kept(&self, row: Result<ListedRow, RowError>) -> Result<Option<ListedRow>, PublishError> {
        match row {
            Ok(instance) => Ok(self.stays(&instance.host)?.then_some(instance)),
            Err(RowError::Damaged { .. }) => Ok(None),
            Err(RowError::Unreadable(error)) => Err(error.into()),
        }
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
