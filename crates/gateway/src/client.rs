//! The orchestrator's side of the control wire.
//!
//! In: a host to open. Out: an [`Egress`] or why not, and at its end the account. Every wait is bounded; a [`ClientError`] is always a fault of
//! ours, never the host's.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use local_socket::{AskError, Connection};
use protocol::{CheckId, CheckOrder, DeadReason, Host};
use thiserror::Error;

use crate::wire::control::{
    Account, Answer, Deferral, Family, Request, Status, Texts, Wildcard, Wish,
};
use crate::wire::lines::{self, LineError};
use crate::wire::text_name::TextName;

/// Longest wait for the answer to `open`: the gateway's own times for DNS, a dial slot and dialling, with room for settings that stretch them.
pub const OPEN_TIME_MAX: Duration = Duration::from_secs(60);

/// Longest wait for what made-up names lead to: the gateway's wait for its turns, its times for DNS, and room for settings that stretch these.
pub const WILDCARD_TIME_MAX: Duration = Duration::from_mins(3);

/// Longest wait for any other answer: the gateway has it at hand.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// Speaks to the gateway at one control socket.
#[derive(Debug, Clone)]
pub struct GatewayClient {
    path: PathBuf,
}

/// What came of an `open`.
#[derive(Debug)]
pub enum Opened {
    /// The host accepted a connection; the egress directory is there.
    Ready(Egress),
    /// The host's own failure.
    Unreachable {
        /// One of the gateway's reasons.
        reason: DeadReason,
        /// What exactly went wrong, for people; escaped.
        detail: String,
        /// The families over which a dial failed.
        families: Vec<Family>,
        /// The DNS answer came from the network during this open.
        fresh: bool,
    },
    /// Out of turn, or not to be decided now.
    Deferred {
        /// Why.
        why: Deferral,
        /// How long to wait at least.
        retry_after: Duration,
    },
    /// We have no network at all.
    Offline,
}

/// What came of a look-up of texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Looked {
    /// What DNS said.
    Answered(Texts),
    /// Out of turn, or too many at once.
    Deferred {
        /// Why.
        why: Deferral,
        /// How long to wait at least.
        retry_after: Duration,
    },
    /// We have no network at all.
    Offline,
}

/// What came of looking whether any name below a domain resolves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookedBelow {
    /// What DNS said.
    Answered(Wildcard),
    /// Out of turn, or our own resolver does not answer.
    Deferred {
        /// Why.
        why: Deferral,
        /// How long to wait at least.
        retry_after: Duration,
    },
    /// We have no network at all.
    Offline,
}

/// An open way out. Dropping it closes the egress without an account.
#[derive(Debug)]
pub struct Egress {
    /// The pinned address.
    pub address: IpAddr,
    /// The DNS answer came from the network during this open.
    pub fresh: bool,
    connection: Connection,
}

/// The gateway failed us.
#[derive(Debug, Error)]
pub enum ClientError {
    /// Nobody answers at the control socket.
    #[error("the gateway is not there: start it; its own log says why it ended")]
    NotThere(#[source] io::Error),
    /// The connection broke or ended before the answer.
    #[error("the gateway broke off: start it; its own log says why it ended")]
    BrokenOff(#[source] LineError),
    /// No answer in time.
    #[error("the gateway did not answer in time: if it hangs, start it anew")]
    Timeout,
    /// An answer that was not understood, or is none to this request.
    #[error("the gateway's answer was not understood")]
    Protocol(#[source] Option<LineError>),
    /// The gateway did not understand us, or the check's id is in use.
    #[error("the gateway refused the request: {0}")]
    Refused(String),
}

impl From<LineError> for ClientError {
    fn from(error: LineError) -> Self {
        use local_socket::LineError as Line;
        match error {
            LineError::Line(Line::Late(_)) => Self::Timeout,
            LineError::Line(Line::Io(_) | Line::Ended) => Self::BrokenOff(error),
            LineError::Line(Line::TooLong(_)) | LineError::NotUnderstood(_) => {
                Self::Protocol(Some(error))
            }
        }
    }
}

impl From<AskError> for ClientError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Connect(error) => Self::NotThere(error),
            AskError::Line(error) => LineError::from(error).into(),
            AskError::Late(_) => Self::Timeout,
        }
    }
}

