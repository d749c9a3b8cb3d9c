//! The data of a push service: users, their channels, and messages that wait for them.
//!
//! [`sqlite::Sqlite`] keeps them in one file, which several processes of one machine may share.

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
    Topic {
        channel: ChannelId,
        topic: Topic,
    },
    Time {
        channel: ChannelId,
        /// Its place among all messages, in milliseconds since 1970.
        place_ms: i64,
    },
}

impl Key {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    Stored,
    NoUser,
    /// The channel has too many messages, the file is full, or the network that made the user has
    /// its share of the file. No message is stored.
    Full,
}

/// Whether a connected user's record names its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    Recorded,
    /// It named none, since another node could not reach that one, and names it again.
    Restored,
    /// The user has connected elsewhere, or is gone.
    Elsewhere,
}

/// Numbers of what was removed after a theft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removed {
    pub users: i64,
    pub channels: i64,
    pub messages: i64,
    pub subscriptions: i64,
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
    pub bytes: i64,
    /// Messages that were removed for others since the start.
    pub displaced: u64,
}
