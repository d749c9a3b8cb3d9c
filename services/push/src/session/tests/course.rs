//! Clients over the real storage.

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::notification::Topic;
use crate::storage::sqlite::{Limits, Sqlite};
use crate::storage::{Room, Saved};

/// A service with one client at most.
pub(super) struct Service {
    folder: TempDir,
    pub(super) storage: Sqlite,
    rules: Rules,
    pub(super) now_ms: i64,
    client: Option<Client>,
    pub(super) uaid: Option<Uaid>,
}

struct Client {
    session: Session,
    held: Vec<Notification>,
    close: Option<Close>,
}

pub(super) fn message(version: &str, topic: Option<&str>, ttl_s: u32) -> Notification {
    Notification {
        channel: channel(),
        ttl_s,
        arrived_s: NOW / 1000,
        topic: topic.map(|topic| Topic::try_from(topic.to_owned()).unwrap()),
        ..Notification::sample(version)
    }
}

impl Service {
    pub(super) fn new(rules: Rules) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let storage = open(&folder);
        let mut service = Self {
            folder,
            storage,
            rules,
            now_ms: NOW,
            client: None,
            uaid: None,
        };
        service.connect();
        service.event(Event::Text(register()));
        service
    }

    /// Connects the client, replacing any earlier connection.
    pub(super) fn connect(&mut self) {
        self.disconnect();
        let (session, _) = Session::new(self.rules, "here".to_owned(), candidate());
        self.client = Some(Client {
            session,
            held: Vec::new(),
            close: None,
        });
        let uaid = self.uaid.map(|uaid| uaid.to_string());
        let hello = json!({"messageType": "hello", "uaid": uaid});
        self.event(Event::Text(hello.to_string()));
    }

    /// Ends the connection; what it leaves is stored as if it arrived now.
    pub(super) fn disconnect(&mut self) {
        let Some(client) = self.client.take() else {
            return;
        };
        let left = client.session.leave();
        let messages: Vec<_> = left
            .unacknowledged
            .into_iter()
            .map(|message| message.arrived_again(|| self.storage.place(self.now_ms)))
            .collect();
        if let Some(uaid) = left.uaid {
            self.storage.save(uaid, &messages, Room::Promised).unwrap();
        }
    }

    /// Ends the process gracefully and starts it again.
    pub(super) fn restart(&mut self) {
        self.disconnect();
        self.storage = open(&self.folder);
    }

    /// Sends the client a message. Returns the result.
    pub(super) fn send(&mut self, mut message: Notification) -> Option<Saved> {
        message.arrived_s = self.now_ms / 1000;
        message.place_ms = self.storage.place(self.now_ms);
        if let Some(client) = &self.client
            && client.session.takes_direct()
        {
            self.event(Event::Direct(message));
            return None;
        }
        if message.ttl_s == 0 {
            return None;
        }
        let uaid = self.uaid.unwrap();
        let saved = self.storage.save(uaid, &[message], Room::Limited).unwrap();
        if self.client.is_some() {
            self.event(Event::CheckStorage);
        }
        Some(saved)
    }

    /// Acknowledges the client's messages at these positions.
    pub(super) fn acknowledge(&mut self, places: &[usize]) -> Vec<String> {
        let Some(client) = &mut self.client else {
            return Vec::new();
        };
        let held = std::mem::take(&mut client.held);
        let mut versions = Vec::new();
        for (place, message) in held.into_iter().enumerate() {
            match places.contains(&place) {
                true => versions.push(message.version),
                false => client.held.push(message),
            }
        }
        if !versions.is_empty() {
            let update = |version| json!({"channelID": CHANNEL, "version": version});
            let updates: Vec<_> = versions.iter().map(update).collect();
            let ack = json!({"messageType": "ack", "updates": updates});
            self.event(Event::Text(ack.to_string()));
        }
        versions
    }

    pub(super) fn acknowledge_all(&mut self) -> Vec<String> {
        let all: Vec<usize> = (0..self.held().len()).collect();
        self.acknowledge(&all)
    }

    /// Versions of the client's unacknowledged messages.
    pub(super) fn held(&self) -> Vec<String> {
        let held = self.client.iter().flat_map(|client| &client.held);
        held.map(|message| message.version.clone()).collect()
    }

    /// The unacknowledged messages after a new connection.
    fn again(&mut self) -> Vec<String> {
        self.connect();
        self.held()
    }

    /// Checks that nothing comes again once everything is acknowledged.
    #[track_caller]
    fn is_done(&mut self) {
        self.acknowledge_all();
        assert_eq!(self.again(), [""; 0]);
    }

    pub(super) fn close(&self) -> Option<Close> {
        self.client.as_ref().and_then(|client| client.close)
    }

    pub(super) fn event(&mut self, event: Event) {
        let Some(client) = &mut self.client else {
            return;
        };
        let broadcasts = Broadcasts::default();
        let mut next = Some(event);
        while let Some(event) = next.take() {
            for action in client.session.on(event, at(self.now_ms, &broadcasts)) {
                match action {
                    Action::Enter(uaid) => self.uaid = Some(uaid),
                    Action::Send(ServerMessage::Notification(message)) => {
                        client.held.push(*message);
                    }
                    Action::Call(call) => {
                        let endpoint = |_, _, _: Option<&str>| Some("https://push/".to_owned());
                        let answer = call.run(&self.storage, self.now_ms, endpoint);
                        next = Some(Event::Answer(answer.unwrap()));
                    }
                    Action::Close(close) => client.close = Some(close),
                    Action::Send(_) | Action::Ping | Action::Wait(_) => {}
                }
            }
            if next.is_none() && client.session.wants_check() {
                next = Some(Event::CheckStorage);
            }
        }
    }
}

