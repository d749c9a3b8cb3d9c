//! Step 4 of 7: turns lines into events, events into one report, and the report into a verdict or a
//! fault.
//!
//! Takes lines of stdout, how the container ended and the gateway's account, and gives a verdict
//! about the checked host. Rejects everything outside the wire's order (invariant I3). The first
//! breach ends the check. After `hello` a breach is the host's (`protocol`), before it ours.

use protocol::limits::{PEERS_MAX, SOFTWARE_BYTES_MAX, TEXT_BYTES_MAX};
use protocol::{DeadReason, Event, Host, Instance, PeersOutcome, escaped, is_shown_safely};
use thiserror::Error;

use census::state::Verdict;
use protocol::container::{End, Killed};
use protocol::egress::{Account, Budget, FailedSide};

use crate::fault::ReportFault;
use crate::lines::LineBreach;
use crate::run::event_of;

/// The events of a checker, up to the first breach.
#[derive(Debug)]
pub struct Report {
    host: Host,
    progress: Progress,
    finding: Option<Verdict>,
    peers: PeersSummary,
    breach: Option<Breach>,
}

/// The result of the peers list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeersSummary {
    pub names: u64,
    /// Elements that were no name, as the checker counted them.
    pub dropped: u64,
    /// How the list ended. Also `truncated` if the check broke off after `alive`.
    pub outcome: PeersOutcome,
}

/// A breach of the wire's rules.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Breach {
    #[error(transparent)]
    Line(#[from] LineBreach),
    #[error("a line is not an event")]
    NotAnEvent,
    /// A text or a list in an event is too long, or a reason is one that a checker may not report.
    #[error("an event is out of bounds")]
    OutOfBounds,
    #[error("the first line is not this protocol's hello")]
    NoHello,
    #[error("an event is out of order")]
    OutOfOrder,
    #[error("more than {PEERS_MAX} peers")]
    TooManyPeers,
    #[error("too much on stderr")]
    StderrFlood,
}

/// The position in the wire's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Nothing,
    Hello,
    Alive,
    PeersEnded,
    Judged,
    Done,
}

impl Report {
    /// An empty report of a check of `host`.
    pub fn new(host: Host) -> Self {
        let peers = PeersSummary {
            names: 0,
            dropped: 0,
            outcome: PeersOutcome::None,
        };
        Self {
            host,
            progress: Progress::Nothing,
            finding: None,
            peers,
            breach: None,
        }
    }

    /// Takes the next line. Returns the names that it lists, to become candidates.
    pub fn accept(&mut self, line: &[u8]) -> Result<Vec<Host>, Breach> {
        let Some(event) = event_of(line, self.progress != Progress::Nothing)? else {
            self.progress = Progress::Hello;
            return Ok(Vec::new());
        };
        self.step(event)
    }

    /// Records the breach that ended the check.
    pub fn broken_by(&mut self, breach: Breach) {
        self.breach = Some(breach);
    }

    /// The breach that ended the check, if one did.
    pub fn breach(&self) -> Option<&Breach> {
        self.breach.as_ref()
    }

    /// Whether the host was found alive so far.
    pub fn is_alive(&self) -> bool {
        matches!(self.finding, Some(Verdict::Alive(_)))
    }

    /// The result of the peers list, once the check is over.
    pub fn peers(&self) -> PeersSummary {
        let broken_off =
            self.progress == Progress::Alive || (self.is_alive() && self.breach.is_some());
        let outcome = if broken_off {
            PeersOutcome::Truncated
        } else {
            self.peers.outcome
        };
        PeersSummary {
            outcome,
            ..self.peers
        }
    }

