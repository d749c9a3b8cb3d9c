//! Everything about one host, for `fedicensus explain` and for name look-ups on the site.

use admission::Waiter;
use census::group::Place;
use census::state::{Record, State};
use census::transition::Entry;
use protocol::Host;

use crate::db::error::StoreError;
use crate::db::reader::Reader;
use crate::known::forgotten;
use crate::tables::groups::{self, StoredGroup};
use crate::tables::row;
use crate::tables::{admitted, history};

/// All that is known about a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    pub record: Record,
    /// Whether it is being checked, or its verdict waits for confirmation.
    pub in_flight: bool,
    /// Consecutive checks, up to the last one, that a crash on our side interrupted.
    pub interruptions: u32,
    /// Consecutive checks, up to the last one, that ended in a fault on our side.
    pub faults: u32,
    /// Last event on our side since the last verdict, such as a fault or an interruption.
    pub last_note: Option<String>,
    /// Its verdicts, the newest first: at most ten, or three if it was never alive.
    pub history: Vec<Entry>,
    /// Whether it moves, or has moved, to a host that is Alive.
    pub target_is_alive: bool,
    /// Its group. `None` until it is grouped, soon after it was added.
    pub group: Option<StoredGroup>,
    pub place: Place,
}

pub(crate) const TARGET_IS_ALIVE: &str =
    "SELECT EXISTS (SELECT 1 FROM hosts WHERE name = ?1 AND state = 'alive')";

impl Reader {
    /// All that is known about a host. `None` if it has no row.
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

    /// Whether the name was forgotten because it was never alive for a year.
    pub fn is_forgotten(&self, host: &Host) -> Result<bool, StoreError> {
        forgotten::is_forgotten(self.connection(), host)
    }

    /// A name that waits for room. `None` if it does not wait.
    pub fn waiter(&self, host: &Host) -> Result<Option<Waiter>, StoreError> {
        admitted::find_waiter(self.connection(), host)
    }
}
