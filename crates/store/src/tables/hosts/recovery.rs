//! Recovery at start from a crash, a jump of the clock or another version of the rules for names.
//!
//! Works on the whole table. A bad row is parked; it is never a reason to stop.

use census::schedule::due_after_interruption;
use census::time::{Calendar, Jitter, Timestamp};
use protocol::Host;
use rusqlite::{Connection, params};

use crate::db::error::StoreError;

pub(crate) const IN_FLIGHT: &str = "SELECT id, due, interruptions FROM hosts WHERE in_flight = 1";

pub(crate) const INTERRUPTED: &str = "UPDATE hosts SET in_flight = 0, interruptions = ?2, due = ?3, last_note = 'interrupted' WHERE id = ?1";

/// Due times brought back in one transaction. A statement keeps what it changes in memory, until all of it is done: where every row of ten million was
/// meant that was 1.3 GB, and half a minute in which nobody else wrote.
pub(crate) const CLAMPED_MAX: u32 = 2000;

/// States that are asked daily spread over a day, the others over a week: a jump of the clock must neither keep the whole list unasked for a
/// month nor bring it due at once. The row's id stands in for chance.
pub(crate) const CLAMP: &str = "UPDATE hosts SET due = ?1 + (id * 7919 % 1000) * \
     (CASE WHEN state IN ('discovered', 'alive', 'dying', 'moving') THEN ?3 ELSE ?4 END) / 1000 \
     WHERE id IN (SELECT id FROM hosts WHERE in_flight = 0 AND due IS NOT NULL AND class IN (0, 1, 2, 3) AND due > ?2 LIMIT ?5)";

pub(crate) const CLAMP_IN_FLIGHT: &str =
    "UPDATE hosts SET due = ?2 WHERE in_flight = 1 AND due > ?2";

/// A host that opted out by word of mouth is never asked anyway, and parking it would lose the
/// opt-out (invariant I7).
pub(crate) const NAMES: &str = "SELECT id, name, target FROM hosts WHERE state <> 'parked' \
     AND (state <> 'opted_out' OR opted_out_by = 'robots')";

pub(crate) const PARK: &str = "UPDATE hosts SET state = 'parked', since = ?2, due = NULL, in_flight = 0, state_before = NULL, \
     count = 0, gone = 0, gone_last = 0, target = NULL, opted_out_by = NULL, doublings = 0, last_note = ?3 WHERE id = ?1";

/// Mends at start, before the first check is taken, all but due times. Gives how many checks were interrupted.
pub(crate) fn recover(
    connection: &Connection,
    now: Timestamp,
    jitter_seed: u64,
    calendar: Calendar,
) -> Result<u64, StoreError> {
    park_invalid_names(connection, now)?;
    let rows = {
        let mut statement = connection.prepare(IN_FLIGHT)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        rows.collect::<Result<Vec<(i64, Option<i64>, u32)>, _>>()?
    };
    let mut interrupted = 0;
    for (id, due, interruptions) in rows {
        let interruptions = interruptions.saturating_add(1);
        let jitter = jitter(jitter_seed, id);
        let due = due_after_interruption(interruptions, due.map(Timestamp), now, jitter, calendar);
        connection.prepare_cached(INTERRUPTED)?.execute(params![
            id,
            interruptions,
            due.map(|due| due.0)
        ])?;
        interrupted += 1;
    }
    Ok(interrupted)
}

/// Brings due times back that lie further away than the longest interval, [`CLAMPED_MAX`] at once. Gives how many; as many, and there may be more.
///
/// Moments past that lie ahead of `now` are left alone, since it may be `now` that is wrong: a machine without a battery starts a year behind until it
/// has been told the time, and what were brought back to then would take the whole list for dead afterwards. Each host's second verdict by the clock
/// brings its own back (`census::transition`).
pub(crate) fn clamp(
    connection: &Connection,
    now: Timestamp,
    calendar: Calendar,
) -> Result<u32, StoreError> {
    let longest = now.plus(calendar.longest()).0;
    let day = span(now, calendar.day(Jitter(0)));
    let week = span(now, calendar.week(Jitter(0)));
    let waiting = connection.execute(CLAMP, params![now.0, longest, day, week, CLAMPED_MAX])?;
    let in_flight = connection.execute(CLAMP_IN_FLIGHT, params![now.0, longest])?;
    Ok(u32::try_from(waiting.saturating_add(in_flight)).unwrap_or(u32::MAX))
}

fn span(now: Timestamp, duration: std::time::Duration) -> i64 {
    now.plus(duration).0.saturating_sub(now.0)
}

/// Parks a row that can't be read, so that it never comes up again.
pub(crate) fn park_bad_row(
    connection: &Connection,
    id: i64,
    column: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    tracing::warn!(row = id, column, "row parked: it holds no valid {column}");
    let note = format!("parked: no valid {column}");
    connection
        .prepare_cached(PARK)?
        .execute(params![id, now.0, note])?;
    Ok(())
}

fn park_invalid_names(connection: &Connection, now: Timestamp) -> Result<(), StoreError> {
    let mut bad = Vec::new();
    {
        let mut statement = connection.prepare(NAMES)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let id = row.get(0)?;
            if !is_canonical(&row.get::<_, String>(1)?) {
                bad.push((id, "name"));
            } else if row
                .get::<_, Option<String>>(2)?
                .is_some_and(|target| !is_canonical(&target))
            {
                bad.push((id, "target"));
            }
        }
    }
    for (id, column) in bad {
        park_bad_row(connection, id, column, now)?;
    }
    Ok(())
}

/// Whether a stored name is still valid, and still its own canonical form: another one would be looked up in vain.
pub(crate) fn is_canonical(name: &str) -> bool {
    Host::parse(name).is_ok_and(|host| host.as_str() == name)
}

/// A random number per row (splitmix64), so that what one crash interrupted doesn't come due at one
/// moment.
pub(crate) fn jitter(seed: u64, id: i64) -> Jitter {
    let mut z = seed
        .wrapping_add(id.unsigned_abs())
        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    Jitter(u32::try_from(z >> 32).unwrap_or(0))
}

/// Writes the schema's version once more, which is a page of the file.
pub(crate) fn try_write(connection: &Connection) -> Result<(), StoreError> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(connection.pragma_update(None, "user_version", version)?)
}
