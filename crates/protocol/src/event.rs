//! Events: what a checker prints, one JSON object a line.

pub mod instance;
pub mod wall;

use serde::{Deserialize, Serialize};

pub use self::instance::{Instance, Private};
pub use self::wall::Wall;
use crate::Host;
use crate::limits;
use crate::list::{ListOutcome, UnlistedReason};
use crate::order::delivery::UnpostedReason;

/// One line of a checker's stdout: an object with exactly one key. Unknown keys are a breach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    /// The first line, printed before the network is touched.
    Hello {
        /// Version of the wire: [`limits::PROTOCOL_VERSION`].
        protocol: u32,
        checker: String,
    },
    /// Finding: NodeInfo is valid and names this host.
    Alive(Instance),
    /// Finding: 301 or 308 to another host.
    Moved { to: Host },
    /// Finding: robots.txt asks us to stay away.
    OptedOut {},
    /// Finding: 410 for well-known NodeInfo.
    Gone {},
    /// Finding: the host answers but refuses for now: 401, 403, 429, 451, 503 with `Retry-After`,
    /// or a wall with any status. For robots.txt, 4xx other than 429 don't count.
    Refused {
        status: u16,
        /// The product that refuses in front of the host; `None` if unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wall: Option<Wall>,
        /// `Retry-After` in seconds from now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_s: Option<u64>,
    },
    Dead {
        reason: DeadReason,
        /// HTTP status, if that was the reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// The target, for `temporary_redirect`, `nodeinfo_elsewhere` and `bad_redirect`: a host
        /// name, or at most [`limits::TEXT_BYTES_MAX`] bytes of escaped text. It becomes known, but
        /// this check never contacts it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
    },
    /// At most [`limits::PEERS_PER_LINE_MAX`] names that the host lists: after `alive`, in list
    /// mode before `listed`, or in walk mode before `walked`.
    Peers { hosts: Vec<Host> },
    PeersEnd {
        outcome: PeersOutcome,
        /// Elements that were no host name.
        dropped: u64,
    },
    /// List mode, before `listed`: at most [`limits::SUFFIX_LINES_PER_LINE_MAX`] lines of the
    /// public suffix list or of a host's proof, without their ends.
    SuffixLines {
        /// Each at most [`limits::SUFFIX_LINE_BYTES_MAX`] bytes, without control characters except
        /// tabs.
        lines: Vec<String>,
    },
    /// List mode: the list was read. No verdict.
    Listed {
        /// Whether it was read to its end.
        outcome: ListOutcome,
        /// Elements that were no host name.
        dropped: u64,
    },
    /// List mode: the list could not be read this time. Anything printed before does not count. No
    /// verdict.
    Unlisted {
        reason: UnlistedReason,
        /// HTTP status, if that was the reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// The target, for `elsewhere` and `bad_redirect`: a host name, or at most
        /// [`limits::TEXT_BYTES_MAX`] bytes of escaped text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
    },
    /// Walk mode: the walk's end, after its `peers` lines. No verdict.
    Walked {
        outcome: WalkOutcome,
        requests: u32,
        /// Number of different posts that were read.
        posts: u32,
        /// When the host allows the next request, in seconds from now, if it stated that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_s: Option<u64>,
    },
    /// Delivery mode: the push service answered a message. No verdict.
    Posted {
        /// Index of the message in the order, from 0.
        message: u32,
        /// HTTP status; redirects are not followed.
        status: u16,
        /// `Retry-After` in seconds from now, at most [`limits::RETRY_AFTER_SECONDS_MAX`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_s: Option<u64>,
    },
    /// Delivery mode: there is no answer to a message. No verdict.
    Unposted {
        /// Index of the message in the order, from 0.
        message: u32,
        reason: UnpostedReason,
    },
    Done {
        requests: u32,
        /// Decoded bytes of the answers' bodies.
        bytes: u64,
        /// Time since the start in milliseconds.
        millis: u64,
    },
}

/// How a peers list ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeersOutcome {
    Complete,
    /// By robots.txt or by a status such as 401, 403, 404 or 406.
    Refused,
    /// At one of our bounds.
    Truncated,
    /// By the network or by something that is no such list.
    Failed,
    /// Not requested: the software has no such list, or it was not wanted this time.
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WalkOutcome {
    /// Nothing new came any more.
    Complete,
    /// At one of our bounds.
    Truncated,
    /// The software has no conversations that a walk could read, or lists its peers itself.
    None,
    /// robots.txt, or the host's NodeInfo, asks us to stay away.
    Disallowed,
    /// The host shows posts only after a login.
    AccessControlled,
    /// The host has no such feed.
    NotFound,
    /// The host did not answer, answered too late or 5xx, or limits how often it answers.
    Unresponsive,
    /// Something answered, but not with JSON.
    NotJson,
}

