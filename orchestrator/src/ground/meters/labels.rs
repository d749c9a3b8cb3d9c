//! The values of labels, all of them constants of this program.

use census::state::{OptedOutBy, Verdict};
use protocol::DeadReason;
use protocol::container::{FaultKind, Killed};
use protocol::egress::{Deferral, Family};

use report::ReportFault;

use crate::ground::fault::Fault;

/// The reason of a verdict that has none.
pub const NO_REASON: &str = "none";

/// Whether the census knew a name.
pub const KNOWN: [&str; 2] = ["yes", "no"];

/// The verdict that has a reason.
pub const DEAD: &str = "dead";

pub const VERDICTS: [&str; 5] = ["alive", "moved", "opted_out", "gone", "refused"];

pub fn verdict(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Alive(_) => "alive",
        Verdict::Moved { .. } => "moved",
        Verdict::OptedOut => "opted_out",
        Verdict::Gone => "gone",
        Verdict::Refused { .. } => "refused",
        Verdict::Dead { .. } => DEAD,
    }
}

/// All reasons with which a check may end. `Faulting` is not one: it is concluded from faults,
/// which are counted as faults.
pub const REASONS: [DeadReason; 33] = [
    DeadReason::RobotsUnavailable,
    DeadReason::Tls,
    DeadReason::TlsExpired,
    DeadReason::TlsNotYetValid,
    DeadReason::TlsWrongName,
    DeadReason::TlsSelfSigned,
    DeadReason::TlsUnknownIssuer,
    DeadReason::TlsIncompleteChain,
    DeadReason::TlsUnsupported,
    DeadReason::TlsClosed,
    DeadReason::Http,
    DeadReason::Timeout,
    DeadReason::Deadline,
    DeadReason::TooSlow,
    DeadReason::TooLarge,
    DeadReason::Encoding,
    DeadReason::RedirectLoop,
    DeadReason::RedirectToSelf,
    DeadReason::TemporaryRedirect,
    DeadReason::BadRedirect,
    DeadReason::NodeinfoElsewhere,
    DeadReason::NoNodeinfo,
    DeadReason::NotNodeinfo,
    DeadReason::Status,
    DeadReason::NoSuchName,
    DeadReason::NoAddress,
    DeadReason::AddressRefused,
    DeadReason::DnsBroken,
    DeadReason::Unreachable,
    DeadReason::Protocol,
    DeadReason::Crashed,
    DeadReason::Memory,
    DeadReason::Budget,
];

pub fn reason(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Dead { reason, .. } => reason.as_str().to_owned(),
        Verdict::Alive(_)
        | Verdict::Moved { .. }
        | Verdict::OptedOut
        | Verdict::Gone
        | Verdict::Refused { .. } => NO_REASON.to_owned(),
    }
}

pub const DEFERRALS: [Deferral; 7] = [
    Deferral::GroupPace,
    Deferral::AddressPace,
    Deferral::BlockPace,
    Deferral::DialPace,
    Deferral::Dns,
    Deferral::NoFamily,
    Deferral::Full,
];

pub fn deferral(why: Deferral) -> &'static str {
    match why {
        Deferral::GroupPace => "group_pace",
        Deferral::AddressPace => "address_pace",
        Deferral::BlockPace => "block_pace",
        Deferral::DialPace => "dial_pace",
        Deferral::Dns => "dns",
        Deferral::NoFamily => "no_family",
        Deferral::Full => "full",
    }
}

pub const FAULTS: [&str; 15] = [
    "gateway",
    "gateway_lost",
    "launcher",
    "engine_down",
    "engine_error",
    "image_missing",
    "not_confined",
    "full",
    "bad_request",
    "no_hello",
    "output_lost",
    "no_connection",
    "network_lost",
    "overdue",
    "store",
];

pub fn fault(fault: &Fault) -> &'static str {
    match fault {
        Fault::Gateway(_) => "gateway",
        Fault::GatewayLost => "gateway_lost",
        Fault::Launcher(_) => "launcher",
        Fault::Launch(fault) => match fault.kind {
            FaultKind::EngineDown => "engine_down",
            FaultKind::EngineError => "engine_error",
            FaultKind::ImageMissing => "image_missing",
            FaultKind::NotConfined => "not_confined",
            FaultKind::Full => "full",
            FaultKind::BadRequest => "bad_request",
        },
        Fault::Report(ReportFault::NoHello { .. }) => "no_hello",
        Fault::Report(ReportFault::OutputLost) => "output_lost",
        Fault::Report(ReportFault::NoConnection) => "no_connection",
        Fault::Report(ReportFault::NetworkLost) => "network_lost",
        Fault::Overdue => "overdue",
        Fault::Store(_) => "store",
    }
}

/// Why the launcher ends containers.
pub const KILLED: [Killed; 2] = [Killed::Deadline, Killed::Asked];

pub fn killed(why: Killed) -> &'static str {
    match why {
        Killed::Deadline => "deadline",
        Killed::Asked => "asked",
    }
}

pub const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

pub fn family(family: Family) -> &'static str {
    match family {
        Family::V4 => "v4",
        Family::V6 => "v6",
    }
}

pub const OPTED_OUT_BY: [OptedOutBy; 3] =
    [OptedOutBy::Robots, OptedOutBy::Owner, OptedOutBy::Moderator];

/// Traffic to the host, and from it.
pub const DIRECTIONS: [&str; 2] = ["up", "down"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The gateway paces, looks up and dials.
    Opening,
    /// The host is open, but all container slots may be taken.
    Waiting,
    /// The engine's time to create, start, end and remove the container.
    Launching,
    /// The container, from its start to its end.
    Running,
}

impl Phase {
    /// All phases, in their order.
    pub const ALL: [Self; 4] = [Self::Opening, Self::Waiting, Self::Launching, Self::Running];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Opening => "opening",
            Self::Waiting => "waiting",
            Self::Launching => "launching",
            Self::Running => "running",
        }
    }
}

/// How a check ended, without what it found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedAs {
    Verdict,
    Deferred,
    Offline,
    Fault,
}

impl EndedAs {
    pub const ALL: [Self; 4] = [Self::Verdict, Self::Deferred, Self::Offline, Self::Fault];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Verdict => "verdict",
            Self::Deferred => "deferred",
            Self::Offline => "offline",
            Self::Fault => "fault",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dumped {
    Published,
    /// It lost too many names.
    HeldBack,
    /// The list is published without its pages, its signature, or its record in the database.
    Incomplete,
    /// The list is not published, or not completely.
    Failed,
}

impl Dumped {
    pub const ALL: [Self; 4] = [
        Self::Published,
        Self::HeldBack,
        Self::Incomplete,
        Self::Failed,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::HeldBack => "held_back",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
        }
    }
}
