//! The storage in one SQLite file, which no other program opens.

mod error;
mod nodes;
mod outbox;
mod renew;
mod reserve;
mod room;
mod rows;
mod subscriptions;

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use files::{Disk, Lock, Mode, create_private, make_private};
use rusqlite::{
    Connection, OpenFlags, OptionalExtension as _, ToSql, Transaction, TransactionBehavior, params,
};
use rusqlite_migration::{M, Migrations};

use crate::ids::{ChannelId, Uaid};
use crate::notification::{Notification, Topic};

use self::reserve::Reserve;
use self::rows::{MESSAGE, batch, insert, message};
use super::{
    Condition, Key, MESSAGES_AT_ONCE, Room, Saved, StorageError, Stored, TOPICS_AT_ONCE,
    USER_SECONDS_MAX, User,
};

use error::coded;

pub use error::OpenError;
pub use outbox::{CONFIRMATION, Pending};
pub use subscriptions::{LAST_TOLD, NEWEST, SUBSCRIPTIONS_MAX};

/// “Fepu”: rejects databases of other programs.
const APPLICATION_ID: i64 = 1_181_053_045;

/// How long other nodes and backups may hold the file. Nodes hold it for moments, unless one of
/// them is stopped in between.
const BUSY_TIMEOUT: Duration = Duration::from_secs(20);

/// SQLite's own handler waits for up to 100 ms, and a write takes some 50 µs.
const BUSY_PAUSE: Duration = Duration::from_micros(200);

/// Most rows that one call of `sweep` removes, so that others never wait for long.
const SWEPT_AT_ONCE: u32 = 500;

static MIGRATIONS: &[M<'static>] = &[
    M::up(include_str!("../../migrations/0001_push.sql")),
    M::up(include_str!("../../migrations/0002_room.sql")),
    M::up(include_str!("../../migrations/0003_subscriptions.sql")),
    M::up(include_str!("../../migrations/0004_nodes.sql")),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Channels per user. A browser has one for each site that may notify.
    pub channels: u32,
    pub messages: u32,
    /// Waiting messages per channel, which belongs to one sender.
    pub channel_messages: u32,
    /// Bytes of the bodies of a user's messages, as they are stored.
    pub bytes: i64,
    /// Size of the file in bytes. The nearer it comes, the less is accepted.
    pub file_bytes: i64,
}

impl Limits {
    pub const ORDINARY: Self = Self {
        channels: 1000,
        messages: 1000,
        // With the 50 that may be in memory when a connection breaks, no more than the 150 for
        // which a client is reset. So one sender does not end an absent client's subscriptions.
        channel_messages: 100,
        bytes: 4 * 1024 * 1024,
        // Some four million messages of ordinary length.
        file_bytes: 4 * 1024 * 1024 * 1024,
    };
}

#[derive(Debug)]
pub struct Sqlite {
    connection: Mutex<Connection>,
    reserve: Reserve,
    limits: Limits,
    room: room::FileRoom,
    /// The last place given to a message.
    last_place: AtomicI64,
}

impl Sqlite {
    /// Opens the file, and creates it if it is missing.
    pub fn open(path: &Path, limits: Limits) -> Result<Self, OpenError> {
        let shown = path.display().to_string();
        let failed = |error| OpenError::Sqlite(shown.clone(), error);
        let unwritable = |error| OpenError::Unwritable(shown.clone(), error);
        // Several nodes may start at once, and only one of them may make the tables.
        let _lock = Lock::wait(&path.with_extension("lock")).map_err(unwritable)?;
        create_private(path).map_err(unwritable)?;
        let mut connection = Connection::open(path).map_err(failed)?;
        let number = |sql| -> Result<i64, OpenError> {
            connection
                .query_row(sql, [], |row| row.get(0))
                .map_err(failed)
        };
        let application_id = number("PRAGMA application_id")?;
        let tables = number("SELECT count(*) FROM sqlite_schema")?;
        if application_id != APPLICATION_ID && (application_id, tables) != (0, 0) {
            return Err(OpenError::Foreign(shown));
        }
        let (found, known) = (number("PRAGMA user_version")?, MIGRATIONS.len());
        if usize::try_from(found).is_ok_and(|found| found > known) {
            let path = shown;
            return Err(OpenError::Newer { path, found, known });
        }
        make_private(path).map_err(unwritable)?;
        prepare(&connection).map_err(failed)?;
        Migrations::from_slice(MIGRATIONS)
            .to_latest(&mut connection)
            .map_err(|error| OpenError::Schema(shown.clone(), error))?;
        // Places continue after the last one, even if the clock was set back.
        let last: i64 = connection
            .query_row(
                "SELECT max(coalesce((SELECT max(place_ms) FROM messages), 0), coalesce((SELECT max(last_place_ms) FROM users), 0))",
                [],
                |row| row.get(0),
            )
            .map_err(failed)?;
        let room = room::FileRoom::new(&connection, limits).map_err(failed)?;
        Ok(Self {
            connection: Mutex::new(connection),
            reserve: Reserve::of(path),
            room,
            limits,
            last_place: AtomicI64::new(last),
        })
    }

