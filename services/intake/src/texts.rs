//! TXT records of the names below which owners publish, looked up through the gateway.
//!
//! It takes a name for a token's form or a proof, and returns a [`TxtAnswer`] or a problem that
//! says when to retry.

use std::sync::Arc;
use std::time::Duration;

use admission::Names;
use gateway::control::Texts as Wire;
use gateway::{GatewayClient, Looked, TextName};
use protocol::Host;
use protocol::egress::Deferral;
use token::{Failure, Lookup, LookupError, NotFound, Step, TxtAnswer, TxtRecord};

use crate::problem::Problem;

/// When to retry after DNS or the gateway failed.
pub const RETRY_AFTER: Duration = Duration::from_secs(60);

/// Longest wait between two look-ups for one request: the gateway's pause between two names of a
/// domain.
pub const WAIT_MAX: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub struct Texts {
    gateway: GatewayClient,
    /// With the suffix list that determines the owner of a name.
    names: Arc<Names>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The records in the order received. Bytes that are not printable ASCII are U+FFFD.
    Records(Vec<String>),
    /// DNS reports that there are none.
    None(NotFound),
    Failed(Failure),
}

enum TextAnswer {
    Answered(Found),
    TooSoon(Duration),
}

impl Texts {
    pub fn new(gateway: GatewayClient, names: Arc<Names>) -> Self {
        Self { gateway, names }
    }

    /// The records at the fully qualified `name`, which lies below `domain`. If the census does not
    /// admit `domain`, the resolver is not used: the domain may belong to the operator's own
    /// network.
    pub async fn at(&self, name: &str, domain: &Host) -> Result<Found, Problem> {
        match self.ask(name, domain).await? {
            TextAnswer::Answered(found) => Ok(found),
            TextAnswer::TooSoon(wait) => Err(too_soon(wait)),
        }
    }

    /// Like [`Texts::at`], for the second look-up of a request: waits for the gateway's pause after
    /// the first one.
    pub async fn at_after_another(&self, name: &str, domain: &Host) -> Result<Found, Problem> {
        match self.ask(name, domain).await? {
            TextAnswer::Answered(found) => Ok(found),
            TextAnswer::TooSoon(wait) if wait > WAIT_MAX => Err(too_soon(wait)),
            TextAnswer::TooSoon(wait) => {
                tokio::time::sleep(wait).await;
                self.at(name, domain).await
            }
        }
    }

    async fn ask(&self, name: &str, domain: &Host) -> Result<TextAnswer, Problem> {
        if let Err(refusal) = self.names.admit_host(domain.clone()) {
            let words = format!("{domain} is not looked up: {refusal}");
            return Err(Problem::bad("not_admitted", words));
        }
        // A proof's name may be too long. Then nothing can be published there.
        let Ok(name) = TextName::parse(name) else {
            return Ok(TextAnswer::Answered(Found::None(NotFound::NoSuchName)));
        };
        let group = self.registered_domain(domain);
        match self.gateway.texts(name, group).await {
            Ok(Looked::Answered(texts)) => Ok(TextAnswer::Answered(found(texts))),
            Ok(Looked::Deferred {
                why: Deferral::Dns, ..
            }) => Err(dns_is_down("this census can't query DNS now")),
            Ok(Looked::Deferred { retry_after, .. }) => Ok(TextAnswer::TooSoon(retry_after)),
            Ok(Looked::Offline) => Err(dns_is_down("this census has no network now")),
            Err(error) => {
                tracing::error!(%error, "the gateway can't be reached for TXT records: check that it runs and that its setting `optional_sockets` contains `texts`");
                Err(dns_is_down("this census can't query DNS now"))
            }
        }
    }

    /// The registered domain of a host: its public suffix plus one label.
    pub fn registered_domain(&self, host: &Host) -> String {
        self.names.registered_domain(host)
    }

    /// The records with a domain's keys, with as many look-ups as the token's form needs.
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
    let words = "names of this domain were just looked up: try again in a minute";
    Problem::too_soon("looked_up_lately", words, wait)
}

/// 503 because DNS fails now.
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
