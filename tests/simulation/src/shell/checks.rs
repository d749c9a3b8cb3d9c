//! Checks in progress, and what happens to them next.

use std::net::IpAddr;
use std::time::Duration;

use census::time::Timestamp;
use protocol::Host;
use protocol::egress::{Deferral, Way};
use protocol::order::AskPeers;
use scheduler::event::CheckNumber;

use crate::world::known::Outcome;

#[derive(Debug)]
pub(crate) struct Check {
    pub(super) host: Host,
    /// The host in the world; `None` for an invented name.
    pub(super) id: Option<u32>,
    pub(super) way: Way,
    pub(super) peers: AskPeers,
    pub(super) began: Timestamp,
    pub(super) address: Option<IpAddr>,
    /// Why it ends without a container.
    pub(super) closed: Option<Outcome>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Happening {
    /// The gateway has an answer from DNS.
    LookedUp(CheckNumber),
    /// The host accepted a connection.
    Accepted(CheckNumber),
    FirstOutput(CheckNumber),
    Ends(CheckNumber),
    Deferred(CheckNumber, Deferral, Duration),
    ListMade,
}
