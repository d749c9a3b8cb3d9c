//! The wire between the orchestrator and the launcher.
//!
//! A connection to `launcher.sock` carries one request: a line of JSON, at most [`REQUEST_BYTES_MAX`]. For `launch` the answer is a stream of
//! frames (one byte of [`FrameKind`], four bytes of length, big-endian, then the payload, at most [`FRAME_BYTES_MAX`]) which ends with an `End`
//! or a `Fault` frame; all other requests get one line of JSON. A launch whose connection ends is killed: a container never outlives its reader.

pub(crate) mod frames;

pub(crate) use protocol::container::{End, FaultKind, Killed, LaunchFault};
use protocol::{CheckId, Host};
use serde::{Deserialize, Serialize};

/// Longest request line: an id and a host.
pub const REQUEST_BYTES_MAX: usize = 1024;

/// Longest payload of a frame: what an engine hands over at once is below that.
pub const FRAME_BYTES_MAX: usize = 64 * 1024;

/// What the orchestrator asks. Nothing in it can change a container (design §1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Start a check's container and stream it.
    Launch {
        /// The check, which names the egress directory and the label.
        check: CheckId,
        /// Its host: the checker's only argument.
        host: Host,
    },
    /// End a check's container; its stream then ends with `killed`.
    Kill {
        /// The check.
        check: CheckId,
    },
    /// The checks whose containers are there.
    List {},
    /// The engine, the probe's findings, the counters.
    Status {},
}

/// The kind of a frame in a launch's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// Bytes of the container's stdout.
    Stdout,
    /// Bytes of the container's stderr.
    Stderr,
    /// A JSON [`End`]: the last frame of a container that was started.
    End,
    /// A JSON [`LaunchFault`]: the last frame of one that was not, or whose engine failed.
    Fault,
}

/// Bytes of a frame before its payload: the kind and the length.
pub const FRAME_HEAD_BYTES: usize = 5;

impl FrameKind {
    /// The byte on the wire.
    pub fn byte(self) -> u8 {
        match self {
            Self::Stdout => 1,
            Self::Stderr => 2,
            Self::End => 3,
            Self::Fault => 4,
        }
    }

    /// The kind that a byte stands for, if any.
    pub fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Stdout),
            2 => Some(Self::Stderr),
            3 => Some(Self::End),
            4 => Some(Self::Fault),
            _ => None,
        }
    }
}

/// The answer to `list`, `kill` and `status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// To `kill`: whether there was such a check.
    Killed {
        /// There was.
        found: bool,
    },
    /// To `list`.
    List {
        /// Their ids.
        checks: Vec<CheckId>,
    },
    /// To `status`.
    Status(Status),
    /// To a request that was not understood, or when the engine failed.
    Fault(LaunchFault),
}

/// The launcher's own state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// Version of the launcher.
    pub version: String,
    /// Name and version of the engine, once it has answered.
    pub engine: Option<String>,
    /// Whether checks join the network namespaces of slots, and why; `None` before that is known.
    pub slots: Option<String>,
    /// Why no check can be run now, if so.
    pub trouble: Option<String>,
    /// Limits that the probe found missing and that are not required, such as the CPU share.
    pub warnings: Vec<String>,
    /// Containers running now.
    pub running: u32,
    /// Containers started since the start.
    pub launches_total: u64,
    /// Containers that a former life left behind and the reaper removed.
    pub reaped_total: u64,
}
