//! Admits a host that a domain's key vouches for, or that proved itself.
//!
//! The host's row, due at once, is written in one transaction with the counters that it changed; a
//! forgotten name is admitted again. Hosts that the operator bans or that no rule covers are
//! refused. A host without room does not wait; the submitter learns when there may be room.

use admission::gate::Refusal;
use admission::{Candidate as Asked, DomainName, KeyHash, Subject};
use census::time::Timestamp;
use protocol::Host;
use store::{Candidate, StoreError};

use super::NameGate;
use super::batch::Moved;
use super::state::seconds;

/// The result of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submitted {
    /// It was admitted now and is due at once.
    New,
    /// It was known before, which costs nothing.
    Known,
    Refused(Refusal),
    NoRoom {
        refusal: Refusal,
        /// Seconds until the next window.
        retry_after_s: u64,
    },
}

struct Proved {
    key: Option<KeyHash>,
    domain: DomainName,
}

impl NameGate {
    /// Admits a submitted host by the rule for the key and domain that vouch for it, or by its own
    /// name if none does.
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
        // In a separate task: a client that disconnects must not leave counts behind without their
        // name.
        let task = tokio::spawn(async move { gate.submit(host, &proved, now).await });
        task.await.map_err(|_ended| StoreError::Closed)?
    }

    async fn submit(
        &self,
        host: Host,
        proved: &Proved,
        now: Timestamp,
    ) -> Result<Submitted, StoreError> {
        let mut state = self.0.state.lock().await;
        let terms = self.terms();
        self.enter_window(&mut state, now);
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
        let submitted = match terms.decide(&mut state.counters, candidate, subject, now_s) {
            Ok(pass) => {
                let domain = names.registered_domain(&host);
                let candidate = Candidate::first_in_line(host, now);
                let moved = Moved::proven(candidate, pass);
                match state
                    .write_proven(moved, &name, domain, &self.0.writer)
                    .await
                {
                    Ok(new) if new.is_empty() => Ok(Submitted::Known),
                    Ok(_) => Ok(Submitted::New),
                    Err(error) => Err(error),
                }
            }
            Err(refusal) => {
                state.count_refusal();
                Ok(match refusal {
                    Refusal::NoRoom(_) => Submitted::NoRoom {
                        retry_after_s: state
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
        self.show(&state, &terms);
        submitted
    }
}
