//! Room: of the file for everybody, of one network, and of one user.
//!
//! The fuller the file, the more it saves: new messages wait for a shorter time, then networks have
//! a share, then users that never connected are removed, then messages for them. Messages for users
//! that connected are never removed for others.

use std::net::IpAddr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ring::hmac;
use ring::rand::SystemRandom;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::ids::Uaid;
use crate::notification::{Notification, TTL_SECONDS_MAX, Topic};
use crate::storage::Room;
use crate::storage::networks::{self, Addresses};

use super::{Limits, SWEPT_AT_ONCE};

/// Parts of the file's limit. The constants below count them.
const PARTS: i64 = 32;

/// From here on, new messages wait for a shorter time.
const TTLS_SHORTEN_FROM: i64 = 16;

/// From here on, each network has a share.
const SHARES_FROM: i64 = 20;

/// From here on, users that never connected and have no messages are removed.
const UNUSED_GO_FROM: i64 = 24;

/// From here on, messages for users that never connected are removed.
const UNREAD_GO_FROM: i64 = 28;

/// The limit for messages. The rest is for the census's notifications, and a part of it for users
/// and channels, which its readers need.
const MESSAGES_TO: i64 = 30;

const USERS_TO: i64 = 31;

/// One of so many parts of the file is a network's share. It counts what users that the network
/// made on one day take, as long as they exist: on the next day, the network has another hash and
/// another share. Users that never connect again are removed after 60 days, so their network takes
/// less than all, and with messages, which wait for 30 days, less than half.
const SHARES: i64 = 64;

/// The shortest time to which that of new messages is cut: browsers that are restarted get them.
const TTL_S_MIN: u32 = 60 * 60;

/// How long a user that never connected is kept at least: it may be about to.
const UNUSED_MS_MIN: i64 = 60 * 60 * 1000;

/// More than a call adds to the file: a message of the largest size, with its pages and indexes.
const CALL_BYTES_MAX: i64 = 32 * 1024;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

const HASH_BYTES: usize = 16;

#[derive(Debug, Default)]
struct Networks {
    /// The day, since 1970, and its key. It is never stored: there are few enough networks to try
    /// all.
    key: Option<(i64, hmac::Key)>,
    addresses: Addresses,
}

impl Networks {
    /// The hash of an address's network today; empty if it is unknown.
    fn hash(&mut self, address: Option<IpAddr>, now_ms: i64) -> Vec<u8> {
        let Some(address) = address else {
            return Vec::new();
        };
        self.addresses.note(address);
        let today = now_ms.div_euclid(DAY_MS);
        self.key.take_if(|(day, _)| *day != today);
        if self.key.is_none() {
            let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
            self.key = key.ok().map(|key| (today, key));
        }
        let network = networks::network(address).to_string();
        let hash = self.key.as_ref().and_then(|(_, key)| {
            let tag = hmac::sign(key, network.as_bytes());
            tag.as_ref().get(..HASH_BYTES).map(<[u8]>::to_vec)
        });
        hash.unwrap_or_default()
    }
}

#[derive(Debug)]
pub(super) struct FileRoom {
    limits: Limits,
    /// Bytes in use when they were last read.
    used: AtomicI64,
    /// As many as are in use now or more, but for messages without limits and another node's.
    estimate: AtomicI64,
    pub(super) displaced: AtomicU64,
    networks: Mutex<Networks>,
}

impl FileRoom {
    pub(super) fn new(connection: &Connection, limits: Limits) -> rusqlite::Result<Self> {
        let room = Self {
            limits,
            used: AtomicI64::new(0),
            estimate: AtomicI64::new(0),
            displaced: AtomicU64::new(0),
            networks: Mutex::default(),
        };
        room.measure(connection)?;
        Ok(room)
    }

    /// The hash of an address's network today; empty if it is unknown.
    pub(super) fn network(&self, address: Option<IpAddr>, now_ms: i64) -> Vec<u8> {
        self.networks().hash(address, now_ms)
    }

