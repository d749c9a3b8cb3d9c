//! The table `history`: the last verdicts of each host, for explanations. Faults are never recorded
//! here, since they are not the host's.
//!
//! Each host's history is bounded. Most names in a large census were never found alive, and keep
//! fewer verdicts.

use census::state::Record;
use census::time::Timestamp;
use census::transition::Entry;
use rusqlite::{Connection, Row, params};

use crate::db::error::StoreError;

/// Verdicts kept per host: a week and a half of daily ones, enough for a whole Dying period.
pub(crate) const HISTORY_MAX: u32 = 10;

/// Verdicts kept for a host that was never alive: enough to see whether it always fails in the same
/// way. Its row has the count and the start of its failures.
pub(crate) const NEVER_ALIVE_MAX: u32 = 3;

pub(crate) const APPEND: &str = "INSERT INTO history (host_id, seq, at, verdict, reason) \
     SELECT ?1, coalesce(max(seq), 0) + 1, ?2, ?3, ?4 FROM history WHERE host_id = ?1";

pub(crate) const PRUNE: &str = "DELETE FROM history WHERE host_id = ?1 \
     AND seq <= (SELECT max(seq) FROM history WHERE host_id = ?1) - ?2";

pub(crate) const NEWEST_FIRST: &str =
    "SELECT at, verdict, reason FROM history WHERE host_id = ?1 ORDER BY seq DESC LIMIT ?2";

/// Adds a verdict and drops surplus old ones. `record` is the host's record after the verdict.
pub(crate) fn append(
    connection: &Connection,
    host_id: i64,
    record: &Record,
    entry: &Entry,
) -> Result<(), StoreError> {
    let most = match record.last_alive {
        Some(_) => HISTORY_MAX,
        None => NEVER_ALIVE_MAX,
    };
    connection.prepare_cached(APPEND)?.execute(params![
        host_id,
        entry.at.0,
        entry.verdict,
        entry.reason
    ])?;
    connection
        .prepare_cached(PRUNE)?
        .execute(params![host_id, most])?;
    Ok(())
}

pub(crate) fn newest_first(
    connection: &Connection,
    host_id: i64,
) -> Result<Vec<Entry>, StoreError> {
    let mut statement = connection.prepare_cached(NEWEST_FIRST)?;
    let entries = statement.query_map(params![host_id, HISTORY_MAX], entry)?;
    Ok(entries.collect::<Result<_, _>>()?)
}

pub(crate) fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry {
        at: Timestamp(row.get(0)?),
        verdict: row.get(1)?,
        reason: row.get(2)?,
    })
}
