//! Types of the gateway's messages that the orchestrator decides by: what a check asks of its
//! egress, why it has to wait, and what the gateway saw. The gateway's `control` module has the
//! messages around them.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Longest wait for which the gateway promises a turn: a daily interval, before the lab's division.
/// If a farm has more names than fit in a day, its last ones have to ask again.
pub const PROMISED_WITHIN: Duration = Duration::from_hours(29);

/// A way out: a gateway, and the network that it leaves through (docs/second-way-out.md).
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    #[default]
    First,
    Second,
}

impl Way {
    pub const ALL: [Self; 2] = [Self::First, Self::Second];

    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "second",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() {
            Self::V4
        } else {
            Self::V6
        }
    }
}

/// What an egress should test, where the host allows it. It changes neither the rate limits nor the
/// set of addresses that are dialled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wish {
    /// The family that is dialled first. The other one follows if it fails, so that the wish never
    /// decides about a host.
    pub family: Option<Family>,
    /// Whether the name is looked up in DNS even if the answer is cached.
    pub fresh: bool,
    /// The way out to take: which gateway is asked.
    #[serde(skip)]
    pub way: Way,
}

impl Wish {
    /// Whether there is no wish.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Why an open has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deferral {
    /// The registered domain was looked up a moment ago.
    GroupPace,
    /// The address was contacted a moment ago.
    AddressPace,
    /// The address's /24 or /64 was contacted a moment ago.
    BlockPace,
    /// The rate of all dials together is used up.
    DialPace,
    /// DNS answered SERVFAIL or nothing, for the first or second time.
    Dns,
    /// All addresses are of a family that we don't have.
    NoFamily,
    /// The number of open checks is at its setting, or TXT look-ups are over the gateway's rate.
    Full,
}

impl fmt::Display for Deferral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GroupPace => "its registered domain was just visited",
            Self::AddressPace => "its address was just visited",
            Self::BlockPace => "its /24 or /64 was just visited",
            Self::DialPace => "the limit on dials per second was reached",
            Self::Dns => "its name servers did not answer",
            Self::NoFamily => "this machine has no route for its address family",
            Self::Full => "the limit on open checks was reached",
        })
    }
}

/// What the gateway saw of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// Connections that the checker made and that reached the host. The one dialled at `open`
    /// counts once it is used.
    pub connections: u32,
    pub bytes_up: u64,
    pub bytes_down: u64,
    /// Connections dropped because their SNI was not the host or they were no TLS.
    pub sni_refused: u32,
    /// The side that broke a connection off first.
    pub failed: FailedSide,
    /// The bound that was hit, if any.
    pub budget_hit: Option<Budget>,
    /// Whether the address family was available all the time.
    pub up: bool,
}

/// The side that broke a connection off first, other than by an orderly end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailedSide {
    None,
    /// The host: a reset, or a later connection that it did not accept.
    Host,
    Checker,
    Gateway,
}

/// A bound on what passes through one egress socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    Bytes,
    Connections,
    /// Time since `open`.
    Time,
}
