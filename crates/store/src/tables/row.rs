//! Converts a host's row to a record and back: the only code that knows both the columns and the
//! types.
//!
//! A row without a valid name, or with a word that no version of this program writes, is an error.

use census::class::{Class, Tried};
use census::group::Place;
use census::state::{Before, OptedOutBy, Record, State};
use census::time::Timestamp;
use protocol::{Host, Instance};
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, named_params};

use crate::db::error::StoreError;

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
    /// Its class, equal to the column `class`, which begins the index of due hosts.
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
        "id, name, state, since, state_before, count, gone, gone_last, target, opted_out_by, hidden, refuses, software, version, \
         open_registrations, variant, first_seen, last_alive, last_checked, due, in_flight, interruptions, faults, doublings, alive_count, \
         last_note, group_id, held_back"
    };
}
pub(crate) use columns;

/// Position of a column among [`columns`]. SQLite can look it up by name for each row, but that
/// costs more than reading the value.
#[expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "before it runs"
)]
const fn at(column: &str) -> usize {
    let (columns, column) = (columns!().as_bytes(), column.as_bytes());
    let (mut place, mut start, mut end) = (0, 0, 0);
    while end < columns.len() {
        end += 1;
        if end == columns.len() || columns[end] == b',' {
            let mut same = 0;
            while same < column.len() && start + same < end && columns[start + same] == column[same]
            {
                same += 1;
            }
            if same == column.len() && start + same == end {
                return place;
            }
            place += 1;
            start = end + ", ".len();
        }
    }
    panic!("no column of that name")
}

pub(crate) const FIND: &str = concat!("SELECT ", columns!(), " FROM hosts WHERE name = ?1");

pub(crate) const IS_KNOWN: &str = "SELECT EXISTS (SELECT 1 FROM hosts WHERE name = ?1)";

pub(crate) const INSERT: &str = "INSERT INTO hosts (name, state, since, state_before, count, gone, gone_last, target, opted_out_by, hidden, \
     refuses, software, version, open_registrations, variant, first_seen, last_alive, last_checked, due, doublings, alive_count) \
     VALUES (:name, :state, :since, :state_before, :count, :gone, :gone_last, :target, :opted_out_by, :hidden, :refuses, :software, \
     :version, :open_registrations, :variant, :first_seen, :last_alive, :last_checked, :due, :doublings, :alive_count)";

/// Never writes `name` and `first_seen`: no verdict changes a host's identity (invariant I3).
pub(crate) const UPDATE: &str = "UPDATE hosts SET state = :state, since = :since, state_before = :state_before, count = :count, gone = :gone, \
     gone_last = :gone_last, target = :target, opted_out_by = :opted_out_by, hidden = :hidden, refuses = :refuses, \
     software = :software, version = :version, open_registrations = :open_registrations, variant = :variant, last_alive = :last_alive, \
     last_checked = :last_checked, due = :due, doublings = :doublings, alive_count = :alive_count WHERE id = :id";

/// What a verdict changes for an alive host whose state stays the same. The only indexes it touches
/// are those of due times and of the list.
pub(crate) const STILL_ALIVE: &str = "UPDATE hosts SET last_alive = :last_alive, alive_count = :alive_count, last_checked = :last_checked, due = :due, \
     doublings = :doublings, in_flight = 0, interruptions = 0, faults = 0, last_note = NULL WHERE id = :id";

/// What a verdict changes for a host that was not found alive and whose state stays the same. The
/// only indexes it touches are those of due times.
pub(crate) const STILL: &str = "UPDATE hosts SET last_checked = :last_checked, due = :due, doublings = :doublings, \
     in_flight = 0, interruptions = 0, faults = 0, last_note = NULL WHERE id = :id";

/// The row of a host. `None` if there is none.
pub(crate) fn find(connection: &Connection, host: &Host) -> Result<Option<HostRow>, StoreError> {
    connection
        .prepare_cached(FIND)?
        .query_row([host.as_str()], |row| Ok(decode(row)))
        .optional()?
        .transpose()
}

/// Inserts a row. The caller has checked that there is none of this name.
pub(crate) fn insert(connection: &Connection, record: &Record) -> Result<(), StoreError> {
    let identity = named_params! {
        ":name": record.host.as_str(),
        ":first_seen": record.first_seen.0,
    };
    write(connection, INSERT, record, identity)
}

/// Writes all columns that a verdict may change.
pub(crate) fn update(connection: &Connection, id: i64, record: &Record) -> Result<(), StoreError> {
    write(connection, UPDATE, record, named_params! { ":id": id })
}

/// Runs a statement with all columns that a verdict may change, and `more`.
fn write(
    connection: &Connection,
    statement: &str,
    record: &Record,
    more: &[(&str, &dyn ToSql)],
) -> Result<(), StoreError> {
    let state = StateColumns::of(&record.state);
    let columns = named_params! {
        ":state": record.state.name().as_str(),
        ":since": record.since.0,
        ":state_before": state.before,
        ":count": state.count,
        ":gone": state.gone,
        ":gone_last": state.gone_last,
        ":target": state.target,
        ":opted_out_by": state.opted_out_by,
        ":hidden": record.hidden,
        ":refuses": record.refuses,
        ":software": record.instance.software,
        ":version": record.instance.version,
        ":open_registrations": record.instance.open_registrations,
        ":variant": record.instance.variant,
        ":last_alive": record.last_alive.map(|at| at.0),
        ":last_checked": record.last_checked.map(|at| at.0),
        ":due": record.due.map(|at| at.0),
        ":doublings": record.doublings,
        ":alive_count": record.alive_count,
    };
    let values = [columns, more].concat();
    connection.prepare_cached(statement)?.execute(&*values)?;
    Ok(())
}

