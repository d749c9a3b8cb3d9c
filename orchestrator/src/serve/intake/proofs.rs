//! Reads a host's file that says what its owner wants, for the intake.
//!
//! The host may be asked. The answer holds the first lines of its `/.well-known/fedicensus`, why
//! there are none, or when to try again. `ProofLimit` limits the readings. Nothing is remembered of
//! a reading: only the file's current content counts, and a reading says nothing about the host as
//! an instance.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use ::intake::proof::{FILE_PATH, PROOFS_TRIED_MAX};
use ::intake::wire::{Answer, READING_TIME_MAX};
use protocol::egress::Deferral;
use protocol::{Host, ListFormat, ListOrder, ListPath, UnlistedReason};
use tokio::time::timeout;

use super::proof_limit::{Busy, DOMAIN_EVERY, ProofLimit};
use crate::check::services::Services;
use crate::discover::reading::{self, Ended};
use report::list::{Outcome, Unread};

/// The result of a [`ReadsProofs`].
pub type Reading<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// Whether the census has ever found a host alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    Alive,
    /// It has not, or does not know the host.
    Never,
}

/// A reader of proofs: containers in the daemon.
pub trait ReadsProofs: fmt::Debug + Send + Sync {
    /// Reads the proof of a host that may be asked. Returns [`Answer::Proof`], [`Answer::NoProof`],
    /// [`Answer::NotNow`], [`Answer::CannotTell`] or [`Answer::Failed`].
    fn read<'a>(&'a self, host: &'a Host, seen: Seen) -> Reading<'a>;
}

/// Reads proofs by containers of the checker image in list mode, in the slots of checks.
#[derive(Debug)]
pub struct Visits {
    services: Services,
    limit: ProofLimit,
}

impl Visits {
    pub fn new(services: Services) -> Self {
        Self {
            services,
            limit: ProofLimit::new(),
        }
    }

    async fn visit(&self, host: &Host, seen: Seen) -> Answer {
        let path = match ListPath::parse(FILE_PATH) {
            Ok(path) => path,
            Err(error) => {
                let why = error.to_string();
                return Answer::Failed { why };
            }
        };
        let list = ListOrder {
            path,
            format: ListFormat::Proof,
            // A proof holds lines, not names.
            names_max: 0,
        };
        let domain = self.services.gate.names().registered_domain(host);
        let now = tokio::time::Instant::now().into_std();
        let _turn = match self.limit.begin(&domain, seen, now, READING_TIME_MAX) {
            Ok(turn) => turn,
            Err(busy) => return too_soon(busy),
        };
        let reading = reading::list(host, list, &self.services);
        let answer = timeout(READING_TIME_MAX, reading)
            .await
            .map_or_else(|_elapsed| too_slow(), answer_of);
        if let Answer::Proof { lines } = &answer {
            tracing::info!(%host, lines = lines.len(), "a proof was read");
        } else {
            tracing::info!(%host, ?answer, "a proof could not be read");
        }
        answer
    }
}

impl ReadsProofs for Visits {
    fn read<'a>(&'a self, host: &'a Host, seen: Seen) -> Reading<'a> {
        Box::pin(self.visit(host, seen))
    }
}

fn seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(1)
}

fn too_soon(busy: Busy) -> Answer {
    let (why, wait) = match busy {
        Busy::Domain(wait) => (
            format!("a file at {FILE_PATH} of this domain was just read: try again in a minute"),
            wait,
        ),
        Busy::All(wait) => (
            "too many files are being read now: try again later, or use a token or a TXT record"
                .to_owned(),
            wait,
        ),
    };
    Answer::NotNow {
        why,
        retry_after_s: seconds(wait),
    }
}

/// The cause is unknown: the host was slow, or no container slot became free.
fn too_slow() -> Answer {
    cannot_tell("the host's file was not read in time", DOMAIN_EVERY)
}

/// Never sooner than the domain's next turn, because this turn is counted.
fn cannot_tell(why: impl Into<String>, wait: Duration) -> Answer {
    Answer::CannotTell {
        why: why.into(),
        retry_after_s: seconds(wait.max(DOMAIN_EVERY)),
    }
}

/// The intake's answer for a reading. The host's behaviour is an answer, a failure of ours is not.
fn answer_of(ended: Ended<Outcome>) -> Answer {
    match ended {
        Ended::Read(Outcome::Proof(text)) => Answer::Proof {
            lines: text
                .lines()
                .take(PROOFS_TRIED_MAX)
                .map(str::to_owned)
                .collect(),
        },
        Ended::Read(Outcome::Unread(unread)) => Answer::NoProof { why: why(&unread) },
        // A run for a proof never ends like this.
        Ended::Read(Outcome::Names(_) | Outcome::Suffixes(_)) => Answer::Failed {
            why: "a proof was read in an unexpected form".to_owned(),
        },
        Ended::Unreachable { reason, detail } => {
            let reason = reason.as_str().to_owned();
            Answer::NoProof {
                why: format!("the host can't be reached, {reason}: {detail}"),
            }
        }
        Ended::Deferred { why, retry_after } => deferred(why, retry_after),
        Ended::Offline => cannot_tell("this census has no network now", DOMAIN_EVERY),
        Ended::Fault(fault) => {
            tracing::warn!(%fault, "a proof could not be read through our own fault");
            cannot_tell("this census could not reach the host now", DOMAIN_EVERY)
        }
    }
}

