//! A new beginning after a theft of the file: other secrets, and nobody who was known before.

use rusqlite::params;

use crate::storage::{Removed, StorageError};

use super::Sqlite;

/// Also empties the log.
const LOG_INTO_FILE: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

impl Sqlite {
    /// Replaces all secrets by `secrets`, and removes users, channels, messages and subscriptions.
    /// Overwrites them in the file and empties its log. Until then this needs as much free room on
    /// the disk as the file takes.
    pub fn renew(&self, secrets: &[(&str, &[u8])]) -> Result<Removed, StorageError> {
        self.read(|c| c.pragma_update(None, "secure_delete", true))?;
        let removed = self.write(|t| {
            let count = |sql| t.query_row(sql, [], |row| row.get(0));
            let removed = Removed {
                users: count("SELECT count(*) FROM users")?,
                channels: count("SELECT count(*) FROM channels")?,
                messages: count("SELECT count(*) FROM messages")?,
                subscriptions: count("SELECT count(*) FROM subscriptions")?,
            };
            // The last notified list is no secret.
            t.execute_batch(
                "DELETE FROM messages; DELETE FROM channels; DELETE FROM users; \
                 DELETE FROM subscriptions; DELETE FROM secrets WHERE name NOT IN ('last_told', 'newest')",
            )?;
            for (name, value) in secrets {
                let insert = "INSERT INTO secrets (name, value) VALUES (?1, ?2)";
                t.execute(insert, params![name, value])?;
            }
            Ok(removed)
        })?;
        self.read(|c| {
            let log_into_file = || c.query_row(LOG_INTO_FILE, [], |_| Ok(()));
            // Before `VACUUM` cuts the overwritten pages off.
            log_into_file()?;
            c.execute_batch("VACUUM")?;
            log_into_file()
        })?;
        Ok(removed)
    }
}