/// Writes a verdict that repeats the last one, and ends the host's check. Returns `false` and
/// writes nothing if more than times and counts has changed.
///
/// SQLite removes and reinserts a row in each index that has a column set by the statement, even if
/// all values stay the same. Most verdicts repeat the last one, and cost half of [`UPDATE`] this
/// way.
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

#[derive(Default)]
struct StateColumns<'s> {
    before: Option<&'static str>,
    count: u32,
    gone: bool,
    gone_last: bool,
    target: Option<&'s str>,
    opted_out_by: Option<&'static str>,
}

impl<'s> StateColumns<'s> {
    fn of(state: &'s State) -> Self {
        let none = Self::default();
        match state {
            State::Discovered | State::Alive | State::Dead | State::Parked => none,
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
        }
    }
}

pub(crate) fn decode(row: &Row<'_>) -> Result<HostRow, StoreError> {
    let id = row.get(const { at("id") })?;
    let bad = |column| StoreError::BadRow { id, column };
    let host = host(row, const { at("name") })?.ok_or_else(|| bad("name"))?;
    let record = Record {
        host,
        state: state(row, id)?,
        since: Timestamp(row.get(const { at("since") })?),
        hidden: row.get(const { at("hidden") })?,
        refuses: row.get(const { at("refuses") })?,
        instance: Instance {
            software: row.get(const { at("software") })?,
            version: row.get(const { at("version") })?,
            open_registrations: row.get(const { at("open_registrations") })?,
            variant: row.get(const { at("variant") })?,
            ..Instance::default()
        },
        first_seen: Timestamp(row.get(const { at("first_seen") })?),
        last_alive: row
            .get::<_, Option<i64>>(const { at("last_alive") })?
            .map(Timestamp),
        last_checked: row
            .get::<_, Option<i64>>(const { at("last_checked") })?
            .map(Timestamp),
        due: row
            .get::<_, Option<i64>>(const { at("due") })?
            .map(Timestamp),
        doublings: row.get(const { at("doublings") })?,
        alive_count: row.get(const { at("alive_count") })?,
    };
    Ok(HostRow {
        id,
        record,
        in_flight: row.get(const { at("in_flight") })?,
        interruptions: row.get(const { at("interruptions") })?,
        faults: row.get(const { at("faults") })?,
        last_note: row.get(const { at("last_note") })?,
        group_id: row.get(const { at("group_id") })?,
        place: if row.get(const { at("held_back") })? {
            Place::HeldBack
        } else {
            Place::Own
        },
    })
}

fn state(row: &Row<'_>, id: i64) -> Result<State, StoreError> {
    let bad = |column| StoreError::BadRow { id, column };
    let state = match text(row, const { at("state") })?.unwrap_or_default() {
        "discovered" => State::Discovered,
        "alive" => State::Alive,
        "dying" => State::Dying {
            before: before(row, id)?,
            count: row.get(const { at("count") })?,
            gone: row.get(const { at("gone") })?,
            gone_last: row.get(const { at("gone_last") })?,
        },
        "dead" => State::Dead,
        "moving" => State::Moving {
            before: before(row, id)?,
            count: row.get(const { at("count") })?,
            target: host(row, const { at("target") })?.ok_or_else(|| bad("target"))?,
        },
        "moved" => State::Moved {
            target: host(row, const { at("target") })?.ok_or_else(|| bad("target"))?,
        },
        "opted_out" => State::OptedOut {
            by: opted_out_by(row, id)?,
        },
        "parked" => State::Parked,
        _ => return Err(bad("state")),
    };
    Ok(state)
}

fn before(row: &Row<'_>, id: i64) -> Result<Before, StoreError> {
    const COLUMN: &str = "state_before";
    match text(row, const { at(COLUMN) })? {
        Some("discovered") => Ok(Before::Discovered),
        Some("alive") => Ok(Before::Alive),
        Some("dead") => Ok(Before::Dead),
        Some("moved") => Ok(Before::Moved),
        Some(_) | None => Err(StoreError::BadRow { id, column: COLUMN }),
    }
}

fn opted_out_by(row: &Row<'_>, id: i64) -> Result<OptedOutBy, StoreError> {
    const COLUMN: &str = "opted_out_by";
    match text(row, const { at(COLUMN) })? {
        Some("robots") => Ok(OptedOutBy::Robots),
        Some("owner") => Ok(OptedOutBy::Owner),
        Some("moderator") => Ok(OptedOutBy::Moderator),
        Some(_) | None => Err(StoreError::BadRow { id, column: COLUMN }),
    }
}

/// A column with a host name. `None` if the name is no longer valid.
fn host(row: &Row<'_>, at: usize) -> Result<Option<Host>, StoreError> {
    Ok(text(row, at)?.and_then(|name| Host::parse(name).ok()))
}

fn text<'r>(row: &'r Row<'_>, at: usize) -> Result<Option<&'r str>, StoreError> {
    let text = row.get_ref(at)?.as_str_or_null();
    Ok(text.map_err(rusqlite::Error::from)?)
}
