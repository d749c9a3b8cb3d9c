//! The control wire between the orchestrator and the gateway.
//!
//! One connection to `gateway.sock` is one check's egress. The orchestrator writes
//! [`Request::Open`] and reads [`Answer::Ready`] or why there is no egress. When the check is over,
//! it writes [`Request::Close`] and reads [`Answer::Account`]. A connection that ends without
//! `close` closes the egress as well, so no egress outlives its orchestrator.
//!
//! Both sides send NDJSON, at most [`CONTROL_LINE_BYTES_MAX`] a line. Only the first line of a
//! connection to `gateway.sock` may be longer, because of its order ([`REQUEST_LINE_BYTES_MAX`]).

use std::net::IpAddr;
use std::time::Duration;

use local_socket::Ask;
pub(crate) use protocol::egress::{Account, Budget, Deferral, FailedSide, Family, Wish};
use protocol::{CheckId, CheckOrder, DeadReason, Host, limits};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::wire::text_name::TextName;

/// Longest control line. The longest request without messages holds a host, a group and a contact.
pub const CONTROL_LINE_BYTES_MAX: usize = 8 * 1024;

/// Longest first line at `gateway.sock`: an order may hold push messages.
pub const REQUEST_LINE_BYTES_MAX: usize = CONTROL_LINE_BYTES_MAX + limits::ORDER_BYTES_MAX;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Opens an egress to port 443 of `host`. The first line of a check's connection.
    Open {
        check: CheckId,
        host: Host,
        /// Its registered domain, by which look-ups are paced. The orchestrator has the suffix
        /// list.
        group: String,
        /// The order to write next to the egress socket.
        order: CheckOrder,
        /// What this egress should test in addition.
        #[serde(default, skip_serializing_if = "Wish::is_none")]
        wish: Wish,
    },
    /// The check is over: removes the socket and returns the account. `proven` means that the check
    /// came out alive, so that the address is paced by its block alone from now on (invariant I8).
    Close {
        /// Whether a responding instance answered at the dialled address.
        proven: bool,
    },
    /// Asks for the gateway's version and state, on a separate connection.
    Status {},
    /// Asks for the TXT records of one name, on a separate connection. The socket for texts allows
    /// only this request.
    Txt {
        name: TextName,
        /// The registered domain that the name lies below, by which these look-ups are paced.
        group: String,
    },
}

impl Ask for Request {
    type Answer = Answer;

    /// That of the first line at `gateway.sock`.
    const BYTES_MAX: usize = REQUEST_LINE_BYTES_MAX;

    const ANSWER_BYTES_MAX: usize = CONTROL_LINE_BYTES_MAX;

    fn answer_time_max(&self) -> Duration {
        match self {
            // The gateway's times for DNS, a dial slot and dialling, with room for settings that
            // stretch them.
            Self::Open { .. } | Self::Txt { .. } => Duration::from_secs(60),
            // The gateway has the answer ready.
            Self::Close { .. } => Duration::from_secs(10),
            // The same, and an operator soon learns that a part hangs.
            Self::Status {} => Duration::from_secs(7),
        }
    }

    fn parse<T: DeserializeOwned>(line: &[u8]) -> serde_json::Result<T> {
        protocol::parse_line(line)
    }

    fn failed(message: String) -> Answer {
        Answer::Refused { message }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// The host has accepted a TCP connection; the egress directory is there.
    Ready {
        address: IpAddr,
        /// Whether the DNS answer came from the network during this open, not from the cache. If
        /// so, an `alive` that follows proves that DNS works.
        fresh: bool,
    },
    /// The host itself failed: no container is started.
    Unreachable {
        /// One of the gateway's reasons of [`DeadReason`].
        reason: DeadReason,
        /// The exact cause for people, escaped, at most 200 bytes.
        detail: String,
        /// The families over which a dial failed; empty if nothing was dialled.
        families: Vec<Family>,
        /// Whether the DNS answer came from the network during this open.
        fresh: bool,
    },
    /// Out of turn, or undecidable for now: ask again later. Not the host's failure.
    Deferred {
        why: Deferral,
        /// Shortest wait before the next try.
        retry_after_ms: u64,
    },
    Offline {},
    Account(Account),
    /// The gateway's version and state.
    Status(Status),
    /// The answer of DNS for a name's TXT records.
    Txt(Texts),
    /// Our own mistake, never the host's. Either the request was not understood or came out of
    /// order, and the connection ends. Or this machine could not make an egress, for instance
    /// because its disk is full.
    Refused {
        /// What was wrong; for a machine's failure, what to look after.
        message: String,
    },
}

/// The answer of DNS for a name's TXT records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Texts {
    Records {
        /// Records in the order in which they were received; at most
        /// [`crate::wire::text_name::RECORDS_MAX`], each at most
        /// [`crate::wire::text_name::RECORD_BYTES_MAX`] long, its strings joined. Each byte that is
        /// not printable ASCII is U+FFFD here, so that such a record is neither a key nor a wish.
        records: Vec<String>,
    },
    NoSuchName {},
    /// The name exists without such records.
    NoData {},
    /// SERVFAIL, or another code that is no answer.
    ServerFailed {},
    TimedOut {},
}

/// The gateway's version and state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    pub version: String,
    /// Families that have a route out.
    pub families: Vec<Family>,
    pub open: u32,
    /// Opens answered since the start, with any answer.
    pub opens_total: u64,
    pub dials_total: u64,
    /// Lab mode: names from a file, private addresses dialled.
    pub lab: bool,
    /// What is wrong with the resolver itself, for the operator.
    pub trouble: Option<String>,
}
