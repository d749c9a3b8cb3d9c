//! What the census knows of a host, and what a check can say about it (design §6).

use std::fmt;

use protocol::{DeadReason, Host, Private};

use crate::time::Timestamp;

/// Where a host stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Named by somebody, never judged.
    Discovered,
    /// The last word was that it lives.
    Alive,
    /// It fails, and may come back.
    Dying {
        /// The last state that was neither Dying nor Moving.
        before: Before,
        /// Failures in a row.
        count: u32,
        /// A 410 was among these failures: off the list until it lives again.
        gone: bool,
        /// The last word was 410, and a second in a row makes it dead. Never without `gone`.
        gone_last: bool,
    },
    /// Asked seldom.
    Dead,
    /// It redirects to another host for good, and may stop doing so.
    Moving {
        /// The last state that was neither Dying nor Moving.
        before: Before,
        /// Redirects to this target in a row.
        count: u32,
        /// The other host.
        target: Host,
    },
    /// It has redirected to another host for over a week.
    Moved {
        /// The other host.
        target: Host,
    },
    /// Somebody who may say so asked us to stay away.
    OptedOut {
        /// Who: only they take it back (invariant I7).
        by: OptedOutBy,
    },
    /// Kept, and never asked: its name was valid once and no longer is.
    Parked,
}

impl State {
    /// Which state it is, without what it carries.
    pub fn name(&self) -> StateName {
        match self {
            Self::Discovered => StateName::Discovered,
            Self::Alive => StateName::Alive,
            Self::Dying { .. } => StateName::Dying,
            Self::Dead => StateName::Dead,
            Self::Moving { .. } => StateName::Moving,
            Self::Moved { .. } => StateName::Moved,
            Self::OptedOut { .. } => StateName::OptedOut,
            Self::Parked { .. } => StateName::Parked,
        }
    }

    /// Whether a host in this state is never asked: it opted out by word of mouth, or it is parked.
    pub fn is_never_asked(&self) -> bool {
        match self {
            Self::OptedOut { by } => *by != OptedOutBy::Robots,
            Self::Parked { .. } => true,
            Self::Discovered
            | Self::Alive
            | Self::Dying { .. }
            | Self::Dead
            | Self::Moving { .. }
            | Self::Moved { .. } => false,
        }
    }
}

/// A state's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StateName {
    /// [`State::Discovered`]
    Discovered,
    /// [`State::Alive`]
    Alive,
    /// [`State::Dying`]
    Dying,
    /// [`State::Dead`]
    Dead,
    /// [`State::Moving`]
    Moving,
    /// [`State::Moved`]
    Moved,
    /// [`State::OptedOut`]
    OptedOut,
    /// [`State::Parked`]
    Parked,
}

impl StateName {
    /// All of them, in the order of a host's life.
    pub const ALL: [Self; 8] = [
        Self::Discovered,
        Self::Alive,
        Self::Dying,
        Self::Dead,
        Self::Moving,
        Self::Moved,
        Self::OptedOut,
        Self::Parked,
    ];

    /// The name in lower case, as in the database, in metrics and in explanations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Discovered => "discovered",
            Self::Alive => "alive",
            Self::Dying => "dying",
            Self::Dead => "dead",
            Self::Moving => "moving",
            Self::Moved => "moved",
            Self::OptedOut => "opted_out",
            Self::Parked => "parked",
        }
    }
}

/// The last state that was neither Dying nor Moving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// Never judged.
    Discovered,
    /// It lived.
    Alive,
    /// It was dead.
    Dead,
    /// It had moved.
    Moved,
}

/// Who asked us to stay away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptedOutBy {
    /// robots.txt; asked weekly whether it still does.
    Robots,
    /// The instance's owner; never asked again.
    Owner,
    /// A moderator of this census; never asked again.
    Moderator,
}

impl Before {
    /// The name in lower case, as in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Discovered => "discovered",
            Self::Alive => "alive",
            Self::Dead => "dead",
            Self::Moved => "moved",
        }
    }
}

impl OptedOutBy {
    /// The name in lower case, as in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Robots => "robots",
            Self::Owner => "owner",
            Self::Moderator => "moderator",
        }
    }
}

