//! Where users are connected.

use rusqlite::{OptionalExtension as _, Transaction, params};

use crate::ids::Uaid;
use crate::storage::{Presence, StorageError};

use super::{Sqlite, expires_s};

/// A node that was not seen for this long is gone: a machine may sleep for a night.
const UNSEEN_MS_MAX: i64 = 24 * 60 * 60 * 1000;

impl Sqlite {
    /// Forgets where users are connected, for their node, which starts. They were connected until
    /// now.
    pub fn forget_connections(&self, node: &str, now_ms: i64) -> Result<(), StorageError> {
        self.write(|t| forget(t, node, now_ms))
    }

    pub fn see_node(&self, node: &str, now_ms: i64) -> Result<(), StorageError> {
        let sql = "INSERT OR REPLACE INTO nodes (name, seen_ms) VALUES (?1, ?2)";
        self.change(sql, params![node, now_ms]).map(|_noted| ())
    }

    /// Checks that a user's record names the node where the user has been connected since a time,
    /// in milliseconds since 1970. A record that names none names it again.
    pub fn confirm_node(
        &self,
        uaid: Uaid,
        node: &str,
        connected_ms: i64,
    ) -> Result<Presence, StorageError> {
        let found: Option<Option<String>> = self.read(|c| {
            c.prepare_cached("SELECT node FROM users WHERE uaid = ?1 AND connected_ms = ?2")?
                .query_row(params![uaid.as_bytes(), connected_ms], |row| row.get(0))
                .optional()
        })?;
        match found {
            Some(Some(named)) if named == node => return Ok(Presence::Recorded),
            Some(None) => {}
            Some(Some(_)) | None => return Ok(Presence::Elsewhere),
        }
        let restored = self.change(
            "UPDATE users SET node = ?3, revision = revision + 1 \
             WHERE uaid = ?1 AND connected_ms = ?2 AND node IS NULL",
            params![uaid.as_bytes(), connected_ms, node],
        )?;
        Ok(match restored {
            true => Presence::Restored,
            false => Presence::Elsewhere,
        })
    }
}

/// Forgets where users were connected of a node that is gone, if there is one.
pub(super) fn forget_gone(t: &Transaction<'_>, now_ms: i64) -> rusqlite::Result<()> {
    let unseen_ms = now_ms.saturating_sub(UNSEEN_MS_MAX);
    let gone: Option<String> = t
        .prepare_cached(
            "DELETE FROM nodes WHERE name = (SELECT name FROM nodes WHERE seen_ms <= ?1 LIMIT 1) \
             RETURNING name",
        )?
        .query_row([unseen_ms], |row| row.get(0))
        .optional()?;
    gone.map_or(Ok(()), |node| forget(t, &node, now_ms))
}

fn forget(t: &Transaction<'_>, node: &str, now_ms: i64) -> rusqlite::Result<()> {
    t.execute(
        "UPDATE users SET node = NULL, revision = revision + 1, \
         expires_s = max(expires_s, ?2) WHERE node = ?1",
        params![node, expires_s(now_ms)],
    )
    .map(|_| ())
}
