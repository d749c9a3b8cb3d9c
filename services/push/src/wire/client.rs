//! Messages from a client.

use std::collections::BTreeMap;

use serde::Deserialize;
use thiserror::Error;

use crate::ids::{ChannelId, Uaid};

/// Longest message from a client in bytes. Some clients collect acknowledgements for half a minute,
/// and each is some 300 bytes: those of all messages that a client may hold fit.
pub const CLIENT_MESSAGE_BYTES_MAX: usize = 32 * 1024;

/// Most broadcasts in a message: clients know a handful.
const BROADCASTS_MAX: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientMessage {
    /// The first message, with the client's id.
    Hello {
        /// The id from its last connection.
        uaid: Option<Uaid>,
        /// Broadcasts that it subscribes to, with the versions that it has.
        broadcasts: BTreeMap<String, String>,
    },
    Register {
        channel: String,
        /// The public key of the only application that may send there.
        key: Option<String>,
    },
    Unregister {
        channel: ChannelId,
    },
    BroadcastSubscribe {
        /// The broadcasts, with the versions that it has.
        broadcasts: BTreeMap<String, String>,
    },
    Ack {
        versions: Vec<String>,
    },
    /// Reports a message that it could not use. The message stays unacknowledged.
    Nack,
    /// Checks whether the connection works.
    Ping,
}

