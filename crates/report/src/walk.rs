//! Turns the lines of a run in walk mode into names of hosts and the walk's end, into a failed
//! walk, or into a fault.
//!
//! Takes lines of stdout, how the container ended and the gateway's account, and gives a [`Walk`],
//! which holds no verdict. Rejects everything outside the order of walk mode: `hello`, `peers`,
//! `walked`, `done`. Events of a check or a list are a breach here, and `walked` is a breach there.
//! After the first breach nothing of the run counts.

use std::collections::BTreeSet;

use protocol::container::End;
use protocol::egress::{Account, FailedSide};
use protocol::limits::{REQUESTS_MAX, WALK_HOSTS_MAX};
use protocol::{Event, Host, WalkOutcome};

use crate::check::Breach;
use crate::fault::ReportFault;
use crate::run::RunReport;

/// The events of a run, up to the first breach.
#[derive(Debug, Default)]
pub struct WalkReport {
    progress: Progress,
    names_told: u64,
    hosts: BTreeSet<Host>,
    end: Option<Told>,
    breach: Option<Breach>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Progress {
    #[default]
    Nothing,
    Hello,
    Walked,
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Told {
    outcome: WalkOutcome,
    requests: u32,
    posts: u32,
    retry_after_s: Option<u64>,
}

/// The result of a walk.
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

impl RunReport for WalkReport {
    fn has_begun(&self) -> bool {
        self.progress != Progress::Nothing
    }

    fn broken_by(&mut self, breach: Breach) {
        self.breach = Some(breach);
    }

    fn breach(&self) -> Option<&Breach> {
        self.breach.as_ref()
    }

    fn step(&mut self, event: Event) -> Result<(), Breach> {
        use Progress::{Done, Hello, Nothing, Walked};
        match (self.progress, event) {
            (Nothing, Event::Hello { protocol, .. })
                if protocol == protocol::limits::PROTOCOL_VERSION =>
            {
                self.progress = Hello;
            }
            (Nothing, _) => return Err(Breach::NoHello),
            (Hello, Event::Peers { hosts }) => {
                let told = u64::try_from(hosts.len()).unwrap_or(u64::MAX);
                self.names_told = self.names_told.saturating_add(told);
                if self.names_told > WALK_HOSTS_MAX {
                    return Err(Breach::OutOfBounds);
                }
                self.hosts.extend(hosts);
            }
            (
                Hello,
                Event::Walked {
                    outcome,
                    requests,
                    posts,
                    retry_after_s,
                },
            ) if requests <= REQUESTS_MAX => {
                self.end = Some(Told {
                    outcome,
                    requests,
                    posts,
                    retry_after_s,
                });
                self.progress = Walked;
            }
            (Walked, Event::Done { .. }) => self.progress = Done,
            (Hello | Walked | Done, _) => return Err(Breach::OutOfOrder),
        }
        Ok(())
    }
}

/// The result of a run, from its events, how the container ended (`None` if we ended it for a
/// breach), and the gateway's account.
///
/// # Errors
/// A fault, if one of the three shows that the failure was ours. Nothing of the walk is kept then.
pub fn conclude(
    report: WalkReport,
    end: Option<End>,
    account: &Account,
    stderr: &str,
) -> Result<Walk, ReportFault> {
    if report.progress == Progress::Nothing {
        return Err(ReportFault::NoHello {
            exit_code: end.map_or(0, |end| end.exit_code),
            stderr: stderr.to_owned(),
        });
    }
    if report.breach.is_some() || account.sni_refused > 0 {
        return Ok(Walk::failed());
    }
    let is_answered = |told: &Told| {
        !matches!(
            told.outcome,
            WalkOutcome::Unresponsive | WalkOutcome::NotFound | WalkOutcome::NotJson
        )
    };
    let is_failed = !report.end.as_ref().is_some_and(is_answered);
    if is_failed && (!account.up || account.failed == FailedSide::Gateway) {
        return Err(ReportFault::NetworkLost);
    }
    match report.end {
        None if end.is_some_and(|end| end.exit_code == 0) => Err(ReportFault::OutputLost),
        // Killed, out of memory, or crashed: what the host sent caused it.
        None => Ok(Walk::failed()),
        Some(told) if is_answered(&told) && account.connections == 0 => {
            Err(ReportFault::NoConnection)
        }
        Some(told) => Ok(Walk {
            outcome: told.outcome,
            hosts: report.hosts,
            requests: told.requests,
            posts: told.posts,
            retry_after_s: told.retry_after_s,
        }),
    }
}

#[cfg(test)]
mod tests;
