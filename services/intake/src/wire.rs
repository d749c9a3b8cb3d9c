//! The wire format between the intake and the daemon: one request per connection as a line of JSON,
//! and one line as answer.
//!
//! The daemon's socket for the intake accepts only these five [`Request`]s, and an opt-out from
//! here always counts as an owner's. A compromised intake can't order a check or a dump, and can't
//! undo a moderator's decision. It can cause visits to hosts for their proof: one file at a fixed
//! path, within the daemon's limits, and never on a host that opted out or is held. An owner's
//! secret is verified by the daemon, which looks up its record. Both ends limit a line's length
//! before they parse it.

use std::fmt;
use std::time::Duration;

use local_socket::{Ask, Client};
use protocol::Host;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::secret::Secret;

/// Longest wait for the daemon's answer: it has to write to its disk.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// Longest time that the daemon allows for reading a proof, including the wait for a container. It
/// is twice what a slow honest host takes for two files. It is short enough that the answer arrives
/// before [the connection ends](crate::serve::CONNECTION_TIME_MAX).
pub const READING_TIME_MAX: Duration = Duration::from_secs(25);

/// Longest wait for the result of that reading: slightly more than the reading may take, so that
/// the daemon's own error arrives first.
pub const READING_ANSWER_TIME_MAX: Duration = Duration::from_secs(28);

/// Longest time that the daemon allows for the proof of a secret: two look-ups, each after the
/// gateway's pause for a domain, unless both are very slow.
pub const PROVING_TIME_MAX: Duration = Duration::from_secs(45);

/// Longest wait for the result, with the daemon's own writes to its disk.
pub const PROVING_ANSWER_TIME_MAX: Duration = Duration::from_secs(55);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    Submit {
        host: Host,
        /// Who vouches for it. `None` if the host itself proved its wish.
        vouched: Option<Vouched>,
    },
    /// Opt a host out, or withdraw the opt-out, for its owner.
    OptOut {
        host: Host,
        undo: bool,
        /// The domain whose key signed this. `None` if the host itself proved it. The daemon checks
        /// it against the public suffix list in force, which may be newer than the intake's.
        domain: Option<Host>,
    },
    /// Whether the census knows a host.
    SubmissionState { host: Host },
    /// Read the host's own file at [`crate::proof::FILE_PATH`].
    ReadProof { host: Host },
    /// Look at a host, or decide about it, for the owner who sends the secret of its record.
    Prove {
        host: Host,
        secret: Secret,
        act: Act,
    },
}

/// What a proven owner does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// See why the host is listed or not.
    Look,
    /// Opt it out.
    Leave,
    /// Take an owner's opt-out back, have the robots.txt that keeps it out read again, or submit an
    /// unknown host.
    Join,
}

impl Ask for Request {
    type Answer = Answer;

    /// Ten lines of a proof, which has [`protocol::limits::PROOF_TEXT_BYTES_MAX`] bytes of up to
    /// two bytes each, and the JSON around them. All other content is two names, a hash and a
    /// sentence.
    const ANSWER_BYTES_MAX: usize = 16 * 1024;

    const BYTES_MAX: usize = Self::ANSWER_BYTES_MAX;

    fn answer_time_max(&self) -> Duration {
        match self {
            Self::ReadProof { .. } => READING_ANSWER_TIME_MAX,
            Self::Prove { .. } => PROVING_ANSWER_TIME_MAX,
            Self::Submit { .. } | Self::OptOut { .. } | Self::SubmissionState { .. } => {
                ANSWER_TIME_MAX
            }
        }
    }

    fn parse<T: DeserializeOwned>(line: &[u8]) -> serde_json::Result<T> {
        protocol::parse_line(line)
    }

    fn failed(why: String) -> Answer {
        Answer::Failed { why }
    }
}

/// The daemon's socket for the intake.
pub type Census = Client<Request>;

/// The domain and the key of a verified token for a submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vouched {
    /// The domain whose DNS publishes the key.
    pub domain: Host,
    /// The hash of that key, which identifies it in rules.
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    Accepted {},
    /// The census already knows the host, so nothing changed. Why a known host is not listed, and
    /// who decided that, is never revealed here, because anyone may ask.
    Known {},
    Unknown {},
    NotAdmitted {
        /// The reason, as a sentence about the name.
        why: String,
    },
    Refused {
        why: String,
    },
    NotNow {
        why: String,
        /// When there may be room, in seconds.
        retry_after_s: u64,
    },
    /// The opt-out, or its withdrawal, is in force.
    Done {
        words: String,
    },
    /// What the census knows about a host whose owner proved it.
    Shown {
        /// Its state in one word, such as `alive`, `opted_out` or `unknown`.
        state: String,
        words: String,
    },
    /// Another party made the opt-out, and only that party can withdraw it.
    NotTheirs {
        words: String,
    },
    /// The whole file was read.
    Proof {
        /// Its first lines, at most [`crate::proof::PROOFS_TRIED_MAX`].
        lines: Vec<String>,
    },
    /// There is no such file or record, or it may not be used.
    NoProof {
        why: String,
    },
    /// It could not be determined now whether there is such a file or record.
    CannotTell {
        why: String,
        retry_after_s: u64,
    },
    Failed {
        why: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Invariants I3 and I7: nothing other than these requests can be expressed.
    #[test] // S17
    fn wire_has_five_requests_and_none_of_a_moderator() {
        let digits = "0".repeat(64);
        let prove = |act: &str, digits: &str| {
            format!(r#"{{"prove":{{"host":"a.example","secret":"{digits}","act":"{act}"}}}}"#)
        };
        for line in [
            prove("look", &digits).as_str(),
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
            prove("look", "0").as_str(),
            &prove("take_out", &digits),
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

    /// Otherwise a waiting client is disconnected without an answer.
    #[test]
    fn the_answer_about_a_file_is_there_before_the_connection_ends() {
        let request = Request::ReadProof {
            host: Host::parse("a.example").unwrap(),
        };
        let waits = [
            crate::serve::HEAD_TIME_MAX,
            crate::routes::POSTS.time_max,
            // For whether the host is known, and its TXT record.
            ANSWER_TIME_MAX,
            gateway::Settings::default().dns_timeout,
            request.answer_time_max(),
        ];
        assert!(waits.iter().sum::<Duration>() < crate::serve::CONNECTION_TIME_MAX);
        assert!(READING_TIME_MAX < request.answer_time_max());
        let slow = crate::texts::WAIT_MAX * 2 + gateway::Settings::default().dns_timeout;
        assert!(slow < PROVING_TIME_MAX);
        assert!(PROVING_TIME_MAX + ANSWER_TIME_MAX <= PROVING_ANSWER_TIME_MAX);
        let [head, body, ..] = waits;
        assert!(head + body + PROVING_ANSWER_TIME_MAX < crate::serve::CONNECTION_TIME_MAX);
    }
}
