//! What commands and the daemon say to each other over the control socket: a line of JSON each.

use std::collections::BTreeMap;

use import_minoru::MinoruHost;
use protocol::Host;
use serde::{Deserialize, Serialize};

use crate::daemon::LiveState;
use crate::names::groups::Verb;

/// What a command asks.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Bring names in.
    Add {
        /// As typed.
        names: Vec<String>,
    },
    /// Import hosts that another crawler knew.
    Import(Vec<ImportedHost>),
    /// An owner, or a moderator, wants a host left alone; or takes that back.
    OptOut {
        /// The host.
        host: Host,
        /// Who wants it.
        by: By,
        /// Take it back.
        undo: bool,
        /// Why, for the log of decisions: a moderator's alone is recorded.
        reason: Option<String>,
    },
    /// Check a host now.
    Check {
        /// The host.
        host: Host,
    },
    /// Publish now.
    Dump {
        /// Even when too many names were lost.
        force: bool,
    },
    /// Read the admission rules and the operator's lists again.
    ReloadAdmission {},
    /// Decide about a group.
    DecideGroup {
        /// Its registered domain, as typed.
        domain: String,
        /// What.
        verb: Verb,
        /// Why.
        reason: String,
    },
    /// Undo a decision about a group.
    UndoGroupDecision {
        /// Its id.
        id: i64,
    },
    /// Undo a decision about a host.
    UndoHostDecision {
        /// Its id.
        id: i64,
    },
    /// Read a source again that is paused.
    ResumeSource {
        /// What the operator calls it.
        name: String,
    },
    /// Read a source now, only to see its names.
    SourceNames {
        /// Its address, as the operator's file has it.
        url: String,
    },
    /// Walk through a host's public conversations now.
    Discover {
        /// The host.
        host: Host,
    },
    /// The loop's state.
    Live {},
}

/// A host that another crawler knew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportedHost {
    /// Its name as in that crawler's database.
    pub name: String,
    /// What that crawler knew about it.
    pub known: MinoruHost,
    /// A random number, for when it is asked first: a fraction of `u32::MAX`.
    pub jitter: u32,
}

/// The result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportReport {
    /// Imported hosts by state.
    pub taken: BTreeMap<String, u64>,
    /// Hosts that were known and were not changed.
    pub known: u64,
    /// Names that were refused, each with the reason.
    pub refused: Vec<(String, String)>,
}

/// Who asks for an opt-out by word of mouth.
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

/// A line of the answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// Something happened on the way.
    Step(String),
    /// Some names of a list; `done` comes after the last.
    Names(Vec<Host>),
    /// What came of `add`.
    Added(AddReport),
    /// What came of `import --minoru`.
    Imported(ImportReport),
    /// The loop's state.
    Live(LiveState),
    /// The end of all others, in words.
    Done(String),
    /// It did not work, and why.
    Failed(String),
}

/// What became of names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddReport {
    /// They are in now and due at once.
    pub taken: Vec<Host>,
    /// They were in.
    pub known: Vec<Host>,
    /// They are no names for the census, and why.
    pub refused: Vec<(String, String)>,
}
