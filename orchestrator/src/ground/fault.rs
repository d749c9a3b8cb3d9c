//! Failures of our own parts. A fault never reaches `transition`: the host's record stays unchanged
//! (invariant I5).

use report::ReportFault;
use scheduler::blame::faults::{CheckFault, FaultScope};
use thiserror::Error;

/// Why a check gave no verdict, through no fault of its host.
#[derive(Debug, Error)]
pub enum Fault {
    /// The gateway does not answer, or closed the connection in the middle of an answer.
    #[error("gateway: {0}")]
    Gateway(#[source] gateway::ClientError),
    #[error(
        "the gateway was lost during the check: if it is not running, start it; its log says why it ended"
    )]
    GatewayLost,
    /// The launcher does not answer, or closed the connection in the middle of an answer.
    #[error("launcher: {0}")]
    Launcher(#[source] launcher::ClientError),
    #[error("engine: {}", .0.message)]
    Launch(protocol::container::LaunchFault),
    /// The container's report shows a failure of ours.
    #[error(transparent)]
    Report(#[from] ReportFault),
    #[error("the launcher did not end the check in time: if it hangs, restart it")]
    Overdue,
    #[error("store: {0}")]
    Store(#[source] store::StoreError),
}

impl Fault {
    /// How many checks the fault affects.
    pub fn scope(&self) -> FaultScope {
        use protocol::container::FaultKind;
        match self {
            Self::Gateway(_) | Self::GatewayLost => FaultScope::Way,
            Self::Launcher(_) | Self::Store(_) => FaultScope::Global,
            Self::Launch(fault) => match fault.kind {
                FaultKind::EngineDown | FaultKind::ImageMissing | FaultKind::NotConfined => {
                    FaultScope::Global
                }
                FaultKind::Full | FaultKind::EngineError | FaultKind::BadRequest => {
                    FaultScope::Transient
                }
            },
            Self::Report(ReportFault::NetworkLost) | Self::Overdue => FaultScope::Transient,
            Self::Report(
                ReportFault::NoHello { .. } | ReportFault::OutputLost | ReportFault::NoConnection,
            ) => FaultScope::HostSuspected,
        }
    }
}

impl Fault {
    /// The fault as the scheduler gets it.
    pub fn for_scheduler(&self) -> CheckFault {
        CheckFault {
            scope: self.scope(),
            what: self.to_string(),
            is_engine: self.is_the_engines(),
        }
    }

    /// Whether the engine failed to start a container or to run it to its end, which is a reason to
    /// lower its load. Faults that a host may have caused are not counted.
    fn is_the_engines(&self) -> bool {
        use protocol::container::FaultKind;
        match self {
            Self::Launcher(_) | Self::Overdue => true,
            Self::Launch(fault) => match fault.kind {
                FaultKind::EngineDown | FaultKind::EngineError | FaultKind::Full => true,
                FaultKind::ImageMissing | FaultKind::NotConfined | FaultKind::BadRequest => false,
            },
            Self::Gateway(_) | Self::GatewayLost | Self::Report(_) | Self::Store(_) => false,
        }
    }
}
