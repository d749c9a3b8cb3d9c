//! The wire format between the orchestrator and the launcher.
//!
//! A connection to `launcher.sock` carries one request: a line of JSON, at most
//! [`REQUEST_BYTES_MAX`]. The answer to `launch` is a stream of frames that ends with an `End` or a
//! `Fault` frame. A frame is one byte of [`FrameKind`], four bytes of length (big-endian) and the
//! payload, at most [`FRAME_BYTES_MAX`]. All other requests get one line of JSON. If the connection
//! of a launch ends, the launcher kills the container: a container never outlives its reader.

pub(crate) mod frames;

pub(crate) use protocol::container::{End, FaultKind, Killed, LaunchFault};
use protocol::{CheckId, Host};
use serde::{Deserialize, Serialize};

/// Longest request line: an id and a host.
pub const REQUEST_BYTES_MAX: usize = 1024;

/// Longest payload of a frame. An engine's chunks are shorter.
pub const FRAME_BYTES_MAX: usize = 64 * 1024;

/// A request of the orchestrator. Nothing in it can change a container (invariant I1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Starts a check's container and streams its output.
    Launch {
        /// The check's id, which names the egress directory and the label.
        check: CheckId,
        /// Its host: the checker's only argument.
        host: Host,
    },
    /// Ends a check's container. Its stream then ends with `killed`.
    Kill { check: CheckId },
    /// Lists the checks that have a container now.
    List {},
    /// Requests the engine's version, the probe's findings and the counters.
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
    /// A JSON [`LaunchFault`]: the last frame of a container that did not start, or whose engine
    /// failed.
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

    /// The kind for a byte. `None` if the byte is unknown.
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
    Killed {
        /// Whether there was such a check.
        found: bool,
    },
    List {
        checks: Vec<CheckId>,
    },
    Status(Status),
    /// Answers a request that is malformed, or during which the engine failed.
    Fault(LaunchFault),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    pub version: String,
    /// Name and version of the engine, once it has answered.
    pub engine: Option<String>,
    /// Why no check can run now. `None` if checks can run.
    pub trouble: Option<String>,
    /// Missing limits that are not required, such as the CPU share.
    pub warnings: Vec<String>,
    pub running: u32,
    /// Containers started since the launcher's start.
    pub launches_total: u64,
    /// Containers that an earlier process left behind and the reaper removed.
    pub reaped_total: u64,
}
