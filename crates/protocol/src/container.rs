//! Words of the launcher that the orchestrator decides by: how a container ended, and why one could
//! not be run. The wire that carries them is the launcher's `wire` module.

use serde::{Deserialize, Serialize};

/// How a container ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// Its exit code; 128 and the signal's number when a signal ended it.
    pub exit_code: i64,
    /// It ran out of memory.
    pub out_of_memory: bool,
    /// We ended it, and why.
    pub killed: Option<Killed>,
    /// From start to end.
    pub millis: u64,
}

/// Why the launcher ended a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Killed {
    /// Its time was over.
    Deadline,
    /// A `kill` request asked for it.
    Asked,
}

/// Why a check could not be run: ours, never the host's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchFault {
    /// The kind.
    pub kind: FaultKind,
    /// What was tried and what went wrong, for the operator.
    pub message: String,
}

/// The kinds of launch faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The engine does not answer, or refuses what every check needs (the egress volume, the
    /// probe): nothing can run; the launcher keeps trying.
    EngineDown,
    /// The engine answered this launch with an error.
    EngineError,
    /// The checker image is not there.
    ImageMissing,
    /// The probe found a required limit that is not in force: no check will run until it is.
    NotConfined,
    /// All places are taken.
    Full,
    /// The request was not understood, or names a check that runs already.
    BadRequest,
}
