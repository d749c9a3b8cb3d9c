//! A host's row and its record: the one place that knows both the columns and the types.
//!
//! In: a row. Out: a record. Refused: a row that holds no valid name, or a word that no version of this program wrote.

use census::class::{Class, Tried};
use census::group::Place;
use census::state::{Before, OptedOutBy, ParkedWhy, Record, State};
use census::time::Timestamp;
use protocol::Host;
use rusqlite::{Connection, OptionalExtension as _, Row, named_params};

use crate::StoreError;

/// A host's whole row.
#[derive(Debug, Clone)]
pub(crate) struct HostRow {
    pub(crate) id: i64,
    pub(crate) record: Record,
    pub(crate) in_flight: bool,
    pub(crate) interruptions: u32,
    pub(crate) faults: u32,
    pub(crate) last_note: Option<String>,
    pub(crate) group_id: Option<i64>,
    pub(crate) place: Place,
}

impl HostRow {
    /// Its class, as the column has it that the index of due hosts begins with.
    pub(crate) fn class(&self) -> Class {
        let tried = match self.last_note {
            None => Tried::Never,
            Some(_) => Tried::InVain,
        };
        Class::of(&self.record, tried)
    }
}

/// All columns of a row, for the queries of this crate.
macro_rules! columns {
    () => {
        "id, name, state, since, state_before, count, gone, gone_last, target, opted_out_by, parked_why, hidden, refuses, software, version, \
         first_seen, last_alive, last_checked, due, in_flight, interruptions, faults, doublings, alive_count, last_note, group_id, held_back"
    };
}
pub(crate) use columns;

pub(crate) const FIND: &str = concat!("SELECT ", columns!(), " FROM hosts WHERE name = ?1");

pub(crate) const INSERT: &str = "INSERT INTO hosts (name, state, since, state_before, count, gone, gone_last, target, opted_out_by, parked_why, hidden, \
     refuses, software, version, first_seen, last_alive, last_checked, due, doublings, alive_count) \
     VALUES (:name, :state, :since, :state_before, :count, :gone, :gone_last, :target, :opted_out_by, :parked_why, :hidden, :refuses, :software, \
     :version, :first_seen, :last_alive, :last_checked, :due, :doublings, :alive_count)";

/// Never writes `name` and `first_seen`: no verdict changes who a host is (invariant I3).
pub(crate) const UPDATE: &str = "UPDATE hosts SET state = :state, since = :since, state_before = :state_before, count = :count, gone = :gone, \
     gone_last = :gone_last, target = :target, opted_out_by = :opted_out_by, parked_why = :parked_why, hidden = :hidden, refuses = :refuses, \
     software = :software, version = :version, last_alive = :last_alive, last_checked = :last_checked, due = :due, doublings = :doublings, \
     alive_count = :alive_count WHERE id = :id";

/// What a verdict leaves of a host that is as it was, and lives. Of the indexes it touches those of due times and of the list alone.
pub(crate) const STILL_ALIVE: &str = "UPDATE hosts SET last_alive = :last_alive, alive_count = :alive_count, last_checked = :last_checked, due = :due, \
     doublings = :doublings, in_flight = 0, interruptions = 0, faults = 0, last_note = NULL WHERE id = :id";

/// The same of one that was not found alive: it touches no index but those of due times.
pub(crate) const STILL: &str = "UPDATE hosts SET last_checked = :last_checked, due = :due, doublings = :doublings, \
     in_flight = 0, interruptions = 0, faults = 0, last_note = NULL WHERE id = :id";

/// The row of a host, if there is one.
pub(crate) fn find(connection: &Connection, host: &Host) -> Result<Option<HostRow>, StoreError> {
    connection
        .prepare_cached(FIND)?
        .query_row([host.as_str()], |row| Ok(decode(row)))
        .optional()?
        .transpose()
}

