//! Words of the gateway that the orchestrator decides by: what a check asks of its way out, why it
//! has to wait, and what the gateway saw of it. The wire that carries them is the gateway's
//! `control` module.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Longest wait for which the gateway promises a turn: a daily interval, before the lab's division
/// (design §6). A farm with more names than fit in a day has its last ones ask again.
pub const PROMISED_WITHIN: Duration = Duration::from_hours(29);

/// An address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The family of an address.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() {
            Self::V4
        } else {
            Self::V6
        }
    }
}

/// What a way should show to work, where the host allows it. It changes nothing of the paces nor of
/// which addresses are dialled at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wish {
    /// The family that is dialled first. The other follows when it fails, so that no host is judged
    /// by the wish.
    pub family: Option<Family>,
    /// The name is looked up in DNS, whatever is remembered of it.
    pub fresh: bool,
}

impl Wish {
    /// Whether nothing is wished for.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Why an open has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deferral {
    /// Its registered domain was looked up a moment ago.
    GroupPace,
    /// Its address was asked a moment ago.
    AddressPace,
    /// Its /24 or /64 was asked a moment ago.
    BlockPace,
    /// All dials together.
    DialPace,
    /// DNS answered SERVFAIL or not at all, for the first or second time.
    Dns,
    /// All its addresses are of a family that we don't have.
    NoFamily,
    /// More checks are open than the setting allows, or more texts are asked for than the gateway's
    /// pace for texts does.
    Full,
}

impl fmt::Display for Deferral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GroupPace => "its registered domain was asked a moment ago",
            Self::AddressPace => "its address was asked a moment ago",
            Self::BlockPace => "its neighbourhood was asked a moment ago",
            Self::DialPace => "enough hosts were being asked",
            Self::Dns => "its name servers did not answer",
            Self::NoFamily => "we have no network of its address family",
            Self::Full => "enough checks were open",
        })
    }
}

/// What the gateway saw of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// Connections that the checker made and that reached the host, the one dialled at `open`
    /// included once it was used.
    pub connections: u32,
    /// Bytes to the host.
    pub bytes_up: u64,
    /// Bytes from the host.
    pub bytes_down: u64,
    /// Connections dropped because their SNI was not the host, or that were no TLS.
    pub sni_refused: u32,
    /// Who broke off first.
    pub failed: FailedSide,
    /// The bound that was hit.
    pub budget_hit: Option<Budget>,
    /// The address family was there all the time.
    pub up: bool,
}

/// Who broke off a connection first, otherwise than by an orderly end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailedSide {
    /// Nobody.
    None,
    /// The host: a reset, or a later connection that it did not accept.
    Host,
    /// The checker.
    Checker,
    /// The gateway itself.
    Gateway,
}

/// A bound on what passes through one egress socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    /// Bytes either way.
    Bytes,
    /// Connections.
    Connections,
    /// Time since `open`.
    Time,
}
