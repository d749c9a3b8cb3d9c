//! The first message, with the client's id.

use crate::broadcasts::Subscriptions;
use crate::storage::User;
use crate::wire::client::ClientMessage;
use crate::wire::server::ServerMessage;

use super::delivery::Delivery;
use super::{Action, Answer, Call, Close, End, Event, Open, Phase, Session, Surroundings};

/// The content of a hello while the client's record is read.
#[derive(Debug)]
pub(super) struct Greeting {
    broadcasts: std::collections::BTreeMap<String, String>,
    /// The new record, after the old one was read.
    user: Option<User>,
}

impl Session {
    pub(super) fn awaits_hello(
        &self,
        event: &Event,
        surroundings: Surroundings<'_>,
    ) -> Result<(Phase, Vec<Action>), End> {
        let text = match event {
            Event::Text(text) => text,
            Event::TimeIsUp => return Err(Close::HandshakeTimeout.into()),
            Event::BadFrame | Event::Pong => return Err(Close::UnsupportedMessage.into()),
            Event::Direct(_)
            | Event::CheckStorage
            | Event::Wake
            | Event::Superseded
            | Event::Answer(_) => return Err(Close::OutOfPlace.into()),
        };
        let message = ClientMessage::parse(text).or(Err(Close::Json))?;
        let ClientMessage::Hello { uaid, broadcasts } = message else {
            return Err(Close::OutOfPlace.into());
        };
        let greeting = Greeting {
            broadcasts,
            user: None,
        };
        match uaid {
            Some(uaid) => {
                let call = Action::Call(Call::GetUser(uaid));
                Ok((Phase::Greeting(greeting), vec![call]))
            }
            None => Ok(self.greeted(greeting, surroundings)),
        }
    }

    pub(super) fn greeting(
        &self,
        mut greeting: Greeting,
        event: Event,
        surroundings: Surroundings<'_>,
    ) -> Result<(Phase, Vec<Action>), End> {
        match event {
            Event::Answer(Answer::User(None)) => Ok(self.greeted(greeting, surroundings)),
            Event::Answer(Answer::User(Some(user))) => {
                let user = User {
                    connected_ms: surroundings.now_ms,
                    node: Some(self.node.clone()),
                    ..user
                };
                greeting.user = Some(user.clone());
                let call = Action::Call(Call::UpdateUser(user));
                Ok((Phase::Greeting(greeting), vec![call]))
            }
            Event::Answer(Answer::Done(true)) => Ok(self.greeted(greeting, surroundings)),
            Event::Text(_)
            | Event::BadFrame
            | Event::Pong
            | Event::TimeIsUp
            | Event::Direct(_)
            | Event::CheckStorage
            | Event::Wake
            | Event::Superseded
            | Event::Answer(_) => Err(Close::OutOfPlace.into()),
        }
    }

    /// The client is known, or new.
    fn greeted(&self, greeting: Greeting, surroundings: Surroundings<'_>) -> (Phase, Vec<Action>) {
        let Greeting { broadcasts, user } = greeting;
        let mut subscriptions = Subscriptions::default();
        let (broadcasts, unknown) = surroundings
            .broadcasts
            .subscribe(&mut subscriptions, broadcasts);
        let is_stored = user.is_some();
        let made_ms = user.as_ref().map(|user| user.made_ms);
        let (uaid, connected_ms, read_to_ms) = match user {
            Some(user) => (user.uaid, user.connected_ms, user.read_to_ms),
            None => (self.candidate, surroundings.now_ms, 0),
        };
        let mut open = Open {
            uaid,
            connected_ms,
            made_ms,
            is_stored,
            subscriptions,
            delivery: Delivery::new(read_to_ms),
            awaits: None,
            last_ping_ms: None,
            awaits_pong: false,
        };
        let hello = ServerMessage::Hello {
            uaid,
            broadcasts,
            unknown,
        };
        // Register before reading the storage, so that no message is missed in between.
        let mut actions = vec![
            Action::Enter(uaid),
            Action::Send(hello),
            Action::Wait(self.rules.ping_every),
        ];
        if is_stored {
            open.delivery.begin_drain();
            actions.extend(self.check_storage(&mut open));
        }
        (Phase::Open(Box::new(open)), actions)
    }
}
