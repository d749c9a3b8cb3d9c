//! Which messages a client has, has acknowledged, and gets next.

use crate::notification::Notification;
use crate::storage::{Key, MESSAGES_AT_ONCE, Stored, TOPICS_AT_ONCE};
use crate::wire::server::ServerMessage;

use super::{Acks, Action, Awaits, Call, Direct, Open, Session};

/// Most unacknowledged messages that go straight to a client: they are only in memory. Further ones
/// are stored.
pub(crate) const DIRECT_MAX: usize = 25;

/// Most unacknowledged messages from the storage. Further ones stay there. One message can
/// acknowledge them and [`DIRECT_MAX`] more.
pub(crate) const STORED_MAX: usize = 64;

/// The messages that one client was sent.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    /// Sent straight to the client and not stored.
    direct: Vec<Notification>,
    /// Sent from the storage, which still has them.
    stored: Vec<Stored>,
    /// The storage may hold more messages.
    check: bool,
    /// It is to be read when the client has acknowledged some.
    postponed: bool,
    /// Messages with a topic are still to be read.
    topics: bool,
    /// The client already has all those that were read, and there may be more: they are read again
    /// after it has acknowledged these.
    topics_again: bool,
    /// All messages without a topic up to here are finished.
    read_to_ms: i64,
    /// The last message without a topic that was sent, if it is unfinished.
    sent_to_ms: Option<i64>,
    /// Messages sent from the storage since hello, until it is empty.
    drained: Option<u32>,
}

impl Delivery {
    pub(super) fn new(read_to_ms: i64) -> Self {
        Self {
            read_to_ms,
            ..Self::default()
        }
    }

    /// The storage is read from now on until it is empty.
    pub(super) fn begin_drain(&mut self) {
        self.drained = Some(0);
    }

    fn takes_batch(&self) -> bool {
        let batch = usize::try_from(TOPICS_AT_ONCE.max(MESSAGES_AT_ONCE)).unwrap_or(STORED_MAX);
        self.stored.len().saturating_add(batch) <= STORED_MAX
    }

    /// Whether the storage is to be read, and may be now.
    pub(super) fn wants_check(&self) -> bool {
        self.postponed && self.takes_batch()
    }

    pub(super) fn stored_count(&self) -> usize {
        self.stored.len()
    }

    /// Whether the client has acknowledged everything, and nothing waits.
    pub(super) fn is_drained(&self) -> bool {
        self.direct.is_empty() && self.stored.is_empty() && !self.check
    }

    /// Whether the client has acknowledged enough of the messages that went straight to it.
    pub(super) fn has_room(&self) -> bool {
        self.direct.len() < DIRECT_MAX
    }

    fn is_acknowledged(&self) -> bool {
        self.direct.is_empty() && self.stored.is_empty()
    }

    pub(super) fn unacknowledged(&self) -> &[Notification] {
        &self.direct
    }

    pub(super) fn into_unacknowledged(self) -> Vec<Notification> {
        self.direct
    }

    /// Sends a message that is not stored.
    pub(super) fn direct(&mut self, message: Notification) -> Vec<Action> {
        let told = send(message.clone());
        if message.ttl_s > 0 {
            self.direct.push(message);
        }
        vec![told]
    }

    /// Forgets acknowledged messages. Returns those to remove from the storage.
    fn acknowledge(&mut self, versions: &[String], acks: Acks) -> Vec<Stored> {
        let mut removed = Vec::new();
        for version in versions {
            if let Some(place) = self.direct.iter().position(|held| held.version == *version) {
                self.direct.remove(place);
            } else if let Some(place) = self.stored.iter().position(|held| held.version == *version)
            {
                let held = self.stored.remove(place);
                match (&held.key, acks) {
                    (Key::Topic { .. }, _) | (Key::Time { .. }, Acks::Each) => removed.push(held),
                    (Key::Time { .. }, Acks::Batch) => {}
                }
            }
        }
        removed
    }