/// Writes a new row; the caller knows that there is none of this name.
pub(crate) fn insert(connection: &Connection, record: &Record) -> Result<(), StoreError> {
    let state = StateColumns::of(&record.state);
    connection.prepare_cached(INSERT)?.execute(named_params! {
        ":name": record.host.as_str(),
        ":state": record.state.name().as_str(),
        ":since": record.since.0,
        ":state_before": state.before,
        ":count": state.count,
        ":gone": state.gone,
        ":gone_last": state.gone_last,
        ":target": state.target,
        ":opted_out_by": state.opted_out_by,
        ":parked_why": state.parked_why,
        ":hidden": record.hidden,
        ":refuses": record.refuses,
        ":software": record.software,
        ":version": record.version,
        ":first_seen": record.first_seen.0,
        ":last_alive": record.last_alive.map(|at| at.0),
        ":last_checked": record.last_checked.map(|at| at.0),
        ":due": record.due.map(|at| at.0),
        ":doublings": record.doublings,
        ":alive_count": record.alive_count,
    })?;
    Ok(())
}

/// Writes all that a verdict may change of a row.
pub(crate) fn update(connection: &Connection, id: i64, record: &Record) -> Result<(), StoreError> {
    let state = StateColumns::of(&record.state);
    connection.prepare_cached(UPDATE)?.execute(named_params! {
        ":id": id,
        ":state": record.state.name().as_str(),
        ":since": record.since.0,
        ":state_before": state.before,
        ":count": state.count,
        ":gone": state.gone,
        ":gone_last": state.gone_last,
        ":target": state.target,
        ":opted_out_by": state.opted_out_by,
        ":parked_why": state.parked_why,
        ":hidden": record.hidden,
        ":refuses": record.refuses,
        ":software": record.software,
        ":version": record.version,
        ":last_alive": record.last_alive.map(|at| at.0),
        ":last_checked": record.last_checked.map(|at| at.0),
        ":due": record.due.map(|at| at.0),
        ":doublings": record.doublings,
        ":alive_count": record.alive_count,
    })?;
    Ok(())
}

/// Writes a verdict that left a host where it stands, and that its check is over. Gives whether it did: not when more has changed than times and counts.
///
/// SQLite takes a row out of each index of which a statement sets a column and puts it back, even if all values stay the same. Most verdicts say what
/// the last one said, and so cost half of what [`UPDATE`] does.
pub(crate) fn confirm(
    connection: &Connection,
    row: &HostRow,
    record: &Record,
) -> Result<bool, StoreError> {
    let stands = Record {
        last_alive: record.last_alive,
        last_checked: record.last_checked,
        due: record.due,
        doublings: record.doublings,
        alive_count: record.alive_count,
        ..row.record.clone()
    };
    if stands != *record {
        return Ok(false);
    }
    let (last_checked, due) = (
        record.last_checked.map(|at| at.0),
        record.due.map(|due| due.0),
    );
    let is_alive =
        record.last_alive != row.record.last_alive || record.alive_count != row.record.alive_count;
    if is_alive {
        connection
            .prepare_cached(STILL_ALIVE)?
            .execute(named_params! {
                ":id": row.id,
                ":last_alive": record.last_alive.map(|at| at.0),
                ":alive_count": record.alive_count,
                ":last_checked": last_checked,
                ":due": due,
                ":doublings": record.doublings,
            })?;
    } else {
        connection.prepare_cached(STILL)?.execute(named_params! {
            ":id": row.id,
            ":last_checked": last_checked,
            ":due": due,
            ":doublings": record.doublings,
        })?;
    }
    Ok(true)
}

/// What a state carries, as columns.
#[derive(Default)]
struct StateColumns<'s> {
    before: Option<&'static str>,
    count: u32,
    gone: bool,
    gone_last: bool,
    target: Option<&'s str>,
    opted_out_by: Option<&'static str>,
    parked_why: Option<&'static str>,
}

impl<'s> StateColumns<'s> {
    fn of(state: &'s State) -> Self {
        let none = Self::default();
        match state {
            State::Discovered | State::Alive | State::Dead => none,
            State::Dying {
                before,
                count,
                gone,
                gone_last,
            } => Self {
                before: Some(before.as_str()),
                count: *count,
                gone: *gone,
                gone_last: *gone_last,
                ..none
            },
            State::Moving {
                before,
                count,
                target,
            } => Self {
                before: Some(before.as_str()),
                count: *count,
                target: Some(target.as_str()),
                ..none
            },
            State::Moved { target } => Self {
                target: Some(target.as_str()),
                ..none
            },
            State::OptedOut { by } => Self {
                opted_out_by: Some(by.as_str()),
                ..none
            },
            State::Parked { why } => Self {
                parked_why: Some(why.as_str()),
                ..none
            },
        }
    }
}