impl GatewayClient {
    /// A client of the control socket at `path`; nothing is connected yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Asks for a way to `host` for `check`. `group` is the host's registered domain; `order` is laid beside the socket; `wish` is
    /// what this way should show to work.
    ///
    /// - `Ok(Opened::Ready(egress))` if the container may be started
    /// - `Ok(Opened::Unreachable { .. })` if the check ends here by the host's failure
    /// - `Ok(Opened::Deferred { .. })` or `Ok(Opened::Offline)` if nothing is to be learned now
    ///
    /// # Errors
    /// When the gateway failed us.
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
        let (connection, answer) = self.ask(&request, OPEN_TIME_MAX).await?;
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
            Answer::Account(_) | Answer::Status(_) | Answer::Txt(_) | Answer::Wildcard(_) => {
                Err(ClientError::Protocol(None))
            }
        }
    }

    /// What the gateway is and does.
    ///
    /// # Errors
    /// When the gateway failed us.
    pub async fn status(&self) -> Result<Status, ClientError> {
        let (_, answer) = self.ask(&Request::Status {}, ANSWER_TIME_MAX).await?;
        match answer {
            Answer::Status(status) => Ok(status),
            Answer::Refused { message } => Err(ClientError::Refused(message)),
            Answer::Ready { .. }
            | Answer::Unreachable { .. }
            | Answer::Deferred { .. }
            | Answer::Offline {}
            | Answer::Account(_)
            | Answer::Txt(_)
            | Answer::Wildcard(_) => Err(ClientError::Protocol(None)),
        }
    }

    /// Looks up the TXT records of `name`, which lies below the registered domain `group`.
    ///
    /// # Errors
    /// When the gateway failed us.
    pub async fn texts(&self, name: TextName, group: String) -> Result<Looked, ClientError> {
        let request = Request::Txt { name, group };
        let (_, answer) = self.ask(&request, OPEN_TIME_MAX).await?;
        match answer {
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
            | Answer::Status(_)
            | Answer::Wildcard(_) => Err(ClientError::Protocol(None)),
        }
    }

    /// Looks whether any name below the registered domain `domain` resolves, by names that the gateway makes up.
    ///
    /// # Errors
    /// When the gateway failed us.
    pub async fn wildcard(&self, domain: Host) -> Result<LookedBelow, ClientError> {
        let request = Request::Wildcard { domain };
        let (_, answer) = self.ask(&request, WILDCARD_TIME_MAX).await?;
        match answer {
            Answer::Wildcard(wildcard) => Ok(LookedBelow::Answered(wildcard)),
            Answer::Deferred {
                why,
                retry_after_ms,
            } => Ok(LookedBelow::Deferred {
                why,
                retry_after: Duration::from_millis(retry_after_ms),
            }),
            Answer::Offline {} => Ok(LookedBelow::Offline),
            Answer::Refused { message } => Err(ClientError::Refused(message)),
            Answer::Ready { .. }
            | Answer::Unreachable { .. }
            | Answer::Account(_)
            | Answer::Status(_)
            | Answer::Txt(_) => Err(ClientError::Protocol(None)),
        }
    }

    async fn ask(
        &self,
        request: &Request,
        patience: Duration,
    ) -> Result<(Connection, Answer), ClientError> {
        let line = lines::to_line(request)?;
        let (connection, answer) =
            local_socket::ask(&self.path, line, lines::limits(patience)).await?;
        Ok((connection, lines::parse(&answer)?))
    }
}

impl Egress {
    /// Resolves when the gateway is gone or breaks the language; the egress is dead then. May be cancelled and waited for again.
    pub async fn lost(&mut self) {
        // Until `close` the gateway has nothing to say, so anything that can be read is an end.
        use tokio::io::AsyncBufReadExt as _;
        self.connection.reader.fill_buf().await.ok();
    }

    /// Closes the egress. `proven` says that the check came out alive, so that the address is paced
    /// by its block alone.
    ///
    /// # Errors
    /// When the gateway failed us: there is no account then, which is a fault.
    pub async fn close(mut self, proven: bool) -> Result<Account, ClientError> {
        let Connection { reader, writer } = &mut self.connection;
        let talk = async {
            lines::write(writer, &Request::Close { proven }, ANSWER_TIME_MAX).await?;
            lines::read(reader, ANSWER_TIME_MAX).await
        };
        // One deadline over both.
        let answer = tokio::time::timeout(ANSWER_TIME_MAX, talk).await;
        match answer.map_err(|_elapsed| ClientError::Timeout)?? {
            Answer::Account(account) => Ok(account),
            Answer::Refused { message } => Err(ClientError::Refused(message)),
            Answer::Ready { .. }
            | Answer::Unreachable { .. }
            | Answer::Deferred { .. }
            | Answer::Offline {}
            | Answer::Status(_)
            | Answer::Txt(_)
            | Answer::Wildcard(_) => Err(ClientError::Protocol(None)),
        }
    }
}
