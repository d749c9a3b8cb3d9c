//! After a check: commits its verdict, or releases the host without one.
//!
//! A verdict never overrides an opt-out or a hold that was made while the check ran (invariant I7).

use census::state::{Record, State};
use census::time::Timestamp;
use census::transition::Change;
use protocol::Host;
use rusqlite::{Connection, params};

use crate::db::error::StoreError;
use crate::known::forgotten;
use crate::tables::history;
use crate::tables::row;

/// Bytes of a row's last note: a sentence.
const NOTE_BYTES_MAX: usize = 300;

/// The result of committing a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// The host was forgotten, and its row deleted.
    pub forgotten: bool,
    /// While the check ran, the host was parked, or an owner or a moderator opted it out. That
    /// remains in force, and the verdict changed nothing.
    pub overruled: bool,
}

pub(crate) const CLEAR: &str =
    "UPDATE hosts SET in_flight = 0, interruptions = 0, faults = 0, last_note = NULL WHERE id = ?1";

pub(crate) const RELEASE: &str = "UPDATE hosts SET in_flight = 0, \
     due = CASE WHEN state = 'parked' OR (state = 'opted_out' AND opted_out_by <> 'robots') THEN NULL ELSE ?2 END, \
     last_note = coalesce(?3, last_note) WHERE name = ?1";

pub(crate) const COUNT_FAULT: &str =
    "UPDATE hosts SET faults = min(faults + 1, 4294967295) WHERE name = ?1 RETURNING faults";

/// Writes a change and everything that belongs to it.
pub(crate) fn commit(connection: &Connection, change: &Change) -> Result<Committed, StoreError> {
    let host = &change.record.host;
    let Some(row) = row::find(connection, host)? else {
        return Err(StoreError::Unknown { host: host.clone() });
    };
    let mut committed = Committed {
        forgotten: false,
        overruled: is_overruled(&row.record.state, &change.record.state),
    };
    let mut is_cleared = false;
    if committed.overruled {
        let record = Record {
            last_checked: change.record.last_checked,
            due: None,
            ..row.record
        };
        row::update(connection, row.id, &record)?;
    } else if change.forget {
        forgotten::forget(connection, row.id, host)?;
        committed.forgotten = true;
        return Ok(committed);
    } else {
        is_cleared = row::confirm(connection, &row, &change.record)?;
        if !is_cleared {
            row::update(connection, row.id, &change.record)?;
        }
    }
    if !is_cleared {
        connection.prepare_cached(CLEAR)?.execute([row.id])?;
    }
    history::append(connection, row.id, &change.record, &change.entry)?;
    Ok(committed)
}

/// Whether the current row takes precedence over the change. The change was computed from the
/// record at the start of the check; an opt-out or a hold that was made since must not be
/// overwritten (invariant I7).
fn is_overruled(current: &State, next: &State) -> bool {
    match current {
        State::Parked => current != next && !matches!(next, State::OptedOut { .. }),
        State::OptedOut { .. } => current.is_never_asked() && current != next,
        State::Discovered
        | State::Alive
        | State::Dying { .. }
        | State::Dead
        | State::Moving { .. }
        | State::Moved { .. } => false,
    }
}

/// Ends a check without a verdict.
pub(crate) fn release(
    connection: &Connection,
    host: &Host,
    due: Timestamp,
    note: Option<&str>,
) -> Result<(), StoreError> {
    let note = note.map(|note| {
        let mut note = note.to_owned();
        note.truncate(note.floor_char_boundary(NOTE_BYTES_MAX));
        note
    });
    let rows = connection
        .prepare_cached(RELEASE)?
        .execute(params![host.as_str(), due.0, note])?;
    if rows == 0 {
        return Err(StoreError::Unknown { host: host.clone() });
    }
    Ok(())
}

/// Counts a fault that affected only this host's check. Returns the number of consecutive faults.
pub(crate) fn count_fault(connection: &Connection, host: &Host) -> Result<u32, StoreError> {
    let faults = connection
        .prepare_cached(COUNT_FAULT)?
        .query_row([host.as_str()], |row| row.get(0));
    match faults {
        Ok(faults) => Ok(faults),
        Err(rusqlite::Error::QueryReturnedNoRows) => {
            Err(StoreError::Unknown { host: host.clone() })
        }
        Err(error) => Err(error.into()),
    }
}
