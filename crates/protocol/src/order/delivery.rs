//! Push messages: what a checker in delivery mode posts to a push service, and their outcomes.
//!
//! Such a run is no check: nothing in it is a verdict about the host. See decision record 0002.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::limits;
use crate::list::ListPath;

/// Ready-made messages for one push service. With them in the order, nothing else is requested.
///
/// Invariant: 1 to [`limits::MESSAGES_MAX`] messages, which take at most
/// [`limits::MESSAGES_BYTES_MAX`] as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Message>", into = "Vec<Message>")]
pub struct DeliveryOrder(Vec<Message>);

/// Why messages make no valid order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DeliveryError {
    #[error("a delivery has 1 to {} messages", limits::MESSAGES_MAX)]
    Number,
    #[error(
        "the messages of a delivery take at most {} bytes",
        limits::MESSAGES_BYTES_MAX
    )]
    Bytes,
}

impl DeliveryOrder {
    pub fn new(messages: Vec<Message>) -> Result<Self, DeliveryError> {
        if !(1..=limits::MESSAGES_MAX).contains(&messages.len()) {
            return Err(DeliveryError::Number);
        }
        let bytes = messages
            .iter()
            .fold(0_usize, |sum, message| sum.saturating_add(message.bytes()));
        if bytes > limits::MESSAGES_BYTES_MAX {
            return Err(DeliveryError::Bytes);
        }
        Ok(Self(messages))
    }

    /// The messages, in the order in which they are posted.
    pub fn messages(&self) -> &[Message] {
        &self.0
    }
}

impl TryFrom<Vec<Message>> for DeliveryOrder {
    type Error = DeliveryError;
    fn try_from(messages: Vec<Message>) -> Result<Self, DeliveryError> {
        Self::new(messages)
    }
}

impl From<DeliveryOrder> for Vec<Message> {
    fn from(order: DeliveryOrder) -> Self {
        order.0
    }
}

/// One message (RFC 8030). Its `Content-Encoding` is always `aes128gcm` (RFC 8291) and its
/// `Urgency` always `normal`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// The endpoint's path on its host, with its query.
    pub path: ListPath,
    /// `TTL`: how long the push service keeps the message, in seconds.
    pub ttl_s: u32,
    /// `Topic`: a later message with the same topic replaces this one.
    pub topic: Topic,
    /// `Authorization` (RFC 8292), which identifies the sender.
    pub authorization: HeaderText,
    pub body: MessageBody,
}

impl Message {
    /// Its size as JSON in bytes, its separator included.
    pub fn bytes(&self) -> usize {
        serde_json::to_vec(self).map_or(usize::MAX, |json| json.len().saturating_add(1))
    }
}

/// Why a text can't be a part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MessageError {
    #[error("a topic is 1 to 32 characters of base64url")]
    Topic,
    #[error(
        "a header's value is 1 to {} bytes of visible ASCII",
        limits::MESSAGE_HEADER_BYTES_MAX
    )]
    Header,
    #[error("a body is base64 of at most {} bytes", limits::MESSAGE_BODY_BYTES_MAX)]
    Body,
}

/// `Topic` (RFC 8030 §5.4): 1 to 32 characters of base64url.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Topic(String);

/// Characters of a topic (RFC 8030 §5.4).
const TOPIC_CHARS_MAX: usize = 32;

impl Topic {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Topic {
    type Error = MessageError;
    fn try_from(text: String) -> Result<Self, MessageError> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        match (1..=TOPIC_CHARS_MAX).contains(&text.len()) && text.bytes().all(fits) {
            true => Ok(Self(text)),
            false => Err(MessageError::Topic),
        }
    }
}

impl From<Topic> for String {
    fn from(topic: Topic) -> Self {
        topic.0
    }
}

/// A header's value: visible ASCII, with spaces between.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HeaderText(String);

