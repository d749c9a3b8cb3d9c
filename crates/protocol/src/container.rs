//! Types of the launcher's answers that the orchestrator decides by: how a container ended, and why
//! one could not be run. The launcher's `wire` module has the messages around them.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// Exit code, or 128 plus the signal's number if a signal ended the container.
    pub exit_code: i64,
    /// Whether it ran out of memory.
    pub out_of_memory: bool,
    /// Why the launcher ended it; `None` if it ended itself.
    pub killed: Option<Killed>,
    /// Time from start to end in milliseconds.
    pub millis: u64,
}

/// Why the launcher ended a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Killed {
    Deadline,
    Asked,
}

/// Why a check could not be run. The fault is ours, never the host's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchFault {
    pub kind: FaultKind,
    /// What was tried and what went wrong, for the operator.
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The engine does not answer, or refuses something that every check needs (the egress volume,
    /// the probe). Nothing can run, and the launcher keeps trying.
    EngineDown,
    /// The engine answered this launch with an error.
    EngineError,
    ImageMissing,
    /// The probe found a required limit that is not in force. No check runs until it is.
    NotConfined,
    /// All container slots are in use.
    Full,
    /// The request was not understood, or names a check that is already running.
    BadRequest,
}
