//! What DNS says of the names below which owners publish, asked through the gateway.
//!
//! In: a name that a token's form, or a proof, asks for. Out: a [`TxtAnswer`], or the problem that says when to come again.

use std::sync::Arc;
use std::time::Duration;

use admission::Names;
use gateway::control::Texts as Wire;
use gateway::{GatewayClient, Looked, TextName};
use protocol::Host;
use protocol::egress::Deferral;
use token::{Failure, Lookup, LookupError, NotFound, Step, TxtAnswer, TxtRecord};

use crate::problem::Problem;

/// When to ask again after DNS failed, or the gateway did.
pub const RETRY_AFTER: Duration = Duration::from_secs(60);

/// The longest wait between two look-ups for one request: what the gateway leaves between two names
/// of a domain.
pub const WAIT_MAX: Duration = Duration::from_secs(10);

/// The way to DNS.
#[derive(Debug, Clone)]
pub struct Texts {
    gateway: GatewayClient,
    /// By whose list of suffixes it is told whose a name is.
    names: Arc<Names>,
}

/// The records of a name, or none because DNS says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// In the order in which they were received; bytes that are not printable ASCII are U+FFFD.
    Records(Vec<String>),
    /// There are none.
    None(NotFound),
    /// Nobody knows.
    Failed(Failure),
}

/// What the gateway does with a request for texts.
enum Asked {
    Answered(Found),
    TooSoon(Duration),
}

impl Texts {
    /// Asks at the gateway's socket for texts.
    pub fn new(gateway: GatewayClient, names: Arc<Names>) -> Self {
        Self { gateway, names }
    }

    /// The records at `name`, a whole one, which lies below `domain`. The resolver is asked for no
    /// name below a domain that the census does not admit: it may be one of the operator's own
    /// network.
    ///
    /// # Errors
    /// The domain is not admitted, or the answer is not to be known now.
    pub async fn at(&self, name: &str, domain: &Host) -> Result<Found, Problem> {
        match self.ask(name, domain).await? {
            Asked::Answered(found) => Ok(found),
            Asked::TooSoon(wait) => Err(too_soon(wait)),
        }
    }

    /// As [`Texts::at`], for the second look-up of a request: the gateway's pause after the first
    /// one is waited for.
    ///
    /// # Errors
    /// As [`Texts::at`].
    pub async fn at_after_another(&self, name: &str, domain: &Host) -> Result<Found, Problem> {
        match self.ask(name, domain).await? {
            Asked::Answered(found) => Ok(found),
            Asked::TooSoon(wait) if wait > WAIT_MAX => Err(too_soon(wait)),
            Asked::TooSoon(wait) => {
                tokio::time::sleep(wait).await;
                self.at(name, domain).await
            }
        }
    }

    async fn ask(&self, name: &str, domain: &Host) -> Result<Asked, Problem> {
        if let Err(refusal) = self.names.admit_host(domain.clone()) {
            let words = format!("{domain} is not looked up: {refusal}");
            return Err(Problem::bad("not_admitted", words));
        }
        // A proof's name may be too long: then there is nothing to be published at it.
        let Ok(name) = TextName::parse(name) else {
            return Ok(Asked::Answered(Found::None(NotFound::NoSuchName)));
        };
        let group = self.registered_domain(domain);
        match self.gateway.texts(name, group).await {
            Ok(Looked::Answered(texts)) => Ok(Asked::Answered(found(texts))),
            Ok(Looked::Deferred {
                why: Deferral::Dns, ..
            }) => Err(dns_is_down("this census can't ask DNS now")),
            Ok(Looked::Deferred { retry_after, .. }) => Ok(Asked::TooSoon(retry_after)),
            Ok(Looked::Offline) => Err(dns_is_down("this census has no network now")),
            Err(error) => {
                tracing::error!(%error, "the gateway can't be asked for texts: see that it runs, and that its setting `optional_sockets` names `texts`");
                Err(dns_is_down("this census can't ask DNS now"))
            }
        }
    }

    /// The public suffix of a host and one label more.
    pub fn registered_domain(&self, host: &Host) -> String {
        self.names.registered_domain(host)
    }

    /// The records that hold a domain's keys, by as many look-ups as the token's form needs.
    ///
    /// # Errors
    /// When there are none, or it is not to be known now.
    pub async fn keys(&self, begin: Lookup, domain: &Host) -> Result<Vec<TxtRecord>, Problem> {
        let mut lookup = begin;
        loop {
            let answer = match self.at(&lookup.name(), domain).await? {
                Found::Records(records) => TxtAnswer::Records(
                    records
                        .iter()
                        .map(|record| TxtRecord::from_strings([record]))
                        .collect(),
                ),
                Found::None(how) => TxtAnswer::NotFound(how),
                Found::Failed(how) => TxtAnswer::Failed(how),
            };
            match lookup.answer(answer) {
                // At most once: there is one former label.
                Step::Ask(next) => lookup = next,
                Step::Found(records) => return Ok(records),
                Step::Ended(error @ LookupError::NotFound { .. }) => {
                    return Err(Problem::bad("no_key", error.to_string()));
                }
                Step::Ended(error @ LookupError::Failed { .. }) => {
                    return Err(dns_is_down(&error.to_string()));
                }
            }
        }
    }
}

fn too_soon(wait: Duration) -> Problem {
    let words = "names of this domain were looked up a moment ago: try again a little later";
    Problem::too_soon("looked_up_lately", words, wait)
}

/// 503 for what DNS does not tell now.
pub fn dns_is_down(detail: &str) -> Problem {
    Problem::unavailable("dns_failed", detail, RETRY_AFTER)
}

fn found(texts: Wire) -> Found {
    match texts {
        Wire::Records { records } => Found::Records(records),
        Wire::NoSuchName {} => Found::None(NotFound::NoSuchName),
        Wire::NoData {} => Found::None(NotFound::NoData),
        Wire::ServerFailed {} => Found::Failed(Failure::ServerFailed),
        Wire::TimedOut {} => Found::Failed(Failure::TimedOut),
    }
}

#[cfg(test)]
mod tests {
    use token::Form;

    use super::*;

    #[test]
    fn every_name_that_a_token_asks_for_is_one_that_the_gateway_looks_up() {
        let domain = Host::parse("a.example").unwrap();
        for form in [Form::Own, Form::Sigsum] {
            let first = Lookup::begin(form, domain.clone());
            assert!(TextName::parse(&first.name()).is_ok(), "{}", first.name());
            if let Step::Ask(second) = first.answer(TxtAnswer::NotFound(NotFound::NoData)) {
                assert!(TextName::parse(&second.name()).is_ok(), "{}", second.name());
            }
        }
    }
}