    /// See [`super::Sqlite::ttl_max_s`].
    pub(super) fn ttl_max_s(&self) -> u32 {
        let (from, to) = (self.part(TTLS_SHORTEN_FROM), self.part(MESSAGES_TO));
        let range = to.saturating_sub(from).max(1);
        let left = to.saturating_sub(self.used.load(Ordering::Relaxed));
        let cut = i64::from(TTL_SECONDS_MAX.saturating_sub(TTL_S_MIN));
        let rest = cut.saturating_mul(left.clamp(0, range)).div_euclid(range);
        TTL_S_MIN.saturating_add(u32::try_from(rest).unwrap_or(0))
    }

    /// Whether this user has room for a channel.
    pub(super) fn takes_channel(&self, c: &Connection, uaid: Uaid) -> rusqlite::Result<bool> {
        let network: Option<Vec<u8>> = c
            .prepare_cached("SELECT network FROM users WHERE uaid = ?1")?
            .query_row([uaid.as_bytes()], |row| row.get(0))
            .optional()?;
        self.takes_user(c, &network.unwrap_or_default())
    }

    /// Whether a user of this network has room.
    pub(super) fn takes_user(&self, c: &Connection, network: &[u8]) -> rusqlite::Result<bool> {
        self.takes_of(c, network, USERS_TO)
    }

    fn takes_of(&self, c: &Connection, network: &[u8], to: i64) -> rusqlite::Result<bool> {
        let used = self.estimated(c)?;
        // While all have one address, they are one network.
        let shares_from = match self.networks().addresses.are_several() {
            true => SHARES_FROM,
            false => UNREAD_GO_FROM,
        };
        if used < self.part(shares_from) || used >= self.part(to) || network.is_empty() {
            return Ok(used < self.part(to));
        }
        let held: Option<i64> = c
            .prepare_cached("SELECT held FROM networks WHERE hash = ?1")?
            .query_row([network], |row| row.get(0))
            .optional()?;
        Ok(held.unwrap_or(0) < self.limits.file_bytes.div_euclid(SHARES))
    }

    /// Whether new messages have room. Their user's network has this hash. Those with limited or
    /// reserved room come one by one.
    pub(super) fn takes(
        &self,
        c: &Connection,
        (uaid, network): (Uaid, &[u8]),
        messages: &[Notification],
        room: Room,
    ) -> rusqlite::Result<bool> {
        let is_channel_full = match messages.first() {
            Some(message) => self.is_channel_full(c, uaid, message)?,
            None => false,
        };
        match room {
            Room::Promised => Ok(true),
            Room::Limited | Room::Reserved if is_channel_full => Ok(false),
            Room::Limited => self.takes_of(c, network, MESSAGES_TO),
            Room::Reserved => Ok(self.measure(c)? < self.part(PARTS)),
        }
    }

    /// Whether a channel has as many messages as it may, and this one replaces none.
    fn is_channel_full(
        &self,
        c: &Connection,
        uaid: Uaid,
        message: &Notification,
    ) -> rusqlite::Result<bool> {
        let topic = message.topic.as_ref().map(Topic::to_string);
        let is_full = c
            .prepare_cached(
                "SELECT messages >= ?4 AND NOT EXISTS (SELECT 1 FROM messages \
                 WHERE uaid = ?1 AND sort_ms = 0 AND channel = ?2 AND topic = ?3) \
                 FROM channels WHERE uaid = ?1 AND channel = ?2",
            )?
            .query_row(
                params![
                    uaid.as_bytes(),
                    message.channel.as_bytes(),
                    topic.unwrap_or_default(),
                    self.limits.channel_messages
                ],
                |row| row.get(0),
            )
            .optional()?;
        Ok(is_full.unwrap_or(false))
    }

