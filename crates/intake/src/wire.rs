//! The wire between the intake and the daemon: one request a connection, a line of JSON, and one line back.
//!
//! In: [`Request`]s. Out: [`Answer`]s. These four requests are all that can be said at the daemon's socket for the intake, and an opt-out said here
//! is always an owner's: an intake that was taken over can order no check and no dump, and undo no moderator's word. It can have hosts visited for
//! their proof, one file at a path that it can't choose, within the daemon's bounds, and never one that opted out or is held. Both ends bound a line
//! before they parse it.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use local_socket::{AskError, LineLimits};
use protocol::Host;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};

/// Longest line either way: ten lines of a proof, which has [`protocol::limits::PROOF_TEXT_BYTES_MAX`] bytes, each of which may take two, and what goes
/// around them. All else is two names, a hash and a sentence.
pub const LINE_BYTES_MAX: usize = 16 * 1024;

/// Longest wait for the daemon's answer: it has to write to its disk.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// Longest time that the daemon gives the reading of a proof, wait for a container included. Twice what an honest host that is slow takes for two
/// files, and short enough that the answer is there before [the connection ends](crate::serve::CONNECTION_TIME_MAX).
pub const READING_TIME_MAX: Duration = Duration::from_secs(25);

/// Longest wait for what came of it: some more than the reading may take, so that the daemon's word comes first.
pub const READING_ANSWER_TIME_MAX: Duration = Duration::from_secs(28);

/// What the intake asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Let a host in.
    Submit {
        /// The host.
        host: Host,
        /// Who vouches for it. Nobody when the host proved that it wants it itself.
        vouched: Option<Vouched>,
    },
    /// The owner wants a host left alone, or takes that back.
    OptOut {
        /// The host.
        host: Host,
        /// Take it back.
        undo: bool,
        /// The domain whose key signed this; `None` if the host itself proved it. The daemon judges
        /// it by the list of public suffixes in force, which may be newer than the intake's.
        domain: Option<Host>,
    },
    /// Whether the census knows a host.
    SubmissionState {
        /// The host.
        host: Host,
    },
    /// What stands in the host's own file at [`crate::proof::FILE_PATH`].
    ReadProof {
        /// The host.
        host: Host,
    },
}

impl Request {
    /// Longest wait for the answer.
    fn answer_time_max(&self) -> Duration {
        match self {
            Self::ReadProof { .. } => READING_ANSWER_TIME_MAX,
            Self::Submit { .. } | Self::OptOut { .. } | Self::SubmissionState { .. } => {
                ANSWER_TIME_MAX
            }
        }
    }
}

/// Who vouches for a submission, by a token that was verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vouched {
    /// The domain whose DNS publishes the key.
    pub domain: Host,
    /// The hash of that key, by which rules name it.
    pub key_hash: HashInHex,
}

/// A hash of 32 bytes, as 64 hex digits in lower case.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HashInHex(pub [u8; 32]);

impl TryFrom<String> for HashInHex {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(&text, &mut bytes).map_err(|_not_hex| "not 64 hex digits")?;
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err("hex digits are in lower case");
        }
        Ok(Self(bytes))
    }
}

impl From<HashInHex> for String {
    fn from(hash: HashInHex) -> Self {
        hex::encode(hash.0)
    }
}

impl fmt::Debug for HashInHex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// What the daemon answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// The host is in from now on.
    Accepted {},
    /// The census knows the host, and nothing had to be done. Why a known host is not listed, and
    /// who decided that, is never said here: anybody may ask.
    Known {},
    /// There is no such host.
    Unknown {},
    /// It is no name for the census.
    NotAdmitted {
        /// Why, as a sentence about it.
        why: String,
    },
    /// The rules refuse it for good.
    Refused {
        /// Why.
        why: String,
    },
    /// There is no room for it now.
    NotNow {
        /// Why.
        why: String,
        /// When there may be, in seconds.
        retry_after_s: u64,
    },
    /// The opt-out, or its end, is in force.
    Done {
        /// What it means.
        words: String,
    },
    /// Somebody else said so, and only they take it back.
    NotTheirs {
        /// Who.
        words: String,
    },
    /// The file was read whole.
    Proof {
        /// Its first lines, at most [`crate::proof::PROOFS_TRIED_MAX`].
        lines: Vec<String>,
    },
    /// There is no such file, or it is not asked for.
    NoProof {
        /// Why.
        why: String,
    },
    /// Whether there is such a file could not be found out now.
    CannotTell {
        /// Why.
        why: String,
        /// When it may be, in seconds.
        retry_after_s: u64,
    },
    /// The daemon could not do it.
    Failed {
        /// Why.
        why: String,
    },
}

