//! What a push service keeps: users, their channels, and messages that wait for them.
//!
//! [`Storage`] is the contract, [`sqlite`] its one implementation. A distributed store for several
//! machines would be another.

pub mod sqlite;

use thiserror::Error;

use crate::ids::{ChannelId, Uaid};
use crate::notification::{Notification, Topic};

/// Messages with a topic that are read at once, and messages without one.
pub const TOPICS_AT_ONCE: u32 = 11;
/// See [`TOPICS_AT_ONCE`].
pub const MESSAGES_AT_ONCE: u32 = 10;

/// A user without a sign of life for so long is forgotten.
pub const USER_SECONDS_MAX: i64 = 60 * 24 * 60 * 60;

/// A user's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Who it is.
    pub uaid: Uaid,
    /// When it connected last, in milliseconds since 1970.
    pub connected_ms: i64,
    /// The node where it is connected.
    pub node: Option<String>,
    /// All messages without a topic up to here are done with, in milliseconds since 1970.
    pub read_to_ms: i64,
    /// Which state of the record this is. Only the storage changes it.
    pub revision: i64,
}

impl User {
    /// A user that is new, and connected to a node.
    pub fn connected(uaid: Uaid, node: String, connected_ms: i64) -> Self {
        Self {
            uaid,
            connected_ms,
            node: Some(node),
            read_to_ms: 0,
            revision: 1,
        }
    }
}

/// Which of a user's messages one is. A message with the same key replaces it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// The one with this topic.
    Topic {
        /// Of this channel.
        channel: ChannelId,
        /// The topic.
        topic: Topic,
    },
    /// The one at this place.
    Time {
        /// Of this channel.
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

/// One message and no other: a newer one with the same topic has the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Where it is.
    pub key: Key,
    /// Its version.
    pub version: String,
}

impl Stored {
    /// That of a message from the storage.
    pub fn of(message: &Notification) -> Self {
        Self {
            key: Key::of(message),
            version: message.version.clone(),
        }
    }
}

/// Which limits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// All of them.
    Limited,
    /// Those of the user, doubled: the messages were accepted before, and went straight to the
    /// client. One with a topic may have been replaced since.
    Promised,
}

/// What became of messages that were to be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    /// They are all stored.
    Stored,
    /// There is no such user any more.
    NoUser,
    /// The user or the channel has too many messages or bytes, or there is no room. None of them is
    /// stored.
    Full,
}

/// The storage failed.
#[derive(Debug, Error)]
#[error("storage: {0}")]
pub struct StorageError(#[source] Box<dyn std::error::Error + Send + Sync>);

impl StorageError {
    /// Of whatever an implementation met.
    pub fn new(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self(Box::new(error))
    }
}

/// The contract that every storage keeps. Each call is done entirely or not at all, and what a call
/// returned survives the process.
pub trait Storage: Send + Sync {
    /// Whether it can be read.
    ///
    /// # Errors
    /// If not.
    fn health(&self) -> Result<(), StorageError>;

    /// A user's record.
    ///
    /// # Errors
    /// The storage's.
    fn get_user(&self, uaid: Uaid) -> Result<Option<User>, StorageError>;

    /// Adds a user; false if there is one with this id, or no room for more.
    ///
    /// # Errors
    /// The storage's.
    fn add_user(&self, user: &User) -> Result<bool, StorageError>;

    /// Replaces a record that is still as it was read; false if it is not, or not there.
    ///
    /// # Errors
    /// The storage's.
    fn update_user(&self, user: &User) -> Result<bool, StorageError>;

    /// Removes a user with its channels and messages; false if it is not there.
    ///
    /// # Errors
    /// The storage's.
    fn remove_user(&self, uaid: Uaid) -> Result<bool, StorageError>;

    /// Forgets where a user is connected, if the record is still as it was read; false if not. A
    /// node that can't be reached does not undo a connection to another one.
    ///
    /// # Errors
    /// The storage's.
    fn remove_node(&self, user: &User) -> Result<bool, StorageError>;

    /// Adds a channel; false if the user is not there or has too many, or there is no room. One
    /// that is there already counts as added.
    ///
    /// # Errors
    /// The storage's.
    fn add_channel(&self, uaid: Uaid, channel: ChannelId) -> Result<bool, StorageError>;

    /// A user's channels.
    ///
    /// # Errors
    /// The storage's.
    fn channels(&self, uaid: Uaid) -> Result<Vec<ChannelId>, StorageError>;

    /// Whether a user has a channel.
    ///
    /// # Errors
    /// The storage's.
    fn has_channel(&self, uaid: Uaid, channel: ChannelId) -> Result<bool, StorageError>;

    /// Removes a channel with its messages; false if it is not there.
    ///
    /// # Errors
    /// The storage's.
    fn remove_channel(&self, uaid: Uaid, channel: ChannelId) -> Result<bool, StorageError>;

    /// A place for a message that arrives now: later than every place given before.
    fn place(&self, now_ms: i64) -> i64;

    /// Saves messages. One that would have no place of its own gets the next.
    ///
    /// # Errors
    /// The storage's; none is stored then.
    fn save(
        &self,
        uaid: Uaid,
        messages: &[Notification],
        room: Room,
    ) -> Result<Saved, StorageError>;

    /// A user's messages with a topic that are not expired, [`TOPICS_AT_ONCE`] at most.
    ///
    /// # Errors
    /// The storage's.
    fn fetch_topics(&self, uaid: Uaid, now_s: i64) -> Result<Vec<Notification>, StorageError>;

    /// A user's messages without a topic that come after a place and are not expired, in order,
    /// [`MESSAGES_AT_ONCE`] at most.
    ///
    /// # Errors
    /// The storage's.
    fn fetch_after(
        &self,
        uaid: Uaid,
        after_ms: i64,
        now_s: i64,
    ) -> Result<Vec<Notification>, StorageError>;

    /// Removes messages; those that are not there count as removed. One that has replaced them
    /// stays.
    ///
    /// # Errors
    /// The storage's.
    fn remove(&self, uaid: Uaid, messages: &[Stored]) -> Result<(), StorageError>;

    /// Removes the message with this version, whatever its key.
    ///
    /// # Errors
    /// The storage's.
    fn withdraw(&self, uaid: Uaid, version: &str) -> Result<(), StorageError>;

    /// Removes all messages without a topic up to a place, and remembers it.
    ///
    /// # Errors
    /// The storage's.
    fn advance(&self, uaid: Uaid, to_ms: i64) -> Result<(), StorageError>;

    /// Removes messages and users whose time is over, some at once. Returns whether there may be
    /// more.
    ///
    /// # Errors
    /// The storage's.
    fn sweep(&self, now_s: i64) -> Result<bool, StorageError>;
}
