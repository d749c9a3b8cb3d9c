//! What the census should find about a persona.

use protocol::{DeadReason, Host};
use serde::{Deserialize, Serialize};

/// The expected findings about one persona.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expectation {
    pub verdict: ExpectedVerdict,
    /// Its state after the first verdict, in the census's snake case. `unknown` if it must have no
    /// row.
    pub state: String,
    /// Further states that later checks may cause.
    pub later: Vec<String>,
    /// Whether its name is in `nodes.json`.
    pub listed: bool,
    /// Whether it asks to be left out of statistics.
    pub hidden: bool,
    /// Whether its behaviour changes over time. If so, verdict and listing depend on the moment,
    /// and only its state is compared.
    pub changes: bool,
    /// Names that become candidates because of it.
    pub learns: Vec<Host>,
    /// Whether no connection for it may ever arrive.
    pub never_contacted: bool,
    /// The only paths that may be requested from it. `None` if that does not matter.
    pub asked_only: Option<Vec<String>>,
    /// Paths that may never be requested from it.
    pub never_asked: Vec<String>,
    /// The lower-case name of its software. `None` if that does not matter.
    pub software: Option<String>,
    /// Its setting for registrations. `None` if that does not matter.
    pub registrations: Option<Registrations>,
    pub note: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Registrations {
    Open,
    /// Registration is not open to everyone.
    Closed,
    /// The setting is missing, or neither true nor false.
    NotSaid,
}

impl Registrations {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::NotSaid => "unknown",
        }
    }
}

impl From<Option<bool>> for Registrations {
    fn from(said: Option<bool>) -> Self {
        match said {
            Some(true) => Self::Open,
            Some(false) => Self::Closed,
            None => Self::NotSaid,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedVerdict {
    Alive,
    Moved {
        to: Host,
    },
    OptedOut,
    /// It answers 410.
    Gone,
    Refused,
    /// Dead for one of these reasons. There are several if timing or transport decides which one is
    /// seen first.
    Dead {
        reasons: Vec<DeadReason>,
    },
    NeverChecked,
}

impl ExpectedVerdict {
    /// The verdict's name in a finding. `None` if there is no check.
    pub fn name(&self) -> Option<&'static str> {
        match self {
            Self::Alive => Some("alive"),
            Self::Moved { .. } => Some("moved"),
            Self::OptedOut => Some("opted_out"),
            Self::Gone => Some("gone"),
            Self::Refused => Some("refused"),
            Self::Dead { .. } => Some("dead"),
            Self::NeverChecked => None,
        }
    }
}

impl Expectation {
    fn new(verdict: ExpectedVerdict, state: &str, later: &[&str]) -> Self {
        Self {
            listed: verdict == ExpectedVerdict::Alive,
            never_contacted: verdict == ExpectedVerdict::NeverChecked,
            verdict,
            state: state.to_owned(),
            later: later.iter().map(|&state| state.to_owned()).collect(),
            hidden: false,
            changes: false,
            learns: Vec::new(),
            asked_only: None,
            never_asked: Vec::new(),
            software: None,
            registrations: None,
            note: String::new(),
        }
    }

    pub fn alive() -> Self {
        Self::new(ExpectedVerdict::Alive, "alive", &[])
    }

    /// It responds and asks to be left out of statistics.
    pub fn hidden() -> Self {
        Self {
            hidden: true,
            listed: false,
            ..Self::alive()
        }
    }

    /// It is dead for one of `reasons`. Because it never responded, its first state is dying.
    pub fn dead(reasons: &[DeadReason]) -> Self {
        let verdict = ExpectedVerdict::Dead {
            reasons: reasons.to_vec(),
        };
        Self::new(verdict, "dying", &["dead"])
    }

    /// It redirects to `to` permanently. [`Expectation::learning`] declares whether `to` becomes a
    /// candidate.
    pub fn moved(to: &str) -> Self {
        let verdict = ExpectedVerdict::Moved {
            to: crate::personas::table::host(to),
        };
        Self::new(verdict, "moving", &["moved"])
    }

    /// Its robots.txt forbids checks, and only `asked_only` is ever requested.
    pub fn opted_out(asked_only: &[&str]) -> Self {
        Self {
            asked_only: Some(asked_only.iter().map(|&path| path.to_owned()).collect()),
            ..Self::new(ExpectedVerdict::OptedOut, "opted_out", &[])
        }
    }

    /// It answers 410.
    pub fn gone() -> Self {
        Self::new(ExpectedVerdict::Gone, "dying", &["dead"])
    }

    /// It refuses us: a host without any verdict stays discovered, and is dead after a fortnight.
    pub fn refused() -> Self {
        Self::new(ExpectedVerdict::Refused, "discovered", &["dead"])
    }

    /// It must never become known, and so never be contacted.
    pub fn never() -> Self {
        Self::new(ExpectedVerdict::NeverChecked, "unknown", &[])
    }

    /// Its behaviour changes: it is alive first, and may later be in any of `states`.
    pub fn changing(states: &[&str]) -> Self {
        Self {
            changes: true,
            ..Self::new(ExpectedVerdict::Alive, "alive", states)
        }
    }

    /// Adds names that become candidates.
    #[must_use]
    pub fn learning(mut self, hosts: &[&str]) -> Self {
        self.learns
            .extend(hosts.iter().map(|name| crate::personas::table::host(name)));
        self
    }

    /// Adds a path that may never be requested.
    #[must_use]
    pub fn never_asking(mut self, path: &str) -> Self {
        self.never_asked.push(path.to_owned());
        self
    }

    #[must_use]
    pub fn running(mut self, software: &str) -> Self {
        self.software = Some(software.to_owned());
        self
    }

    /// Sets the expected setting for registrations.
    #[must_use]
    pub fn saying(mut self, open_registrations: Option<bool>) -> Self {
        self.registrations = Some(open_registrations.into());
        self
    }

    #[must_use]
    pub fn noting(mut self, note: &str) -> Self {
        note.clone_into(&mut self.note);
        self
    }
}
