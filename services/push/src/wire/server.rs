//! Messages from the server, field for field as autopush's clients expect them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::ids::{ChannelId, Uaid};
use crate::notification::{Notification, PayloadHeaders};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerMessage {
    Hello {
        /// The client's id from now on.
        uaid: Uaid,
        /// Broadcasts whose version differs from the client's.
        broadcasts: BTreeMap<String, String>,
        unknown: BTreeSet<String>,
    },
    Register {
        channel: ChannelId,
        outcome: Registered,
    },
    Unregister {
        channel: ChannelId,
        /// Whether the storage succeeded; a missing channel counts as done.
        is_done: bool,
    },
    Notification(Box<Notification>),
    Broadcast {
        broadcasts: BTreeMap<String, String>,
        unknown: BTreeSet<String>,
    },
    Pong,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registered {
    At(String),
    BadKey,
    /// The address or the user has as many as it may have, or there is no room.
    Limited,
    Failed,
}

#[derive(Serialize)]
#[serde(tag = "messageType", rename_all = "snake_case")]
enum Typed<'a> {
    Hello {
        uaid: String,
        status: u16,
        use_webpush: bool,
        broadcasts: BTreeMap<&'a str, Version<'a>>,
    },
    Register {
        #[serde(rename = "channelID")]
        channel: ChannelId,
        status: u16,
        #[serde(rename = "pushEndpoint")]
        endpoint: &'a str,
    },
    Unregister {
        #[serde(rename = "channelID")]
        channel: ChannelId,
        status: u16,
    },
    Notification {
        #[serde(rename = "channelID")]
        channel: ChannelId,
        version: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        headers: Option<&'a PayloadHeaders>,
    },
    Broadcast {
        broadcasts: BTreeMap<&'a str, Version<'a>>,
    },
}

/// A version, or under the id `errors` the errors of other ids.
#[derive(Serialize)]
#[serde(untagged)]
enum Version<'a> {
    Is(&'a str),
    Unknown(BTreeMap<&'a str, &'static str>),
}

impl ServerMessage {
    pub fn text(&self) -> String {
        let typed = match self {
            Self::Hello {
                uaid,
                broadcasts,
                unknown,
            } => Typed::Hello {
                uaid: uaid.to_string(),
                status: 200,
                use_webpush: true,
                broadcasts: with_unknown(broadcasts, unknown),
            },
            Self::Register { channel, outcome } => {
                let (status, endpoint) = match outcome {
                    Registered::At(endpoint) => (200, endpoint.as_str()),
                    Registered::BadKey => (400, "Failed to generate endpoint"),
                    Registered::Limited => (429, ""),
                    Registered::Failed => (500, ""),
                };
                Typed::Register {
                    channel: *channel,
                    status,
                    endpoint,
                }
            }
            Self::Unregister { channel, is_done } => Typed::Unregister {
                channel: *channel,
                status: if *is_done { 200 } else { 500 },
            },
            Self::Notification(message) => Typed::Notification {
                channel: message.channel,
                version: &message.version,
                data: message
                    .payload
                    .as_ref()
                    .map(|payload| payload.data.as_str()),
                headers: message.payload.as_ref().map(|payload| &payload.headers),
            },
            Self::Broadcast {
                broadcasts,
                unknown,
            } => Typed::Broadcast {
                broadcasts: with_unknown(broadcasts, unknown),
            },
            Self::Pong => return "{}".to_owned(),
        };
        // Maps with text keys can always be serialised.
        serde_json::to_string(&typed).unwrap_or_default()
    }
}

fn with_unknown<'a>(
    broadcasts: &'a BTreeMap<String, String>,
    unknown: &'a BTreeSet<String>,
) -> BTreeMap<&'a str, Version<'a>> {
    let mut all: BTreeMap<&str, Version<'_>> = broadcasts
        .iter()
        .map(|(id, version)| (id.as_str(), Version::Is(version)))
        .collect();
    if !unknown.is_empty() {
        let errors = unknown
            .iter()
            .map(|id| (id.as_str(), "Broadcast not found"));
        all.insert("errors", Version::Unknown(errors.collect()));
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::notification::Payload;

    const CHANNEL: &str = "d9b74644-4f97-46aa-b8fa-9393985cd6cd";

    fn channel() -> ChannelId {
        ChannelId::parse(CHANNEL).unwrap()
    }

    fn check(message: &ServerMessage, kind: &str, members: Value) {
        let said: Value = serde_json::from_str(&message.text()).unwrap();
        let mut expect = members;
        expect["messageType"] = kind.into();
        assert_eq!(said, expect);
    }

    #[test]
    fn each_message_has_exactly_the_fields_that_clients_expect() {
        let uaid = Uaid::from_random([1; 16]);
        let hello = ServerMessage::Hello {
            uaid,
            broadcasts: BTreeMap::new(),
            unknown: BTreeSet::new(),
        };
        let uaid = uaid.to_string();
        let expect = json!({"uaid": uaid, "status": 200, "use_webpush": true, "broadcasts": {}});
        check(&hello, "hello", expect);
        for (outcome, status, endpoint) in [
            (Registered::At("https://a/".to_owned()), 200, "https://a/"),
            (Registered::BadKey, 400, "Failed to generate endpoint"),
            (Registered::Limited, 429, ""),
            (Registered::Failed, 500, ""),
        ] {
            let expect = json!({"channelID": CHANNEL, "status": status, "pushEndpoint": endpoint});
            let channel = channel();
            let register = ServerMessage::Register { channel, outcome };
            check(&register, "register", expect);
        }
        let unregister = ServerMessage::Unregister {
            channel: channel(),
            is_done: true,
        };
        let expect = json!({"channelID": CHANNEL, "status": 200});
        check(&unregister, "unregister", expect);
        assert_eq!(ServerMessage::Pong.text(), "{}");
    }

    #[test]
    fn a_message_without_a_body_has_no_key_for_one() {
        let mut message = Notification {
            channel: channel(),
            ..Notification::sample("v")
        };
        let mut expect = json!({"channelID": CHANNEL, "version": "v"});
        let bare = ServerMessage::Notification(Box::new(message.clone()));
        check(&bare, "notification", expect.clone());
        message.payload = Some(Payload {
            data: "AA".to_owned(),
            headers: PayloadHeaders {
                encoding: "aes128gcm".to_owned(),
                encryption: None,
                crypto_key: None,
            },
        });
        expect["data"] = "AA".into();
        expect["headers"] = json!({"encoding": "aes128gcm"});
        let full = ServerMessage::Notification(Box::new(message));
        check(&full, "notification", expect);
    }

    #[test]
    fn broadcasts_that_there_are_none_of_are_errors() {
        let broadcast = ServerMessage::Broadcast {
            broadcasts: BTreeMap::from([("a".to_owned(), "1".to_owned())]),
            unknown: BTreeSet::from(["x".to_owned()]),
        };
        let expect = json!({"a": "1", "errors": {"x": "Broadcast not found"}});
        check(&broadcast, "broadcast", json!({"broadcasts": expect}));
    }
}
