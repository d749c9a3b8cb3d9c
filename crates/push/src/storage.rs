//! The data of a push service: users, their channels, and messages that wait for them.
//!
//! [`Storage`] is the contract, [`sqlite`] its only implementation. A distributed store for several
//! machines would be another.

pub(crate) mod networks;
pub mod sqlite;

use std::net::IpAddr;

use thiserror::Error;

use crate::ids::{ChannelId, Uaid};
use crate::notification::{Notification, Topic};

/// Most messages with a topic in one read. See [`MESSAGES_AT_ONCE`].
pub const TOPICS_AT_ONCE: u32 = 11;
/// Most messages without a topic in one read.
pub const MESSAGES_AT_ONCE: u32 = 10;

/// A user that has not connected for this long is removed.
pub const USER_SECONDS_MAX: i64 = 60 * 24 * 60 * 60;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub uaid: Uaid,
    /// When the record was made, in milliseconds since 1970; 0 before this was stored.
    pub made_ms: i64,
    /// The address where it is made, if it is made now and the address is known. Only a hash of its
    /// network is stored.
    pub made_at: Option<IpAddr>,
    /// Time of its last connection, in milliseconds since 1970.
    pub connected_ms: i64,
    /// The node where it is connected.
    pub node: Option<String>,
    /// All messages without a topic up to here are finished, in milliseconds since 1970.
    pub read_to_ms: i64,
    /// The record's revision. Only the storage changes it.
    pub revision: i64,
}

impl User {
    /// A new user, connected to a node.
    pub fn connected(uaid: Uaid, node: String, connected_ms: i64) -> Self {
        Self {
            uaid,
            made_ms: connected_ms,
            made_at: None,
            connected_ms,
            node: Some(node),
            read_to_ms: 0,
            revision: 1,
        }
    }
}

/// Identifies one of a user's messages. A message with the same key replaces it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// The message with this topic.
    Topic { channel: ChannelId, topic: Topic },
    /// The message at this place.
    Time {
        channel: ChannelId,
        /// Its place among all messages, in milliseconds since 1970.
        place_ms: i64,
    },
}

impl Key {
    /// The key of a message from the storage.
    pub fn of(message: &Notification) -> Self {
        let channel = message.channel;
        match &message.topic {
            Some(topic) => Self::Topic {
                channel,
                topic: topic.clone(),
            },
            None => Self::Time {
                channel,
                place_ms: message.place_ms,
            },
        }
    }
}

/// Identifies exactly one message: a newer one with the same topic has the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    pub key: Key,
    pub version: String,
}

impl Stored {
    /// Identifies a message from the storage.
    pub fn of(message: &Notification) -> Self {
        Self {
            key: Key::of(message),
            version: message.version.clone(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    Limited,
    /// The file's limits do not hold: the messages were accepted earlier, and went straight to the
    /// client. One with a topic may have been replaced since.
    Promised,
    /// As limited, but with the part of the file that is reserved for the census's notifications.
    Reserved,
}

/// The result of saving messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    Stored,
    /// The user no longer exists.
    NoUser,
    /// The channel has too many messages, the file is full, or the network that made the user has
    /// its share of the file. No message is stored.
    Full,
}

#[derive(Debug, Error)]
#[error("storage: {0}")]
pub struct StorageError(#[source] Box<dyn std::error::Error + Send + Sync>);

impl StorageError {
    pub fn new(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self(Box::new(error))
    }
}

/// The condition of a storage that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// The disk is full: no message, user or channel is added.
    pub is_short: bool,
    /// Messages that wait for their users.
    pub messages: i64,
    /// Size of the database.
    pub bytes: i64,
    /// Messages that were removed for others since the start.
    pub displaced: u64,
}

/// The contract of every storage. Each call is done entirely or not at all, and its result survives
/// the process.
pub trait Storage: Send + Sync {
    /// Writes something for a trial.
    fn try_write(&self, now_ms: i64) -> Result<Condition, StorageError>;

    fn get_user(&self, uaid: Uaid) -> Result<Option<User>, StorageError>;

    /// Adds a user; false if the id is in use or there is no room, in the file or in its network's
    /// share.
    fn add_user(&self, user: &User) -> Result<bool, StorageError>;

    /// Replaces a record that is unchanged since it was read, or whose user is not connected, so
    /// that a client may connect while its former connection ends. Otherwise, or if there is no
    /// record, false.
    fn update_user(&self, user: &User) -> Result<bool, StorageError>;

    /// Removes a user with its channels and messages; false if it does not exist.
    fn remove_user(&self, uaid: Uaid) -> Result<bool, StorageError>;

    /// Forgets where a user is connected, if the record is unchanged since it was read; otherwise
    /// false. So an unreachable node does not undo a connection to another one. The user's time
    /// without a connection begins now.
    fn remove_node(&self, user: &User, now_ms: i64) -> Result<bool, StorageError>;

    /// Adds a channel; false if the user does not exist or has too many, or there is no room. An
    /// existing channel counts as added.
    fn add_channel(&self, uaid: Uaid, channel: ChannelId) -> Result<bool, StorageError>;

    fn channels(&self, uaid: Uaid) -> Result<Vec<ChannelId>, StorageError>;

    /// How many messages a channel still takes; `None` if the user has no such channel.
    fn channel_room(&self, uaid: Uaid, channel: ChannelId) -> Result<Option<u32>, StorageError>;

    /// Removes a channel with its messages; false if it does not exist.
    fn remove_channel(&self, uaid: Uaid, channel: ChannelId) -> Result<bool, StorageError>;

    /// The longest time that a message which arrives now may wait, in seconds: the fuller, the
    /// shorter.
    fn ttl_max_s(&self) -> u32;

    /// A place for a message that arrives now: later than every earlier place.
    fn place(&self, now_ms: i64) -> i64;

    /// Saves messages. If a message's place is taken, it gets the next one. A full user loses the
    /// oldest messages of the channel that has most.
    fn save(
        &self,
        uaid: Uaid,
        messages: &[Notification],
        room: Room,
    ) -> Result<Saved, StorageError>;

    /// A user's unexpired messages with a topic, [`TOPICS_AT_ONCE`] at most.
    fn fetch_topics(&self, uaid: Uaid, now_s: i64) -> Result<Vec<Notification>, StorageError>;

    /// A user's unexpired messages without a topic after a place, in order, [`MESSAGES_AT_ONCE`] at
    /// most.
    fn fetch_after(
        &self,
        uaid: Uaid,
        after_ms: i64,
        now_s: i64,
    ) -> Result<Vec<Notification>, StorageError>;

    /// Removes messages; missing ones count as removed. Newer messages with the same keys stay.
    fn remove(&self, uaid: Uaid, messages: &[Stored]) -> Result<(), StorageError>;

    /// Removes a channel's message with this topic; false if there is none.
    fn withdraw_topic(
        &self,
        uaid: Uaid,
        channel: ChannelId,
        topic: &Topic,
    ) -> Result<bool, StorageError>;

    /// Removes the message with this version and any key.
    fn withdraw(&self, uaid: Uaid, version: &str) -> Result<(), StorageError>;

    /// Removes all messages without a topic up to a place, and remembers the place.
    fn advance(&self, uaid: Uaid, to_ms: i64) -> Result<(), StorageError>;

    /// Removes expired messages and users, and makes room in a file that is nearly full, some at
    /// once. Returns whether there may be more.
    fn sweep(&self, now_s: i64) -> Result<bool, StorageError>;
}