    /// The messages of a batch that the client does not have yet.
    fn take(&mut self, messages: Vec<Notification>) -> Vec<Notification> {
        let mut new = Vec::new();
        for message in messages {
            // Another node was not answered in time, so it stored the message as well.
            let sent = self.direct.len();
            self.direct.retain(|held| held.version != message.version);
            let is_sent = self.direct.len() < sent;
            if self
                .stored
                .iter()
                .any(|held| held.version == message.version)
            {
                continue;
            }
            self.stored.push(Stored::of(&message));
            if !is_sent {
                new.push(message);
            }
        }
        new
    }
}

fn send(message: Notification) -> Action {
    Action::Send(ServerMessage::Notification(Box::new(message)))
}

impl Session {
    /// A message may have been stored.
    pub(super) fn check_storage(&self, open: &mut Open) -> Vec<Action> {
        open.delivery.check = true;
        open.delivery.topics = true;
        if self.rules.direct == Direct::WhenDrained && !open.delivery.is_acknowledged() {
            return Vec::new();
        }
        open.delivery.postponed = !open.delivery.takes_batch();
        if open.delivery.postponed {
            return Vec::new();
        }
        self.fetch(open)
    }

    pub(super) fn fetch(&self, open: &mut Open) -> Vec<Action> {
        if open.delivery.topics {
            open.awaits = Some(Awaits::Topics);
            return vec![Action::Call(Call::FetchTopics(open.uaid))];
        }
        open.awaits = Some(Awaits::Batch);
        let after = open.delivery.sent_to_ms.unwrap_or(open.delivery.read_to_ms);
        vec![Action::Call(Call::FetchAfter(open.uaid, after))]
    }

    /// Messages with a topic were read.
    pub(super) fn topics(&self, open: &mut Open, messages: Vec<Notification>) -> Vec<Action> {
        let is_empty = messages.is_empty();
        let new = open.delivery.take(messages);
        if new.is_empty() {
            open.delivery.topics = false;
            open.delivery.topics_again = !is_empty;
            return self.fetch(open);
        }
        self.deliver(open, new)
    }

    /// Messages without a topic were read.
    pub(super) fn batch(&self, open: &mut Open, messages: Vec<Notification>) -> Vec<Action> {
        let Some(last_ms) = messages.last().map(|last| last.place_ms) else {
            open.delivery.check = false;
            open.delivery.drained = None;
            return Vec::new();
        };
        open.delivery.sent_to_ms = Some(last_ms);
        let new = open.delivery.take(messages);
        self.deliver(open, new)
    }

    fn deliver(&self, open: &mut Open, messages: Vec<Notification>) -> Vec<Action> {
        if let Some(drained) = &mut open.delivery.drained {
            let count = u32::try_from(messages.len()).unwrap_or(u32::MAX);
            *drained = drained.saturating_add(count);
            if *drained > self.rules.stored_messages_max {
                open.awaits = Some(Awaits::Reset);
                return vec![Action::Call(Call::RemoveUser(open.uaid))];
            }
        }
        messages.into_iter().map(send).collect()
    }

    /// The client has acknowledged messages.
    pub(super) fn acknowledged(&self, open: &mut Open, versions: &[String]) -> Vec<Action> {
        let messages = open.delivery.acknowledge(versions, self.rules.acks);
        if messages.is_empty() {
            return self.after_acks(open);
        }
        open.awaits = Some(Awaits::Removed);
        vec![Action::Call(Call::Remove(open.uaid, messages))]
    }

    /// Continues to read the storage once everything is acknowledged.
    pub(super) fn after_acks(&self, open: &mut Open) -> Vec<Action> {
        if !open.delivery.is_acknowledged() {
            return Vec::new();
        }
        if std::mem::take(&mut open.delivery.topics_again) {
            open.delivery.check = true;
            open.delivery.topics = true;
        }
        if let Some(sent_to_ms) = open.delivery.sent_to_ms.take() {
            open.delivery.read_to_ms = sent_to_ms;
            open.awaits = Some(Awaits::Advanced);
            return vec![Action::Call(Call::Advance(open.uaid, sent_to_ms))];
        }
        if open.delivery.check {
            return self.fetch(open);
        }
        Vec::new()
    }
}