    /// Opens a file that must be a database of the push service already. [`Sqlite::open`] also
    /// makes one of a missing or empty file.
    pub fn open_existing(path: &Path, limits: Limits) -> Result<Self, OpenError> {
        let shown = || path.display().to_string();
        path.metadata()
            .map_err(|error| OpenError::Missing(shown(), error))?;
        let found: i64 = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .and_then(|c| c.query_row("PRAGMA application_id", [], |row| row.get(0)))
            .map_err(|error| OpenError::Sqlite(shown(), error))?;
        if found != APPLICATION_ID {
            return Err(OpenError::Foreign(shown()));
        }
        Self::open(path, limits)
    }

    /// Keeps space on the disk for the day when it is full.
    pub fn hold_reserve(&self) {
        self.reserve.hold();
    }

    /// Copies the database into a new file while it is in use.
    pub fn back_up(&self, to: &Path) -> Result<(), StorageError> {
        Disk::SYSTEM
            .create(to, Mode::Private)
            .map_err(StorageError::new)?;
        let name = to.to_string_lossy();
        let copied = self.read(|c| c.execute("VACUUM INTO ?1", [name]).map(|_| ()));
        if copied.is_err() {
            std::fs::remove_file(to).ok();
        }
        copied
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panic in between has rolled its transaction back.
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StorageError> {
        read(&self.connection()).map_err(|error| StorageError(coded(&error).into()))
    }

    fn write<T>(
        &self,
        write: impl Fn(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StorageError> {
        let mut connection = self.connection();
        let mut written = || -> rusqlite::Result<T> {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let written = write(&transaction)?;
            transaction.commit()?;
            Ok(written)
        };
        written().map_err(|error| StorageError(coded(&error).into()))
    }

    /// Runs one statement. Returns whether it changed a row.
    fn change(&self, sql: &str, params: &[&dyn ToSql]) -> Result<bool, StorageError> {
        self.write(|t| Ok(t.prepare_cached(sql)?.execute(params)? > 0))
    }
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_handler(Some(|tries| {
        std::thread::sleep(BUSY_PAUSE);
        let waited = u32::try_from(tries).map(|tries| BUSY_PAUSE.saturating_mul(tries));
        waited.is_ok_and(|waited| waited < BUSY_TIMEOUT)
    }))?;
    // With a write-ahead log and this setting, a killed process loses nothing; a machine that loses
    // power may lose the last moments.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    // The container has no folder for temporary files.
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "foreign_keys", true)
}

/// When a user expires whose last connection was at this time, in seconds since 1970.
fn expires_s(connected_ms: i64) -> i64 {
    connected_ms
        .div_euclid(1000)
        .saturating_add(USER_SECONDS_MAX)
}

/// What is stored. Each call is done entirely or not at all, and its result survives the process.
impl Sqlite {
    /// Writes something for a trial.
    pub fn try_write(&self, now_ms: i64) -> Result<Condition, StorageError> {
        self.reserve.hold();
        let messages = self.read(|c| {
            c.prepare_cached("SELECT coalesce(sum(messages), 0) FROM users")?
                .query_row([], |row| row.get(0))
        })?;
        let bytes = self.write(|t| {
            t.prepare_cached(
                "INSERT INTO secrets (name, value) VALUES ('trial', CAST(?1 AS BLOB)) \
                 ON CONFLICT DO UPDATE SET value = excluded.value",
            )?
            .execute([now_ms])?;
            self.room.measure(t)
        })?;
        Ok(Condition {
            is_short: self.reserve.is_short(),
            messages,
            bytes,
            displaced: self.room.displaced.load(Ordering::Relaxed),
        })
    }

    pub fn get_user(&self, uaid: Uaid) -> Result<Option<User>, StorageError> {
        self.read(|c| {
            c.prepare_cached(
                "SELECT connected_ms, node, read_to_ms, revision, made_ms FROM users WHERE uaid = ?1",
            )?
            .query_row([uaid.as_bytes()], |row| {
                Ok(User {
                    uaid,
                    made_ms: row.get(4)?,
                    made_at: None,
                    connected_ms: row.get(0)?,
                    node: row.get(1)?,
                    read_to_ms: row.get(2)?,
                    revision: row.get(3)?,
                })
            })
            .optional()
        })
    }

    /// Adds a user; false if the id is in use or there is no room, in the file or in its network's
    /// share.
    pub fn add_user(&self, user: &User) -> Result<bool, StorageError> {
        if self.reserve.is_short() {
            return Ok(false);
        }
        let network = self.room.network(user.made_at, user.made_ms);
        self.write(|t| {
            if !self.room.takes_user(t, &network)? {
                return Ok(false);
            }
            let added = t
                .prepare_cached(
                    "INSERT INTO users (uaid, connected_ms, node, read_to_ms, expires_s, made_ms, network, has_connected) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?3 IS NOT NULL) ON CONFLICT DO NOTHING",
                )?
                .execute(params![
                    user.uaid.as_bytes(),
                    user.connected_ms,
                    user.node,
                    user.read_to_ms,
                    expires_s(user.connected_ms),
                    user.made_ms,
                    network,
                ])?;
            Ok(added > 0)
        })
    }

    /// Replaces a record that is unchanged since it was read, or whose user is not connected, so
    /// that a client may connect while its former connection ends. Otherwise, or if there is no
    /// record, false.
    pub fn update_user(&self, user: &User) -> Result<bool, StorageError> {
        self.change(
            "UPDATE users SET connected_ms = ?3, node = ?4, expires_s = ?5, has_connected = 1, revision = revision + 1 \
             WHERE uaid = ?1 AND (revision = ?2 OR node IS NULL)",
            params![
                user.uaid.as_bytes(),
                user.revision,
                user.connected_ms,
                user.node,
                expires_s(user.connected_ms),
            ],
        )
    }

    /// Removes a user with its channels and messages; false if it does not exist.
    pub fn remove_user(&self, uaid: Uaid) -> Result<bool, StorageError> {
        let sql = "DELETE FROM users WHERE uaid = ?1";
        self.change(sql, params![uaid.as_bytes()])
    }

    /// Forgets where a user is connected, if the record is unchanged since it was read; otherwise
    /// false. So an unreachable node does not undo a connection to another one. The user's time
    /// without a connection begins now.
    pub fn remove_node(&self, user: &User, now_ms: i64) -> Result<bool, StorageError> {
        let uaid = user.uaid.as_bytes();
        self.change(
            "UPDATE users SET node = NULL, revision = revision + 1, \
             expires_s = max(expires_s, ?3) WHERE uaid = ?1 AND revision = ?2",
            params![uaid, user.revision, expires_s(now_ms)],
        )
    }

    /// Adds a channel; false if the user does not exist or has too many, or there is no room. An
    /// existing channel counts as added.
    pub fn add_channel(&self, uaid: Uaid, channel: ChannelId) -> Result<bool, StorageError> {
        if self.reserve.is_short() {
            return Ok(false);
        }
        let most = self.limits.channels;
        self.write(|t| {
            if !self.room.takes_channel(t, uaid)? {
                return Ok(false);
            }
            let added = t
                .prepare_cached(
                    "INSERT INTO channels (uaid, channel, messages) \
                     SELECT ?1, ?2, (SELECT count(*) FROM messages WHERE uaid = ?1 AND channel = ?2) WHERE EXISTS (SELECT 1 FROM users WHERE uaid = ?1) \
                     AND (SELECT count(*) FROM channels WHERE uaid = ?1 AND channel <> ?2) < ?3 \
                     ON CONFLICT DO UPDATE SET channel = excluded.channel",
                )?
                .execute(params![uaid.as_bytes(), channel.as_bytes(), most])?;
            Ok(added > 0)
        })
    }

    pub fn channels(&self, uaid: Uaid) -> Result<Vec<ChannelId>, StorageError> {
        self.read(|c| {
            let mut statement =
                c.prepare_cached("SELECT channel FROM channels WHERE uaid = ?1 ORDER BY channel")?;
            let rows = statement.query_map([uaid.as_bytes()], |row| {
                Ok(ChannelId::from_bytes(row.get(0)?))
            })?;
            rows.collect()
        })
    }

    /// How many messages a channel still takes; `None` if the user has no such channel.
    pub fn channel_room(
        &self,
        uaid: Uaid,
        channel: ChannelId,
    ) -> Result<Option<u32>, StorageError> {
        let most = self.limits.channel_messages;
        self.read(|c| {
            c.prepare_cached(
                "SELECT max(?3 - messages, 0) FROM channels WHERE uaid = ?1 AND channel = ?2",
            )?
            .query_row(params![uaid.as_bytes(), channel.as_bytes(), most], |row| {
                row.get(0)
            })
            .optional()
        })
    }

    /// Removes a channel with its messages; false if it does not exist.
    pub fn remove_channel(&self, uaid: Uaid, channel: ChannelId) -> Result<bool, StorageError> {
        self.write(|t| {
            let ids = params![uaid.as_bytes(), channel.as_bytes()];
            t.prepare_cached("DELETE FROM messages WHERE uaid = ?1 AND channel = ?2")?
                .execute(ids)?;
            let removed = t
                .prepare_cached("DELETE FROM channels WHERE uaid = ?1 AND channel = ?2")?
                .execute(ids)?;
            Ok(removed > 0)
        })
    }

    /// The longest time that a message which arrives now may wait, in seconds: the fuller, the
    /// shorter.
    pub fn ttl_max_s(&self) -> u32 {
        self.room.ttl_max_s()
    }

    /// A place for a message that arrives now: later than every earlier place.
    pub fn place(&self, now_ms: i64) -> i64 {
        let next = |last: i64| Some(now_ms.max(last.saturating_add(1)));
        match self
            .last_place
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
        {
            Ok(last) | Err(last) => now_ms.max(last.saturating_add(1)),
        }
    }

    /// Saves messages. If a message's place is taken, it gets the next one. A full user loses the
    /// oldest messages of the channel that has most.
    pub fn save(
        &self,
        uaid: Uaid,
        messages: &[Notification],
        room: Room,
    ) -> Result<Saved, StorageError> {
        if self.reserve.is_short() && room == Room::Limited {
            return Ok(Saved::Full);
        }
        let (saved, displaced) = self.write(|t| {
            let user: Option<(Vec<u8>, i64)> = t
                .prepare_cached("SELECT network, last_place_ms FROM users WHERE uaid = ?1")?
                .query_row([uaid.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let Some((network, mut last)) = user else {
                return Ok((Saved::NoUser, 0));
            };
            if !self.room.takes(t, (uaid, &network), messages, room)? {
                return Ok((Saved::Full, 0));
            }
            // Requests overtake each other, and another node gives places too.
            // Within a user each place must be later than all former ones: a client that has
            // acknowledged a later message would never get this one.
            for message in messages {
                let mut place_ms = message.place_ms;
                if message.topic.is_none() {
                    place_ms = place_ms.max(last.saturating_add(1));
                    last = place_ms;
                }
                insert(t, uaid, message, place_ms, room)?;
            }
            let displaced = self.room.displace(t, uaid, messages.first())?;
            Ok((Saved::Stored, displaced))
        })?;
        self.room.displaced.fetch_add(displaced, Ordering::Relaxed);
        Ok(saved)
    }

    /// A user's unexpired messages with a topic, [`TOPICS_AT_ONCE`] at most.
    pub fn fetch_topics(&self, uaid: Uaid, now_s: i64) -> Result<Vec<Notification>, StorageError> {
        self.read(|c| {
            let mut statement = c.prepare_cached(&format!(
                "{MESSAGE} WHERE uaid = ?1 AND sort_ms = 0 AND expires_s > ?2 LIMIT {TOPICS_AT_ONCE}"
            ))?;
            let rows = statement.query_map(params![uaid.as_bytes(), now_s], message)?;
            batch(rows)
        })
    }

    /// A user's unexpired messages without a topic after a place, in order, [`MESSAGES_AT_ONCE`] at
    /// most.
    pub fn fetch_after(
        &self,
        uaid: Uaid,
        after_ms: i64,
        now_s: i64,
    ) -> Result<Vec<Notification>, StorageError> {
        self.read(|c| {
            let mut statement = c.prepare_cached(&format!(
                "{MESSAGE} WHERE uaid = ?1 AND sort_ms > ?2 AND expires_s > ?3 ORDER BY sort_ms LIMIT {MESSAGES_AT_ONCE}"
            ))?;
            let after = after_ms.max(0);
            let rows = statement.query_map(params![uaid.as_bytes(), after, now_s], message)?;
            batch(rows)
        })
    }

    /// Removes messages; missing ones count as removed. Newer messages with the same keys stay.
    pub fn remove(&self, uaid: Uaid, messages: &[Stored]) -> Result<(), StorageError> {
        self.write(|t| {
            let mut statement = t.prepare_cached(
                "DELETE FROM messages WHERE uaid = ?1 AND sort_ms = ?2 AND channel = ?3 AND topic = ?4 AND version = ?5",
            )?;
            for Stored { key, version } in messages {
                let (channel, sort_ms, topic) = match key {
                    Key::Topic { channel, topic } => (channel, 0, topic.to_string()),
                    Key::Time { channel, place_ms } => (channel, *place_ms, String::new()),
                };
                statement.execute(params![
                    uaid.as_bytes(),
                    sort_ms,
                    channel.as_bytes(),
                    topic,
                    version
                ])?;
            }
            Ok(())
        })
    }

    /// Removes a channel's message with this topic; false if there is none.
    pub fn withdraw_topic(
        &self,
        uaid: Uaid,
        channel: ChannelId,
        topic: &Topic,
    ) -> Result<bool, StorageError> {
        self.change(
            "DELETE FROM messages WHERE uaid = ?1 AND sort_ms = 0 AND channel = ?2 AND topic = ?3",
            params![uaid.as_bytes(), channel.as_bytes(), topic.to_string()],
        )
    }

    /// Removes the message with this version and any key; false if there is none.
    pub fn withdraw(&self, uaid: Uaid, version: &str) -> Result<bool, StorageError> {
        let sql = "DELETE FROM messages WHERE uaid = ?1 AND version = ?2";
        self.change(sql, params![uaid.as_bytes(), version])
    }

    /// Removes all messages without a topic up to a place, and remembers the place.
    pub fn advance(&self, uaid: Uaid, to_ms: i64) -> Result<(), StorageError> {
        self.write(|t| {
            let to = params![uaid.as_bytes(), to_ms];
            t.prepare_cached("UPDATE users SET read_to_ms = max(read_to_ms, ?2) WHERE uaid = ?1")?
                .execute(to)?;
            t.prepare_cached(
                "DELETE FROM messages WHERE uaid = ?1 AND sort_ms > 0 AND sort_ms <= ?2",
            )?
            .execute(to)?;
            Ok(())
        })
    }

    /// Removes expired messages and users, and makes room in a file that is nearly full, some at
    /// once. Returns whether there may be more.
    pub fn sweep(&self, now_s: i64) -> Result<bool, StorageError> {
        let (displaced, is_more) = self.write(|t| {
            let messages = t
                .prepare_cached(
                    "DELETE FROM messages WHERE (uaid, sort_ms, channel, topic) IN \
                     (SELECT uaid, sort_ms, channel, topic FROM messages WHERE expires_s <= ?1 LIMIT ?2)",
                )?
                .execute(params![now_s, SWEPT_AT_ONCE])?;
            nodes::forget_gone(t, now_s.saturating_mul(1000))?;
            // A connected user is not removed, however long ago it connected.
            let users = t
                .prepare_cached(
                    "DELETE FROM users WHERE uaid IN \
                     (SELECT uaid FROM users WHERE expires_s <= ?1 AND node IS NULL LIMIT ?2)",
                )?
                .execute(params![now_s, SWEPT_AT_ONCE])?;
            let most = usize::try_from(SWEPT_AT_ONCE).unwrap_or(usize::MAX);
            let (displaced, is_more) = self.room.free(t, now_s)?;
            Ok((displaced, is_more || messages >= most || users >= most))
        })?;
        self.room.displaced.fetch_add(displaced, Ordering::Relaxed);
        Ok(is_more)
    }
}

#[cfg(test)]
mod tests;
