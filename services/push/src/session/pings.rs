//! Pings, and whether other nodes reach the client here.

use std::collections::BTreeSet;

use crate::storage::Presence;
use crate::wire::server::ServerMessage;

use super::{Action, Awaits, Call, Close, Open, Session, Surroundings};

impl Session {
    pub(super) fn time_is_up(
        &self,
        open: &mut Open,
        surroundings: Surroundings<'_>,
    ) -> Result<Vec<Action>, Close> {
        if open.awaits_pong {
            return Err(Close::PongTimeout);
        }
        let broadcasts = surroundings.broadcasts.news(&mut open.subscriptions);
        if broadcasts.is_empty() {
            return Ok(self.confirm_node(open, true));
        }
        let unknown = BTreeSet::new();
        let told = ServerMessage::Broadcast {
            broadcasts,
            unknown,
        };
        Ok(vec![
            Action::Send(told),
            Action::Wait(self.rules.ping_every),
        ])
    }

    /// Checks that the client is reached here, and pings it then.
    pub(super) fn confirm_node(&self, open: &mut Open, pings: bool) -> Vec<Action> {
        // Without a record nobody sends it anything.
        if !open.is_stored {
            return self.ping_if(open, pings);
        }
        open.awaits = Some(Awaits::Presence(pings));
        let node = self.node.clone();
        vec![Action::Call(Call::ConfirmNode(
            open.uaid,
            node,
            open.connected_ms,
        ))]
    }

    pub(super) fn ping_if(&self, open: &mut Open, pings: bool) -> Vec<Action> {
        if !pings {
            return Vec::new();
        }
        open.awaits_pong = true;
        vec![Action::Ping, Action::Wait(self.rules.pong_within)]
    }

    pub(super) fn presence(
        &self,
        open: &mut Open,
        pings: bool,
        presence: Presence,
    ) -> Result<Vec<Action>, Close> {
        match presence {
            Presence::Elsewhere => Err(Close::Restart),
            Presence::Recorded => Ok(self.ping_if(open, pings)),
            Presence::Restored => {
                let mut actions = self.ping_if(open, pings);
                actions.extend(self.check_storage(open));
                Ok(actions)
            }
        }
    }
}
