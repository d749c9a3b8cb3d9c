//! What the census knows about a host, and what a check can say about it.

use std::fmt;

use protocol::{DeadReason, Host, Instance, Wall};

use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Its name is known, and it has no verdict yet.
    Discovered,
    /// The last verdict was that it is alive.
    Alive,
    /// It fails, and may come back.
    Dying {
        /// The last state that was neither Dying nor Moving.
        before: Before,
        count: u32,
        /// A 410 was among these failures: off the list until it is alive again.
        gone: bool,
        /// The last answer was 410, and another one in a row makes it dead. Implies `gone`.
        gone_last: bool,
    },
    Dead,
    /// It redirects permanently to another host, and may stop doing so.
    Moving {
        /// The last state that was neither Dying nor Moving.
        before: Before,
        /// Consecutive redirects to this target.
        count: u32,
        target: Host,
    },
    /// It has redirected to another host for over a week.
    Moved {
        target: Host,
    },
    /// An entitled party asked us to stay away.
    OptedOut {
        /// Who asked. Only that party can take it back (invariant I7).
        by: OptedOutBy,
    },
    /// Kept, but never checked: its name was valid once and no longer is.
    Parked,
}

impl State {
    /// The state's name, without its data.
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

    /// Whether a host in this state is never checked: its owner or a moderator opted it out, or it
    /// is parked.
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
    /// All states, in the usual order of a host's life.
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

    /// Parses [`as_str`](Self::as_str).
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.as_str() == word)
    }

    /// The word in all text for people.
    pub fn for_people(self) -> &'static str {
        match self {
            Self::Discovered => "waiting",
            Self::Alive => "up",
            Self::Dying => "failing",
            Self::Dead => "gone",
            Self::Moving => "moving",
            Self::Moved => "moved",
            Self::OptedOut | Self::Parked => "withheld",
        }
    }

    /// The name in lower case, as in the database, in metrics and in JSON.
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
    Discovered,
    Alive,
    Dead,
    Moved,
}

/// Who asked us to stay away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptedOutBy {
    /// robots.txt. A weekly check asks whether it still does.
    Robots,
    /// The instance's owner. The host is never checked again.
    Owner,
    /// A moderator of this census. The host is never checked again.
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
    /// The record of a newly added name: discovered, without a verdict, due at `due`.
    pub fn discovered(host: Host, first_seen: Timestamp, due: Timestamp) -> Self {
        Self {
            host,
            state: State::Discovered,
            since: first_seen,
            hidden: false,
            refuses: false,
            instance: Instance::default(),
            first_seen,
            last_alive: None,
            last_checked: None,
            due: Some(due),
            doublings: 0,
            alive_count: 0,
        }
    }
}

/// A host's row without its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub host: Host,
    pub state: State,
    pub since: Timestamp,
    /// It asks not to appear in statistics, and is never listed.
    pub hidden: bool,
    /// The last verdict was a refusal.
    pub refuses: bool,
    /// What it said about itself when it was last alive, without `private`, which `hidden` keeps.
    pub instance: Instance,
    /// When its name was added.
    pub first_seen: Timestamp,
    pub last_alive: Option<Timestamp>,
    /// Time of the last verdict.
    pub last_checked: Option<Timestamp>,
    /// When it is checked next. `None` if it is parked, or if its owner or a moderator opted it
    /// out.
    pub due: Option<Timestamp>,
    /// How often its weekly interval was doubled: 0, 1 or 2.
    pub doublings: u8,
    /// Number of alive verdicts. Peers are requested at the first and at every third one after it.
    pub alive_count: u32,
}

/// What a check says about a host. A fault is not a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// NodeInfo is valid and names this host.
    Alive(Instance),
    /// 301 or 308 to another host.
    Moved { to: Host },
    /// robots.txt asks us to stay away.
    OptedOut,
    /// The answer is 410.
    Gone,
    /// A server is there and refuses to answer now.
    Refused {
        status: u16,
        /// What refuses in front of it, if known.
        wall: Option<Wall>,
        /// `Retry-After` in seconds.
        retry_after_s: Option<u64>,
    },
    Dead {
        reason: DeadReason,
        /// HTTP status, if it was the reason.
        status: Option<u16>,
        /// Where it pointed instead: a host name or escaped text.
        to: Option<String>,
    },
}

impl Verdict {
    /// Its name in the history, the log and the metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Alive(_) => "alive",
            Self::Moved { .. } => "moved",
            Self::OptedOut => "opted_out",
            Self::Gone => "gone",
            Self::Refused { .. } => "refused",
            Self::Dead { .. } => "dead",
        }
    }

    /// What it says in addition to its name. Empty if it says nothing more.
    pub fn detail(&self) -> String {
        match self {
            Self::Alive(instance) => {
                let words = [&instance.software, &instance.version]
                    .into_iter()
                    .flatten();
                words.map(String::as_str).collect::<Vec<_>>().join(" ")
            }
            Self::Moved { to } => format!("to {to}"),
            Self::OptedOut | Self::Gone => String::new(),
            Self::Refused { status, wall, .. } => {
                let wall = wall.map(|wall| format!("wall {}, ", wall.as_str()));
                format!("{}status {status}", wall.unwrap_or_default())
            }
            Self::Dead { reason, status, to } => {
                let status = status.map(|status| format!(", status {status}"));
                let to = to.as_ref().map(|to| format!(", to {to}"));
                let [status, to] = [status, to].map(Option::unwrap_or_default);
                format!("{}{status}{to}", reason.as_str())
            }
        }
    }

    /// Whether it counts against the host, and so waits until alive verdicts of other hosts confirm
    /// it (invariant I5).
    pub fn is_failing(&self) -> bool {
        match self {
            Self::Dead { .. } | Self::Gone => true,
            Self::Alive(_) | Self::Moved { .. } | Self::OptedOut | Self::Refused { .. } => false,
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
