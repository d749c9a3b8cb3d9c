//! Is it them or us? Failures wait here until later checks came out alive (invariant I5).
//!
//! In: checks that ended with a failing verdict, and the witnesses: checks through a container that ended alive. Out: failures that count;
//! failures whose host should be asked once more; failures that nobody confirmed in time, to be dropped and asked again soon; whether a canary
//! should be asked. Pure: the time is handed in.
//!
//! One later witness is not enough: the first host that answers after an outage of ours would confirm all that failed during it. So a failure
//! counts when others lived *all along*, from before it began until after it ended, or when its host fails again after another one had lived: an outage would have
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

/// Others lived all along when no two of them lived further apart than this: no outage of ours that is worth the name fits between. A census of
/// some ten thousand hosts has such company for most failures, and then asks nobody twice.
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
    /// When its egress was asked for, and its name looked up.
    pub began: Timestamp,
    /// When it said `alive`: what came after, such as peers, shows nothing.
    pub lived: Timestamp,
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
    /// Hosts that failed once, when others had not lived all along, and since when.
    suspects: HashMap<Host, Timestamp>,
    shown: Shown,
    last_alive: Timestamp,
    last_canary: Timestamp,
}

/// When what was last shown to work, and since when without a gap.
#[derive(Debug, Clone, Copy)]
struct Shown {
    any: Run,
    v4: Run,
    v6: Run,
    fresh: Run,
}

/// Moments at which something was shown to work, each within [`CLOSE`] of the one before.
#[derive(Debug, Clone, Copy)]
struct Run {
    since: Timestamp,
    last: Timestamp,
}

#[derive(Debug)]
struct Waiting<T> {
    host: Host,
    failure: T,
    /// What its check relied on.
    asked: Doubt,
    /// What of that nobody has shown to work since.
    doubt: Doubt,
    began: Timestamp,
    ended: Timestamp,
}

impl<T> Confirm<T> {
    /// Nothing in doubt yet; nobody has answered since `now`.
    pub fn new(now: Timestamp) -> Self {
        Self {
            waiting: VecDeque::new(),
            suspects: HashMap::new(),
            shown: Shown {
                any: Run::NONE,
                v4: Run::NONE,
                v6: Run::NONE,
                fresh: Run::NONE,
            },
            last_alive: now,
            last_canary: now.minus(CANARY_AFTER),
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
        self.waiting.push_back(Waiting {
            host,
            failure,
            asked: doubt.clone(),
            doubt,
            began,
            ended: now,
        });
        if self.waiting.len() > WAITING_MAX {
            self.waiting.pop_front().map(|waiting| waiting.failure)
        } else {
            None
        }
    }

    /// A check of `host` came out alive: the failures that this decides come back.
    pub fn alive(&mut self, host: &Host, witness: Witness, now: Timestamp) -> Vec<(T, Outcome)> {
        self.last_alive = now;
        self.shown.by(witness);
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
                let outcome = self.judge(&waiting, now);
                decided.push((waiting.failure, outcome));
            } else {
                self.waiting.push_back(waiting);
            }
        }
        decided
    }

    fn judge(&mut self, waiting: &Waiting<T>, now: Timestamp) -> Outcome {
        let others_lived_all_along = self
            .shown
            .spans(&waiting.asked, waiting.began, waiting.ended);
        let failed_before = self.suspects.remove(&waiting.host).is_some();
        if failed_before || others_lived_all_along {
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
}

impl Shown {
    fn by(&mut self, witness: Witness) {
        self.any.add(witness.lived);
        match witness.family {
            Family::V4 => self.v4.add(witness.lived),
            Family::V6 => self.v6.add(witness.lived),
        }
        if witness.fresh {
            self.fresh.add(witness.began);
        }
    }

    /// Whether all that was relied on was shown to work without a gap from before `began` until after `ended`.
    fn spans(&self, asked: &Doubt, began: Timestamp, ended: Timestamp) -> bool {
        let spans = |run: &Run| run.since <= began && ended <= run.last;
        let families = asked.families.iter().all(|family| match family {
            Family::V4 => spans(&self.v4),
            Family::V6 => spans(&self.v6),
        });
        spans(&self.any) && families && (!asked.dns || spans(&self.fresh))
    }
}

impl Run {
    /// Nothing was shown yet.
    const NONE: Self = Self {
        since: Timestamp(i64::MAX),
        last: Timestamp(i64::MIN),
    };

    fn add(&mut self, at: Timestamp) {
        if at < self.last {
            // A slow check that began earlier: the run holds without it.
            return;
        }
        if at > self.last.plus(CLOSE) || self.last == Self::NONE.last {
            self.since = at;
        }
        self.last = at;
    }
}

#[cfg(test)]
mod tests;
