//! Everything about one host, for `fedicensus explain` and for whoever looks a name up.

use admission::Waiter;
use census::group::Place;
use census::state::{Record, State};
use census::transition::Entry;
use protocol::Host;

use crate::db::error::StoreError;
use crate::db::reader::Reader;
use crate::tables::groups::{self, StoredGroup};
use crate::tables::hosts::row;
use crate::tables::{admitted, forgotten, history};

/// All that is known of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its record.
    pub record: Record,
    /// It is being checked, or its verdict waits to be confirmed.
    pub in_flight: bool,
    /// Its last checks that a crash of ours cut short, in a row.
    pub interruptions: u32,
    /// Its last checks that ended in a fault of ours, in a row.
    pub faults: u32,
    /// What last happened to it on our side without a verdict, since the last one.
    pub last_note: Option<String>,
    /// Its verdicts, the newest first, at most ten; three of a host that never lived.
    pub history: Vec<Entry>,
    /// It moves, or has moved, to a host that is Alive.
    pub target_is_alive: bool,
    /// Its group; none until it is grouped, soon after it came in.
    pub group: Option<StoredGroup>,
    /// Its place in its group.
    pub place: Place,
}

pub(crate) const TARGET_IS_ALIVE: &str =
    "SELECT EXISTS (SELECT 1 FROM hosts WHERE name = ?1 AND state = 'alive')";

impl Reader {
    /// All that is known of a host; nothing when it has no row.
    ///
    /// # Errors
    /// A fault of ours.
    pub fn record(&self, host: &Host) -> Result<Option<Stored>, StoreError> {
        // One snapshot, so that the history belongs to the row.
        let snapshot = self.connection().unchecked_transaction()?;
        let Some(row) = row::find(&snapshot, host)? else {
            return Ok(None);
        };
        let target_is_alive = match &row.record.state {
            State::Moving { target, .. } | State::Moved { target } => snapshot
                .prepare_cached(TARGET_IS_ALIVE)?
                .query_row([target.as_str()], |row| row.get(0))?,
            State::Discovered
            | State::Alive
            | State::Dying { .. }
            | State::Dead
            | State::OptedOut { .. }
            | State::Parked => false,
        };
        Ok(Some(Stored {
            in_flight: row.in_flight,
            interruptions: row.interruptions,
            faults: row.faults,
            last_note: row.last_note,
            history: history::newest_first(&snapshot, row.id)?,
            target_is_alive,
            group: match row.group_id {
                Some(id) => groups::of_row(&snapshot, id)?,
                None => None,
            },
            place: row.place,
            record: row.record,
        }))
    }

    /// Whether the name was here for a year, never lived, and was forgotten.
    ///
    /// # Errors
    /// A fault of ours.
    pub fn is_forgotten(&self, host: &Host) -> Result<bool, StoreError> {
        forgotten::is_forgotten(self.connection(), host)
    }

    /// What is known of a name that waits for room; nothing when it does not wait.
    ///
    /// # Errors
    /// A fault of ours.
    pub fn waiter(&self, host: &Host) -> Result<Option<Waiter>, StoreError> {
        admitted::find_waiter(self.connection(), host)
    }
}
