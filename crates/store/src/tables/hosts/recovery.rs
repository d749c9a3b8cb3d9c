//! Recovery at start after a crash, a clock jump or a change of the rules for names.
//!
//! Works on the whole table. An invalid row is parked and never stops the recovery.

use census::schedule::due_after_interruption;
use census::time::{Calendar, Jitter, Timestamp};
use protocol::Host;
use rusqlite::{Connection, params};

use crate::db::error::StoreError;

pub(crate) const IN_FLIGHT: &str = "SELECT id, due, interruptions FROM hosts WHERE in_flight = 1";

pub(crate) const INTERRUPTED: &str = "UPDATE hosts SET in_flight = 0, interruptions = ?2, due = ?3, last_note = 'interrupted' WHERE id = ?1";

/// Due times brought back per transaction. SQLite keeps a statement's changes in memory until it is
/// done: for all rows of ten million that took 1.3 GB, and blocked other writes for half a minute.
pub(crate) const CLAMPED_MAX: u32 = 2000;

/// Hosts that are checked daily are spread over a day, the others over a week. A clock jump must
/// neither leave the whole list unchecked for a month nor make all of it due at once. The row's id
/// replaces a random number.
pub(crate) const CLAMP: &str = "UPDATE hosts SET due = ?1 + (id * 7919 % 1000) * \
     (CASE WHEN state IN ('discovered', 'alive', 'dying', 'moving') THEN ?3 ELSE ?4 END) / 1000 \
     WHERE id IN (SELECT id FROM hosts WHERE in_flight = 0 AND due IS NOT NULL AND class IN (0, 1, 2, 3) AND due > ?2 LIMIT ?5)";

pub(crate) const CLAMP_IN_FLIGHT: &str =
    "UPDATE hosts SET due = ?2 WHERE in_flight = 1 AND due > ?2";

/// A host that an owner or a moderator opted out is never checked anyway, and parking it would
/// overwrite the opt-out (invariant I7).
pub(crate) const NAMES: &str = "SELECT id, name, target FROM hosts WHERE state <> 'parked' \
     AND (state <> 'opted_out' OR opted_out_by = 'robots')";

pub(crate) const PARK: &str = "UPDATE hosts SET state = 'parked', since = ?2, due = NULL, in_flight = 0, state_before = NULL, \
     count = 0, gone = 0, gone_last = 0, target = NULL, opted_out_by = NULL, doublings = 0, last_note = ?3 WHERE id = ?1";

/// Repairs everything except due times, before the first check starts. Returns the number of
/// interrupted checks.
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

/// Brings back due times that are further away than the longest interval, at most [`CLAMPED_MAX`]
/// at once. Returns their number; if it equals the limit, there may be more.
///
/// Other times that are ahead of `now` are left alone, since `now` may be wrong. A machine without
/// a battery starts with a clock a year behind until it learns the time. Setting stored times back
/// to that would make all listed hosts count as dead afterwards. Each host's second verdict after
/// the clock is right corrects its times (`census::transition`).
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

/// Parks an unreadable row, so that it never comes due again.
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

/// Whether a stored name is still valid and in canonical form. A name in another form would never
/// be found by a look-up.
pub(crate) fn is_canonical(name: &str) -> bool {
    Host::parse(name).is_ok_and(|host| host.as_str() == name)
}

/// A pseudo-random number per row (splitmix64), so that the checks that one crash interrupted don't
/// all come due at once.
pub(crate) fn jitter(seed: u64, id: i64) -> Jitter {
    let mut z = seed
        .wrapping_add(id.unsigned_abs())
        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    Jitter(u32::try_from(z >> 32).unwrap_or(0))
}

/// Writes the schema version again, which writes a page of the file.
pub(crate) fn try_write(connection: &Connection) -> Result<(), StoreError> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(connection.pragma_update(None, "user_version", version)?)
}