#[derive(Debug, Error)]
#[error("not a message of a client: {0}")]
pub struct Malformed(#[from] serde_json::Error);

#[derive(Debug, Deserialize)]
#[serde(tag = "messageType", rename_all = "snake_case")]
enum Typed {
    Hello {
        #[serde(default)]
        uaid: Option<String>,
        #[serde(default, rename = "channelIDs")]
        _channels: Option<Vec<ChannelId>>,
        #[serde(default)]
        broadcasts: Option<Few>,
    },
    Register {
        #[serde(rename = "channelID")]
        channel: String,
        #[serde(default)]
        key: Option<String>,
    },
    Unregister {
        #[serde(rename = "channelID")]
        channel: ChannelId,
        #[serde(default, rename = "code")]
        _code: Option<u32>,
    },
    BroadcastSubscribe {
        broadcasts: Few,
    },
    Ack {
        updates: Vec<Update>,
    },
    Nack {
        #[serde(rename = "version")]
        _version: String,
        #[serde(default, rename = "code")]
        _code: Option<i32>,
    },
    Ping,
}

/// [`BROADCASTS_MAX`] at most.
#[derive(Debug, Default, Deserialize)]
#[serde(try_from = "BTreeMap<String, String>")]
struct Few(BTreeMap<String, String>);

impl TryFrom<BTreeMap<String, String>> for Few {
    type Error = &'static str;

    fn try_from(broadcasts: BTreeMap<String, String>) -> Result<Self, Self::Error> {
        match broadcasts.len() {
            0..=BROADCASTS_MAX => Ok(Self(broadcasts)),
            _ => Err("too many broadcasts"),
        }
    }
}

#[derive(Debug, Deserialize)]
struct Update {
    #[serde(rename = "channelID")]
    _channel: ChannelId,
    version: String,
    #[serde(default, rename = "code")]
    _code: Option<u16>,
}

impl ClientMessage {
    /// Reads a text frame, which the caller has bounded by [`CLIENT_MESSAGE_BYTES_MAX`].
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let inner = text.trim().strip_prefix('{');
        let inner = inner.and_then(|text| text.strip_suffix('}'));
        if inner.is_some_and(|text| text.trim().is_empty()) {
            return Ok(Self::Ping);
        }
        Ok(match serde_json::from_str(text)? {
            Typed::Hello {
                uaid, broadcasts, ..
            } => Self::Hello {
                uaid: uaid.as_deref().and_then(Uaid::parse),
                broadcasts: broadcasts.unwrap_or_default().0,
            },
            Typed::Register { channel, key } => Self::Register { channel, key },
            Typed::Unregister { channel, .. } => Self::Unregister { channel },
            Typed::BroadcastSubscribe { broadcasts } => Self::BroadcastSubscribe {
                broadcasts: broadcasts.0,
            },
            Typed::Ack { updates } => Self::Ack {
                versions: updates.into_iter().map(|update| update.version).collect(),
            },
            Typed::Nack { .. } => Self::Nack,
            Typed::Ping => Self::Ping,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::MessageId;
    use crate::endpoint::fernet::Keys;
    use crate::session::{DIRECT_MAX, STORED_MAX};

    const CHANNEL: &str = "d9b74644-4f97-46aa-b8fa-9393985cd6cd";

    fn parsed(text: &str) -> ClientMessage {
        ClientMessage::parse(text).unwrap()
    }

    #[test]
    fn an_empty_object_is_a_ping() {
        assert_eq!(parsed("{}"), ClientMessage::Ping);
        assert_eq!(parsed(" { } "), ClientMessage::Ping);
        assert_eq!(parsed(r#"{"messageType":"ping"}"#), ClientMessage::Ping);
    }

    #[test]
    fn what_is_unknown_in_a_message_is_passed_over() {
        let hello = r#"{"messageType":"hello","uaid":"nonsense","use_webpush":true,"more":[1]}"#;
        let expected = ClientMessage::Hello {
            uaid: None,
            broadcasts: BTreeMap::new(),
        };
        assert_eq!(parsed(hello), expected);
        let null = r#"{"messageType":"hello","uaid":null,"channelIDs":null,"broadcasts":null}"#;
        assert_eq!(parsed(null), expected);
    }

    #[test]
    fn an_acknowledgement_is_its_versions() {
        let text = format!(
            r#"{{"messageType":"ack","updates":[{{"channelID":"{CHANNEL}","version":"a","code":102}},{{"channelID":"{CHANNEL}","version":"b"}}]}}"#
        );
        let versions = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(parsed(&text), ClientMessage::Ack { versions });
    }

    #[test]
    fn a_client_can_acknowledge_all_that_it_holds_in_one_message() {
        let topic = "t".repeat(32);
        let topic = crate::notification::Topic::try_from(topic).unwrap();
        let channel = ChannelId::parse(CHANNEL).unwrap();
        let id = MessageId::Topic(Uaid::from_random([1; 16]), channel, topic);
        let keys = Keys::parse(&Keys::text_of(&[1; 32])).unwrap();
        let version = id.text(&keys, 1_800_000_000, &[1; 16]);
        let update = format!(r#"{{"channelID":"{CHANNEL}","version":"{version}","code":100}}"#);
        let updates = vec![update; DIRECT_MAX + STORED_MAX];
        let text = format!(
            r#"{{"messageType":"ack","updates":[{}]}}"#,
            updates.join(",")
        );
        assert!(text.len() <= CLIENT_MESSAGE_BYTES_MAX, "{}", text.len());
    }

    #[test]
    fn a_message_names_as_many_broadcasts_as_clients_know() {
        for (count, is_message) in [(BROADCASTS_MAX, true), (BROADCASTS_MAX + 1, false)] {
            let names: Vec<_> = (0..count).map(|n| format!(r#""{n}":"""#)).collect();
            for kind in ["hello", "broadcast_subscribe"] {
                let names = names.join(",");
                let text = format!(r#"{{"messageType":"{kind}","broadcasts":{{{names}}}}}"#);
                assert_eq!(ClientMessage::parse(&text).is_ok(), is_message, "{count}");
            }
        }
    }

    #[test]
    fn unknown_types_and_fields_of_wrong_types_are_no_messages() {
        for text in [
            "",
            "[]",
            "1",
            r#"{"messageType":"x"}"#,
            r#"{"type":"hello"}"#,
            r#"{"messageType":"hello","uaid":1}"#,
            r#"{"messageType":"hello","channelIDs":["x"]}"#,
            r#"{"messageType":"register"}"#,
            r#"{"messageType":"unregister","channelID":"x"}"#,
            r#"{"messageType":"ack","updates":{}}"#,
            r#"{"messageType":"nack"}"#,
            r#"{"messageType":"broadcast_subscribe","broadcasts":{"a":1}}"#,
        ] {
            assert!(ClientMessage::parse(text).is_err(), "{text}");
        }
    }
}
