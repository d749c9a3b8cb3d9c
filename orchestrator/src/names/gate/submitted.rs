//! A host that a domain's key vouches for, or that proved itself.
//!
//! In: the host, and what was proved. Out: its row, due at once, in one transaction with the counters that it moved; a forgotten name comes back.
//! Refused: what the operator bans, and whom no rule covers; what has no room is told when there may be some, and does not wait.

use admission::gate::Refusal;
use admission::{Candidate as Asked, DomainName, KeyHash, Subject};
use census::time::Timestamp;
use protocol::Host;
use store::{Candidate, StoreError};

use super::NameGate;
use super::batch::Moved;
use super::book::seconds;

/// What became of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submitted {
    /// It is in now and due at once.
    New,
    /// It was in, which costs nothing.
    Known,
    /// It may not enter.
    Refused(Refusal),
    /// It has no room.
    NoRoom {
        /// In words.
        refusal: Refusal,
        /// Seconds until the next window.
        retry_after_s: u64,
    },
}

/// A proof.
struct Proved {
    key: Option<KeyHash>,
    domain: DomainName,
}

impl NameGate {
    /// Lets a submitted host in, by the rule for the key and domain that vouch for it; for its own name when nobody does.
    ///
    /// # Errors
    /// A fault of ours; nothing is counted then.
    pub async fn submitted(
        &self,
        host: &Host,
        vouched: Option<(KeyHash, &Host)>,
        now: Timestamp,
    ) -> Result<Submitted, StoreError> {
        let proved = Proved {
            key: vouched.map(|(key, _)| key),
            domain: DomainName::from(vouched.map_or(host, |(_, domain)| domain)),
        };
        let (gate, host) = (self.clone(), host.clone());
        // In a task of its own: whoever asked may go away, and must not leave counts behind without their name.
        let task = tokio::spawn(async move { gate.submit(host, &proved, now).await });
        task.await.map_err(|_ended| StoreError::Closed)?
    }

    async fn submit(
        &self,
        host: Host,
        proved: &Proved,
        now: Timestamp,
    ) -> Result<Submitted, StoreError> {
        let mut book = self.0.book.lock().await;
        let terms = self.terms();
        book.enter(now);
        let names = self.names();
        let suffixes = &names.suffixes;
        let name = DomainName::from(&host);
        let candidate = Asked {
            name: &name,
            shared_suffix: suffixes.shared_suffix(&name),
        };
        let subject = Subject::Submitter {
            key: proved.key.as_ref(),
            domain: Some(&proved.domain),
            shared_suffix: suffixes.shared_suffix(&proved.domain),
        };
        let now_s = seconds(now);
        let submitted = match terms.decide(&mut book.counters, candidate, subject, now_s) {
            Ok(pass) => {
                let domain = names.registered_domain(&host);
                let candidate = Candidate {
                    host,
                    due: now,
                    first_seen: now,
                };
                let moved = Moved::proven(candidate, pass);
                match book
                    .write_proven(moved, &name, domain, &self.0.writer)
                    .await
                {
                    Ok(0) => Ok(Submitted::Known),
                    Ok(_) => Ok(Submitted::New),
                    Err(error) => Err(error),
                }
            }
            Err(refusal) => {
                book.count_refusal();
                Ok(match refusal {
                    Refusal::NoRoom(_) => Submitted::NoRoom {
                        retry_after_s: book
                            .counters
                            .window_end_s()
                            .map_or(0, |end| end.saturating_sub(now_s)),
                        refusal,
                    },
                    Refusal::Denied(_) | Refusal::Banned { .. } | Refusal::NoRule(_) => {
                        Submitted::Refused(refusal)
                    }
                })
            }
        };
        self.show(&book, &terms);
        submitted
    }
}
