//! Tests the resolver itself while opens lead to no instance.
//!
//! A resolver that is silent, denies every name or leads all to one address makes every host fail,
//! and only a name that certainly exists tells it from a world of dead names (invariant I5).

use std::net::SocketAddr;

use protocol::Host;

use super::{Answer, Known, Resolution, Resolver, Source, ask_dns, now};
use crate::wire::control::Family;

/// A name that certainly exists: the root server's whose addresses show whether there is a route.
const SURE_NAME: &str = "a.root-servers.net";

/// Opens in a row that led to no instance after which the resolver itself is tested. One query for
/// three of them is little, also in a world of dead names.
pub(super) const FRUITLESS_MAX: u32 = 3;

/// What is wrong with the resolver itself.
#[derive(Debug, Clone)]
pub(super) struct Trouble {
    text: String,
    /// Where it leads all names.
    astray: Option<SocketAddr>,
}

impl Trouble {
    fn of_all(text: String) -> Self {
        Self { text, astray: None }
    }
}

impl Resolver {
    /// As [`Self::resolve`]. While opens lead to no instance, the resolver is tested as well.
    ///
    /// # Errors
    /// In words for the operator: not even `SURE_NAME` resolves, or it has the host's address.
    pub async fn resolve_in_doubt(
        &self,
        host: &Host,
        families: &[Family],
    ) -> Result<Resolution, String> {
        let (resolution, sure) =
            tokio::join!(self.resolve(host, families), self.ask_sure(families));
        let Some((sure, servers)) = sure else {
            return Ok(resolution);
        };
        let trouble = match (&resolution, &sure) {
            (Resolution::Offline, _)
            | (_, Answer::NoRoute)
            // The resolver answers sometimes.
            | (
                Resolution::NoSuchName { .. } | Resolution::NoAddress { .. },
                Answer::Failure(_) | Answer::OwnFailure(_),
            ) => return Ok(resolution),
            (Resolution::Found { targets, .. }, Answer::Known(Known::Found(sure), _)) => {
                let same = targets.iter().find(|target| sure.contains(target));
                same.map(|same| Trouble {
                    text: format!("the resolver {servers} leads all names to {}: does a captive portal wait for a login?", same.ip()),
                    astray: Some(*same),
                })
            }
            (Resolution::Found { .. }, _) | (_, Answer::Known(Known::Found(_), _)) => None,
            (_, Answer::Known(..)) => Some(Trouble::of_all(format!(
                "the resolver {servers} says that no name exists, not even {SURE_NAME}"
            ))),
            (
                Resolution::Failing { .. } | Resolution::Broken { .. },
                Answer::Failure(detail) | Answer::OwnFailure(detail),
            ) => Some(Trouble::of_all(format!(
                "no name resolves, not even {SURE_NAME}: does the resolver {servers} answer? ({detail})"
            ))),
        };
        let mut memory = self.memory();
        memory.trouble.clone_from(&trouble);
        if let Some(trouble) = trouble {
            return Err(trouble.text);
        }
        memory.fruitless = 0;
        Ok(resolution)
    }

    /// Records whether an open led to an instance.
    pub fn led_to_instance(&self, has: bool) {
        let mut memory = self.memory();
        if has {
            (memory.fruitless, memory.trouble) = (0, None);
        } else {
            memory.fruitless = memory.fruitless.saturating_add(1);
        }
    }

    /// What is wrong with the resolver itself, for the operator, by its last test.
    pub fn trouble(&self) -> Option<String> {
        let memory = self.memory();
        memory.trouble.as_ref().map(|trouble| trouble.text.clone())
    }

    /// Tests a resolver in trouble again, unless that is already under way.
    pub async fn test_again(&self, families: &[Family]) {
        let Ok(_turn) = self.testing.try_lock() else {
            return;
        };
        let Some((Answer::Known(Known::Found(sure), _), _)) = self.ask_sure(families).await else {
            return;
        };
        self.memory()
            .trouble
            .take_if(|trouble| trouble.astray.is_none_or(|astray| !sure.contains(&astray)));
    }

    /// The answer for `SURE_NAME` and the resolvers, if DNS is in doubt.
    async fn ask_sure(&self, families: &[Family]) -> Option<(Answer, &str)> {
        let Source::Dns(resolver, servers) = &self.source else {
            return None;
        };
        if self.memory().fruitless < FRUITLESS_MAX {
            return None;
        }
        let sure = Host::parse(SURE_NAME).ok()?;
        let answer = ask_dns(resolver, &sure, families, self.timeout).await;
        if matches!(answer, Answer::Known(..)) {
            self.memory().resolver_works(now());
        }
        Some((answer, servers))
    }
}
