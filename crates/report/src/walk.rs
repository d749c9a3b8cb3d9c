//! The lines of a run in walk mode → names of hosts and how the walk ended, or why it counts as
//! failed; or a fault.
//!
//! In: lines of stdout, how the container ended, the gateway's account. Out: a [`Walk`], which
//! holds no verdict. Refused: whatever is not in the order of walk mode: `hello`, `peers`,
//! `walked`, `done`. An event of a check or a list is a breach here, as `walked` is there; after
//! the first breach nothing of the run counts.

use std::collections::BTreeSet;

use protocol::container::End;
use protocol::egress::{Account, FailedSide};
use protocol::limits::{REQUESTS_MAX, WALK_HOSTS_MAX};
use protocol::{Event, Host, WalkOutcome};

use crate::check::Breach;
use crate::fault::ReportFault;
use crate::run::RunReport;

/// What a run said, as far as it was in order.
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

/// What came of a walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    /// How it ended; [`WalkOutcome::Unresponsive`] as well when the container broke off or broke
    /// the rules.
    pub outcome: WalkOutcome,
    /// Hosts that conversations named.
    pub hosts: BTreeSet<Host>,
    /// Requests made.
    pub requests: u32,
    /// Posts looked at.
    pub posts: u32,
    /// When the host lets us ask again, in seconds, where it said that.
    pub retry_after_s: Option<u64>,
}

impl Walk {
    /// Nothing came of it, through the host's doing: it could not be reached, its container broke
    /// off, or broke the rules.
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

/// What a run came to: what it said, how the container ended (nothing when we ended it for a
/// breach), and the gateway's account, put together.
///
/// # Errors
/// A fault, when one of the three says that it was us: nothing is remembered of the walk then.
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
        // Killed, out of memory, or crashed: by what the host sent.
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
