//! Commands: what the scheduler wants done. The shell, its caller, carries them out and reports
//! with events.

use std::fmt;
use std::time::Duration;

use census::class::{Class, PerClass};
use census::state::{Record, Verdict};
use census::time::{Calendar, Jitter, Timestamp};
use protocol::Host;
use protocol::egress::{Deferral, Family, Way, Wish};
use protocol::order::AskPeers;

use crate::blame::blackout::{NoSuccess, Over};
use crate::event::{CheckNumber, SlotHolder, Trigger};
use crate::publication::{Extent, Force};

/// Hosts that were deferred for the same reason return spread over at least this time, not all at
/// once.
const SPREAD_MIN: Duration = Duration::from_secs(10);

/// A request of the scheduler to its shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Count due hosts, up to `most` of each class. Answered by [`crate::Event::Demand`] or
    /// [`crate::Event::StoreFailed`].
    CountDue {
        most: u32,
        with_load: bool,
    },
    /// Take at most this many due hosts of each class, the longest due first. Answered by
    /// [`crate::Event::Taken`] or [`crate::Event::StoreFailed`].
    Take {
        wanted: PerClass<u32>,
    },
    /// Take this host regardless of its due time. Answered by [`crate::Event::TakenOne`] or
    /// [`crate::Event::CanaryRefused`].
    TakeCanary(CanaryTurn),
    Start(Start),
    /// Give the holder a slot for a container.
    GrantSlot(SlotHolder),
    /// Give the holder no slot: the check ends as deferred.
    TurnAway(SlotHolder),
    /// End a check and forget it. Another command releases its host.
    Abort {
        check: CheckNumber,
    },
    /// Write a verdict. Answered by [`crate::Event::Written`].
    CommitVerdict {
        record: Box<Record>,
        verdict: Verdict,
    },
    /// Release a host without a verdict. Answered by [`crate::Event::Written`].
    Release(Release),
    /// Note by which of two ways out a host has just responded.
    RememberWay {
        host: Host,
        by: Way,
        /// Whether it had failed by the other one.
        alone: bool,
    },
    /// Ask gateway, launcher, engine and store whether they work. Answered by
    /// [`crate::Event::PartStatus`] and, if there are two gateways, [`crate::Event::WayStatus`].
    AskParts,
    /// Publish. Answered by [`crate::Event::Published`].
    Publish {
        extent: Extent,
        /// Whether a list that lost too many names is published.
        force: Force,
    },
    Report(Notice),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    pub check: CheckNumber,
    pub host: Host,
    /// The host's class when it was taken.
    pub class: Class,
    /// What its way out should show to work.
    pub wish: Wish,
    pub peers: AskPeers,
    pub trigger: Trigger,
}

/// A canary to be checked next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanaryTurn {
    pub host: Host,
    /// What its check should show to work.
    pub wish: Wish,
    /// Canaries to try if this one can't be checked.
    pub left: usize,
}

/// A host that is released without a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    pub host: Host,
    /// When it is due again.
    pub wait: Wait,
    pub why: Released,
}

/// When a host is due again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    Until(Timestamp),
    /// Within the hour ([`Calendar::again_soon`]).
    Soon,
    /// After `at_least` plus a random time of up to the same length (or ten seconds), but after
    /// `at_most` at the latest.
    Spread {
        at_least: Duration,
        at_most: Duration,
    },
}

impl Wait {
    /// After `at_least` plus a random time of up to the same length (or ten seconds).
    pub(crate) fn spread(at_least: Duration) -> Self {
        Self::Spread {
            at_least,
            at_most: Duration::MAX,
        }
    }

    /// The due time. The caller passes the jitter.
    pub fn due(self, now: Timestamp, jitter: Jitter, calendar: Calendar) -> Timestamp {
        match self {
            Self::Until(at) => at,
            Self::Soon => now.plus(calendar.again_soon(jitter)),
            Self::Spread { at_least, at_most } => {
                let width = at_least.max(SPREAD_MIN).as_millis();
                let part = u128::from(jitter.0).saturating_mul(width) >> 32_u32;
                let part = Duration::from_millis(u64::try_from(part).unwrap_or(0));
                now.plus(at_least.saturating_add(part).min(at_most))
            }
        }
    }
}

/// Why a host is released without a verdict. Its text is the note that `explain` shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Released {
    /// The gateway or the engine had no capacity for it yet.
    Deferred(Deferral),
    Offline,
    Fault(String),
    /// A fault that only this host's checks have. The shell counts it in the host's row.
    CountedFault(String),
    /// It failed once, and it is not yet clear whether the failure was ours.
    FailedOnce(String),
    /// A fault that hit other hosts too.
    HitOthers(String),
    /// No other check succeeded in time.
    Unconfirmed(String),
    /// Its owner opted out during the check.
    OptedOut,
    /// The store could not write the result.
    StoreFailed,
    /// The rules of admission forbid the check.
    NotAdmitted(String),
}

impl fmt::Display for Released {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deferred(why) => write!(f, "deferred: {why}"),
            Self::Offline => f.write_str("we had no network"),
            Self::Fault(what) | Self::CountedFault(what) => f.write_str(what),
            Self::FailedOnce(what) => write!(
                f,
                "failed once ({what}); asked again, now that another host has answered"
            ),
            Self::HitOthers(what) => {
                write!(f, "not counted, because it hit others as well: {what}")
            }
            Self::Unconfirmed(what) => {
                write!(f, "not counted, because no other host answered: {what}")
            }
            Self::OptedOut => f.write_str("it opted out"),
            Self::StoreFailed => f.write_str("the store could not be written"),
            Self::NotAdmitted(why) => f.write_str(why),
        }
    }
}

/// A message to the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// An outage began: no host is checked, and nothing is counted against any host.
    OutageBegan(String),
    /// An outage that seemed over is not. Reported once per outage.
    OutageRelapsed(String),
    OutageOver {
        lasted: Duration,
    },
    /// No check has succeeded for a while.
    BlackoutBegan(NoSuccess),
    BlackoutOver(Over),
    /// One of two ways out does not work; checks take the other one.
    WayIll {
        way: Way,
        what: String,
    },
    WayWell {
        way: Way,
        lasted: Duration,
    },
    CanaryAsked {
        host: Host,
        /// The address family that it should show to work, if one.
        family: Option<Family>,
        waiting: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_deferred_together_come_back_apart() {
        let due = |seconds, jitter| {
            let wait = Wait::spread(Duration::from_secs(seconds));
            wait.due(Timestamp(0), Jitter(jitter), Calendar::REAL)
        };
        assert_eq!(due(1, 0), Timestamp(1_000));
        let most = due(1, u32::MAX);
        assert!(most > Timestamp(10_990) && most <= Timestamp(11_000));
        assert!(due(60, u32::MAX) <= Timestamp(120_000));
    }
}
