//! Opt-outs and opt-ins, and moderators' holds.
//!
//! Only the party that opted a host out can opt it in again (invariant I7).

use census::listing;
use census::state::{OptedOutBy, Record, State};
use census::time::{Calendar, Timestamp};
use protocol::Host;
use rusqlite::{Connection, params};

use crate::db::error::StoreError;
use crate::tables::dumps;
use crate::tables::hosts::recovery;
use crate::tables::row;

/// Parked rows per transaction, so that a long pass never delays other writes for long.
pub(crate) const UNPARKED_MAX: u32 = 500;

pub(crate) const PARKED: &str = "SELECT id, name FROM hosts \
     WHERE state = 'parked' AND hidden = ?1 AND id > ?2 ORDER BY id LIMIT ?3";

pub(crate) const ALSO: &str = "SELECT also_opted_out_by FROM hosts WHERE name = ?1";

pub(crate) const SET_ALSO: &str = "UPDATE hosts SET also_opted_out_by = ?2 WHERE name = ?1";

/// The state before is Alive if the last verdict was `alive`. All other hosts are checked as if
/// newly discovered, robots.txt first, and are not listed until they answer.
pub(crate) const UNPARK: &str = "UPDATE hosts SET state = CASE \
     WHEN (SELECT verdict FROM history WHERE host_id = hosts.id ORDER BY seq DESC LIMIT 1) = 'alive' \
     THEN 'alive' ELSE 'discovered' END, \
     since = ?3, due = ?2, doublings = 0, last_note = 'its name is admitted again' \
     WHERE name = ?1 AND state = 'parked'";

/// The result of an opt-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptOut {
    /// The host is opted out from now on. An unknown host got a row, so that no peers list can add
    /// it later.
    Done,
    /// As [`OptOut::Done`], and the published list may name the host.
    DoneListed,
    /// `by` opted the host out before, and the call changes nothing: only that party can take the
    /// opt-out back.
    Stands { by: OptedOutBy },
    /// `by` opted the host out before. From now on it stays out until both parties take their
    /// opt-outs back.
    Joins { by: OptedOutBy },
}

/// The result of taking an opt-out back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptIn {
    /// The host is in the state Discovered again and due at once.
    Done,
    /// Another party opted it out, and only that party can take the opt-out back.
    NotTheirs {
        by: OptedOutBy,
    },
    /// This opt-out is taken back. The opt-out of another party remains, so the host stays out.
    StillOut {
        by: OptedOutBy,
    },
    /// It was not opted out.
    NotOptedOut,
    Unknown,
}

/// The result of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Park {
    /// The host is kept and never checked. An unknown host got a row.
    Done,
    /// An owner or a moderator opted it out, which remains: it is never checked anyway, and a hold
    /// would overwrite the opt-out.
    OptedOut { by: OptedOutBy },
}

/// Opts a host out.
///
/// An opt-out by an owner or a moderator takes precedence over robots.txt and replaces it. Opt-outs
/// by an owner and by a moderator exist side by side: neither party can take the other's back.
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
        let standing = *standing;
        let is_new = by != OptedOutBy::Robots
            && by != standing
            && also(connection, host)?.as_deref() != Some(by.as_str());
        if !is_new {
            return Ok(OptOut::Stands { by: standing });
        }
        set_also(connection, host, Some(by))?;
        return Ok(OptOut::Joins { by: standing });
    }
    put(connection, host, State::OptedOut { by }, now)?;
    let (record, made) = (found.map(|row| row.record), dumps::last(connection)?);
    // The lab divides intervals; the real ones include its lists.
    let listed = record
        .zip(made)
        .filter(|(record, list)| listing::may_be_on_list(record, list.at, Calendar::REAL));
    Ok(listed.map_or(OptOut::Done, |_| OptOut::DoneListed))
}

/// Whether a host may be checked at all. Unknown hosts may.
pub(crate) fn may_be_asked(connection: &Connection, host: &Host) -> Result<bool, StoreError> {
    let found = row::find(connection, host)?;
    Ok(found.is_none_or(|row| !row.record.state.is_never_asked()))
}

