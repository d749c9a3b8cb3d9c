//! A client's connection as a value: an event in, actions out.
//!
//! The session reads no clock, draws no random number and uses no storage. It requests one [`Call`]
//! at a time, always as the last of its actions, and gets the [`Answer`] before any other event.
//! Delivery follows autopush-rs 1.83.1; [`Rules`] lists the alternatives.

mod calls;
mod delivery;
mod hello;
mod pings;

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::broadcasts::{Broadcasts, Subscriptions};
use crate::ids::{ChannelId, Uaid};
use crate::notification::Notification;
use crate::storage::{Presence, Stored, User};
use crate::wire::client::ClientMessage;
use crate::wire::server::{Registered, ServerMessage};

use self::delivery::Delivery;

#[cfg(test)]
pub(crate) use self::delivery::{DIRECT_MAX, STORED_MAX};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Time for the client's hello. After that, the connection is closed.
    pub hello_within: Duration,
    /// Interval of pings while there is nothing to send.
    pub ping_every: Duration,
    /// Time for the answer to a ping. After that, the connection is closed.
    pub pong_within: Duration,
    /// Shortest interval between the client's own pings.
    pub client_pings_apart: Duration,
    /// Stored messages that are sent to a client after its hello until the storage is empty. A
    /// client with more waiting messages is reset: it was away too long.
    pub stored_messages_max: u32,
    /// When a stored message without a topic is removed.
    pub acks: Acks,
    /// When a message may go straight to the client.
    pub direct: Direct,
}

/// When a stored message without a topic is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acks {
    /// When all of its batch are acknowledged, as in autopush-rs. A client whose connection breaks
    /// earlier gets the whole batch again.
    Batch,
    /// When it is acknowledged itself: a client with short connections gets ahead.
    Each,
}

/// When a message may go straight to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direct {
    /// Whenever the client is connected, as in autopush-rs.
    Always,
    /// While nothing is unacknowledged, as in autopush's document of its architecture. Everything
    /// else is stored first, which bounds memory for slow clients.
    WhenDrained,
    /// Only a message that may not be stored, since its TTL is 0. All others are stored first, and
    /// survive the end of the process.
    OnlyUnstorable,
}

impl Rules {
    /// The rules of autopush-rs 1.83.1.
    pub const AUTOPUSH: Self = Self {
        hello_within: Duration::from_secs(5),
        ping_every: Duration::from_secs(300),
        pong_within: Duration::from_secs(4),
        client_pings_apart: Duration::from_secs(45),
        stored_messages_max: 150,
        acks: Acks::Batch,
        direct: Direct::Always,
    };

    /// The rules of a deployment: a client is not reset for what the storage holds for it.
    pub const ORDINARY: Self = Self {
        stored_messages_max: 1000,
        acks: Acks::Each,
        ..Self::AUTOPUSH
    };
}

/// An input of the session.
#[derive(Debug)]
pub enum Event {
    Text(String),
    /// A frame that clients don't send: binary, or a part of a message.
    BadFrame,
    /// The answer to a ping frame.
    Pong,
    /// The time of the last [`Action::Wait`] is over.
    TimeIsUp,
    /// A message for the client that is not stored.
    Direct(Notification),
    /// A message was stored for the client.
    CheckStorage,
    /// Other nodes may have taken this one for dead.
    Wake,
    /// The same client has connected again.
    Superseded,
    Answer(Answer),
}

/// An output of the session, carried out in order.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    Send(ServerMessage),
    Ping,
    /// Send [`Event::TimeIsUp`] after this time, instead of any earlier one.
    Wait(Duration),
    /// Register the connection under this id.
    Enter(Uaid),
    /// Carry out a call. It is the last action.
    Call(Call),
    /// Close the connection. It is the last action.
    Close(Close),
}

/// A call whose answer the session waits for. [`Call::run`] shows the answer of each.
#[derive(Debug, PartialEq, Eq)]
pub enum Call {
    MakeEndpoint {
        uaid: Uaid,
        channel: ChannelId,
        /// The only key whose signatures are accepted.
        key: Option<String>,
    },
    GetUser(Uaid),
    /// Add a user. Answer: [`Answer::Done`], false if the id is in use.
    AddUser(User),
    /// Replace a user's record. Answer: [`Answer::Done`], false if the user has connected since it
    /// was read.
    UpdateUser(User),
    /// Check that a user's record names this node, where it has been connected since a time, in
    /// milliseconds since 1970. Answer: [`Answer::Presence`].
    ConfirmNode(Uaid, String, i64),
    RemoveUser(Uaid),
    AddChannel(Uaid, ChannelId),
    /// Remove a channel. Answer: [`Answer::Done`], false if it does not exist.
    RemoveChannel(Uaid, ChannelId),
    FetchTopics(Uaid),
    /// Read messages without a topic that come after this one in order.
    FetchAfter(Uaid, i64),
    Remove(Uaid, Vec<Stored>),
    /// Remove all messages without a topic up to this one.
    Advance(Uaid, i64),
}

