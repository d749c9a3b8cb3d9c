//! The tables `admission_counters`, `admission_state` and `waiting`: the persistent state of the
//! gate that admits names.
//!
//! Each decision of the gate writes the admitted names, the changed counters and the changes among
//! waiting names. A start reads all of it back. A row that no version of this program writes is an
//! error.

use std::time::Duration;

use admission::counters::Row;
use admission::counters::Table;
use admission::waiting::Change;
use admission::{HashKey, NamedBy, Names, Room, SourceId, Waiter};
use protocol::Host;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::db::error::StoreError;
use crate::known::forgotten;
use crate::tables::hosts::add::{self, Candidate, fifty, five};
use crate::tables::row;

/// Counters of former windows that are deleted per admission: as many as one admission writes, so
/// that old counters don't accumulate.
const OLD_DELETED_MAX: u32 = 8000;

/// Parameters per counter: window, what it counts, id, count.
const PARAMETERS: usize = 4;

/// What one decision of the gate writes, in one transaction.
#[derive(Debug, Clone, Default)]
pub struct Admission {
    pub candidates: Vec<Candidate>,
    /// Counters that changed, with their new values.
    pub counters: Vec<Row>,
    /// Start of the window, in seconds.
    pub window_start_s: Option<u64>,
    /// Changes among the names that wait.
    pub waiting: Vec<Change>,
    /// Whether forgotten names come back, because somebody vouches for the names.
    pub brings_back: bool,
}

#[derive(Debug)]
pub struct Remembered {
    /// Key for hashing the counters' ids.
    pub hash_key: HashKey,
    /// Start of the last window that was entered, in seconds.
    pub window_start_s: Option<u64>,
    pub counters: Vec<Row>,
    pub waiting: Vec<(String, Waiter)>,
    /// Seconds for which the census is young, from its first list with a name on.
    pub young_left_s: u32,
}

/// Inserts up to fifty counters at once. Unused slots are NULL.
pub(crate) const PUT_COUNTERS: &str = concat!(
    "INSERT INTO admission_counters (window_start_s, counts, id, count) SELECT column1, column2, column3, column4 FROM (VALUES ",
    fifty!("(?,?,?,?)"),
    ") WHERE column1 IS NOT NULL ON CONFLICT (window_start_s, counts, id) DO UPDATE SET count = excluded.count"
);

pub(crate) const DELETE_COUNTER: &str =
    "DELETE FROM admission_counters WHERE window_start_s = ?1 AND counts = ?2 AND id = ?3";

pub(crate) const DELETE_OLD: &str = "DELETE FROM admission_counters WHERE (window_start_s, counts, id) IN \
     (SELECT window_start_s, counts, id FROM admission_counters WHERE window_start_s < ?1 LIMIT ?2)";

pub(crate) const PUT_WINDOW: &str =
    "UPDATE admission_state SET window_start_s = ?1 WHERE id = 1 AND window_start_s IS NOT ?1";

pub(crate) const PUT_WAITING: &str = "INSERT INTO waiting (name, room, first_named_s, last_named_s, source, named_by) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
     ON CONFLICT (name) DO UPDATE SET room = excluded.room, first_named_s = excluded.first_named_s, last_named_s = excluded.last_named_s, \
     source = excluded.source, named_by = excluded.named_by";

pub(crate) const DELETE_WAITING: &str = "DELETE FROM waiting WHERE name = ?1";

pub(crate) const STATE: &str =
    "SELECT hash_key, window_start_s, young_left_s FROM admission_state WHERE id = 1";

/// The first list with a name begins the time.
pub(crate) const GROW_OLDER: &str = "UPDATE admission_state SET young_left_s = max(0, young_left_s - ?1 * EXISTS (SELECT 1 FROM dumps WHERE names > 0)) \
     WHERE id = 1 RETURNING young_left_s";

/// Only a host that waits for its first check moves up.
pub(crate) const MOVE_UP: &str =
    "UPDATE hosts SET due = due - ?2 WHERE name = ?1 AND class = 1 AND in_flight = 0";

pub(crate) const COUNTERS: &str =
    "SELECT counts, id, count FROM admission_counters WHERE window_start_s = ?1";

pub(crate) const WAITING: &str =
    "SELECT name, room, first_named_s, last_named_s, source, named_by FROM waiting";

pub(crate) const WAITER: &str =
    "SELECT name, room, first_named_s, last_named_s, source, named_by FROM waiting WHERE name = ?1";

pub(crate) const COUNT_WAITING: &str = "SELECT count(*) FROM waiting";

/// The names that are neither known nor forgotten. Writes nothing.
pub(crate) fn unknown(connection: &Connection, hosts: &[Host]) -> Result<Vec<Host>, StoreError> {
    let mut unknown = Vec::new();
    let key = forgotten::key(connection)?;
    for host in hosts {
        let is_known: bool = connection
            .prepare_cached(row::IS_KNOWN)?
            .query_row([host.as_str()], |row| row.get(0))?;
        if !is_known && !forgotten::has(connection, &key, host)? {
            unknown.push(host.clone());
        }
    }
    Ok(unknown)
}