    fn step(&mut self, event: Event) -> Result<Vec<Host>, Breach> {
        use Progress::{Alive, Done, Hello, Judged, Nothing, PeersEnded};
        let finding = match (self.progress, event) {
            (Hello, Event::Alive(instance)) => Verdict::Alive(harmless_instance(instance)),
            (Hello, Event::Moved { to }) => self.moved(to),
            (Hello, Event::OptedOut {}) => Verdict::OptedOut,
            (Hello, Event::Gone {}) => Verdict::Gone,
            (
                Hello,
                Event::Refused {
                    status,
                    wall,
                    retry_after_s,
                },
            ) => Verdict::Refused {
                status,
                wall,
                retry_after_s,
            },
            (Hello, Event::Dead { reason, status, to }) => Verdict::Dead {
                reason,
                status,
                to: to.map(harmless),
            },
            (Alive, Event::Peers { hosts }) => return self.take(hosts),
            (Alive, Event::PeersEnd { outcome, dropped }) => {
                self.peers.outcome = outcome;
                self.peers.dropped = dropped;
                self.progress = PeersEnded;
                return Ok(Vec::new());
            }
            (PeersEnded | Judged, Event::Done { .. }) => {
                self.progress = Done;
                return Ok(Vec::new());
            }
            (Nothing | Hello | Alive | PeersEnded | Judged | Done, _) => {
                return Err(Breach::OutOfOrder);
            }
        };
        self.progress = if matches!(finding, Verdict::Alive(_)) {
            Alive
        } else {
            Judged
        };
        self.finding = Some(finding);
        Ok(Vec::new())
    }

    fn moved(&self, to: Host) -> Verdict {
        if to == self.host {
            dead(DeadReason::RedirectToSelf)
        } else {
            Verdict::Moved { to }
        }
    }

    fn take(&mut self, mut hosts: Vec<Host>) -> Result<Vec<Host>, Breach> {
        let names = u64::try_from(hosts.len()).unwrap_or(u64::MAX);
        self.peers.names = self.peers.names.saturating_add(names);
        if self.peers.names > PEERS_MAX {
            return Err(Breach::TooManyPeers);
        }
        hosts.retain(|host| *host != self.host);
        Ok(hosts)
    }
}

/// The verdict about the host, from the checker's finding, how the container ended (`None` if we
/// ended it for a breach), and the gateway's account.
pub fn conclude(
    report: &Report,
    end: Option<End>,
    account: &Account,
    stderr: &str,
) -> Result<Verdict, ReportFault> {
    if report.progress == Progress::Nothing {
        return Err(ReportFault::no_hello(end, stderr));
    }
    let failed = !matches!(report.finding, Some(Verdict::Alive(_)));
    if failed && (!account.up || account.failed == FailedSide::Gateway) {
        return Err(ReportFault::NetworkLost);
    }
    let Some(finding) = &report.finding else {
        // A checker that exits with 0 has reported. So something cut the engine's stream, not the
        // checker, and the rest is lost.
        if report.breach.is_none() && end.is_some_and(|end| end.exit_code == 0) {
            return Err(ReportFault::OutputLost);
        }
        return Ok(dead(without_finding(report, end)));
    };
    if account.connections == 0 {
        return match (account.sni_refused, account.failed) {
            // The host accepted a connection before the check began, and none after.
            (0, FailedSide::Host) => Ok(dead(DeadReason::Unreachable)),
            (0, FailedSide::None | FailedSide::Checker | FailedSide::Gateway) => {
                Err(ReportFault::NoConnection)
            }
            // A program that uses the egress socket other than for TLS to its host is no longer our
            // checker.
            (_, _) => Ok(dead(DeadReason::Protocol)),
        };
    }
    if let Verdict::Dead { .. } = finding {
        match account.budget_hit {
            Some(Budget::Bytes | Budget::Connections) => return Ok(dead(DeadReason::Budget)),
            Some(Budget::Time) | None => {}
        }
    }
    Ok(finding.clone())
}

fn without_finding(report: &Report, end: Option<End>) -> DeadReason {
    match end {
        _ if report.breach.is_some() => DeadReason::Protocol,
        Some(End {
            out_of_memory: true,
            ..
        }) => DeadReason::Memory,
        Some(End {
            killed: Some(Killed::Deadline),
            ..
        }) => DeadReason::Deadline,
        Some(_) | None => DeadReason::Crashed,
    }
}

/// A checker escapes a host's texts. A compromised one may not.
pub(crate) fn harmless(text: String) -> String {
    if is_shown_safely(&text) {
        text
    } else {
        escaped(text.as_bytes(), TEXT_BYTES_MAX)
    }
}

/// The texts are stored, shown and published from here on.
fn harmless_instance(instance: Instance) -> Instance {
    let harmless = |text: String| escaped(text.as_bytes(), SOFTWARE_BYTES_MAX);
    Instance {
        software: instance.software.map(harmless),
        version: instance.version.map(harmless),
        variant: instance.variant.map(harmless),
        ..instance
    }
}

fn dead(reason: DeadReason) -> Verdict {
    Verdict::Dead {
        reason,
        status: None,
        to: None,
    }
}

#[cfg(test)]
mod tests;
