//! Is it them or us? Failures wait here until a later check came out alive (invariant I5).
//!
//! In: checks that ended with a failing verdict, and the witnesses: checks through a container that ended alive. Out: failures that are
//! confirmed, to be settled; failures that nobody confirmed in time, to be dropped and asked again soon; whether a canary should be asked.
//! Pure: the time is handed in.
//!
//! A witness counts only if it *began* after the failure ended: a check that was under way when the network went may still end alive.

use std::collections::VecDeque;
use std::time::Duration;

use census::time::Timestamp;
use gateway::control::Family;

/// What stays unconfirmed for this long is dropped (design §3, I5).
pub const CONFIRM_WITHIN: Duration = Duration::from_secs(120);

/// Nobody has answered for this long: ask a canary (design §3, I5).
pub const CANARY_AFTER: Duration = Duration::from_secs(60);

/// Failures that wait at most. At the gateway's 20 dials a second for two minutes there are never more than 2 400.
pub const WAITING_MAX: usize = 4096;

/// What has to be shown to work before a failure counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// The address families over which the host was tried.
    pub families: Vec<Family>,
    /// The failure is DNS's answer: a witness must have been looked up afresh.
    pub dns: bool,
}

/// What a check that ended alive shows to work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Witness {
    /// When its egress was asked for.
    pub began: Timestamp,
    /// The family of its address.
    pub family: Family,
    /// Its name was looked up in DNS, not in the gateway's cache.
    pub fresh: bool,
}

/// Failures in doubt, oldest first. `T` is what has to be settled or dropped.
#[derive(Debug)]
pub struct Confirm<T> {
    waiting: VecDeque<Waiting<T>>,
    last_alive: Timestamp,
    last_canary: Timestamp,
}

#[derive(Debug)]
struct Waiting<T> {
    failure: T,
    doubt: Doubt,
    ended: Timestamp,
}

impl<T> Confirm<T> {
    /// Nothing in doubt yet; nobody has answered since `now`.
    pub fn new(now: Timestamp) -> Self {
        Self {
            waiting: VecDeque::new(),
            last_alive: now,
            last_canary: now.minus(CANARY_AFTER),
        }
    }

    /// A check that ended at `now` failed. When too many wait already, the oldest comes back, to be dropped.
    pub fn fail(&mut self, failure: T, doubt: Doubt, now: Timestamp) -> Option<T> {
        self.waiting.push_back(Waiting {
            failure,
            doubt,
            ended: now,
        });
        if self.waiting.len() > WAITING_MAX {
            self.waiting.pop_front().map(|waiting| waiting.failure)
        } else {
            None
        }
    }

    /// A check came out alive: what it confirms comes back, to be settled.
    pub fn alive(&mut self, witness: Witness, now: Timestamp) -> Vec<T> {
        self.last_alive = now;
        let mut confirmed = Vec::new();
        let mut still = VecDeque::with_capacity(self.waiting.len());
        for mut waiting in self.waiting.drain(..) {
            if witness.began < waiting.ended {
                still.push_back(waiting);
                continue;
            }
            waiting
                .doubt
                .families
                .retain(|family| *family != witness.family);
            waiting.doubt.dns &= !witness.fresh;
            if waiting.doubt.families.is_empty() && !waiting.doubt.dns {
                confirmed.push(waiting.failure);
            } else {
                still.push_back(waiting);
            }
        }
        self.waiting = still;
        confirmed
    }

    /// What has waited too long comes back, to be dropped. A clock that jumped back drops everything from what is now the future.
    pub fn expire(&mut self, now: Timestamp) -> Vec<T> {
        let (late, still): (VecDeque<_>, VecDeque<_>) =
            self.waiting.drain(..).partition(|waiting| {
                now.since(waiting.ended) >= CONFIRM_WITHIN
                    || waiting.ended > now.plus(CONFIRM_WITHIN)
            });
        self.waiting = still;
        late.into_iter().map(|waiting| waiting.failure).collect()
    }