/// Reads a row of all columns.
pub(crate) fn decode(row: &Row<'_>) -> Result<HostRow, StoreError> {
    let id = row.get("id")?;
    let host = host(row, id, "name")?.ok_or(StoreError::BadRow { id, column: "name" })?;
    let record = Record {
        host,
        state: state(row, id)?,
        since: Timestamp(row.get("since")?),
        hidden: row.get("hidden")?,
        refuses: row.get("refuses")?,
        software: row.get("software")?,
        version: row.get("version")?,
        first_seen: Timestamp(row.get("first_seen")?),
        last_alive: row.get::<_, Option<i64>>("last_alive")?.map(Timestamp),
        last_checked: row.get::<_, Option<i64>>("last_checked")?.map(Timestamp),
        due: row.get::<_, Option<i64>>("due")?.map(Timestamp),
        doublings: row.get("doublings")?,
        alive_count: row.get("alive_count")?,
    };
    Ok(HostRow {
        id,
        record,
        in_flight: row.get("in_flight")?,
        interruptions: row.get("interruptions")?,
        faults: row.get("faults")?,
        last_note: row.get("last_note")?,
        group_id: row.get("group_id")?,
        place: if row.get("held_back")? {
            Place::HeldBack
        } else {
            Place::Own
        },
    })
}

fn state(row: &Row<'_>, id: i64) -> Result<State, StoreError> {
    let bad = |column| StoreError::BadRow { id, column };
    let word: String = row.get("state")?;
    let state = match word.as_str() {
        "discovered" => State::Discovered,
        "alive" => State::Alive,
        "dying" => State::Dying {
            before: before(row, id)?,
            count: row.get("count")?,
            gone: row.get("gone")?,
            gone_last: row.get("gone_last")?,
        },
        "dead" => State::Dead,
        "moving" => State::Moving {
            before: before(row, id)?,
            count: row.get("count")?,
            target: host(row, id, "target")?.ok_or_else(|| bad("target"))?,
        },
        "moved" => State::Moved {
            target: host(row, id, "target")?.ok_or_else(|| bad("target"))?,
        },
        "opted_out" => State::OptedOut {
            by: opted_out_by(row, id)?,
        },
        "parked" => State::Parked {
            why: parked_why(row, id)?,
        },
        _ => return Err(bad("state")),
    };
    Ok(state)
}

fn before(row: &Row<'_>, id: i64) -> Result<Before, StoreError> {
    let column = "state_before";
    match row.get::<_, Option<String>>(column)?.as_deref() {
        Some("discovered") => Ok(Before::Discovered),
        Some("alive") => Ok(Before::Alive),
        Some("dead") => Ok(Before::Dead),
        Some("moved") => Ok(Before::Moved),
        Some(_) | None => Err(StoreError::BadRow { id, column }),
    }
}

fn opted_out_by(row: &Row<'_>, id: i64) -> Result<OptedOutBy, StoreError> {
    let column = "opted_out_by";
    match row.get::<_, Option<String>>(column)?.as_deref() {
        Some("robots") => Ok(OptedOutBy::Robots),
        Some("owner") => Ok(OptedOutBy::Owner),
        Some("moderator") => Ok(OptedOutBy::Moderator),
        Some(_) | None => Err(StoreError::BadRow { id, column }),
    }
}

fn parked_why(row: &Row<'_>, id: i64) -> Result<ParkedWhy, StoreError> {
    let column = "parked_why";
    match row.get::<_, Option<String>>(column)?.as_deref() {
        Some("invalid_name") => Ok(ParkedWhy::InvalidName),
        Some("moderator") => Ok(ParkedWhy::Moderator),
        Some(_) | None => Err(StoreError::BadRow { id, column }),
    }
}

/// A column that holds a host name; names that were valid once and no longer are count as bad.
fn host(row: &Row<'_>, id: i64, column: &'static str) -> Result<Option<Host>, StoreError> {
    row.get::<_, Option<String>>(column)?
        .map(|name| Host::parse(&name).map_err(|_not_a_name| StoreError::BadRow { id, column }))
        .transpose()
}
