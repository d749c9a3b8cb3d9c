//! The control wire between the orchestrator and the gateway.
//!
//! One connection to `gateway.sock` is one check's way out: the orchestrator writes [`Request::Open`], reads [`Answer::Ready`] or why not, and,
//! when the check is over, writes [`Request::Close`] and reads [`Answer::Account`]. A connection that ends without `close` closes the egress all
//! the same, so an open whose orchestrator went away never stays. NDJSON, at most [`CONTROL_LINE_BYTES_MAX`] a line, both ways; only the
//! first line of a connection to `gateway.sock` may be longer, by its order ([`REQUEST_LINE_BYTES_MAX`]).

use std::net::IpAddr;

pub(crate) use protocol::egress::{Account, Budget, Deferral, FailedSide, Family, Wish};
use protocol::{CheckId, CheckOrder, DeadReason, Host, limits};
use serde::{Deserialize, Serialize};

use crate::wire::text_name::TextName;

/// Longest control line: the longest request without messages holds a host, a group and a contact.
pub const CONTROL_LINE_BYTES_MAX: usize = 8 * 1024;

/// Longest first line at `gateway.sock`: an order may hold push messages.
pub const REQUEST_LINE_BYTES_MAX: usize = CONTROL_LINE_BYTES_MAX + limits::ORDER_BYTES_MAX;

/// What the orchestrator asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Open a way to `host`, port 443. The first line of a check's connection.
    Open {
        /// Names the egress directory.
        check: CheckId,
        /// Whom to resolve and dial.
        host: Host,
        /// Its registered domain, by which look-ups are paced. The orchestrator holds the suffix list.
        group: String,
        /// Laid beside the egress socket.
        order: CheckOrder,
        /// What this way should show to work besides.
        #[serde(default, skip_serializing_if = "Wish::is_none")]
        wish: Wish,
    },
    /// The check is over: take the socket away and give the account. `proven` says that the check came out alive, so that this address
    /// is paced by its block alone from now on (design §8).
    Close {
        /// A living instance answered at the dialled address.
        proven: bool,
    },
    /// What the gateway is and does. On a connection of its own.
    Status {},
    /// The TXT records of one name. On a connection of its own, and all that may be asked at the socket for texts.
    Txt {
        /// The whole name.
        name: TextName,
        /// The registered domain of the name's owner, by which these look-ups are paced: the name lies below it.
        group: String,
    },
    /// Whether any name below `domain` resolves. On a connection of its own. The gateway itself makes up the names that it looks up.
    Wildcard {
        /// A registered domain, by which these look-ups are paced.
        domain: Host,
    },
}

/// What the gateway answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// The host has accepted a TCP connection; the egress directory is there.
    Ready {
        /// The pinned address.
        address: IpAddr,
        /// The DNS answer came from the network during this open, not from the cache: an `alive` that follows proves that DNS works.
        fresh: bool,
    },
    /// The host's own failure: nothing to start a container for.
    Unreachable {
        /// One of the gateway's reasons of [`DeadReason`].
        reason: DeadReason,
        /// What exactly went wrong, for people; escaped, at most 200 bytes.
        detail: String,
        /// The families over which a dial failed; empty when it never came to dialling.
        families: Vec<Family>,
        /// The DNS answer came from the network during this open.
        fresh: bool,
    },
    /// Out of turn, or not to be decided now: ask again later. Not the host's failure.
    Deferred {
        /// Why.
        why: Deferral,
        /// How long to wait at least.
        retry_after_ms: u64,
    },
    /// We have no network at all.
    Offline {},
    /// How the egress was used.
    Account(Account),
    /// What the gateway is and does.
    Status(Status),
    /// What DNS said of a name's TXT records.
    Txt(Texts),
    /// What DNS said of made-up names.
    Wildcard(Wildcard),
    /// Our own mistake, never the host's: the request was not understood or came out of order, and the connection ends; or this machine could
    /// not make an egress, its disk being full for instance.
    Refused {
        /// What was wrong; for the last, what to look after.
        message: String,
    },
}

/// What DNS said of a name's TXT records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Texts {
    /// There are some.
    Records {
        /// In the order in which they were received; at most
        /// [`crate::wire::text_name::RECORDS_MAX`], each at most
        /// [`crate::wire::text_name::RECORD_BYTES_MAX`] long, its strings joined. Each byte that is
        /// not printable ASCII is U+FFFD here, so that the record is no key and no wish.
        records: Vec<String>,
    },
    /// NXDOMAIN.
    NoSuchName {},
    /// The name is there, without such a record.
    NoData {},
    /// SERVFAIL, or another code that is no answer.
    ServerFailed {},
    /// Nobody answered in time.
    TimedOut {},
}

/// What DNS said of two made-up names below a domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Wildcard {
    /// Both have addresses, and they share one at least.
    SamePlace {},
    /// Both have addresses, and share none.
    Apart {},
    /// One has none.
    No {},
    /// It could not be found out, and that lies with the domain.
    Unknown {
        /// Why.
        why: WildcardTrouble,
    },
}

/// Why it could not be found out whether any name below a domain resolves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WildcardTrouble {
    /// SERVFAIL, or another code that is no answer, while others are answered.
    ServerFailed,
    /// Nobody answered in time, while others are answered.
    TimedOut,
    /// The domain has no room for a made-up label.
    NameTooLong,
}

/// The gateway's own state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// Version of the gateway.
    pub version: String,
    /// Families that have a route out.
    pub families: Vec<Family>,
    /// Checks that are open now.
    pub open: u32,
    /// Opens answered since the start, whatever the answer.
    pub opens_total: u64,
    /// Dials since the start.
    pub dials_total: u64,
    /// Lab mode: names from a file, private addresses dialled.
    pub lab: bool,
}