#[derive(Debug)]
pub enum Answer {
    /// The endpoint; `None` if the key is invalid.
    Endpoint(Option<String>),
    User(Option<User>),
    /// Whether it was done. The calls list the cases of false.
    Done(bool),
    Presence(Presence),
    /// Messages in order, without expired ones.
    Messages(Vec<Notification>),
    Failed,
}

/// Reasons to close a connection. Codes and reason texts are those of autopush-rs, except for
/// [`Close::Crowded`], which it does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// The user was removed, and gets a new id at the next hello.
    Reset,
    /// Bytes that are not a WebSocket frame (RFC 6455), or a frame that is too long.
    Protocol,
    /// A frame that clients don't send.
    UnsupportedMessage,
    /// A message that is invalid in the session's state.
    OutOfPlace,
    /// A text that is not a message.
    Json,
    HandshakeTimeout,
    /// No answer to a ping in time.
    PongTimeout,
    /// The client sends faster, or reads more slowly, than there is room for.
    TooMuch,
    /// The service restarts, or the client's record says that it is elsewhere.
    Restart,
    /// The last places are for others. The code is not the 4774 that Firefox knows for this, since
    /// Firefox would then not try again by itself.
    Crowded,
}

impl Close {
    /// The close frame's code (RFC 6455 §7.4.1).
    pub fn code(self) -> u16 {
        match self {
            Self::Reset => 1000,
            Self::Protocol => 1002,
            Self::UnsupportedMessage => 1003,
            Self::TooMuch => 1008,
            Self::Crowded => 1013,
            Self::OutOfPlace | Self::Json | Self::HandshakeTimeout | Self::PongTimeout => 1011,
            Self::Restart => 1012,
        }
    }

    pub fn reason(self) -> &'static str {
        match self {
            Self::Reset | Self::OutOfPlace => "SM",
            Self::Protocol => "Protocol",
            Self::UnsupportedMessage => "UnsupportedMessage",
            Self::Json => "Json",
            Self::HandshakeTimeout => "HandshakeTimeout",
            Self::PongTimeout => "PongTimeout",
            Self::TooMuch => "TooMuch",
            Self::Restart => "Restart",
            Self::Crowded => "TryAgainLater",
        }
    }
}

/// Inputs of a session other than the event.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    pub now_ms: i64,
    pub broadcasts: &'a Broadcasts,
}

/// The remaining data of a session whose connection has ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Leaving {
    /// The client's id; `None` before hello.
    pub uaid: Option<Uaid>,
    /// When it connected, in milliseconds since 1970.
    pub connected_ms: i64,
    /// Unacknowledged messages that went straight to the client: they must be stored as if they
    /// arrived now.
    pub unacknowledged: Vec<Notification>,
    /// Unacknowledged messages that the storage has.
    pub stored: usize,
}

#[derive(Debug)]
pub struct Session {
    rules: Rules,
    node: String,
    /// The id for a client that has none.
    candidate: Uaid,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// The client has sent nothing.
    AwaitsHello,
    /// The client has said hello, and the storage is being read.
    Greeting(hello::Greeting),
    Open(Box<Open>),
    Closed(Leaving),
}

#[derive(Debug)]
struct Open {
    uaid: Uaid,
    connected_ms: i64,
    made_ms: Option<i64>,
    /// Whether the storage has a record. A client that registers nothing leaves none.
    is_stored: bool,
    subscriptions: Subscriptions,
    delivery: Delivery,
    /// The call whose answer is due.
    awaits: Option<Awaits>,
    last_ping_ms: Option<i64>,
    awaits_pong: bool,
}

#[derive(Debug)]
enum Awaits {
    Endpoint(ChannelId),
    Added(ChannelId, String),
    Channel(ChannelId, String),
    Unregistered(ChannelId),
    Topics,
    Batch,
    Removed,
    Advanced,
    Reset,
    /// Whether to ping the client then.
    Presence(bool),
}

impl Session {
    /// A session of a new connection, and its first actions.
    pub fn new(rules: Rules, node: String, candidate: Uaid) -> (Self, Vec<Action>) {
        let session = Self {
            rules,
            node,
            candidate,
            phase: Phase::AwaitsHello,
        };
        (session, vec![Action::Wait(rules.hello_within)])
    }

