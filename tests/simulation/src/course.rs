//! The result of a check: replaces the gateway and the checker.
//!
//! It takes a name, the truth about the host, and the state of our network. It returns how long the
//! check takes, whether it needs a container, and the verdict with its doubts.

use std::time::Duration;

use census::state::Verdict;
use census::time::Timestamp;
use protocol::egress::Family;
use protocol::order::AskPeers;
use protocol::{DeadReason, Host};
use scheduler::blame::doubt::{Dns, Doubt, Witness};
use scheduler::event::SlotDemand;

use crate::world::names::Name;
use crate::world::truth::{How, Now, Truth};

/// Duration of a look-up. All times of the simulation are whole seconds.
pub(crate) const LOOK_UP: Duration = Duration::from_secs(1);

/// Timeout of a dial, or of a silent host: the checker's time to the first byte.
pub(crate) const TIME_OUT: Duration = Duration::from_secs(10);

/// Longest time that a responding host takes.
pub(crate) const ANSWER_SECONDS_MAX: u64 = 3;

#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) host: Host,
    pub(crate) peers: AskPeers,
    pub(crate) name: Name,
    pub(crate) began: Timestamp,
    pub(crate) course: Course,
    /// The gateway's report at the check's end. `None` if nothing was learned about the host.
    pub(crate) opened: Option<SlotDemand>,
}

/// The course of a check, unless something stops it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Course {
    OutOfTurn,
    /// We have no network, and the gateway reports it.
    Offline,
    /// It ends without a container: nothing answered.
    Closed(How),
    Container,
}

/// A check's result, with what must be shown to work before it counts.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) verdict: Verdict,
    pub(crate) doubt: Doubt,
}

/// The state of a host at this time, real or invented.
pub(crate) fn now_of(name: Name, truth: &Truth) -> Now {
    match name {
        Name::Host(number) => truth
            .being(number)
            .map_or(Now::Dead(How::NoName), |being| being.now),
        Name::Farm(..) => Now::Up,
        Name::Apart(_) => Now::Dead(How::NoName),
    }
}

/// The course of a check that begins while our network works.
pub(crate) fn course_of(name: Name, truth: &Truth) -> Course {
    match now_of(name, truth) {
        Now::Down(how @ (How::NoName | How::NoAnswer))
        | Now::Dead(how @ (How::NoName | How::NoAnswer)) => Course::Closed(how),
        Now::Up | Now::Robots | Now::Moved(_) | Now::Down(_) | Now::Dead(_) => Course::Container,
    }
}

pub(crate) fn found(name: Name, now: Now) -> Result<Found, protocol::HostError> {
    let dead = |reason, status| Verdict::Dead {
        reason,
        status,
        to: None,
    };
    let over_network = vec![Family::V4];
    let (verdict, families, dns) = match now {
        Now::Up => (kit::alive(), over_network, Dns::Sound),
        Now::Robots => (Verdict::OptedOut, over_network, Dns::Sound),
        Now::Moved(target) => {
            let to = Name::Host(target).host()?;
            (Verdict::Moved { to }, over_network, Dns::Sound)
        }
        Now::Down(how) | Now::Dead(how) => match how {
            How::NoName => {
                let no_name = dead(DeadReason::NoSuchName, None);
                (no_name, Vec::new(), Dns::Fresh(None))
            }
            How::NoAnswer => {
                let unreachable = dead(DeadReason::Unreachable, None);
                (unreachable, over_network, Dns::Fresh(None))
            }
            How::Accepts => {
                let led_to = Dns::Fresh(Some(name.address()));
                (dead(DeadReason::Timeout, None), over_network, led_to)
            }
            How::BadGateway => {
                let status = dead(DeadReason::Status, Some(502));
                (status, over_network, Dns::Sound)
            }
            How::Refuses => {
                let refused = Verdict::Refused {
                    status: 429,
                    wall: None,
                    retry_after_s: None,
                };
                (refused, over_network, Dns::Sound)
            }
            How::Farewell => (Verdict::Gone, over_network, Dns::Sound),
        },
    };
    let doubt = Doubt { families, dns };
    Ok(Found { verdict, doubt })
}

impl Check {
    /// What a successful check at `now` shows to work. Each look-up is fresh, because look-ups of a
    /// name are further apart than answers are kept.
    pub(crate) fn witness(&self, now: Timestamp) -> Witness {
        Witness {
            began: self.began,
            lived: now,
            address: self.name.address(),
            fresh: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [How; 6] = [
        How::NoName,
        How::NoAnswer,
        How::Accepts,
        How::BadGateway,
        How::Refuses,
        How::Farewell,
    ];

    #[test]
    fn only_what_answers_costs_a_container_and_only_failures_wait_for_a_witness() {
        let start = Timestamp(0);
        for how in ALL {
            let found = found(Name::Host(1), Now::Dead(how)).unwrap();
            assert_eq!(found.verdict.is_failing(), how != How::Refuses, "{how:?}");
        }
        let world = crate::world::World::named("all-living").unwrap();
        let truth = Truth::new(world, 1, 1, start);
        assert_eq!(course_of(Name::Host(0), &truth), Course::Container);
        assert_eq!(course_of(Name::Farm(0, 0), &truth), Course::Container);
        let not_there = Course::Closed(How::NoName);
        assert_eq!(course_of(Name::Apart(0), &truth), not_there);
    }

    #[test]
    fn who_lives_robots_and_moves_are_believed_at_once() {
        for now in [Now::Up, Now::Robots, Now::Moved(2)] {
            let found = found(Name::Host(1), now).unwrap();
            assert!(!found.verdict.is_failing(), "{now:?}");
        }
    }
}
