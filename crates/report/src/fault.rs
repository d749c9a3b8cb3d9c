//! Faults that a report shows.

use protocol::container::End;
use thiserror::Error;

/// Why a container's report is worthless, not because of its host.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReportFault {
    #[error(
        "the checker printed nothing that this version understands (exit code {exit_code}); build the checker's image of this version. stderr: {stderr}"
    )]
    NoHello {
        /// Its exit code; 0 if it was killed.
        exit_code: i64,
        stderr: String,
    },
    /// The checker exited with 0, but its finding did not arrive: the engine cut its output off, or
    /// the checker was made to leave it out.
    #[error("the checker exited with 0, but its finding did not arrive")]
    OutputLost,
    #[error("the checker reported without a connection to the host")]
    NoConnection,
    /// The gateway lost its network during the check, or closed a connection itself.
    #[error("the network was lost during the check")]
    NetworkLost,
}

impl ReportFault {
    pub(crate) fn no_hello(end: Option<End>, stderr: &str) -> Self {
        Self::NoHello {
            exit_code: end.map_or(0, |end| end.exit_code),
            stderr: stderr.to_owned(),
        }
    }
}