    /// Removes the oldest message of the channel that has most until a user has no more than it
    /// may. Of several that have most, the channel of a new message is the last. Returns the number
    /// of removed messages.
    pub(super) fn displace(
        &self,
        c: &Connection,
        uaid: Uaid,
        new: Option<&Notification>,
    ) -> rusqlite::Result<u64> {
        let new = new.map(|message| *message.channel.as_bytes());
        let Limits {
            messages, bytes, ..
        } = self.limits;
        let mut has_more = c.prepare_cached(
            "SELECT messages > ?2 OR bytes > ?3 FROM users WHERE uaid = ?1 AND messages > 0",
        )?;
        let mut remove = c.prepare_cached(
            "DELETE FROM messages WHERE rowid = (SELECT rowid FROM messages WHERE uaid = ?1 \
             AND channel = coalesce((SELECT channel FROM channels WHERE uaid = ?1 AND messages > 0 \
             ORDER BY messages DESC, channel = ?2 LIMIT 1), channel) ORDER BY place_ms LIMIT 1)",
        )?;
        let mut displaced = 0_u64;
        while has_more
            .query_row(params![uaid.as_bytes(), messages, bytes], |row| row.get(0))
            .optional()?
            .unwrap_or(false)
        {
            if remove.execute(params![uaid.as_bytes(), new])? == 0 {
                break;
            }
            displaced = displaced.saturating_add(1);
        }
        Ok(displaced)
    }

    /// Makes room in a file that is nearly full, some at once. Returns the number of removed
    /// messages, and whether there may be more.
    pub(super) fn free(&self, c: &Connection, now_s: i64) -> rusqlite::Result<(u64, bool)> {
        let (mut users, mut messages) = (0, 0);
        if self.measure(c)? >= self.part(UNUSED_GO_FROM) {
            let made_to_ms = now_s.saturating_mul(1000).saturating_sub(UNUSED_MS_MIN);
            users = c
                .prepare_cached(
                    "DELETE FROM users WHERE uaid IN (SELECT uaid FROM users \
                     WHERE has_connected = 0 AND messages = 0 AND made_ms <= ?1 LIMIT ?2)",
                )?
                .execute(params![made_to_ms, SWEPT_AT_ONCE])?;
        }
        if self.measure(c)? >= self.part(UNREAD_GO_FROM) {
            messages = c
                .prepare_cached(
                    "DELETE FROM messages WHERE rowid IN (SELECT messages.rowid \
                     FROM users JOIN messages USING (uaid) WHERE has_connected = 0 AND users.messages > 0 \
                     AND network = (SELECT hash FROM networks WHERE unread > 0 ORDER BY unread DESC LIMIT 1) \
                     LIMIT ?1)",
                )?
                .execute([SWEPT_AT_ONCE])?;
        }
        let is_full = self.measure(c)? >= self.part(UNUSED_GO_FROM);
        let displaced = u64::try_from(messages).unwrap_or(u64::MAX);
        Ok((displaced, is_full && (users, messages) != (0, 0)))
    }

    /// Bytes of the file that are in use. An estimate while nothing is limited: reading them takes
    /// a tenth of the time of a call.
    fn estimated(&self, c: &Connection) -> rusqlite::Result<i64> {
        let before = self.estimate.fetch_add(CALL_BYTES_MAX, Ordering::Relaxed);
        let estimate = before.saturating_add(CALL_BYTES_MAX);
        match estimate < self.part(TTLS_SHORTEN_FROM) {
            true => Ok(estimate),
            false => self.measure(c),
        }
    }

    /// Bytes of the file that are in use.
    pub(super) fn measure(&self, c: &Connection) -> rusqlite::Result<i64> {
        let used = c
            .prepare_cached(
                "SELECT (page_count - freelist_count) * page_size \
                 FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
            )?
            .query_row([], |row| row.get(0))?;
        self.used.store(used, Ordering::Relaxed);
        self.estimate.store(used, Ordering::Relaxed);
        Ok(used)
    }

    fn part(&self, parts: i64) -> i64 {
        self.limits
            .file_bytes
            .div_euclid(PARTS)
            .saturating_mul(parts)
    }

    fn networks(&self) -> MutexGuard<'_, Networks> {
        self.networks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