impl HeaderText {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for HeaderText {
    type Error = MessageError;
    fn try_from(text: String) -> Result<Self, MessageError> {
        let is_short = (1..=limits::MESSAGE_HEADER_BYTES_MAX).contains(&text.len());
        let fits = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
        match is_short && text.bytes().all(fits) && text.trim() == text {
            true => Ok(Self(text)),
            false => Err(MessageError::Header),
        }
    }
}

impl From<HeaderText> for String {
    fn from(text: HeaderText) -> Self {
        text.0
    }
}

/// A message's body; base64 in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MessageBody(Vec<u8>);

impl MessageBody {
    /// A body of these bytes.
    pub fn new(bytes: Vec<u8>) -> Result<Self, MessageError> {
        match bytes.len() <= limits::MESSAGE_BODY_BYTES_MAX {
            true => Ok(Self(bytes)),
            false => Err(MessageError::Body),
        }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl TryFrom<String> for MessageBody {
    type Error = MessageError;
    fn try_from(text: String) -> Result<Self, MessageError> {
        let decoded = data_encoding::BASE64.decode(text.as_bytes());
        decoded.map_or(Err(MessageError::Body), Self::new)
    }
}

impl From<MessageBody> for String {
    fn from(body: MessageBody) -> Self {
        data_encoding::BASE64.encode(&body.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum MessageOutcome {
    Answered {
        /// HTTP status; redirects are not followed.
        status: u16,
        /// `Retry-After` in seconds from now, at most [`limits::RETRY_AFTER_SECONDS_MAX`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_s: Option<u64>,
    },
    Unposted {
        reason: UnpostedReason,
    },
}

/// Why there is no answer to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnpostedReason {
    Tls,
    /// The answer was not HTTP, or the connection broke.
    Http,
    Timeout,
    /// It was not sent: the push service asked for a pause or had failed too often, or the time was
    /// over.
    NotSent,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(body: usize) -> Message {
        Message {
            path: ListPath::parse("/wpush/v2/abc?x=1").unwrap(),
            ttl_s: 60,
            topic: Topic::try_from("T-_9".to_owned()).unwrap(),
            authorization: HeaderText::try_from("vapid t=a.b.c, k=d".to_owned()).unwrap(),
            body: MessageBody::new(vec![0xff; body]).unwrap(),
        }
    }

    #[test]
    fn an_order_is_bounded_in_number_and_in_bytes() {
        let new = |number, body| DeliveryOrder::new(vec![message(body); number]).map(|_| ());
        assert_eq!(new(0, 1), Err(DeliveryError::Number));
        assert_eq!(new(limits::MESSAGES_MAX, 1000), Ok(()));
        assert_eq!(new(limits::MESSAGES_MAX + 1, 1), Err(DeliveryError::Number));
        assert_eq!(new(limits::MESSAGES_MAX, 4096), Err(DeliveryError::Bytes));
        let whole = DeliveryOrder::new(vec![message(4000); 40]).unwrap();
        let json = serde_json::to_vec(&whole).unwrap();
        let sum: usize = whole.messages().iter().map(Message::bytes).sum();
        assert!(json.len() <= sum + 1, "{} of {sum}", json.len());
        assert_eq!(
            serde_json::from_slice::<DeliveryOrder>(&json).unwrap(),
            whole
        );
        assert!(serde_json::from_str::<DeliveryOrder>("[]").is_err());
    }

    #[test]
    fn a_message_is_refused_whose_parts_could_be_more_than_they_say() {
        let good = serde_json::to_value(message(9)).unwrap();
        assert_eq!(
            serde_json::from_value::<Message>(good.clone()).unwrap(),
            message(9)
        );
        for (field, wrong) in [
            ("path", "wpush".into()),
            ("path", "//evil.example/".into()),
            ("path", "https://evil.example/".into()),
            ("path", "/a b".into()),
            ("path", "/a\r\nHost: evil.example".into()),
            ("path", format!("/{}", "x".repeat(1024))),
            ("topic", String::new()),
            ("topic", "x".repeat(33)),
            ("topic", "a b".into()),
            ("topic", "a\r\nX: y".into()),
            ("authorization", String::new()),
            ("authorization", " x".into()),
            ("authorization", "x\r\nX: y".into()),
            ("authorization", "x\u{e9}".into()),
            ("authorization", "x".repeat(1025)),
            ("body", "*".into()),
            ("body", "AAA".into()),
            ("body", data_encoding::BASE64.encode(&[0; 4097])),
        ] {
            let mut value = good.clone();
            value[field] = wrong.clone().into();
            let read = serde_json::from_value::<Message>(value);
            assert!(read.is_err(), "{field}: {wrong:?}");
        }
        let mut further = good;
        further["host"] = "evil.example".into();
        assert!(serde_json::from_value::<Message>(further).is_err());
    }
}
