//! What people say about a host: opt-outs, their end, holds.
//!
//! In: a host and who speaks. Out: its new state. Refused: taking back what somebody else said (invariant I7).

use census::state::{OptedOutBy, ParkedWhy, Record, State};
use census::time::Timestamp;
use protocol::Host;
use rusqlite::Connection;

use crate::StoreError;
use crate::hosts::row;

/// What became of an opt-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptOut {
    /// The host is opted out from now on; one that was unknown got a row, so that no peers list can bring it in later.
    Done,
    /// It was opted out already, by the one named, and that stands: only they can take it back.
    Stands {
        /// Whose opt-out it is.
        by: OptedOutBy,
    },
}

/// What became of taking an opt-out back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptIn {
    /// The host is discovered anew and due at once.
    Done,
    /// Somebody else opted it out, and only they can take that back.
    NotTheirs {
        /// Whose opt-out it is.
        by: OptedOutBy,
    },
    /// It was not opted out.
    NotOptedOut,
    /// There is no such row.
    Unknown,
}

/// What became of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Park {
    /// The host is kept and never asked; one that was unknown got a row.
    Done,
    /// It opted out by word of mouth, which stands: it is never asked anyway, and the opt-out must not get lost under the hold.
    OptedOut {
        /// Whose opt-out it is.
        by: OptedOutBy,
    },
}

/// Opts a host out.
///
/// A word of mouth counts for more than robots.txt and replaces it; among owner and moderator the first stands, since a row holds one of them.
pub(crate) fn opt_out(
    connection: &Connection,
    host: &Host,
    by: OptedOutBy,
    now: Timestamp,
) -> Result<OptOut, StoreError> {
    let found = row::find(connection, host)?;
    if let Some(State::OptedOut { by: standing }) = found.as_ref().map(|row| &row.record.state)
        && (*standing != OptedOutBy::Robots || by == OptedOutBy::Robots)
    {
        return Ok(OptOut::Stands { by: *standing });
    }
    put(connection, host, State::OptedOut { by }, now)?;
    Ok(OptOut::Done)
}

/// Whether a host may be asked at all, known or not.
pub(crate) fn may_be_asked(connection: &Connection, host: &Host) -> Result<bool, StoreError> {
    let found = row::find(connection, host)?;
    Ok(found.is_none_or(|row| !row.record.state.is_never_asked()))
}

/// Takes an opt-out back, for whoever made it.
pub(crate) fn opt_in(
    connection: &Connection,
    host: &Host,
    by: OptedOutBy,
    now: Timestamp,
) -> Result<OptIn, StoreError> {
    let Some(row) = row::find(connection, host)? else {
        return Ok(OptIn::Unknown);
    };
    match row.record.state {
        State::OptedOut { by: standing } if standing != by => Ok(OptIn::NotTheirs { by: standing }),
        State::OptedOut { .. } => {
            put(connection, host, State::Discovered, now)?;
            Ok(OptIn::Done)
        }
        State::Discovered
        | State::Alive
        | State::Dying { .. }
        | State::Dead
        | State::Moving { .. }
        | State::Moved { .. }
        | State::Parked { .. } => Ok(OptIn::NotOptedOut),
    }
}

/// Holds a host: it is kept and never asked.
pub(crate) fn park(
    connection: &Connection,
    host: &Host,
    why: ParkedWhy,
    now: Timestamp,
) -> Result<Park, StoreError> {
    let found = row::find(connection, host)?;
    if let Some(State::OptedOut { by }) = found.as_ref().map(|row| &row.record.state)
        && *by != OptedOutBy::Robots
    {
        return Ok(Park::OptedOut { by: *by });
    }
    put(connection, host, State::Parked { why }, now)?;
    Ok(Park::Done)
}

/// Ends a hold: the host is discovered anew and due at once. Gives whether it was held.
pub(crate) fn unpark(
    connection: &Connection,
    host: &Host,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let found = row::find(connection, host)?;
    let is_parked = found.is_some_and(|row| matches!(row.record.state, State::Parked { .. }));
    if is_parked {
        put(connection, host, State::Discovered, now)?;
    }
    Ok(is_parked)
}

/// Puts a host into a state, whatever it was in; makes its row if there is none.
fn put(
    connection: &Connection,
    host: &Host,
    state: State,
    now: Timestamp,
) -> Result<(), StoreError> {
    let found = row::find(connection, host)?;
    let id = found.as_ref().map(|row| row.id);
    let former = found.map_or_else(
        || Record::discovered(host.clone(), now, now),
        |row| row.record,
    );
    let record = Record {
        due: (!state.is_never_asked()).then_some(now),
        since: if former.state == state {
            former.since
        } else {
            now
        },
        state,
        doublings: 0,
        ..former
    };
    match id {
        Some(id) => row::update(connection, id, &record),
        None => row::insert(connection, &record),
    }
}