impl Record {
    /// The record of a name that has just come in: discovered, never judged, due at `due`.
    pub fn discovered(host: Host, first_seen: Timestamp, due: Timestamp) -> Self {
        Self {
            host,
            state: State::Discovered,
            since: first_seen,
            hidden: false,
            refuses: false,
            software: None,
            version: None,
            open_registrations: None,
            first_seen,
            last_alive: None,
            last_checked: None,
            due: Some(due),
            doublings: 0,
            alive_count: 0,
        }
    }
}

/// A host's whole row, less its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The key.
    pub host: Host,
    /// Where it stands.
    pub state: State,
    /// Since when it stands there.
    pub since: Timestamp,
    /// Asks to be left out of statistics: never listed.
    pub hidden: bool,
    /// The last word was a refusal to talk to us.
    pub refuses: bool,
    /// NodeInfo's `software.name`, when it last lived.
    pub software: Option<String>,
    /// NodeInfo's `software.version`, when it last lived.
    pub version: Option<String>,
    /// NodeInfo's `openRegistrations`, when it last lived. `None` if it did not say.
    pub open_registrations: Option<bool>,
    /// When its name came in.
    pub first_seen: Timestamp,
    /// When it last lived.
    pub last_alive: Option<Timestamp>,
    /// When a verdict last came in.
    pub last_checked: Option<Timestamp>,
    /// When it is asked next; never for those who opted out by word of mouth, and for the parked.
    pub due: Option<Timestamp>,
    /// How often its weekly interval was doubled: 0, 1 or 2.
    pub doublings: u8,
    /// How often it came out alive, so that peers are asked for at the first and every third one after.
    pub alive_count: u32,
}

/// What a check says about a host. A fault is none of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// NodeInfo is valid and names this host.
    Alive {
        /// `software.name`, lower-cased.
        software: String,
        /// `software.version`.
        version: Option<String>,
        /// Whether it asks to be left out of statistics.
        private: Private,
        /// `openRegistrations`. `None` if it does not say.
        open_registrations: Option<bool>,
    },
    /// 301 or 308 to another host.
    Moved {
        /// The other host.
        to: Host,
    },
    /// robots.txt asks us to stay away.
    OptedOut,
    /// 410.
    Gone,
    /// Somebody is there and won't talk to us now.
    Refused {
        /// HTTP status.
        status: u16,
        /// `Retry-After` in seconds.
        retry_after_s: Option<u64>,
    },
    /// Anything else.
    Dead {
        /// What was the matter.
        reason: DeadReason,
        /// HTTP status, where one was the reason.
        status: Option<u16>,
        /// Where it pointed instead: a host name or escaped text.
        to: Option<String>,
    },
}

impl Verdict {
    /// Its name in the history, the log and the metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Alive { .. } => "alive",
            Self::Moved { .. } => "moved",
            Self::OptedOut => "opted_out",
            Self::Gone => "gone",
            Self::Refused { .. } => "refused",
            Self::Dead { .. } => "dead",
        }
    }

    /// What it says besides its name; empty if nothing.
    pub fn detail(&self) -> String {
        match self {
            Self::Alive {
                software,
                version: None,
                ..
            } => software.clone(),
            Self::Alive {
                software,
                version: Some(version),
                ..
            } => format!("{software} {version}"),
            Self::Moved { to } => format!("to {to}"),
            Self::OptedOut | Self::Gone => String::new(),
            Self::Refused { status, .. } => format!("status {status}"),
            Self::Dead { reason, status, to } => {
                let status = status.map(|status| format!(", status {status}"));
                let to = to.as_ref().map(|to| format!(", to {to}"));
                let [status, to] = [status, to].map(Option::unwrap_or_default);
                format!("{}{status}{to}", reason.as_str())
            }
        }
    }

    /// Whether it counts against the host, and so waits until a later check came out alive (invariant I5).
    pub fn is_failing(&self) -> bool {
        match self {
            Self::Dead { .. } | Self::Gone => true,
            Self::Alive { .. } | Self::Moved { .. } | Self::OptedOut | Self::Refused { .. } => {
                false
            }
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let detail = self.detail();
        let space = if detail.is_empty() { "" } else { " " };
        write!(f, "{}{space}{detail}", self.as_str())
    }
}