/// Takes back the opt-out of the party `by`.
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
        State::OptedOut { by: standing } if standing != by => {
            if also(connection, host)?.as_deref() != Some(by.as_str()) {
                return Ok(OptIn::NotTheirs { by: standing });
            }
            set_also(connection, host, None)?;
            Ok(OptIn::StillOut { by: standing })
        }
        State::OptedOut { .. } => {
            let also = also(connection, host)?;
            let others = [OptedOutBy::Owner, OptedOutBy::Moderator];
            let other = others
                .into_iter()
                .find(|other| also.as_deref() == Some(other.as_str()));
            let Some(by) = other else {
                put(connection, host, State::Discovered, now)?;
                return Ok(OptIn::Done);
            };
            put(connection, host, State::OptedOut { by }, now)?;
            set_also(connection, host, None)?;
            Ok(OptIn::StillOut { by })
        }
        State::Discovered
        | State::Alive
        | State::Dying { .. }
        | State::Dead
        | State::Moving { .. }
        | State::Moved { .. }
        | State::Parked => Ok(OptIn::NotOptedOut),
    }
}

/// The second party that opted a host out, in addition to the one in its state.
fn also(connection: &Connection, host: &Host) -> Result<Option<String>, StoreError> {
    let mut statement = connection.prepare_cached(ALSO)?;
    Ok(statement.query_row([host.as_str()], |row| row.get(0))?)
}

fn set_also(
    connection: &Connection,
    host: &Host,
    by: Option<OptedOutBy>,
) -> Result<(), StoreError> {
    let values = params![host.as_str(), by.map(OptedOutBy::as_str)];
    connection.prepare_cached(SET_ALSO)?.execute(values)?;
    Ok(())
}

/// Parks a host whose name is no longer admitted: it is kept and never checked.
pub(crate) fn park(
    connection: &Connection,
    host: &Host,
    now: Timestamp,
) -> Result<Park, StoreError> {
    let found = row::find(connection, host)?;
    if let Some(State::OptedOut { by }) = found.as_ref().map(|row| &row.record.state)
        && *by != OptedOutBy::Robots
    {
        return Ok(Park::OptedOut { by: *by });
    }
    put(connection, host, State::Parked, now)?;
    Ok(Park::Done)
}

/// Position of a pass through the parked rows, in the order of the index of states.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ParkedCursor {
    hidden: bool,
    id: i64,
}

/// Brings back the admitted hosts among the next [`UNPARKED_MAX`] parked ones, each due within the
/// hour. Returns their number, and where to continue: `None` after the last parked row.
pub(crate) fn unpark(
    connection: &Connection,
    from: ParkedCursor,
    admits: impl Fn(&Host) -> bool,
    now: Timestamp,
    jitter_seed: u64,
    calendar: Calendar,
) -> Result<(u64, Option<ParkedCursor>), StoreError> {
    let rows: Vec<(i64, String)> = connection
        .prepare_cached(PARKED)?
        .query_map(params![from.hidden, from.id, UNPARKED_MAX], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?
        .collect::<Result<_, _>>()?;
    let mut brought = 0_u64;
    for (id, name) in &rows {
        // A row without a valid name stays parked.
        let host = Host::parse(name).ok().filter(|host| host.as_str() == name);
        if host.is_some_and(|host| admits(&host)) {
            let due = now.plus(calendar.again_soon(recovery::jitter(jitter_seed, *id)));
            unpark_row(connection, name, due, now)?;
            brought = brought.saturating_add(1);
        }
    }
    let next = match rows.last() {
        Some((id, _)) => Some(ParkedCursor { id: *id, ..from }),
        None if from.hidden => None,
        None => Some(ParkedCursor {
            hidden: true,
            id: i64::MIN,
        }),
    };
    Ok((brought, next))
}

/// Brings one host back. The caller has checked that its name is admitted. Returns whether it was
/// parked.
pub(crate) fn unpark_row(
    connection: &Connection,
    name: &str,
    due: Timestamp,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let changed = connection
        .prepare_cached(UNPARK)?
        .execute(params![name, due.0, now.0])?;
    Ok(changed > 0)
}

/// Puts a host into a state, whatever its state was. Inserts a row if there is none.
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
