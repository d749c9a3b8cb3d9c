//! A message from an application to one channel of a user agent.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::ChannelId;

pub const TTL_SECONDS_MAX: u32 = 30 * 24 * 60 * 60;

/// Characters of a topic, padding left out (RFC 8030 §5.4).
pub const TOPIC_CHARS_MAX: usize = 32;

/// Most `=` at the end of base64.
const PADDING_CHARS_MAX: usize = 2;

/// A topic: of two messages with the same topic that wait for a channel, the newer replaces the
/// older.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Topic(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoTopic;

impl fmt::Display for NoTopic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a topic has 1 to 32 characters of the URL-safe base64 alphabet")
    }
}

impl std::error::Error for NoTopic {}

impl TryFrom<String> for Topic {
    type Error = NoTopic;

    fn try_from(text: String) -> Result<Self, NoTopic> {
        let is_of_alphabet =
            |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let unpadded = text.trim_end_matches('=');
        let padding = text.len().saturating_sub(unpadded.len());
        let is_topic = (1..=TOPIC_CHARS_MAX).contains(&unpadded.len())
            && padding <= PADDING_CHARS_MAX
            && unpadded.bytes().all(is_of_alphabet);
        if is_topic {
            Ok(Self(text))
        } else {
            Err(NoTopic)
        }
    }
}

impl From<Topic> for String {
    fn from(topic: Topic) -> Self {
        topic.0
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An encrypted message body. This service can't read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload {
    /// The body in base64url without padding.
    pub data: String,
    pub headers: PayloadHeaders,
}

/// The headers of an encrypted body, as the user agent gets them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadHeaders {
    /// `aes128gcm` (RFC 8188) or `aesgcm` (its draft).
    pub encoding: String,
    /// `Encryption`, which `aesgcm` needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption: Option<String>,
    /// `Crypto-Key`, which `aesgcm` needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crypto_key: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notification {
    pub channel: ChannelId,
    /// Its id, with which the user agent acknowledges it: the same at every delivery.
    pub version: String,
    /// Longest time in storage, in seconds. A message with 0 is delivered at once or never.
    pub ttl_s: u32,
    /// When it arrived, in seconds since 1970.
    pub arrived_s: i64,
    pub topic: Option<Topic>,
    /// The body; `None` for a message that only wakes its application.
    pub payload: Option<Payload>,
    /// Its place among the messages of its user agent, in the order of arrival: milliseconds since
    /// 1970, or a little later if two arrive at once.
    pub place_ms: i64,
}

impl Notification {
    /// Bytes of its body and of the headers for its encryption.
    pub fn payload_bytes(&self) -> usize {
        self.payload.as_ref().map_or(0, |payload| {
            let headers = &payload.headers;
            let lengths = [
                payload.data.len(),
                headers.encoding.len(),
                headers.encryption.as_ref().map_or(0, String::len),
                headers.crypto_key.as_ref().map_or(0, String::len),
            ];
            lengths.iter().sum()
        })
    }

    /// When it expires, in seconds since 1970.
    pub fn expires_s(&self) -> i64 {
        self.arrived_s.saturating_add(i64::from(self.ttl_s))
    }

    /// The same message for the storage, after it went straight to a client that did not
    /// acknowledge it. It goes to the end, since earlier places may already be read. One with a
    /// topic keeps its place, since a newer one may have replaced it.
    pub fn arrived_again(self, place: impl FnOnce() -> i64) -> Self {
        let place_ms = match self.topic {
            Some(_) => self.place_ms,
            None => place(),
        };
        Self { place_ms, ..self }
    }

    /// A message without a body.
    #[cfg(test)]
    pub(crate) fn sample(version: &str) -> Self {
        Self {
            channel: ChannelId::from_bytes([1; 16]),
            version: version.to_owned(),
            ttl_s: 60,
            arrived_s: 1000,
            topic: None,
            payload: None,
            place_ms: 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_has_few_characters_of_few_kinds() {
        let longest = "a".repeat(TOPIC_CHARS_MAX);
        for text in ["a", "_-9Z", "YWI=", "YQ==", &longest] {
            assert!(Topic::try_from(text.to_owned()).is_ok(), "{text}");
        }
        let too_long = "a".repeat(TOPIC_CHARS_MAX + 1);
        for text in ["", "=", "a b", "a=b", "ü", "a/b", "a===", &too_long] {
            assert!(Topic::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