impl WalkOutcome {
    /// The outcome as a clause, for operators.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Complete => "read until nothing new came",
            Self::Truncated => "read up to our limits",
            Self::None => {
                "not read: its software has no conversations for walks, or lists its peers"
            }
            Self::Disallowed => "not read: its robots.txt or NodeInfo asks us to stay away",
            Self::AccessControlled => "not read: it shows posts only after a login",
            Self::NotFound => "not read: it has no public feed",
            Self::Unresponsive => "not read to the end: it did not answer, or not in time",
            Self::NotJson => "not read: what answered was not JSON",
        }
    }

    pub const ALL: [Self; 8] = [
        Self::Complete,
        Self::Truncated,
        Self::None,
        Self::Disallowed,
        Self::AccessControlled,
        Self::NotFound,
        Self::Unresponsive,
        Self::NotJson,
    ];

    /// The outcome's word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Truncated => "truncated",
            Self::None => "none",
            Self::Disallowed => "disallowed",
            Self::AccessControlled => "access_controlled",
            Self::NotFound => "not_found",
            Self::Unresponsive => "unresponsive",
            Self::NotJson => "not_json",
        }
    }
}

impl PeersOutcome {
    pub const ALL: [Self; 5] = [
        Self::Complete,
        Self::Refused,
        Self::Truncated,
        Self::Failed,
        Self::None,
    ];

    /// The outcome's word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Refused => "refused",
            Self::Truncated => "truncated",
            Self::Failed => "failed",
            Self::None => "none",
        }
    }
}

/// Why a host counts as dead this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeadReason {
    /// robots.txt answered 5xx or broke off: no crawl this time (RFC 9309 §2.3.1.4).
    RobotsUnavailable,
    /// The TLS handshake failed for a reason without a variant, such as no TLS at all.
    Tls,
    TlsExpired,
    /// The certificate is not valid yet.
    TlsNotYetValid,
    /// The certificate is for other names, or the server has none for this one.
    TlsWrongName,
    TlsSelfSigned,
    /// No trusted root issued the certificate or one of its intermediates.
    TlsUnknownIssuer,
    /// The server sent no intermediate certificate, and no trusted root issued its own.
    TlsIncompleteChain,
    /// There is no common version or cipher.
    TlsUnsupported,
    /// The host closed the connection during the handshake.
    TlsClosed,
    /// The answer was not HTTP, or broke off.
    Http,
    /// No first byte within [`limits::FIRST_BYTE_SECONDS_MAX`] seconds.
    Timeout,
    /// The check's time was over before there was a finding.
    Deadline,
    /// A body arrived below [`limits::BODY_BYTES_PER_WINDOW_MIN`] bytes in
    /// [`limits::BODY_WINDOW_SECONDS`] seconds.
    TooSlow,
    /// More decoded bytes than the document may have.
    TooLarge,
    /// A content encoding that we did not offer, or several.
    Encoding,
    /// More than [`limits::REDIRECTS_MAX`] redirects.
    RedirectLoop,
    /// A redirect to the same host that leads to no other page.
    RedirectToSelf,
    /// 302, 303 or 307 to another host, which `to` names.
    TemporaryRedirect,
    /// A redirect whose target is missing or no valid name; `to` holds its text.
    BadRedirect,
    /// The NodeInfo document's address is on another host, which `to` names. That host is never
    /// contacted.
    NodeinfoElsewhere,
    /// No well-known NodeInfo, no supported link in it, or no document behind it.
    NoNodeinfo,
    /// Something answered, but not with NodeInfo.
    NotNodeinfo,
    Status,
    /// From the gateway: the name does not exist.
    NoSuchName,
    /// From the gateway: the name has no address.
    NoAddress,
    /// From the gateway: the name's addresses are not globally reachable, or the operator denies
    /// them.
    AddressRefused,
    /// From the gateway: the name's own servers failed three times in a row.
    DnsBroken,
    /// From the gateway: no address accepted a connection.
    Unreachable,
    /// The container printed what the wire does not allow.
    Protocol,
    /// The checker ended without a finding.
    Crashed,
    Memory,
    /// The check went over its budget of bytes or connections.
    Budget,
    /// The checks of only this host keep failing on our side.
    Faulting,
}