    /// Whether a message may be sent straight to the client now.
    pub fn takes_direct(&self) -> bool {
        match &self.phase {
            Phase::Open(open) => match self.rules.direct {
                Direct::Always | Direct::OnlyUnstorable => open.delivery.has_room(),
                Direct::WhenDrained => open.delivery.is_drained(),
            },
            Phase::AwaitsHello | Phase::Greeting(_) | Phase::Closed(_) => false,
        }
    }

    /// Whether [`Event::CheckStorage`] is to come again: it was too early for the last one.
    pub fn wants_check(&self) -> bool {
        match &self.phase {
            Phase::Open(open) => open.awaits.is_none() && open.delivery.wants_check(),
            Phase::AwaitsHello | Phase::Greeting(_) | Phase::Closed(_) => false,
        }
    }

    /// When the client's record was made, in milliseconds since 1970; `None` if there was none at
    /// its hello.
    pub fn made_ms(&self) -> Option<i64> {
        match &self.phase {
            Phase::Open(open) => open.made_ms,
            Phase::AwaitsHello | Phase::Greeting(_) | Phase::Closed(_) => None,
        }
    }

    /// Unacknowledged messages that went straight to the client.
    pub fn unacknowledged(&self) -> &[Notification] {
        match &self.phase {
            Phase::Open(open) => open.delivery.unacknowledged(),
            Phase::Closed(leaving) => &leaving.unacknowledged,
            Phase::AwaitsHello | Phase::Greeting(_) => &[],
        }
    }

    /// The actions that follow from an event. None after [`Action::Close`].
    pub fn on(&mut self, event: Event, surroundings: Surroundings<'_>) -> Vec<Action> {
        let phase = std::mem::replace(&mut self.phase, Phase::Closed(Leaving::default()));
        match self.step(phase, event, surroundings) {
            Ok((phase, actions)) => {
                self.phase = phase;
                actions
            }
            Err(End { close, leaving }) => {
                self.phase = Phase::Closed(leaving);
                vec![Action::Close(close)]
            }
        }
    }

    /// The remaining data after the connection has ended on either side.
    pub fn leave(self) -> Leaving {
        match self.phase {
            Phase::Open(open) => open.leave(),
            Phase::Closed(leaving) => leaving,
            Phase::AwaitsHello | Phase::Greeting(_) => Leaving::default(),
        }
    }

    fn step(
        &self,
        phase: Phase,
        event: Event,
        surroundings: Surroundings<'_>,
    ) -> Result<(Phase, Vec<Action>), End> {
        match phase {
            Phase::AwaitsHello => self.awaits_hello(&event, surroundings),
            Phase::Greeting(greeting) => self.greeting(greeting, event, surroundings),
            Phase::Open(mut open) => match self.open(&mut open, event, surroundings) {
                Ok(actions) => Ok((Phase::Open(open), actions)),
                Err(close) => Err(End {
                    close,
                    leaving: open.leave(),
                }),
            },
            Phase::Closed(leaving) => Ok((Phase::Closed(leaving), Vec::new())),
        }
    }

    fn open(
        &self,
        open: &mut Open,
        event: Event,
        surroundings: Surroundings<'_>,
    ) -> Result<Vec<Action>, Close> {
        // One call at a time, and nothing before its answer.
        if open.awaits.is_some() != matches!(event, Event::Answer(_)) {
            return Err(Close::OutOfPlace);
        }
        match event {
            Event::Text(text) => {
                // Any unreadable text has the same reason.
                let message = ClientMessage::parse(&text).or(Err(Close::Json))?;
                self.message(open, message, surroundings)
            }
            Event::BadFrame => Err(Close::UnsupportedMessage),
            Event::Pong => {
                open.awaits_pong = false;
                Ok(vec![Action::Wait(self.rules.ping_every)])
            }
            Event::TimeIsUp => self.time_is_up(open, surroundings),
            Event::Direct(message) => Ok(open.delivery.direct(message)),
            Event::CheckStorage => Ok(self.check_storage(open)),
            Event::Wake => Ok(self.confirm_node(open, false)),
            Event::Superseded => Err(Close::OutOfPlace),
            Event::Answer(answer) => self.answer(open, answer),
        }
    }

