//! The orchestrator's side of the control wire.
//!
//! Opening a host gives an [`Egress`] or the reason against it, and closing it gives the account.
//! Every wait is bounded. A [`ClientError`] is always a fault of ours, never the host's.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use local_socket::{Client, Connection, WireError};
use protocol::{CheckId, CheckOrder, DeadReason, Host};
use thiserror::Error;

use crate::wire::control::{Account, Answer, Deferral, Family, Request, Status, Texts, Wish};
use crate::wire::text_name::TextName;

/// A client of the gateway's control socket.
#[derive(Debug, Clone)]
pub struct GatewayClient(Client<Request>);

#[derive(Debug)]
pub enum Opened {
    /// The host accepted a connection; the egress directory is there.
    Ready(Egress),
    Unreachable {
        reason: DeadReason,
        /// The exact cause for people, escaped.
        detail: String,
        /// The families over which a dial failed.
        families: Vec<Family>,
        /// Whether the DNS answer came from the network during this open.
        fresh: bool,
    },
    /// Out of turn, or undecidable for now.
    Deferred {
        why: Deferral,
        /// Shortest wait before the next try.
        retry_after: Duration,
    },
    Offline,
}

/// The result of a look-up of TXT records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Looked {
    Answered(Texts),
    /// Out of turn, or too many at once.
    Deferred {
        why: Deferral,
        /// Shortest wait before the next try.
        retry_after: Duration,
    },
    Offline,
}

/// An open egress. Dropping it closes the egress without an account.
#[derive(Debug)]
pub struct Egress {
    pub address: IpAddr,
    /// Whether the DNS answer came from the network during this open.
    pub fresh: bool,
    connection: Connection,
}

/// Why the gateway gave no usable answer.
#[derive(Debug, Error)]
pub enum ClientError {
    #[error("the gateway can't be reached: start it; its log says why it ended")]
    NotThere(#[source] io::Error),
    #[error(
        "the gateway closed the connection: if it is not running, start it; its log says why it ended"
    )]
    BrokenOff(#[source] WireError),
    #[error("the gateway did not answer in time: if it hangs, restart it")]
    Timeout,
    #[error("the gateway's answer was not understood")]
    Protocol(#[source] Option<WireError>),
    /// The gateway did not understand us, or the check's id is in use.
    #[error("the gateway refused the request: {0}")]
    Refused(String),
}

impl From<WireError> for ClientError {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Connect { error, .. } => Self::NotThere(error),
            WireError::Late(_) => Self::Timeout,
            WireError::Io(_) | WireError::Ended => Self::BrokenOff(error),
            WireError::TooLong(_) | WireError::NotUnderstood(_) => Self::Protocol(Some(error)),
        }
    }
}

impl GatewayClient {
    /// A client of the control socket at `path`; nothing is connected yet.
    pub fn new(path: PathBuf) -> Self {
        Self(Client::new(path))
    }

    /// Opens an egress to `host` for `check`. `group` is the host's registered domain, `order` is
    /// written next to the egress socket, and `wish` is what this egress should test.
    ///
    /// - `Ok(Opened::Ready(egress))` if the container may be started
    /// - `Ok(Opened::Unreachable { .. })` if the check ends here because the host failed
    /// - `Ok(Opened::Deferred { .. })` or `Ok(Opened::Offline)` if nothing can be learned now
    pub async fn open(
        &self,
        check: CheckId,
        host: Host,
        group: String,
        order: CheckOrder,
        wish: Wish,
    ) -> Result<Opened, ClientError> {
        let request = Request::Open {
            check,
            host,
            group,
            order,
            wish,
        };
        let (connection, answer) = self.0.open(&request).await?;
        match answer {
            Answer::Ready { address, fresh } => Ok(Opened::Ready(Egress {
                address,
                fresh,
                connection,
            })),
            Answer::Unreachable {
                reason,
                detail,
                families,
                fresh,
            } => Ok(Opened::Unreachable {
                reason,
                detail,
                families,
                fresh,
            }),
            Answer::Deferred {
                why,
                retry_after_ms,
            } => Ok(Opened::Deferred {
                why,
                retry_after: Duration::from_millis(retry_after_ms),
            }),
            Answer::Offline {} => Ok(Opened::Offline),
            Answer::Refused { message } => Err(ClientError::Refused(message)),
            Answer::Account(_) | Answer::Status(_) | Answer::Txt(_) => {
                Err(ClientError::Protocol(None))
            }
        }
    }

    /// The gateway's version and state.
    pub async fn status(&self) -> Result<Status, ClientError> {
        match self.0.ask(&Request::Status {}).await? {
            Answer::Status(status) => Ok(status),
            Answer::Refused { message } => Err(ClientError::Refused(message)),
            Answer::Ready { .. }
            | Answer::Unreachable { .. }
            | Answer::Deferred { .. }
            | Answer::Offline {}
            | Answer::Account(_)
            | Answer::Txt(_) => Err(ClientError::Protocol(None)),
        }
    }

    /// Looks up the TXT records of `name`, which lies below the registered domain `group`.
    pub async fn texts(&self, name: TextName, group: String) -> Result<Looked, ClientError> {
        let request = Request::Txt { name, group };
        match self.0.ask(&request).await? {
            Answer::Txt(texts) => Ok(Looked::Answered(texts)),
            Answer::Deferred {
                why,
                retry_after_ms,
            } => Ok(Looked::Deferred {
                why,
                retry_after: Duration::from_millis(retry_after_ms),
            }),
            Answer::Offline {} => Ok(Looked::Offline),
            Answer::Refused { message } => Err(ClientError::Refused(message)),
            Answer::Ready { .. }
            | Answer::Unreachable { .. }
            | Answer::Account(_)
            | Answer::Status(_) => Err(ClientError::Protocol(None)),
        }
    }
}

impl Egress {
    /// Resolves when the gateway is gone or breaks the protocol; the egress is unusable then.
    /// Cancel-safe.
    pub async fn lost(&mut self) {
        // The gateway sends nothing before `close`, so any readable data means an end.
        use tokio::io::AsyncBufReadExt as _;
        self.connection.reader.fill_buf().await.ok();
    }

    /// Closes the egress. `proven` means that the check came out alive, so that the address is
    /// paced by its block alone.
    ///
    /// # Errors
    /// When the gateway gives no usable answer: there is no account then, which is a fault.
    pub async fn close(mut self, proven: bool) -> Result<Account, ClientError> {
        match self.connection.ask(&Request::Close { proven }).await? {
            Answer::Account(account) => Ok(account),
            Answer::Refused { message } => Err(ClientError::Refused(message)),
            Answer::Ready { .. }
            | Answer::Unreachable { .. }
            | Answer::Deferred { .. }
            | Answer::Offline {}
            | Answer::Status(_)
            | Answer::Txt(_) => Err(ClientError::Protocol(None)),
        }
    }
}
