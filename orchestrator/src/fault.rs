//! What goes wrong with us. A fault never reaches `transition`: the host's record stays as it was (invariant I5).

use std::collections::VecDeque;
use std::time::Duration;

use census::time::Timestamp;
use protocol::Host;
use thiserror::Error;

/// A host whose checks fault is alone with it when fewer others than this did so lately. Seldom faults of ours, from a machine that is short of
/// memory for instance, hit that many within a day before they hit one host three times in a row.
const OTHERS_MAX: usize = 10;

/// Lately: every host was asked since.
const LATELY: Duration = Duration::from_secs(29 * 3600);

/// Hosts that are remembered. Most faults find others who live, and need no memory. They don't in a census so small that nobody is heard of for two
/// minutes, some nine hundred living hosts, and as many may fault.
const FAULTERS_MAX: usize = 1024;

/// Why a check came to nothing, through no doing of its host.
#[derive(Debug, Error)]
pub enum Fault {
    /// The gateway does not answer, or broke off.
    #[error("gateway: {0}")]
    Gateway(#[source] gateway::ClientError),
    /// The gateway went away during the check.
    #[error("gateway: it went away during the check: start it; its own log says why it ended")]
    GatewayLost,
    /// The launcher does not answer, or broke off.
    #[error("launcher: {0}")]
    Launcher(#[source] launcher::ClientError),
    /// The launcher could not run the container.
    #[error("engine: {}", .0.message)]
    Launch(launcher::wire::LaunchFault),
    /// The container printed no `hello`: a broken checker image.
    #[error(
        "the checker said nothing that we understand (exit code {exit_code}); is the checker image of this version? Build it anew. stderr: {stderr}"
    )]
    NoHello {
        /// Its exit code, when it had one.
        exit_code: i64,
        /// The start of its stderr, escaped.
        stderr: String,
    },
    /// The checker ended well, but its finding did not reach us: the engine broke its output off, or the checker was made to leave it out.
    #[error("the checker ended well, but nothing of its finding came through")]
    OutputLost,
    /// The checker reported a finding without having reached the host.
    #[error("the checker reported without a connection to the host")]
    NoConnection,
    /// The gateway lost its network during the check, or broke a connection off itself.
    #[error("the network went away during the check")]
    NetworkLost,
    /// The launcher did not end the check by its deadline.
    #[error("the launcher did not end the check in time: if it hangs, start it anew")]
    Overdue,
    /// The database does not take what a check learned.
    #[error("store: {0}")]
    Store(#[source] store::StoreError),
}

/// How far a fault reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Nothing can be checked until it is mended: the gateway, the launcher, the engine, the store.
    Everything,
    /// It hit this check by chance: the host is asked again, and nothing is counted.
    OursAlone,
    /// The checker misbehaved, which its host may have made it do. A host that alone keeps causing such faults becomes dead the third time.
    ThisCheck,
}

impl Fault {
    /// How far it reaches.
    pub fn reach(&self) -> Reach {
        use launcher::wire::FaultKind;
        match self {
            Self::Gateway(_) | Self::GatewayLost | Self::Launcher(_) | Self::Store(_) => {
                Reach::Everything
            }
            Self::Launch(fault) => match fault.kind {
                FaultKind::EngineDown | FaultKind::ImageMissing | FaultKind::NotConfined => {
                    Reach::Everything
                }
                FaultKind::Full | FaultKind::EngineError | FaultKind::BadRequest => {
                    Reach::OursAlone
                }
            },
            Self::NetworkLost | Self::Overdue => Reach::OursAlone,
            Self::NoHello { .. } | Self::OutputLost | Self::NoConnection => Reach::ThisCheck,
        }
    }
}

impl Fault {
    /// Whether the engine did not bring a container up, or to its end: a reason to ask less of it. What a host may have brought about is none.
    pub fn is_the_engines(&self) -> bool {
        use launcher::wire::FaultKind;
        match self {
            Self::Launcher(_) | Self::Overdue => true,
            Self::Launch(fault) => match fault.kind {
                FaultKind::EngineDown | FaultKind::EngineError | FaultKind::Full => true,
                FaultKind::ImageMissing | FaultKind::NotConfined | FaultKind::BadRequest => false,
            },
            Self::Gateway(_)
            | Self::GatewayLost
            | Self::NoHello { .. }
            | Self::OutputLost
            | Self::NoConnection
            | Self::NetworkLost
            | Self::Store(_) => false,
        }
    }
}

/// Whose a fault is, as far as others can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// An outage of ours: it hits everybody.
    Ours,
    /// Nobody lived to tell.
    Untold(Lately),
    /// Others live: it may be the host's doing.
    Theirs,
}

/// Whether a host's checks have faulted lately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lately {
    /// This is the first time.
    Once,
    /// It is not.
    Again,
}

impl Whose {
    /// When the host is due again, between its `ordinary` time and `soon`.
    ///
    /// What a host may bring about brings it no check before its ordinary time. Else hosts in league that fault each time would be checked some fifty
    /// times as often as others, and few of them would make most of all checks fail.
    pub fn due(self, ordinary: Option<Timestamp>, soon: Timestamp) -> Timestamp {
        match self {
            Self::Ours | Self::Untold(Lately::Once) => soon,
            Self::Untold(Lately::Again) | Self::Theirs => ordinary.unwrap_or(soon),
        }
    }
}

/// Whose checks faulted lately.
#[derive(Debug, Default)]
pub struct Faulters {
    /// Each once, the latest last.
    lately: VecDeque<(Host, Timestamp)>,
}

impl Faulters {
    /// A check of this host did.
    pub fn note(&mut self, host: &Host, now: Timestamp) -> Lately {
        let before = self
            .lately
            .iter()
            .position(|(other, _)| other == host)
            .and_then(|place| self.lately.remove(place));
        self.lately.push_back((host.clone(), now));
        if self.lately.len() > FAULTERS_MAX {
            self.lately.pop_front();
        }
        match before {
            Some((_, at)) if now.since(at) < LATELY => Lately::Again,
            Some(_) | None => Lately::Once,
        }
    }

    /// Whether this host is alone with it (design §5), or the fault is one that goes round, and so is ours.
    pub fn is_alone(&self, host: &Host, now: Timestamp) -> bool {
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
    fn who_faults_is_asked_again_early_once_a_day_at_most_but_for_an_outage() {
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
        let due = |whose: Whose| whose.due(Some(ordinary), soon);
        assert_eq!(due(Whose::Ours), soon);
        assert_eq!(due(Whose::Untold(Lately::Once)), soon);
        assert_eq!(due(Whose::Untold(Lately::Again)), ordinary);
        assert_eq!(due(Whose::Theirs), ordinary);
        assert_eq!(Whose::Theirs.due(None, soon), soon);
    }

    #[test]
    fn a_fault_that_goes_round_is_nobodys() {
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