fn open(folder: &TempDir) -> Sqlite {
    Sqlite::open(&folder.path().join("push.db"), Limits::ORDINARY).unwrap()
}

fn numbered(count: u32) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

/// This many messages arrive while the client is away.
fn away(service: &mut Service, count: u32) {
    service.disconnect();
    for version in numbered(count) {
        service.send(message(&version, None, 60));
    }
}

#[test]
fn what_comes_while_the_client_is_connected_goes_straight_to_it() {
    let mut service = Service::new(Rules::AUTOPUSH);
    service.send(message("a", None, 60));
    service.send(message("now or never", None, 0));
    assert_eq!(service.held(), ["a", "now or never"]);
    // Unacknowledged messages come again, except those that must not wait.
    assert_eq!(service.again(), ["a"]);
    service.is_done();
}

#[test]
fn stored_messages_come_in_batches_in_order() {
    let mut service = Service::new(Rules::AUTOPUSH);
    away(&mut service, 25);
    assert_eq!(service.again(), numbered(25)[..10]);
    service.acknowledge_all();
    assert_eq!(service.held(), numbered(25)[10..20]);
    service.acknowledge_all();
    assert_eq!(service.held(), numbered(25)[20..]);
    service.is_done();
}

#[test]
fn a_batch_that_was_acknowledged_in_part_comes_again_whole() {
    let mut service = Service::new(Rules::AUTOPUSH);
    away(&mut service, 2);
    service.connect();
    service.acknowledge(&[0]);
    assert_eq!(service.again(), ["0", "1"]);
    // In reverse order.
    service.acknowledge(&[1]);
    service.acknowledge(&[0]);
    assert_eq!(service.again(), [""; 0]);
}

#[test]
fn where_each_one_counts_only_the_rest_comes_again() {
    let mut service = Service::new(Rules {
        acks: Acks::Each,
        ..Rules::AUTOPUSH
    });
    away(&mut service, 3);
    service.connect();
    service.acknowledge(&[1]);
    assert_eq!(service.again(), ["0", "2"]);
}

#[test]
fn of_one_topic_the_newest_comes_and_once() {
    let mut service = Service::new(Rules::AUTOPUSH);
    service.disconnect();
    for version in ["a", "b"] {
        service.send(message(version, Some("news"), 60));
    }
    assert_eq!(service.again(), ["b"]);
    service.is_done();
}

