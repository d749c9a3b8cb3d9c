//! What the census should make of a persona.

use protocol::{DeadReason, Host};
use serde::{Deserialize, Serialize};

/// What one persona should come out as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expectation {
    /// What a check says about it.
    pub verdict: ExpectedVerdict,
    /// Its state after the first verdict, as the census names it in snake case; `unknown` when it must have no row.
    pub state: String,
    /// States that further checks may bring, in lab time or later.
    pub later: Vec<String>,
    /// Whether its name is in `nodes.json`.
    pub listed: bool,
    /// Whether it asks to be left out of statistics.
    pub hidden: bool,
    /// Whether it plays a story in time: then its verdict and listing depend on the moment and only its state is compared.
    pub changes: bool,
    /// Names that become candidates because of it.
    pub learns: Vec<Host>,
    /// Whether no connection for it may ever arrive.
    pub never_contacted: bool,
    /// The only paths that may be asked of it, where that is the point.
    pub asked_only: Option<Vec<String>>,
    /// Paths that may never be asked of it.
    pub never_asked: Vec<String>,
    /// The lower-cased name of its software, where that is the point.
    pub software: Option<String>,
    /// What it says about registrations, where that is the point.
    pub registrations: Option<Registrations>,
    /// What is worth knowing about this expectation.
    pub note: String,
}

/// What a persona says about registrations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Registrations {
    /// Anyone may register.
    Open,
    /// Not anyone may.
    Closed,
    /// Nothing, or nothing that is true or false.
    NotSaid,
}

impl Registrations {
    /// One word.
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

/// What a check says about a persona.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedVerdict {
    /// It lives.
    Alive,
    /// It moved for good.
    Moved {
        /// Where to.
        to: Host,
    },
    /// robots.txt asks us to stay away.
    OptedOut,
    /// 410.
    Gone,
    /// Somebody is there and won't talk to us.
    Refused,
    /// Dead for one of these reasons. More than one stands where timing or transport decides which is seen first.
    Dead {
        /// The accepted reasons, the likeliest first.
        reasons: Vec<DeadReason>,
    },
    /// No check of it takes place.
    NeverChecked,
}

impl ExpectedVerdict {
    /// The verdict's name, as a finding gives it.
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

    /// It lives and is listed.
    pub fn alive() -> Self {
        Self::new(ExpectedVerdict::Alive, "alive", &[])
    }

    /// It lives and asks to be left out of statistics.
    pub fn hidden() -> Self {
        Self {
            hidden: true,
            listed: false,
            ..Self::alive()
        }
    }

    /// It is dead for one of `reasons`; never having lived, it is dying at first.
    pub fn dead(reasons: &[DeadReason]) -> Self {
        let verdict = ExpectedVerdict::Dead {
            reasons: reasons.to_vec(),
        };
        Self::new(verdict, "dying", &["dead"])
    }

    /// It redirects to `to` for good. Whether `to` becomes a candidate is for [`Expectation::learning`].
    pub fn moved(to: &str) -> Self {
        let verdict = ExpectedVerdict::Moved {
            to: crate::personas::table::host(to),
        };
        Self::new(verdict, "moving", &["moved"])
    }

    /// robots.txt keeps us away, and only `asked_only` is ever asked.
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

    /// It won't talk to us: a host never judged stays discovered, and is dead after a fortnight.
    pub fn refused() -> Self {
        Self::new(ExpectedVerdict::Refused, "discovered", &["dead"])
    }

    /// It must never be known, so never be asked.
    pub fn never() -> Self {
        Self::new(ExpectedVerdict::NeverChecked, "unknown", &[])
    }

    /// It plays a story: it begins alive and may be found in any of `states` afterwards.
    pub fn changing(states: &[&str]) -> Self {
        Self {
            changes: true,
            ..Self::new(ExpectedVerdict::Alive, "alive", states)
        }
    }

    /// The same, and these names become candidates.
    #[must_use]
    pub fn learning(mut self, hosts: &[&str]) -> Self {
        self.learns
            .extend(hosts.iter().map(|name| crate::personas::table::host(name)));
        self
    }

    /// The same, and `path` may never be asked.
    #[must_use]
    pub fn never_asking(mut self, path: &str) -> Self {
        self.never_asked.push(path.to_owned());
        self
    }

    /// The same, and this software is found.
    #[must_use]
    pub fn running(mut self, software: &str) -> Self {
        self.software = Some(software.to_owned());
        self
    }

    /// The same, and it is found to say this about registrations.
    #[must_use]
    pub fn saying(mut self, open_registrations: Option<bool>) -> Self {
        self.registrations = Some(open_registrations.into());
        self
    }

    /// The same, with a note.
    #[must_use]
    pub fn noting(mut self, note: &str) -> Self {
        note.clone_into(&mut self.note);
        self
    }
}