fn deferred(why: Deferral, wait: Duration) -> Answer {
    match why {
        Deferral::GroupPace | Deferral::AddressPace | Deferral::BlockPace => Answer::NotNow {
            why: "this host, or one near it, was just visited: try again in a minute".to_owned(),
            retry_after_s: seconds(wait.max(DOMAIN_EVERY)),
        },
        Deferral::Dns => cannot_tell("the host's name could not be looked up now", wait),
        Deferral::NoFamily => cannot_tell(
            "the host only has addresses of a family for which this census has no route",
            wait,
        ),
        Deferral::DialPace | Deferral::Full => {
            cannot_tell("this census is too busy to check the host now", wait)
        }
    }
}

/// For the host's owner. The text of [`Unread`] is for the operator, who can correct a source's
/// address.
fn why(unread: &Unread) -> String {
    match unread {
        Unread::Unlisted {
            reason: UnlistedReason::Elsewhere,
            to,
            ..
        } => {
            let to = to.as_deref().unwrap_or("nowhere");
            format!("it redirects to {to}, and only the host itself is requested")
        }
        Unread::Unlisted {
            reason: UnlistedReason::NotAList,
            ..
        } => "the answer is not plain text".to_owned(),
        Unread::Unlisted { .. }
        | Unread::Empty { .. }
        | Unread::Truncated { .. }
        | Unread::TooLarge
        | Unread::Breach(_)
        | Unread::Ended(_) => unread.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use ::intake::wire::Request;
    use local_socket::Ask as _;
    use protocol::DeadReason;
    use protocol::limits::PROOF_TEXT_BYTES_MAX;

    use super::*;
    use crate::ground::fault::Fault;

    fn lines(answer: Answer) -> Vec<String> {
        match answer {
            Answer::Proof { lines } => lines,
            other => panic!("{other:?}"),
        }
    }

    fn proof(text: &str) -> Answer {
        answer_of(Ended::Read(Outcome::Proof(text.to_owned())))
    }

    #[test]
    fn ten_lines_of_a_proof_are_handed_on() {
        assert_eq!(lines(proof("")), [""; 0]);
        assert_eq!(lines(proof("a\n\nb\n")), ["a", "", "b"]);
        let handed_on = lines(proof(&"x\n".repeat(2048)));
        assert_eq!(handed_on.len(), PROOFS_TRIED_MAX);
    }

    /// Even the output of a checker that was taken over must fit.
    #[test]
    fn the_largest_proof_fits_its_line_of_the_wire() {
        for line in ["\"".repeat(1023), "\t".repeat(1023), "\\".repeat(1023)] {
            let text = format!("{line}\n").repeat(4);
            assert_eq!(text.len(), PROOF_TEXT_BYTES_MAX);
            let answer = proof(&text);
            let line = serde_json::to_vec(&answer).unwrap();
            assert!(line.len() <= Request::ANSWER_BYTES_MAX, "{}", line.len());
        }
    }

    #[test]
    fn what_the_host_does_is_told_to_its_owner() {
        let unlisted = |reason, to: Option<&str>| {
            Ended::Read(Outcome::Unread(Unread::Unlisted {
                reason,
                status: Some(404),
                to: to.map(str::to_owned),
            }))
        };
        for (ended, expect) in [
            (
                unlisted(UnlistedReason::Status, None),
                "its host answers 404",
            ),
            (
                unlisted(UnlistedReason::Disallowed, None),
                "robots.txt asks us not to read it",
            ),
            (
                unlisted(UnlistedReason::Elsewhere, Some("b.example")),
                "it redirects to b.example, and only the host itself is requested",
            ),
            (
                unlisted(UnlistedReason::NotAList, None),
                "the answer is not plain text",
            ),
            (
                Ended::Unreachable {
                    reason: DeadReason::NoSuchName,
                    detail: "NXDOMAIN".to_owned(),
                },
                "the host can't be reached, no_such_name: NXDOMAIN",
            ),
        ] {
            let why = expect.to_owned();
            assert_eq!(answer_of(ended), Answer::NoProof { why });
        }
    }

    #[test]
    fn what_we_could_not_do_is_never_taken_for_a_no() {
        for ended in [Ended::Offline, Ended::Fault(Fault::Overdue)] {
            let answer = answer_of(ended);
            assert!(
                matches!(
                    answer,
                    Answer::CannotTell {
                        retry_after_s: 61,
                        ..
                    }
                ),
                "{answer:?}"
            );
        }
        let deferred = |why| {
            answer_of(Ended::Deferred {
                why,
                retry_after: Duration::from_secs(90),
            })
        };
        for why in [Deferral::Dns, Deferral::Full, Deferral::DialPace] {
            let answer = deferred(why);
            assert!(
                matches!(
                    answer,
                    Answer::CannotTell {
                        retry_after_s: 91,
                        ..
                    }
                ),
                "{answer:?}"
            );
        }
        let answer = deferred(Deferral::AddressPace);
        assert!(
            matches!(
                answer,
                Answer::NotNow {
                    retry_after_s: 91,
                    ..
                }
            ),
            "{answer:?}"
        );
    }
}