impl DeadReason {
    /// The reason's name on the wire and in the published files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RobotsUnavailable => "robots_unavailable",
            Self::Tls => "tls",
            Self::TlsExpired => "tls_expired",
            Self::TlsNotYetValid => "tls_not_yet_valid",
            Self::TlsWrongName => "tls_wrong_name",
            Self::TlsSelfSigned => "tls_self_signed",
            Self::TlsUnknownIssuer => "tls_unknown_issuer",
            Self::TlsIncompleteChain => "tls_incomplete_chain",
            Self::TlsUnsupported => "tls_unsupported",
            Self::TlsClosed => "tls_closed",
            Self::Http => "http",
            Self::Timeout => "timeout",
            Self::Deadline => "deadline",
            Self::TooSlow => "too_slow",
            Self::TooLarge => "too_large",
            Self::Encoding => "encoding",
            Self::RedirectLoop => "redirect_loop",
            Self::RedirectToSelf => "redirect_to_self",
            Self::TemporaryRedirect => "temporary_redirect",
            Self::BadRedirect => "bad_redirect",
            Self::NodeinfoElsewhere => "nodeinfo_elsewhere",
            Self::NoNodeinfo => "no_nodeinfo",
            Self::NotNodeinfo => "not_nodeinfo",
            Self::Status => "status",
            Self::NoSuchName => "no_such_name",
            Self::NoAddress => "no_address",
            Self::AddressRefused => "address_refused",
            Self::DnsBroken => "dns_broken",
            Self::Unreachable => "unreachable",
            Self::Protocol => "protocol",
            Self::Crashed => "crashed",
            Self::Memory => "memory",
            Self::Budget => "budget",
            Self::Faulting => "faulting",
        }
    }

    /// Whether a checker may report this reason. The other reasons are concluded from outside.
    pub fn is_said_by_checker(self) -> bool {
        match self {
            Self::RobotsUnavailable
            | Self::Tls
            | Self::TlsExpired
            | Self::TlsNotYetValid
            | Self::TlsWrongName
            | Self::TlsSelfSigned
            | Self::TlsUnknownIssuer
            | Self::TlsIncompleteChain
            | Self::TlsUnsupported
            | Self::TlsClosed
            | Self::Http
            | Self::Timeout
            | Self::Deadline
            | Self::TooSlow
            | Self::TooLarge
            | Self::Encoding
            | Self::RedirectLoop
            | Self::RedirectToSelf
            | Self::TemporaryRedirect
            | Self::BadRedirect
            | Self::NodeinfoElsewhere
            | Self::NoNodeinfo
            | Self::NotNodeinfo
            | Self::Status => true,
            Self::NoSuchName
            | Self::NoAddress
            | Self::AddressRefused
            | Self::DnsBroken
            | Self::Unreachable
            | Self::Protocol
            | Self::Crashed
            | Self::Memory
            | Self::Budget
            | Self::Faulting => false,
        }
    }
}

impl Event {
    /// Whether the texts and numbers are within their bounds. Parsing has checked everything else.
    pub fn is_within_bounds(&self) -> bool {
        match self {
            Self::Hello { checker, .. } => checker.len() <= limits::SOFTWARE_BYTES_MAX,
            Self::Alive(instance) => instance.is_within_bounds(),
            Self::Dead { reason, to, .. } => reason.is_said_by_checker() && is_target(to.as_ref()),
            Self::Unlisted { to, .. } => is_target(to.as_ref()),
            Self::Peers { hosts } => hosts.len() <= limits::PEERS_PER_LINE_MAX,
            Self::SuffixLines { lines } => {
                lines.len() <= limits::SUFFIX_LINES_PER_LINE_MAX
                    && lines.iter().all(|line| is_suffix_line(line))
            }
            Self::Posted {
                status,
                retry_after_s,
                ..
            } => {
                (100..=999).contains(status)
                    && retry_after_s
                        .is_none_or(|seconds| seconds <= limits::RETRY_AFTER_SECONDS_MAX)
            }
            Self::Moved { .. }
            | Self::OptedOut {}
            | Self::Gone {}
            | Self::Refused { .. }
            | Self::Unposted { .. }
            | Self::PeersEnd { .. }
            | Self::Listed { .. }
            | Self::Walked { .. }
            | Self::Done { .. } => true,
        }
    }
}

/// Whether a redirect's target is within its bound: a host name or a cut text.
fn is_target(to: Option<&String>) -> bool {
    to.is_none_or(|to| to.len() <= limits::TEXT_BYTES_MAX + 60)
}

/// Whether a text can be a line of the public suffix list or of a host's proof on the wire: it is
/// within its bound, and remains one line wherever it is written.
pub fn is_suffix_line(line: &str) -> bool {
    line.len() <= limits::SUFFIX_LINE_BYTES_MAX
        && line
            .chars()
            .all(|letter| letter == '\t' || !letter.is_control())
}

#[cfg(test)]
mod tests;
