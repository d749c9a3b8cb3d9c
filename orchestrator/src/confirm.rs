//! Is it them or us? Failures wait here until later checks came out alive (invariant I5).
//!
//! In: checks that ended with a failing verdict, and the witnesses: checks through a container that ended alive. Out: failures that count;
//! failures whose host should be asked once more; failures that nobody confirmed in time, to be dropped and asked again soon; whether a canary
//! should be asked. Pure: the time is handed in.
//!
//! One later witness is not enough: the first host that answers after an outage of ours would confirm all that failed during it. So a failure
//! counts when others lived *close before and close after* it, or when its host fails again after another one had lived: an outage would have
//! to hit that host twice, with an end between. Decision record 0003.
//!
//! A witness counts only if it *began* after the failure ended: a check that was under way when the network went may still end alive.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use census::time::Timestamp;
use gateway::control::Family;
use protocol::Host;

/// What stays unconfirmed for this long is dropped (design §3, I5).
pub const CONFIRM_WITHIN: Duration = Duration::from_secs(120);

/// Nobody has answered for this long: ask a canary (design §3, I5).
pub const CANARY_AFTER: Duration = Duration::from_secs(60);

/// Others lived this close before and after a failure: no outage of ours that is worth the name fits between. A census of a few thousand
/// hosts has such neighbours for most failures, and then asks nobody twice.
pub const CLOSE: Duration = Duration::from_secs(5);

/// A host that failed once is remembered for this long; by then it was asked again.
const SUSPECT_FOR: Duration = Duration::from_secs(3600);

/// Failures that wait at most, and hosts that are remembered. At the gateway's 20 dials a second for two minutes there are never more than 2 400.
pub const WAITING_MAX: usize = 4096;

/// What has to be shown to work before a failure counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// The address families over which the host was tried.
    pub families: Vec<Family>,
    /// The host's addresses, or that it has none, came from DNS just now: a witness must have been looked up afresh.
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

/// What a failure has come to once others have lived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was them.
    Counts,
    /// It may have been us: ask the host once more.
    AskAgain,
}

/// Failures in doubt, oldest first. `T` is what has to be settled or dropped.
#[derive(Debug)]
pub struct Confirm<T> {
    waiting: VecDeque<Waiting<T>>,
    /// Hosts that failed once, when others had not lived close by, and since when.
    suspects: HashMap<Host, Timestamp>,
    last: Last,
    last_canary: Timestamp,
}

/// When a check last ended alive.
#[derive(Debug, Clone, Copy)]
struct Last {
    any: Timestamp,
    v4: Timestamp,
    v6: Timestamp,
    fresh: Timestamp,
}

#[derive(Debug)]
struct Waiting<T> {
    host: Host,
    failure: T,
    doubt: Doubt,
    ended: Timestamp,
    lived_close_before: bool,
}

impl<T> Confirm<T> {
    /// Nothing in doubt yet; nobody has answered since `now`.
    pub fn new(now: Timestamp) -> Self {
        let never = now.minus(CANARY_AFTER);
        Self {
            waiting: VecDeque::new(),
            suspects: HashMap::new(),
            last: Last {
                any: now,
                v4: never,
                v6: never,
                fresh: never,
            },
            last_canary: never,
        }
    }

    /// A check of `host` that began at `began` and ended at `now` failed. When too many wait already, the oldest comes back, to be dropped.
    pub fn fail(
        &mut self,
        host: Host,
        failure: T,
        doubt: Doubt,
        began: Timestamp,
        now: Timestamp,
    ) -> Option<T> {
        let lived_close_before = self.last.had(&doubt, began.minus(CLOSE));
        self.waiting.push_back(Waiting {
            host,
            failure,
            doubt,
            ended: now,
            lived_close_before,
        });
        if self.waiting.len() > WAITING_MAX {
            self.waiting.pop_front().map(|waiting| waiting.failure)
        } else {
            None
        }
    }

    /// A check of `host` came out alive: the failures that this decides come back.
    pub fn alive(&mut self, host: &Host, witness: Witness, now: Timestamp) -> Vec<(T, Outcome)> {
        self.last.lived(witness, now);
        self.suspects.remove(host);
        let mut decided = Vec::new();
        for mut waiting in std::mem::take(&mut self.waiting) {
            if witness.began >= waiting.ended {
                waiting
                    .doubt
                    .families
                    .retain(|family| *family != witness.family);
                waiting.doubt.dns &= !witness.fresh;
            }
            let shown = witness.began >= waiting.ended
                && waiting.doubt.families.is_empty()
                && !waiting.doubt.dns;
            if shown {
                let outcome = self.judge(&waiting, witness, now);
                decided.push((waiting.failure, outcome));
            } else {
                self.waiting.push_back(waiting);
            }
        }
        decided
    }

    fn judge(&mut self, waiting: &Waiting<T>, witness: Witness, now: Timestamp) -> Outcome {
        let lived_close_after = witness.began <= waiting.ended.plus(CLOSE);
        let failed_before = self.suspects.remove(&waiting.host).is_some();
        if failed_before || (waiting.lived_close_before && lived_close_after) {
            return Outcome::Counts;
        }
        if self.suspects.len() < WAITING_MAX {
            self.suspects.insert(waiting.host.clone(), now);
        }
        Outcome::AskAgain
    }

    /// What has waited too long comes back, to be dropped. A clock that jumped back drops everything from what is now the future.
    pub fn expire(&mut self, now: Timestamp) -> Vec<T> {
        self.suspects
            .retain(|_, since| now.since(*since) < SUSPECT_FOR && *since <= now.plus(SUSPECT_FOR));
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
        let quiet =
            now.since(self.last.any) >= CANARY_AFTER && now.since(self.last_canary) >= CANARY_AFTER;
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
}

impl Last {
    fn lived(&mut self, witness: Witness, now: Timestamp) {
        self.any = now;
        match witness.family {
            Family::V4 => self.v4 = now,
            Family::V6 => self.v6 = now,
        }
        if witness.fresh {
            self.fresh = now;
        }
    }

    /// Whether everything in doubt was shown to work at `since` or later.
    fn had(&self, doubt: &Doubt, since: Timestamp) -> bool {
        let families = doubt.families.iter().all(|family| match family {
            Family::V4 => self.v4 >= since,
            Family::V6 => self.v6 >= since,
        });
        self.any >= since && families && (!doubt.dns || self.fresh >= since)
    }
}

#[cfg(test)]
mod tests;
