//! A client's connection, with one frame per line: the session makes one call at a time, sends
//! nothing after its end, and has no more unacknowledged messages than it was given.

use push::endpoint::Address;
use push::endpoint::fernet::Keys;
use push::ids::{ChannelId, Uaid};
use push::notification::{Notification, Topic};
use push::session::{Action, Answer, Call, Event, Rules, Session, Surroundings};
use push::storage::{Presence, User};
use push::wire::client::ClientMessage;
use push::{Broadcasts, Versions};
use serde_json::{Value, json};

/// Most calls caused by one frame: two batches of stored messages and the calls before them.
const CALLS_MAX: usize = 12;

const STORED: [(&str, Option<&str>); 4] = [
    ("a", Some("topic")),
    ("b", None),
    ("c", None),
    ("d", Some("other")),
];

pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut broadcasts = Broadcasts::default();
    broadcasts.replace(Versions::from([("census".to_owned(), "1".to_owned())]));
    let candidate = Uaid::from_random([1; 16]);
    let (mut session, _) = Session::new(Rules::AUTOPUSH, "http://node".to_owned(), candidate);
    let mut storage = Storage::new();
    let mut is_over = false;
    for (line, now_ms) in text.lines().zip((0_i64..).step_by(10_000)) {
        if let Ok(message) = ClientMessage::parse(line) {
            let again = ClientMessage::parse(&said(&message).to_string());
            assert_eq!(again.expect("its own form is accepted"), message);
        }
        let surroundings = Surroundings {
            now_ms,
            broadcasts: &broadcasts,
        };
        let mut actions = session.on(Event::Text(line.to_owned()), surroundings);
        assert!(!is_over || actions.is_empty(), "{actions:?}");
        for calls in 0.. {
            assert!(calls <= CALLS_MAX, "it asks for ever");
            let Some(last) = actions.pop() else { break };
            actions.iter().for_each(goes_out);
            match last {
                Action::Call(call) => {
                    let answer = storage.answer(call);
                    actions = session.on(Event::Answer(answer), surroundings);
                }
                Action::Close(close) => {
                    assert!([1000, 1003, 1011].contains(&close.code()));
                    is_over = true;
                    break;
                }
                other => {
                    goes_out(&other);
                    break;
                }
            }
        }
    }
    assert!(session.leave().unacknowledged.is_empty());
}

/// A frame before a call or an end; neither may be followed by one.
fn goes_out(action: &Action) {
    match action {
        Action::Send(message) => {
            let text: Value = serde_json::from_str(&message.text()).expect("it is JSON");
            assert!(text.is_object());
        }
        Action::Ping | Action::Wait(_) | Action::Enter(_) => {}
        Action::Call(_) | Action::Close(_) => panic!("{action:?} is not the last one"),
    }
}

fn said(message: &ClientMessage) -> Value {
    let channel = ChannelId::from_bytes([0; 16]);
    match message {
        ClientMessage::Hello { uaid, broadcasts } => {
            let uaid = uaid.map(|uaid| uaid.to_string());
            json!({"messageType": "hello", "uaid": uaid, "broadcasts": broadcasts})
        }
        ClientMessage::Register { channel, key } => {
            json!({"messageType": "register", "channelID": channel, "key": key})
        }
        ClientMessage::Unregister { channel } => {
            json!({"messageType": "unregister", "channelID": channel})
        }
        ClientMessage::BroadcastSubscribe { broadcasts } => {
            json!({"messageType": "broadcast_subscribe", "broadcasts": broadcasts})
        }
        ClientMessage::Ack { versions } => {
            let update = |version| json!({"channelID": channel, "version": version});
            let updates: Vec<_> = versions.iter().map(update).collect();
            json!({"messageType": "ack", "updates": updates})
        }
        ClientMessage::Nack => json!({"messageType": "nack", "version": ""}),
        ClientMessage::Ping => json!({}),
    }
}

/// A storage with one user: any client that says hello.
struct Storage {
    stored: Vec<Notification>,
}

impl Storage {
    fn new() -> Self {
        let message = |((version, topic), place_ms): (&(&str, Option<&str>), i64)| Notification {
            channel: ChannelId::from_bytes([2; 16]),
            version: (*version).to_owned(),
            ttl_s: 60,
            arrived_s: 0,
            topic: topic.and_then(|topic| Topic::try_from(topic.to_owned()).ok()),
            payload: None,
            place_ms,
        };
        let stored = STORED.iter().zip(1..).map(message).collect();
        Self { stored }
    }

    fn answer(&mut self, call: Call) -> Answer {
        match call {
            Call::MakeEndpoint { uaid, channel, key } => {
                let keys = Keys::parse(&Keys::text_of(&[5; 32])).expect("a key");
                let address = Address::new(uaid, channel, key.as_deref()).ok();
                Answer::Endpoint(address.map(|a| a.url("https://a", &keys, 0, &[0; 16])))
            }
            Call::GetUser(uaid) => {
                let user = User::connected(uaid, "http://other".to_owned(), 0);
                Answer::User(Some(user))
            }
            Call::FetchTopics(_) => self.messages(|message| message.topic.is_some()),
            Call::FetchAfter(_, after_ms) => {
                self.messages(|message| message.topic.is_none() && message.place_ms > after_ms)
            }
            Call::Remove(_, removed) => {
                for one in &removed {
                    let is_stored = |held: &Notification| held.version == one.version;
                    assert!(self.stored.iter().any(is_stored), "{one:?} is not stored");
                }
                let stays =
                    |held: &Notification| removed.iter().all(|one| one.version != held.version);
                self.stored.retain(stays);
                Answer::Done(true)
            }
            Call::Advance(_, to_ms) => {
                let last = self.stored.iter().map(|held| held.place_ms).max();
                assert!(last.is_some_and(|last| to_ms <= last), "{to_ms} is ahead");
                self.stored
                    .retain(|held| held.topic.is_some() || held.place_ms > to_ms);
                Answer::Done(true)
            }
            Call::ConfirmNode(..) => Answer::Presence(Presence::Recorded),
            Call::AddUser(_)
            | Call::UpdateUser(_)
            | Call::RemoveUser(_)
            | Call::AddChannel(..)
            | Call::RemoveChannel(..) => Answer::Done(true),
        }
    }

    fn messages(&self, takes: impl Fn(&Notification) -> bool) -> Answer {
        Answer::Messages(self.stored.iter().filter(|m| takes(m)).cloned().collect())
    }
}