    fn message(
        &self,
        open: &mut Open,
        message: ClientMessage,
        surroundings: Surroundings<'_>,
    ) -> Result<Vec<Action>, Close> {
        match message {
            ClientMessage::Hello { .. } => Err(Close::OutOfPlace),
            ClientMessage::Register { channel, key } => {
                let channel = ChannelId::parse_canonical(&channel).ok_or(Close::OutOfPlace)?;
                open.awaits = Some(Awaits::Endpoint(channel));
                let uaid = open.uaid;
                Ok(vec![Action::Call(Call::MakeEndpoint {
                    uaid,
                    channel,
                    key,
                })])
            }
            ClientMessage::Unregister { channel } => {
                open.awaits = Some(Awaits::Unregistered(channel));
                Ok(vec![Action::Call(Call::RemoveChannel(open.uaid, channel))])
            }
            ClientMessage::BroadcastSubscribe { broadcasts } => {
                let (broadcasts, unknown) = surroundings
                    .broadcasts
                    .subscribe(&mut open.subscriptions, broadcasts);
                if broadcasts.is_empty() && unknown.is_empty() {
                    return Ok(Vec::new());
                }
                Ok(vec![Action::Send(ServerMessage::Broadcast {
                    broadcasts,
                    unknown,
                })])
            }
            ClientMessage::Ack { versions } => Ok(self.acknowledged(open, &versions)),
            ClientMessage::Nack => Ok(Vec::new()),
            ClientMessage::Ping => {
                let apart = i64::try_from(self.rules.client_pings_apart.as_millis());
                let apart = apart.unwrap_or(i64::MAX);
                let now = surroundings.now_ms;
                let is_early = |last: i64| now.saturating_sub(last) < apart;
                if open.last_ping_ms.replace(now).is_some_and(is_early) {
                    return Err(Close::OutOfPlace);
                }
                Ok(vec![Action::Send(ServerMessage::Pong)])
            }
        }
    }

    fn answer(&self, open: &mut Open, answer: Answer) -> Result<Vec<Action>, Close> {
        let Some(awaits) = open.awaits.take() else {
            return Err(Close::OutOfPlace);
        };
        match (awaits, answer) {
            (Awaits::Endpoint(channel), Answer::Endpoint(Some(endpoint))) => {
                if open.is_stored {
                    open.awaits = Some(Awaits::Channel(channel, endpoint));
                    return Ok(vec![Action::Call(Call::AddChannel(open.uaid, channel))]);
                }
                open.awaits = Some(Awaits::Added(channel, endpoint));
                let user = User::connected(open.uaid, self.node.clone(), open.connected_ms);
                Ok(vec![Action::Call(Call::AddUser(user))])
            }
            (Awaits::Endpoint(channel), Answer::Endpoint(None)) => {
                Ok(vec![registered(channel, Registered::BadKey)])
            }
            (Awaits::Added(channel, endpoint), Answer::Done(true)) => {
                open.is_stored = true;
                open.awaits = Some(Awaits::Channel(channel, endpoint));
                Ok(vec![Action::Call(Call::AddChannel(open.uaid, channel))])
            }
            (Awaits::Channel(channel, endpoint), Answer::Done(true)) => {
                Ok(vec![registered(channel, Registered::At(endpoint))])
            }
            (Awaits::Added(channel, _) | Awaits::Channel(channel, _), Answer::Done(false)) => {
                Ok(vec![registered(channel, Registered::Limited)])
            }
            (
                Awaits::Endpoint(channel) | Awaits::Added(channel, _) | Awaits::Channel(channel, _),
                Answer::Failed,
            ) => Ok(vec![registered(channel, Registered::Failed)]),
            (Awaits::Unregistered(channel), answer @ (Answer::Done(_) | Answer::Failed)) => {
                let is_done = matches!(answer, Answer::Done(_));
                let told = ServerMessage::Unregister { channel, is_done };
                Ok(vec![Action::Send(told)])
            }
            (Awaits::Topics, Answer::Messages(messages)) => Ok(self.topics(open, messages)),
            (Awaits::Batch, Answer::Messages(messages)) => Ok(self.batch(open, messages)),
            (Awaits::Removed | Awaits::Advanced, Answer::Done(_)) => Ok(self.after_acks(open)),
            (Awaits::Reset, Answer::Done(_)) => Err(Close::Reset),
            (Awaits::Presence(pings), Answer::Presence(presence)) => {
                self.presence(open, pings, presence)
            }
            // A storage that failed is no reason to hang up.
            (Awaits::Presence(pings), Answer::Failed) => Ok(self.ping_if(open, pings)),
            // A storage that failed, or an answer to something else.
            (_, _) => Err(Close::OutOfPlace),
        }
    }
}

fn registered(channel: ChannelId, outcome: Registered) -> Action {
    Action::Send(ServerMessage::Register { channel, outcome })
}

impl Open {
    fn leave(self) -> Leaving {
        Leaving {
            uaid: Some(self.uaid),
            connected_ms: self.connected_ms,
            stored: self.delivery.stored_count(),
            unacknowledged: self.delivery.into_unacknowledged(),
        }
    }
}

/// The end of a session, and its remaining data.
#[derive(Debug)]
struct End {
    close: Close,
    leaving: Leaving,
}

impl From<Close> for End {
    fn from(close: Close) -> Self {
        let leaving = Leaving::default();
        Self { close, leaving }
    }
}
