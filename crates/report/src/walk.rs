//! What a run in walk mode reads: names of hosts and the walk's end, or a failed walk.
//!
//! Its order is `peers`, `walked`. Events of a check or a list are a breach here, and `walked` is a
//! breach there.

use std::collections::BTreeSet;

use protocol::egress::Account;
use protocol::limits::{REQUESTS_MAX, WALK_HOSTS_MAX};
use protocol::{Event, Host, WalkOutcome};

use crate::check::Breach;
use crate::run::{Failure, Reading};

#[derive(Debug, Default)]
pub struct WalkReport {
    names_told: u64,
    hosts: BTreeSet<Host>,
    end: Option<Walk>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    /// How it ended. Also [`WalkOutcome::Unresponsive`] if the container broke off or broke the
    /// rules.
    pub outcome: WalkOutcome,
    pub hosts: BTreeSet<Host>,
    pub requests: u32,
    pub posts: u32,
    /// When the host allows the next request, in seconds, if it stated that.
    pub retry_after_s: Option<u64>,
}

impl Walk {
    /// A walk without a result because of the host: it could not be reached, or its container broke
    /// off or broke the rules.
    pub fn failed() -> Self {
        Self {
            outcome: WalkOutcome::Unresponsive,
            hosts: BTreeSet::new(),
            requests: 0,
            posts: 0,
            retry_after_s: None,
        }
    }
}

impl Reading for WalkReport {
    type Outcome = Walk;

    fn take(&mut self, event: Event) -> Result<bool, Breach> {
        match event {
            Event::Peers { hosts } => {
                let told = u64::try_from(hosts.len()).unwrap_or(u64::MAX);
                self.names_told = self.names_told.saturating_add(told);
                if self.names_told > WALK_HOSTS_MAX {
                    return Err(Breach::OutOfBounds);
                }
                self.hosts.extend(hosts);
                Ok(false)
            }
            Event::Walked {
                outcome,
                requests,
                posts,
                retry_after_s,
            } if requests <= REQUESTS_MAX => {
                self.end = Some(Walk {
                    outcome,
                    hosts: std::mem::take(&mut self.hosts),
                    requests,
                    posts,
                    retry_after_s,
                });
                Ok(true)
            }
            _ => Err(Breach::OutOfOrder),
        }
    }

    fn is_answered(&self) -> bool {
        use WalkOutcome::{NotFound, NotJson, Unresponsive};
        let is_answer = |walk: &Walk| !matches!(walk.outcome, Unresponsive | NotFound | NotJson);
        self.end.as_ref().is_some_and(is_answer)
    }

    fn read(self, _: &Account) -> Walk {
        self.end.unwrap_or_else(Walk::failed)
    }

    fn failed(_: Failure) -> Walk {
        Walk::failed()
    }
}

#[cfg(test)]
mod tests;