#[test]
fn more_topics_than_are_read_at_once_all_come() {
    let mut service = Service::new(Rules {
        direct: Direct::WhenDrained,
        ..Rules::AUTOPUSH
    });
    service.disconnect();
    for topic in numbered(30) {
        service.send(message(&topic, Some(&topic), 60));
    }
    service.connect();
    let mut came = 0;
    while !service.held().is_empty() {
        came += service.acknowledge_all().len();
    }
    assert_eq!(came, 30);
}

#[test]
fn what_has_expired_hides_nothing_that_has_not() {
    let mut service = Service::new(Rules::AUTOPUSH);
    service.disconnect();
    for number in 0..12 {
        service.send(message(&format!("old {number}"), None, 1));
    }
    service.send(message("good", None, 60));
    service.now_ms += 1000;
    assert_eq!(service.again(), ["good"]);
}

#[test]
fn a_client_that_was_away_for_too_long_is_reset() {
    let mut service = Service::new(Rules {
        stored_messages_max: 20,
        ..Rules::AUTOPUSH
    });
    away(&mut service, 21);
    service.connect();
    service.acknowledge_all();
    assert_eq!(service.close(), None);
    service.acknowledge_all();
    assert_eq!(service.close(), Some(Close::Reset));
    assert_eq!(service.held(), [""; 0], "the third batch is not sent");
    let uaid = service.uaid.unwrap();
    assert_eq!(service.storage.get_user(uaid).unwrap(), None);
}

#[test]
fn nothing_goes_straight_to_a_slow_client_where_it_must_be_drained_first() {
    let mut service = Service::new(Rules {
        direct: Direct::WhenDrained,
        ..Rules::AUTOPUSH
    });
    assert_eq!(service.send(message("a", None, 60)), None);
    for version in ["b", "c"] {
        let stored = service.send(message(version, None, 60));
        assert_eq!(stored, Some(Saved::Stored));
    }
    assert_eq!(service.held(), ["a"]);
    service.acknowledge_all();
    assert_eq!(service.held(), ["b", "c"]);
    service.acknowledge_all();
    assert_eq!(service.send(message("d", None, 60)), None);
}

fn rules() -> [Rules; 2] {
    [Direct::Always, Direct::OnlyUnstorable].map(|direct| Rules {
        direct,
        ..Rules::ORDINARY
    })
}

#[test] // S32
fn unacknowledged_messages_do_not_end_an_active_client() {
    for rules in rules() {
        let mut service = Service::new(rules);
        for version in numbered(26) {
            service.send(message(&version, None, 60));
        }
        for number in 0..1100 {
            service.send(message(&format!("good {number}"), None, 60));
            let held = service.held();
            let good = held.iter().position(|version| version.starts_with("good"));
            assert_eq!(service.acknowledge(&[good.unwrap()]).len(), 1, "{number}");
        }
        assert_eq!(service.close(), None);
    }
}

#[test] // S32
fn client_that_acknowledges_late_gets_everything() {
    for rules in rules() {
        let mut service = Service::new(rules);
        let mut came = Vec::new();
        for version in numbered(95) {
            service.send(message(&version, None, 60));
        }
        loop {
            let held = service.held().len();
            assert!(held <= DIRECT_MAX + STORED_MAX, "{held}");
            // Not all of them: after that, the storage is read in any case.
            let most: Vec<usize> = (0..held.max(2) - 1).collect();
            let acknowledged = service.acknowledge(&most);
            if acknowledged.is_empty() {
                break;
            }
            came.extend(acknowledged);
        }
        came.extend(service.acknowledge_all());
        came.sort_by_key(|version| version.parse::<u32>().unwrap());
        assert_eq!(came, numbered(95));
        assert_eq!(service.close(), None);
    }
}

#[test] // S32
fn a_clock_that_was_set_back_locks_nobody_out() {
    let mut service = Service::new(Rules::ORDINARY);
    away(&mut service, 1);
    service.now_ms -= 3_600_000;
    service.connect();
    assert_eq!(service.close(), None);
    assert_eq!(service.held(), ["0"]);
}
