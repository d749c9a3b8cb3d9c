//! The messages between commands and the daemon on the control socket: one line of JSON each.

use protocol::Host;
use serde::{Deserialize, Serialize};

use crate::daemon::LiveState;
use crate::groups::Verb;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    Add {
        names: Vec<String>,
    },
    /// Opt a host out for its owner or a moderator, or undo that.
    OptOut {
        /// The host to leave alone.
        host: Host,
        by: By,
        /// Whether to undo the opt-out.
        undo: bool,
        /// Why, for the log of decisions; only a moderator's reason is recorded.
        reason: Option<String>,
    },
    Check {
        host: Host,
    },
    Dump {
        /// Publish even if too many names were lost.
        force: bool,
    },
    /// Read the admission rules and the operator's lists again.
    ReloadAdmission {},
    DecideGroup {
        /// Its registered domain, as typed.
        domain: String,
        verb: Verb,
        /// Why, for the log of decisions.
        reason: String,
    },
    /// Undo a decision about a group.
    UndoGroupDecision {
        /// The id of the decision.
        id: i64,
    },
    /// Undo a decision about a host.
    UndoHostDecision {
        /// The id of the decision.
        id: i64,
    },
    ResumeSource {
        name: String,
    },
    /// Read a source now, only to show its names.
    SourceNames {
        /// Its URL, as in the operator's file.
        url: String,
    },
    /// Walk through a host's public conversations now.
    Discover {
        host: Host,
    },
    Live {},
}

/// Who requests an opt-out by command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The instance's owner.
    Owner,
    /// A moderator of this census.
    Moderator,
}

impl By {
    pub(super) fn who(self) -> &'static str {
        match self {
            Self::Owner => "its owner",
            Self::Moderator => "a moderator",
        }
    }
}

/// One line of the answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    Step(String),
    /// Some names of a list; `done` follows the last ones.
    Names(Vec<Host>),
    /// The result of `add`.
    Added(AddReport),
    Live(Box<LiveState>),
    /// Success of any other request, as text.
    Done(String),
    Failed(String),
}

/// The result of adding names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddReport {
    /// Admitted now, and due at once.
    pub taken: Vec<Host>,
    pub known: Vec<Host>,
    /// Names that the census refuses, and why.
    pub refused: Vec<(String, String)>,
}
