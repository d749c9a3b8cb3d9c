//! Faults: what goes wrong with us. A fault never reaches `transition`; the host's record stays as
//! it was (invariant I5).

use std::collections::VecDeque;
use std::time::Duration;

use census::time::Timestamp;
use protocol::Host;

use crate::command::Wait;

/// A host is alone with its faults when fewer other hosts than this faulted lately. Rare faults of
/// ours, from a machine short of memory for instance, hit that many within a day before they hit
/// one host three times in a row.
const OTHERS_MAX: usize = 10;

/// Lately: every host was checked since.
const LATELY: Duration = Duration::from_secs(29 * 3600);

/// Hosts that are remembered. Most faults meet a responding instance and need no memory. They don't
/// in a census so small that no check succeeds for two minutes, some nine hundred instances, and as
/// many may fault.
const FAULTERS_MAX: usize = 1024;

/// A host that alone keeps causing faults while others are checked well becomes dead at this one
/// (design §5).
pub(crate) const FAULTS_UNTIL_DEAD: u32 = 3;

/// How far a fault reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultScope {
    /// Nothing can be checked until it is repaired: the gateway, the launcher, the engine, the
    /// store.
    Global,
    /// It hit this check by chance: the host is checked again, and nothing is counted.
    Transient,
    /// The checker misbehaved, which its host may have caused. A host that alone keeps causing such
    /// faults becomes dead the third time.
    HostSuspected,
}

/// A check that came to nothing, through no doing of its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckFault {
    /// How far it reaches.
    pub scope: FaultScope,
    /// What was tried and what went wrong.
    pub what: String,
    /// The engine did not start a container, or did not end it: a reason to run fewer.
    pub is_engine: bool,
}

/// Who caused a fault, as far as other checks show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attribution {
    /// An outage of ours: it hits every host.
    Us,
    /// No other check succeeded in time.
    Unknown(Lately),
    /// Other checks succeed: it may be the host's doing.
    Host,
}

/// Whether a host's checks have faulted lately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lately {
    /// This is the first time.
    Once,
    /// It is not.
    Again,
}

impl Attribution {
    /// When the host is due again, at the earliest `Soon` and at the latest at its `ordinary` time.
    ///
    /// What a host may cause brings it no check before its ordinary time. Otherwise hosts in league
    /// that fault each time would be checked some fifty times as often as others, and few of them
    /// would make most of all checks fail.
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
    /// Each once, the latest last.
    lately: VecDeque<(Host, Timestamp)>,
}

impl Faulters {
    /// A check of this host faulted.
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

    /// Whether this host is alone with its faults (design §5). If not, the fault goes round, and so
    /// is ours.
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
