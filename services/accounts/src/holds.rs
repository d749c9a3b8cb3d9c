//! Bans and locks: the login limiter's records, under keyed hashes.

use std::collections::VecDeque;

use data_encoding::HEXLOWER;
use limiter::login::record::{Record, Timestamp};
use limiter::login::state::{Key, State};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::error::AccountsError;
use crate::file::{Accounts, millis, timestamp};

/// Most records: about 20 MB. When a further one arrives, half of them are dropped: records without
/// a ban or lock first, then those whose ban or lock ends soonest.
pub(crate) const HOLDS_MAX: u32 = 100_000;

/// Most bans and locks that are shown.
const SHOWN_MAX: u32 = 1000;

/// A ban or lock in force, as moderators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldShown {
    /// The id for lifting it. It does not reveal the address.
    pub id: String,
    /// `address`, `user` or `device`.
    pub kind: String,
    /// The locked moderator. `None` if there is no account of that name.
    pub moderator: Option<String>,
    pub until: Timestamp,
    /// How often the address was banned lately.
    pub bans: u32,
}

impl Accounts {
    /// Bans and locks in force, those that end last first.
    pub fn holds(&self, now: Timestamp) -> Result<Vec<HoldShown>, AccountsError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT key, kind, moderator, held_until, bans FROM holds WHERE held_until > ?1 \
             ORDER BY held_until DESC, key LIMIT ?2",
        )?;
        let rows = statement.query_map([millis(now), i64::from(SHOWN_MAX)], |row| {
            let key: [u8; 32] = row.get(0)?;
            Ok(HoldShown {
                id: HEXLOWER.encode(&key),
                kind: row.get(1)?,
                moderator: row.get(2)?,
                until: timestamp(row.get(3)?),
                bans: row.get(4)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Lifts a ban or lock by its [`HoldShown::id`], and deletes the attempts that caused it.
    /// Returns whether it existed.
    pub fn lift(&mut self, id: &str) -> Result<bool, AccountsError> {
        let Ok(key) = HEXLOWER.decode(id.as_bytes()) else {
            return Ok(false);
        };
        let sql = "DELETE FROM holds WHERE key = ?1";
        Ok(self.connection.execute(sql, [key])? > 0)
    }

    fn hashed(&self, key: &Key) -> (&'static str, [u8; 32]) {
        let (kind, parts): (_, &[&[u8]]) = match key {
            Key::Address(address) => ("address", &[b"address", address.as_bytes()]),
            Key::User(user) => ("user", &[b"user", user.as_bytes()]),
            Key::Device { user, device } => {
                ("device", &[b"device", user.as_bytes(), device.as_bytes()])
            }
        };
        (kind, self.keys.hold.hash(parts))
    }

    /// The hash under which a user's failures and locks are stored.
    pub(crate) fn user_hash(&self, name: &str) -> [u8; 32] {
        self.hashed(&Key::User(name.to_owned())).1
    }

    pub(crate) fn count_holds(&mut self) -> Result<(), AccountsError> {
        let sql = "SELECT count(*) FROM holds";
        self.holds = self.connection.query_row(sql, [], |row| row.get(0))?;
        Ok(())
    }

    fn make_room(&mut self) -> Result<(), AccountsError> {
        if self.holds < self.holds_max {
            return Ok(());
        }
        self.connection.execute(
            "DELETE FROM holds WHERE (kind, key) IN (SELECT kind, key FROM holds \
             ORDER BY held_until NULLS FIRST, newest LIMIT ?1)",
            [self.holds_max.div_ceil(2)],
        )?;
        // Counted again instead of calculated, because a command may have deleted some as well.
        self.count_holds()
    }
}

impl State for Accounts {
    type Error = AccountsError;

    fn get(&mut self, key: &Key) -> Result<Record, AccountsError> {
        let (kind, hash) = self.hashed(key);
        let mut statement = self.connection.prepare_cached(
            "SELECT times, held_until, bans, quiet_since FROM holds WHERE kind = ?1 AND key = ?2",
        )?;
        let found = statement
            .query_row(params![kind, hash], record)
            .optional()?;
        Ok(found.unwrap_or_default())
    }

    fn put(&mut self, key: Key, record: Record) -> Result<(), AccountsError> {
        let (kind, hash) = self.hashed(&key);
        let user = match &key {
            Key::Address(_) => None,
            Key::User(user) | Key::Device { user, .. } => Some(user),
        };
        if update(&self.connection, kind, &hash, &record)? {
            return Ok(());
        }
        self.make_room()?;
        let (times, newest) = times(&record);
        self.connection.execute(
            "INSERT INTO holds (kind, key, moderator, times, newest, held_until, bans, quiet_since) \
             VALUES (?1, ?2, (SELECT name FROM moderators WHERE name = ?3), ?4, ?5, ?6, ?7, ?8)",
            params![
                kind,
                hash,
                user,
                times,
                newest,
                record.held_until.map(millis),
                record.bans,
                millis(record.quiet_since)
            ],
        )?;
        self.holds = self.holds.saturating_add(1);
        Ok(())
    }

    fn retain(
        &mut self,
        mut keep: impl FnMut(&Key, &mut Record) -> bool,
    ) -> Result<(), AccountsError> {
        let transaction = self.connection.transaction()?;
        let mut changed = Vec::new();
        {
            let mut statement = transaction.prepare_cached(
                "SELECT times, held_until, bans, quiet_since, kind, key FROM holds",
            )?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (before, kind, hash) = (record(row)?, row.get::<_, String>(4)?, row.get(5)?);
                let mut after = before.clone();
                let kept = keep(&standing_for(&kind), &mut after);
                if !kept || after != before {
                    changed.push((kind, hash, kept.then_some(after)));
                }
            }
        }
        for (kind, hash, kept) in changed {
            let hash: [u8; 32] = hash;
            let Some(record) = kept else {
                let sql = "DELETE FROM holds WHERE kind = ?1 AND key = ?2";
                transaction.execute(sql, params![kind, hash])?;
                continue;
            };
            update(&transaction, &kind, &hash, &record)?;
        }
        transaction.commit()?;
        self.count_holds()
    }
}

/// Replaces a record. Returns whether it existed.
fn update(
    connection: &Connection,
    kind: &str,
    hash: &[u8; 32],
    record: &Record,
) -> Result<bool, AccountsError> {
    let mut statement = connection.prepare_cached(
        "UPDATE holds SET times = ?3, newest = ?4, held_until = ?5, bans = ?6, quiet_since = ?7 \
         WHERE kind = ?1 AND key = ?2",
    )?;
    let (times, newest) = times(record);
    let held_until = record.held_until.map(millis);
    let quiet_since = millis(record.quiet_since);
    let values = params![
        kind,
        hash,
        times,
        newest,
        held_until,
        record.bans,
        quiet_since
    ];
    Ok(statement.execute(values)? > 0)
}

/// The times of a record in the file's format, and the newest one.
fn times(record: &Record) -> (Vec<u8>, i64) {
    let times = record
        .times
        .iter()
        .flat_map(|time| millis(*time).to_be_bytes());
    let newest = record.times.back().copied().unwrap_or_default();
    (times.collect(), millis(newest))
}

/// A key of this kind with an empty name, because the name is not stored.
fn standing_for(kind: &str) -> Key {
    match kind {
        "address" => Key::Address(String::new()),
        _ => Key::User(String::new()),
    }
}

/// Reads a record from the first four columns.
fn record(row: &Row<'_>) -> Result<Record, rusqlite::Error> {
    let times: Vec<u8> = row.get(0)?;
    let (times, _) = times.as_chunks();
    let times = times
        .iter()
        .map(|bytes| timestamp(i64::from_be_bytes(*bytes)));
    Ok(Record {
        times: times.collect::<VecDeque<_>>(),
        held_until: row.get::<_, Option<i64>>(1)?.map(timestamp),
        bans: row.get(2)?,
        quiet_since: timestamp(row.get(3)?),
    })
}

#[cfg(test)]
mod tests;
