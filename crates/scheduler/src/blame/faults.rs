//! Faults: failures on our side. A fault never reaches `transition`, and the host's record stays
//! unchanged (invariant I5).

use std::collections::VecDeque;
use std::time::Duration;

use census::time::Timestamp;
use protocol::Host;

use crate::command::Wait;

/// A host is alone with its faults if fewer other hosts than this had a fault lately. Rare faults
/// of ours, for example from a lack of memory, hit this many hosts within a day before they hit one
/// host three times in a row.
const OTHERS_MAX: usize = 10;

/// The period called lately. Every host is checked within it.
const LATELY: Duration = Duration::from_secs(29 * 3600);

/// Most remembered hosts. Most faults meet a responding instance and need no memory. In a census so
/// small that no check succeeds for two minutes, some nine hundred instances, they do, and all of
/// these may fault.
const FAULTERS_MAX: usize = 1024;

/// If a single host keeps causing faults while other checks succeed, it becomes dead at this number
/// (ARCHITECTURE.md, rules that are easy to break).
pub(crate) const FAULTS_UNTIL_DEAD: u32 = 3;

/// How much a fault affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultScope {
    /// No host can be checked until it is repaired: the gateway, the launcher, the engine or the
    /// store fails.
    Global,
    /// The gateway of the check's way out fails, and with it all checks that take this way.
    Way,
    /// It hit this check by chance. The host is checked again, and nothing is counted.
    Transient,
    /// The checker misbehaved, which its host may have caused. A host that alone keeps causing such
    /// faults becomes dead the third time.
    HostSuspected,
}

/// A check without a result, not because of its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckFault {
    pub scope: FaultScope,
    /// What was tried and what went wrong.
    pub what: String,
    /// Whether the engine failed to start or end a container: a reason to run fewer.
    pub is_engine: bool,
}

/// The cause of a fault, as far as other checks show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attribution {
    /// An outage of ours, which hits every host.
    Us,
    /// No other check succeeded in time.
    Unknown(Lately),
    /// Other checks succeed, so the host may be the cause.
    Host,
}

/// Whether a host's checks have faulted lately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lately {
    Once,
    Again,
}

impl Attribution {
    /// When the host is due again: at the earliest `Soon`, and at the latest at its `ordinary`
    /// time.
    ///
    /// A fault that the host may have caused brings no check before the ordinary time. Otherwise
    /// colluding hosts that fault each time would be checked about fifty times as often as others,
    /// and a few of them would make most checks fail.
    pub(crate) fn due(self, ordinary: Option<Timestamp>) -> Wait {
        match self {
            Self::Us | Self::Unknown(Lately::Once) => Wait::Soon,
            Self::Unknown(Lately::Again) | Self::Host => ordinary.map_or(Wait::Soon, Wait::Until),
        }
    }
}

/// Hosts whose checks faulted lately.
#[derive(Debug, Default)]
pub(crate) struct Faulters {
    /// Each host once, the latest last.
    lately: VecDeque<(Host, Timestamp)>,
}

impl Faulters {
    /// Records a fault of this host's check. Returns whether it had one lately.
    pub(crate) fn note(&mut self, host: &Host, now: Timestamp) -> Lately {
        let before = self
            .lately
            .iter()
            .position(|(other, _)| other == host)
            .and_then(|at| self.lately.remove(at));
        self.lately.push_back((host.clone(), now));
        if self.lately.len() > FAULTERS_MAX {
            self.lately.pop_front();
        }
        match before {
            Some((_, at)) if now.since(at) < LATELY => Lately::Again,
            Some(_) | None => Lately::Once,
        }
    }

    /// Whether only this host has faults. Otherwise the fault hits many hosts and is ours.
    pub(crate) fn is_alone(&self, host: &Host, now: Timestamp) -> bool {
        let others = self
            .lately
            .iter()
            .filter(|(other, at)| other != host && now.since(*at) < LATELY)
            .count();
        others < OTHERS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(number: usize) -> Host {
        Host::parse(&format!("n{number}.example.org")).unwrap()
    }

    #[test]
    fn a_host_that_faults_is_checked_early_once_a_day_at_most_except_after_an_outage() {
        let (mut faulters, now) = (Faulters::default(), Timestamp(1_700_000_000_000));
        let (ordinary, soon) = (now.plus(LATELY), now.plus(Duration::from_secs(60)));
        let first = faulters.note(&host(0), now);
        let other = faulters.note(&host(1), now);
        let second = faulters.note(&host(0), soon);
        assert_eq!(
            (first, other, second),
            (Lately::Once, Lately::Once, Lately::Again)
        );
        let again = faulters.note(&host(0), soon.plus(LATELY));
        assert_eq!(again, Lately::Once, "a day later");
        let due = |who: Attribution| who.due(Some(ordinary));
        assert_eq!(due(Attribution::Us), Wait::Soon);
        assert_eq!(due(Attribution::Unknown(Lately::Once)), Wait::Soon);
        assert_eq!(
            due(Attribution::Unknown(Lately::Again)),
            Wait::Until(ordinary)
        );
        assert_eq!(due(Attribution::Host), Wait::Until(ordinary));
        assert_eq!(Attribution::Host.due(None), Wait::Soon);
    }

    #[test]
    fn a_fault_that_goes_round_is_no_hosts() {
        let mut faulters = Faulters::default();
        let now = Timestamp(1_700_000_000_000);
        for _ in 0..100 {
            faulters.note(&host(0), now);
        }
        for number in 1..OTHERS_MAX {
            faulters.note(&host(number), now);
            assert!(faulters.is_alone(&host(0), now), "{number} others");
        }
        faulters.note(&host(OTHERS_MAX), now);
        assert!(!faulters.is_alone(&host(0), now));
        for number in 0..10_000 {
            faulters.note(&host(number), now);
        }
        assert!(!faulters.is_alone(&host(0), now));
        assert!(faulters.lately.len() <= FAULTERS_MAX);
        assert!(faulters.is_alone(&host(0), now.plus(LATELY)), "a day later");
    }
}
