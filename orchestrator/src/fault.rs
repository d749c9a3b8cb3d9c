//! What goes wrong with us. A fault never reaches `transition`: the host's record stays as it was (invariant I5).

use thiserror::Error;

/// Why a check came to nothing, through no doing of its host.
#[derive(Debug, Error)]
pub enum Fault {
    /// The gateway does not answer, or broke off.
    #[error("gateway: {0}")]
    Gateway(#[source] gateway::ClientError),
    /// The gateway went away during the check.
    #[error("gateway: it went away during the check")]
    GatewayLost,
    /// The launcher does not answer, or broke off.
    #[error("launcher: {0}")]
    Launcher(#[source] launcher::ClientError),
    /// The launcher could not run the container.
    #[error("engine: {}", .0.message)]
    Launch(launcher::wire::LaunchFault),
    /// The container printed no `hello`: a broken checker image.
    #[error(
        "the checker said nothing that we understand (exit code {exit_code}); is the checker image of this version? stderr: {stderr}"
    )]
    NoHello {
        /// Its exit code, when it had one.
        exit_code: i64,
        /// The start of its stderr, escaped.
        stderr: String,
    },
    /// The checker reported a finding without having reached the host.
    #[error("the checker reported without a connection to the host")]
    NoConnection,
    /// The gateway lost its network during the check, or broke a connection off itself.
    #[error("the network went away during the check")]
    NetworkLost,
    /// The launcher did not end the check by its deadline.
    #[error("the launcher did not end the check in time")]
    Overdue,
    /// The database does not take what a check learned.
    #[error("store: {0}")]
    Store(#[source] store::StoreError),
}

/// How far a fault reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Nothing can be checked until it is mended: the gateway, the launcher, the engine, the store.
    Everything,
    /// It hit this check by chance: the host is asked again, and nothing is counted.
    OursAlone,
    /// The checker misbehaved, which its host may have made it do. A host that alone keeps causing such faults becomes dead the third time.
    ThisCheck,
}

impl Fault {
    /// How far it reaches.
    pub fn reach(&self) -> Reach {
        use launcher::wire::FaultKind;
        match self {
            Self::Gateway(_) | Self::GatewayLost | Self::Launcher(_) | Self::Store(_) => {
                Reach::Everything
            }
            Self::Launch(fault) => match fault.kind {
                FaultKind::EngineDown | FaultKind::ImageMissing | FaultKind::NotConfined => {
                    Reach::Everything
                }
                FaultKind::Full | FaultKind::EngineError | FaultKind::BadRequest => {
                    Reach::OursAlone
                }
            },
            Self::NetworkLost | Self::Overdue => Reach::OursAlone,
            Self::NoHello { .. } | Self::NoConnection => Reach::ThisCheck,
        }
    }
}