/// A line that can't be read or written.
#[derive(Debug, Error)]
pub enum LineError {
    /// There is none.
    #[error(transparent)]
    Line(#[from] local_socket::LineError),
    /// It is no such value.
    #[error("the line was not understood")]
    NotUnderstood(#[from] serde_json::Error),
}

/// Reads one line.
///
/// # Errors
/// Why there is none.
pub async fn read<T: DeserializeOwned>(
    from: impl AsyncRead + Unpin,
    time_max: Duration,
) -> Result<T, LineError> {
    let line = local_socket::read_line(&mut BufReader::new(from), limits(time_max)).await?;
    Ok(protocol::parse_line(&line)?)
}

/// Writes one line.
///
/// # Errors
/// When the connection broke, or nobody reads.
pub async fn write<T: Serialize + Sync>(
    mut to: impl AsyncWrite + Unpin,
    value: &T,
    time_max: Duration,
) -> Result<(), LineError> {
    let line = serde_json::to_vec(value)?;
    Ok(local_socket::write_line(&mut to, line, time_max).await?)
}

fn limits(time_max: Duration) -> LineLimits {
    LineLimits {
        bytes_max: LINE_BYTES_MAX,
        time_max,
    }
}

/// Speaks to the daemon.
#[derive(Debug, Clone)]
pub struct Census {
    path: PathBuf,
}

/// The daemon did not answer. A fault of ours.
#[derive(Debug, Error)]
pub enum Away {
    /// Nobody answers at its socket.
    #[error("the daemon is not there")]
    NotThere(#[source] io::Error),
    /// The connection broke off, or the answer is none.
    #[error("the daemon is not there")]
    Line(#[from] LineError),
    /// No answer in time.
    #[error("the daemon did not answer in time")]
    Silent,
}

impl From<AskError> for Away {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Connect(error) => Self::NotThere(error),
            AskError::Line(error) => Self::Line(error.into()),
            AskError::Late(_) => Self::Silent,
        }
    }
}

impl Census {
    /// The daemon at this socket; nothing is connected yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Asks.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn ask(&self, request: &Request) -> Result<Answer, Away> {
        let line = serde_json::to_vec(request).map_err(LineError::from)?;
        let limits = limits(request.answer_time_max());
        let (_connection, answer) = local_socket::ask(&self.path, line, limits).await?;
        Ok(protocol::parse_line(&answer).map_err(LineError::from)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Invariants I3 and I7: what these are not can't be said.
    #[test]
    fn nothing_but_four_requests_can_be_said_and_no_moderators_word() {
        for line in [
            r#"{"opt_out":{"host":"a.example","undo":false}}"#,
            r#"{"submit":{"host":"a.example","vouched":null}}"#,
            r#"{"submission_state":{"host":"a.example"}}"#,
            r#"{"read_proof":{"host":"a.example"}}"#,
        ] {
            assert!(
                protocol::parse_line::<Request>(line.as_bytes()).is_ok(),
                "{line}"
            );
        }
        for line in [
            r#"{"opt_out":{"host":"a.example","undo":true,"by":"moderator"}}"#,
            r#"{"opt_out":{"host":"a.example"}}"#,
            r#"{"dump":{"force":true}}"#,
            r#"{"check":{"host":"a.example"}}"#,
            r#"{"add":{"names":["a.example"]}}"#,
            r#"{"live":{}}"#,
            r#"{"submit":["a.example",null]}"#,
            r#"{"submission_state":{"host":"a.example:443"}}"#,
            r#"{"read_proof":{"host":"a.example","path":"/admin"}}"#,
            r#"{"read_proof":{"host":"a.example/admin"}}"#,
        ] {
            assert!(
                protocol::parse_line::<Request>(line.as_bytes()).is_err(),
                "{line}"
            );
        }
    }

    #[tokio::test]
    async fn a_line_is_bounded_before_it_is_parsed() {
        let long = format!(
            "{{\"submission_state\":{{\"host\":\"a.example\"{}}}}}\n",
            " ".repeat(16 * 1024)
        );
        assert!(matches!(
            read::<Request>(long.as_bytes(), Duration::MAX).await,
            Err(LineError::Line(local_socket::LineError::TooLong(_)))
        ));
        let cut = &br#"{"submission_state":{"host":"a.example"}}"#[..];
        assert!(matches!(
            read::<Request>(cut, Duration::MAX).await,
            Err(LineError::Line(local_socket::LineError::Ended))
        ));
    }

    /// Else whoever waits is cut off without a word.
    #[test]
    fn the_answer_about_a_file_is_there_before_the_connection_ends() {
        let request = Request::ReadProof {
            host: Host::parse("a.example").unwrap(),
        };
        let waits = [
            crate::serve::HEAD_TIME_MAX,
            crate::routes::BODY_TIME_MAX,
            // Whether the host is known, and its TXT record.
            ANSWER_TIME_MAX,
            gateway::client::ANSWER_TIME_MAX,
            request.answer_time_max(),
        ];
        assert!(waits.iter().sum::<Duration>() < crate::serve::CONNECTION_TIME_MAX);
        assert!(READING_TIME_MAX < request.answer_time_max());
    }
}
