//! Writes what changed since the published set (docs/changes.md).
//!
//! The input is the published rows and the new ones, both on disk, and the database. The output is
//! the day's file with one more section, and the feeds. If the two sets can't be compared, this is
//! logged, and a mirror sees a gap.

use std::path::Path;

use ::publish::{Cancel, Tree};
use admission::DomainList;
use census::listing::is_listed;
use census::state::State;
use census::time::{Calendar, Timestamp};
use dump::changes::{Outcome, Standing, is_current, write_changes};
use dump::feed::About;
use dump::{Draft, RowError};
use protocol::Host;
use store::Reader;

use super::{Imprint, PublishError, moment};

/// Answers what happened to a host.
pub(super) struct Witness<'a> {
    pub(super) reader: &'a Reader,
    pub(super) deny: &'a DomainList,
    pub(super) now: Timestamp,
    pub(super) calendar: Calendar,
    pub(super) cancel: &'a Cancel,
}

/// The feed's title, addresses and licence.
pub(super) fn about(imprint: &Imprint) -> About {
    let address = imprint.address.as_deref();
    About {
        title: format!("New and gone instances · {}", imprint.title),
        licence: imprint.licence.clone(),
        seed: imprint.contact.clone(),
        home_url: address.map(|address| format!("{address}/")),
        folder_url: address.map(|address| format!("{address}/{}/", dump::CHANGES_FOLDER)),
    }
}

/// Writes what changed from the former set to the one in `draft`, and adds it to the index.
pub(super) fn write(
    draft: &mut Draft<'_>,
    tree: &Tree,
    about: &About,
    witness: &Witness<'_>,
) -> Result<Outcome, PublishError> {
    let former = tree.former().map(dump::standing_rows).transpose()?;
    let written = write_changes(
        tree,
        about,
        moment(witness.now),
        former.flatten(),
        draft.rows()?.map(|row| {
            witness.cancel.check()?;
            Ok(row?)
        }),
        |host| witness.standing(host),
        |host| witness.has_left(host),
    )?;
    draft.tell_of_changes(&written);
    tell(&written.outcome);
    Ok(written.outcome)
}

/// Whether the files of changes in the tree `former` can stay: they name no host that must not be
/// named any more.
pub(super) fn are_current(former: &Path, witness: &Witness<'_>) -> Result<bool, PublishError> {
    let folder = former.join(dump::CHANGES_FOLDER);
    is_current(&folder, moment(witness.now), |host| witness.has_left(host))
}

impl Witness<'_> {
    /// Whether no file may name a host any more. A name that is no longer a valid host name counts
    /// too.
    fn has_left(&self, name: &str) -> Result<bool, PublishError> {
        self.cancel.check()?;
        Ok(self.deny.covers_text(name).is_some()
            || Host::parse(name).is_err()
            || self.reader.is_withdrawn(name)?)
    }

    /// A host's state for the public.
    fn standing(&self, name: &str) -> Result<Standing, PublishError> {
        let Ok(host) = Host::parse(name) else {
            return Ok(Standing::Withdrawn);
        };
        // The same condition as for former changes, so that no name is published now that the next
        // dump would remove.
        if self.has_left(name)? {
            return Ok(Standing::Withdrawn);
        }
        let Some(stored) = self.reader.record(&host)? else {
            return Ok(Standing::Died);
        };
        let record = &stored.record;
        if is_listed(record, stored.target_is_alive, self.now, self.calendar) {
            return Ok(Standing::Listed);
        }
        Ok(match &record.state {
            State::Moving { target, .. } | State::Moved { target } => Standing::Moved {
                to: Some(target.as_str().to_owned()),
            },
            State::Discovered
            | State::Alive
            | State::Dying { .. }
            | State::Dead
            | State::OptedOut { .. }
            | State::Parked => Standing::Died,
        })
    }
}

/// A row of ours that can't be read back is a fault of the disk.
impl From<RowError> for PublishError {
    fn from(error: RowError) -> Self {
        match error {
            RowError::Unreadable(error) => Self::Dump(error),
            damaged @ RowError::Damaged { .. } => Self::ReadBack(damaged),
        }
    }
}

fn tell(outcome: &Outcome) {
    if let Some(why) = &outcome.starts_anew {
        tracing::warn!(
            why,
            "the changes since the last list are unknown; mirrors must download the whole list once"
        );
    }
    for damaged in &outcome.damaged {
        tracing::warn!(damaged, "a file of changes can't be used and was removed");
    }
}