    /// Whether a canary should be asked now; says so at most once a minute.
    pub fn wants_canary(&mut self, now: Timestamp) -> bool {
        let quiet = now.since(self.last_alive) >= CANARY_AFTER
            && now.since(self.last_canary) >= CANARY_AFTER;
        let wanted = quiet && !self.waiting.is_empty();
        if wanted {
            self.last_canary = now;
        }
        wanted
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// All that still waits, to be dropped: the daemon ends.
    pub fn drain(&mut self) -> Vec<T> {
        self.waiting
            .drain(..)
            .map(|waiting| waiting.failure)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: Family = Family::V4;
    const V6: Family = Family::V6;

    fn at(second: i64) -> Timestamp {
        Timestamp(second * 1000)
    }

    fn dial(families: &[Family]) -> Doubt {
        Doubt {
            families: families.to_vec(),
            dns: false,
        }
    }

    fn witness(began: i64, family: Family, fresh: bool) -> Witness {
        Witness {
            began: at(began),
            family,
            fresh,
        }
    }

    #[test]
    fn a_failure_counts_only_after_a_later_check_came_out_alive() {
        let mut confirm = Confirm::new(at(0));
        assert_eq!(confirm.fail("a", dial(&[V4]), at(10)), None);
        assert!(
            confirm.alive(witness(9, V4, true), at(11)).is_empty(),
            "began before the failure ended"
        );
        assert_eq!(confirm.alive(witness(10, V4, false), at(12)), ["a"]);
        assert!(
            confirm.alive(witness(12, V4, true), at(13)).is_empty(),
            "only once"
        );
    }

    #[test]
    fn another_family_confirms_nothing() {
        let mut confirm = Confirm::new(at(0));
        confirm.fail("six", dial(&[V6]), at(1));
        confirm.fail("both", dial(&[V4, V6]), at(1));
        assert!(confirm.alive(witness(2, V4, true), at(3)).is_empty());
        assert_eq!(confirm.alive(witness(4, V6, true), at(5)), ["six", "both"]);
    }

    #[test]
    fn what_dns_says_is_confirmed_by_a_fresh_look_up_alone() {
        let mut confirm = Confirm::new(at(0));
        confirm.fail(
            "name",
            Doubt {
                families: Vec::new(),
                dns: true,
            },
            at(1),
        );
        assert!(confirm.alive(witness(2, V4, false), at(3)).is_empty());
        assert_eq!(confirm.alive(witness(4, V6, true), at(5)), ["name"]);
    }

    #[test]
    fn what_nobody_confirms_is_dropped_after_two_minutes() {
        let mut confirm = Confirm::new(at(0));
        confirm.fail("a", dial(&[V4]), at(10));
        assert!(confirm.expire(at(129)).is_empty());
        assert_eq!(confirm.expire(at(130)), ["a"]);
        confirm.fail("b", dial(&[V4]), at(5000));
        assert_eq!(confirm.expire(at(10)), ["b"], "the clock was set back");
    }

    #[test]
    fn a_canary_is_asked_once_a_minute_and_only_in_doubt() {
        let mut confirm = Confirm::new(at(0));
        assert!(!confirm.wants_canary(at(500)), "nothing is in doubt");
        confirm.fail("a", dial(&[V4]), at(500));
        assert!(confirm.wants_canary(at(500)));
        assert!(!confirm.wants_canary(at(530)));
        assert!(confirm.wants_canary(at(560)));
        confirm.alive(witness(499, V4, true), at(561));
        assert!(!confirm.wants_canary(at(620)), "somebody has answered");
    }

    #[test]
    fn the_number_that_waits_is_bounded() {
        let mut confirm = Confirm::new(at(0));
        for n in 0..WAITING_MAX {
            assert_eq!(confirm.fail(n, dial(&[V4]), at(1)), None);
        }
        assert_eq!(confirm.fail(WAITING_MAX, dial(&[V4]), at(1)), Some(0));
        assert_eq!(confirm.waiting(), WAITING_MAX);
    }
}