/// Writes one decision of the gate. Returns, for each candidate, whether a row was inserted.
pub(crate) fn admit(
    connection: &Connection,
    admission: &Admission,
    names: Option<&Names>,
) -> Result<Vec<bool>, StoreError> {
    if admission.brings_back {
        for candidate in &admission.candidates {
            forgotten::remember(connection, &candidate.host)?;
        }
    }
    let made = add::insert_candidates(connection, &admission.candidates, names)?;
    put_counters(connection, &admission.counters)?;
    if let Some(start) = admission.window_start_s.map(signed) {
        connection.prepare_cached(PUT_WINDOW)?.execute([start])?;
        connection
            .prepare_cached(DELETE_OLD)?
            .execute(params![start, OLD_DELETED_MAX])?;
    }
    for change in &admission.waiting {
        put_waiting(connection, change)?;
    }
    Ok(made)
}

pub(crate) fn remembered(connection: &Connection) -> Result<Remembered, StoreError> {
    let (hash_key, window, young_left_s): ([u8; 16], Option<i64>, u32) = connection
        .prepare_cached(STATE)?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let window_start_s = window.map(unsigned);
    let mut counters = Vec::new();
    let mut statement = connection.prepare_cached(COUNTERS)?;
    let mut rows = statement.query([window])?;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(1)?;
        let table = Table::parse(row.get_ref(0)?.as_str().unwrap_or_default());
        counters.push(Row {
            table: table.ok_or(bad(id, "counts"))?,
            id: unsigned(id),
            window_start_s: window_start_s.unwrap_or_default(),
            count: row.get(2)?,
        });
    }
    let mut waiting = Vec::new();
    let mut statement = connection.prepare_cached(WAITING)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        waiting.push((row.get(0)?, waiter(row)?));
    }
    Ok(Remembered {
        hash_key: HashKey(hash_key),
        window_start_s,
        counters,
        waiting,
        young_left_s,
    })
}

/// Moves hosts that wait for their first check up by `step`.
pub(crate) fn move_up(
    connection: &Connection,
    hosts: &[Host],
    step: Duration,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(MOVE_UP)?;
    for host in hosts {
        statement.execute(params![host.as_str(), signed_millis(step)])?;
    }
    Ok(())
}

/// The census ran for this long. Returns the seconds for which it stays young.
pub(crate) fn grow_older(connection: &Connection, ran: Duration) -> Result<u32, StoreError> {
    Ok(connection
        .prepare_cached(GROW_OLDER)?
        .query_row([signed(ran.as_secs())], |row| row.get(0))?)
}

pub(crate) fn find_waiter(
    connection: &Connection,
    host: &Host,
) -> Result<Option<Waiter>, StoreError> {
    connection
        .prepare_cached(WAITER)?
        .query_row([host.as_str()], |row| Ok(waiter(row)))
        .optional()?
        .transpose()
}

fn put_counters(connection: &Connection, counters: &[Row]) -> Result<(), StoreError> {
    let (zero, others): (Vec<&Row>, Vec<_>) = counters.iter().partition(|row| row.count == 0);
    for row in zero {
        connection.prepare_cached(DELETE_COUNTER)?.execute(params![
            signed(row.window_start_s),
            row.table.as_str(),
            signed(row.id)
        ])?;
    }
    let mut statement = connection.prepare_cached(PUT_COUNTERS)?;
    for portion in others.chunks(add::ROWS) {
        statement.clear_bindings();
        for (place, row) in (0..).step_by(PARAMETERS).zip(portion) {
            statement.raw_bind_parameter(place + 1, signed(row.window_start_s))?;
            statement.raw_bind_parameter(place + 2, row.table.as_str())?;
            statement.raw_bind_parameter(place + 3, signed(row.id))?;
            statement.raw_bind_parameter(place + 4, row.count)?;
        }
        statement.raw_execute()?;
    }
    Ok(())
}

fn put_waiting(connection: &Connection, change: &Change) -> Result<(), StoreError> {
    match &change.waiter {
        None => connection
            .prepare_cached(DELETE_WAITING)?
            .execute([&*change.name])?,
        Some(waiter) => connection.prepare_cached(PUT_WAITING)?.execute(params![
            &*change.name,
            waiter.room.as_str(),
            signed(waiter.first_named_s),
            signed(waiter.last_named_s),
            signed(waiter.source.0),
            // The hash uses all 64 bits.
            waiter.named_by.0.cast_signed(),
        ])?,
    };
    Ok(())
}

pub(crate) fn waiter(row: &rusqlite::Row<'_>) -> Result<Waiter, StoreError> {
    let source: i64 = row.get(4)?;
    let room = Room::parse(row.get_ref(1)?.as_str().unwrap_or_default());
    Ok(Waiter {
        room: room.ok_or(bad(source, "room"))?,
        first_named_s: unsigned(row.get(2)?),
        last_named_s: unsigned(row.get(3)?),
        source: SourceId(unsigned(source)),
        named_by: NamedBy(row.get::<_, i64>(5)?.cast_unsigned()),
    })
}

fn bad(id: i64, column: &'static str) -> StoreError {
    StoreError::BadRow { id, column }
}

fn signed_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests;
