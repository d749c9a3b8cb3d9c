//! The past verdicts of hosts in a long census: most of a database's bytes.

use std::path::Path;

use anyhow::Result;
use rusqlite::{Connection, params};

/// Hosts whose verdicts are written together, so that the log stays small.
const AT_ONCE: i64 = 20_000;

/// As many verdicts as the store keeps for a host that responded and for one that never did, a day
/// apart, the last one at its last check.
const FILL: &str = "INSERT INTO history (host_id, seq, at, verdict, reason) \
     WITH numbers (n) AS (VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)) \
     SELECT id, n, last_checked - (most - n) * 104400000, \
        CASE WHEN state = 'alive' OR (state = 'dying' AND n <= most - count) THEN 'alive' ELSE 'dead' END, \
        CASE WHEN state = 'alive' OR (state = 'dying' AND n <= most - count) THEN NULL ELSE 'no_such_name' END \
     FROM (SELECT id, state, count, last_checked, CASE WHEN last_alive IS NULL THEN 3 ELSE 10 END AS most \
        FROM hosts WHERE id > ?1 AND id <= ?2) JOIN numbers ON n <= most ORDER BY id, n";

/// Writes the past verdicts of all hosts of a census that no process has open. Returns their
/// number.
pub(crate) fn fill(database: &Path) -> Result<u64> {
    let connection = Connection::open(database)?;
    // A benchmark's own file, which is recreated if the machine crashes now.
    connection.pragma_update(None, "synchronous", "OFF")?;
    let last: i64 = connection.query_row("SELECT coalesce(max(id), 0) FROM hosts", [], |row| {
        row.get(0)
    })?;
    let mut written = 0;
    let mut after = 0;
    while after < last {
        let rows = connection.execute(FILL, params![after, after + AT_ONCE])?;
        written += u64::try_from(rows)?;
        after += AT_ONCE;
    }
    connection.close().map_err(|(_, error)| error)?;
    std::fs::File::open(database)?.sync_all()?;
    Ok(written)
}
