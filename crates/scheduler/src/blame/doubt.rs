//! Decides whether failures count. They wait here until later checks succeed (invariant I5).
//!
//! It takes checks that ended with a failing verdict, and witnesses: checks through a container
//! that found their host alive. It returns failures that count, failures whose host should be
//! checked once more, failures to be dropped because nothing confirmed them in time, and when to
//! check a canary. Pure: the caller passes the time.
//!
//! One later witness is not enough: the first host that answers after an outage of ours would
//! confirm all failures during it. A failure therefore counts only in two cases. Either others
//! responded *all along*, from before the check began until after it ended. Or the host fails again
//! after another host has responded in between: then one outage would have to hit that host twice,
//! with an end in between. Decision record 0003.
//!
//! A witness counts only if it *began* after the failure ended. A check that was in progress when
//! the network failed may still succeed.
//!
//! A DNS answer is in doubt until a server answers under the host's own certificate. A resolver
//! that sends every name to one address, at which an instance happens to run, makes that instance a
//! witness against all others. Therefore a host whose name led to an address is confirmed only by
//! hosts at *other* addresses of the same family. And an answer from the gateway's cache may stem
//! from a past outage, so a failure after such an answer never counts. A host that failed before is
//! looked up again ([`Doubts::is_suspect`]).
//!
//! A census with two ways out has one of these for each. A failure by one way then counts only
//! after the host has failed by the other one, too, each confirmed by witnesses of the same way:
//! who answers from anywhere is up.

mod suspects;
mod witnessed;

use std::collections::{BTreeMap, VecDeque};
use std::hash::RandomState;
use std::net::IpAddr;
use std::time::Duration;

use census::time::Timestamp;
use protocol::Host;
use protocol::egress::{Family, Wish};

use suspects::Suspects;
use witnessed::Witnessed;

/// A failure that is unconfirmed for this long is dropped (invariant I5).
pub const CONFIRM_WITHIN: Duration = Duration::from_secs(120);

/// Time without a suitable witness before a canary is checked (invariant I5).
pub const CANARY_AFTER: Duration = Duration::from_secs(60);

/// Others responded all along if successive witnesses are at most this far apart: no outage of ours
/// worth the name fits in between. This confirms about 8 % of instant failures if 10 000 hosts
/// respond, 42 % with 30 000 hosts and 95 % with 100 000, each checked once in 29 hours. All other
/// failed hosts are checked twice.
pub const CLOSE: Duration = Duration::from_secs(5);

/// Most failures that wait. At the gateway's 20 dials a second, two minutes yield at most 2 400.
pub const WAITING_MAX: usize = 4096;

/// What must be shown to work before a failure counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// The address families over which the host was dialled.
    pub families: Vec<Family>,
    /// What the check learned from DNS.
    pub dns: Dns,
}

/// What a failing check learned from DNS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dns {
    /// Nothing that is in doubt: the server presented the host's own certificate, or the failure
    /// does not concern the host's network.
    Sound,
    /// A fresh answer. A witness must also have been looked up afresh. If the name led to an
    /// address, the witness must be at another one.
    Fresh(Option<IpAddr>),
    /// An answer from the cache. The failure never counts, and the host must be looked up again.
    Remembered(Option<IpAddr>),
}

/// What a check that ended alive shows to work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Witness {
    /// When its way out was requested and its name looked up.
    pub began: Timestamp,
    /// When the check reported `alive`. Later steps, such as reading peers, show nothing.
    pub lived: Timestamp,
    pub address: IpAddr,
    /// Whether its name was looked up in DNS, not in the gateway's cache.
    pub fresh: bool,
}

/// The decision on a failure once other hosts have responded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    Counts,
    /// The failure may be ours: check the host once more.
    AskAgain,
}

/// Failures in doubt, oldest first. `T` is the caller's value to be committed or dropped.
#[derive(Debug)]
pub struct Doubts<T> {
    waiting: VecDeque<Waiting<T>>,
    suspects: Suspects,
    /// Hosts whose addresses are all of families that this way lacks.
    blind: Suspects,
    witnessed: Witnessed,
    quiet: Quiet,
    /// When a canary was last wanted, by the family that it should show.
    canaries: BTreeMap<Option<Family>, Timestamp>,
}

/// When a host last answered, for each family, and for names that were looked up afresh.
#[derive(Debug)]
struct Quiet {
    v4: Timestamp,
    v6: Timestamp,
    fresh_v4: Timestamp,
    fresh_v6: Timestamp,
}

#[derive(Debug)]
struct Waiting<T> {
    host: Host,
    failure: T,
    asked: Doubt,
    /// The families that no witness has shown to work since.
    families: Vec<Family>,
    /// Whether a witness must still show that DNS works.
    dns: bool,
    began: Timestamp,
    ended: Timestamp,
}

impl<T> Doubts<T> {
    /// Starts without failures, and as if a host of each kind had answered at `now`. `key` hashes
    /// the names of hosts that failed once, so that nobody can choose two names with the same hash.
    pub fn new(now: Timestamp, key: RandomState) -> Self {
        Self {
            waiting: VecDeque::new(),
            suspects: Suspects::new(key.clone()),
            blind: Suspects::new(key),
            witnessed: Witnessed::default(),
            quiet: Quiet::since(now),
            canaries: BTreeMap::new(),
        }
    }

    /// Records that a check of `host`, which began at `began` and ended at `now`, failed. If too
    /// many failures wait already, returns the oldest, to be dropped.
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
            families: doubt.families.clone(),
            dns: doubt.dns != Dns::Sound,
            asked: doubt,
            began,
            ended: now,
        });
        if self.waiting.len() > WAITING_MAX {
            self.waiting.pop_front().map(|waiting| waiting.failure)
        } else {
            None
        }
    }

    /// Records that a check of `host` succeeded. Returns the failures that this decides. `other` is
    /// the other way out, if there is one that works.
    pub fn alive(
        &mut self,
        host: &Host,
        witness: Witness,
        mut other: Option<&mut Self>,
        now: Timestamp,
    ) -> Vec<(T, Ruling)> {
        self.quiet.ended_by(witness, now);
        self.witnessed.by(witness, now);
        self.suspects.remove(host);
        let mut decided = Vec::new();
        for mut waiting in std::mem::take(&mut self.waiting) {
            if witness.began >= waiting.ended {
                let family = Family::of(witness.address);
                waiting.families.retain(|wanted| *wanted != family);
                waiting.dns &= !(witness.fresh
                    && self.witnessed.tells_apart(
                        witness.address,
                        waiting.asked.dns.led_to(),
                        now,
                    ));
            }
            let shown =
                witness.began >= waiting.ended && waiting.families.is_empty() && !waiting.dns;
            if shown {
                let outcome = self.judge(&waiting, other.as_deref_mut(), now);
                decided.push((waiting.failure, outcome));
            } else {
                self.waiting.push_back(waiting);
            }
        }
        decided
    }

    fn judge(&mut self, waiting: &Waiting<T>, other: Option<&mut Self>, now: Timestamp) -> Ruling {
        let others_lived_all_along =
            self.witnessed
                .spans(&waiting.asked, waiting.began, waiting.ended, now);
        let failed_before = self.suspects.remove(&waiting.host);
        let remembered = matches!(waiting.asked.dns, Dns::Remembered(_));
        let other = other.filter(|other| !other.is_blind(&waiting.host));
        let is_credible = match &other {
            Some(other) => other.is_suspect(&waiting.host),
            None => failed_before || others_lived_all_along,
        };
        if !remembered && is_credible {
            if let Some(other) = other {
                other.suspects.remove(&waiting.host);
            }
            return Ruling::Counts;
        }
        self.suspects.add(&waiting.host, now);
        Ruling::AskAgain
    }

    /// Whether this host failed once and is to be checked again: its name is then looked up afresh,
    /// so that a second failure may count.
    pub fn is_suspect(&self, host: &Host) -> bool {
        self.suspects.contains(host)
    }

    /// Whether this way can't look at this host.
    pub fn is_blind(&self, host: &Host) -> bool {
        self.blind.contains(host)
    }

    /// Records that this way lacks the host's address families.
    pub fn note_blind(&mut self, host: &Host, now: Timestamp) {
        self.blind.add(host, now);
    }

    /// Forgets that this host failed once. Returns whether it had.
    pub fn clear(&mut self, host: &Host) -> bool {
        self.suspects.remove(host)
    }

    /// Returns failures that have waited too long, to be dropped. If the clock jumped back, this
    /// includes all failures whose time is now in the future.
    pub fn expire(&mut self, now: Timestamp) -> Vec<T> {
        self.suspects.expire(now);
        self.blind.expire(now);
        let (late, still): (VecDeque<_>, VecDeque<_>) =
            self.waiting.drain(..).partition(|waiting| {
                now.since(waiting.ended) >= CONFIRM_WITHIN
                    || waiting.ended > now.plus(CONFIRM_WITHIN)
            });
        self.waiting = still;
        late.into_iter().map(|waiting| waiting.failure).collect()
    }

    /// The clock was set: the times of earlier witnesses are no longer comparable.
    pub fn clock_was_set(&mut self, now: Timestamp) {
        self.witnessed.clock_was_set(now);
        self.quiet = Quiet::since(now);
        self.canaries.clear();
    }

    /// Returns the failures that turned out to be ours, to be dropped.
    pub fn give_up(&mut self, is_ours: impl Fn(&T) -> bool) -> Vec<T> {
        let (ours, still): (VecDeque<_>, VecDeque<_>) = self
            .waiting
            .drain(..)
            .partition(|waiting| is_ours(&waiting.failure));
        self.waiting = still;
        ours.into_iter().map(|waiting| waiting.failure).collect()
    }

    /// What canaries should show now, one wish per canary, those without a witness for longest
    /// first. Returns wishes for each family at most once a minute.
    pub fn wants_canaries(&mut self, now: Timestamp) -> Vec<Wish> {
        let mut wishes: Vec<Wish> = Vec::new();
        for waiting in &self.waiting {
            // A failure that has waited this long has met no suitable witness, whatever hosts
            // answered in between.
            let long = now.since(waiting.ended) >= CANARY_AFTER;
            for wish in waiting.lacks() {
                if !long && now.since(self.quiet.of(wish)) < CANARY_AFTER {
                    continue;
                }
                match wishes.iter_mut().find(|other| other.family == wish.family) {
                    Some(same) => same.fresh |= wish.fresh,
                    None => wishes.push(wish),
                }
            }
        }
        // A canary for either family also serves failures that accept any family.
        if let Some(anybody) = wishes.iter().position(|wish| wish.family.is_none())
            && wishes.len() > 1
        {
            let fresh = wishes.swap_remove(anybody).fresh;
            wishes.iter_mut().for_each(|wish| wish.fresh |= fresh);
        }
        self.canaries
            .retain(|_, wanted| now.since(*wanted) < CANARY_AFTER);
        wishes.retain(|wish| match wish.family {
            Some(_) => !self.canaries.contains_key(&wish.family),
            None => self.canaries.is_empty(),
        });
        let wanted = wishes.iter().map(|wish| (wish.family, now));
        self.canaries.extend(wanted);
        wishes.sort_by_key(|wish| self.quiet.of(*wish));
        wishes
    }

    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

impl<T> Waiting<T> {
    /// The witnesses that it still needs.
    fn lacks(&self) -> Vec<Wish> {
        let led_to = self.asked.dns.led_to().map(Family::of);
        let fresh = |family| self.dns && (led_to.is_none() || led_to == family);
        let mut families: Vec<_> = self.families.iter().copied().map(Some).collect();
        if !families.iter().any(|family| fresh(*family)) {
            // No needed family also covers the DNS answer, so this adds the answer's family, or any
            // family.
            families.extend((self.dns || families.is_empty()).then_some(led_to));
        }
        let wish = |family| Wish {
            family,
            fresh: fresh(family),
            ..Wish::default()
        };
        families.into_iter().map(wish).collect()
    }
}

impl Quiet {
    fn since(now: Timestamp) -> Self {
        Self {
            v4: now,
            v6: now,
            fresh_v4: now,
            fresh_v6: now,
        }
    }

    fn ended_by(&mut self, witness: Witness, now: Timestamp) {
        let (any, fresh) = match Family::of(witness.address) {
            Family::V4 => (&mut self.v4, &mut self.fresh_v4),
            Family::V6 => (&mut self.v6, &mut self.fresh_v6),
        };
        *any = now;
        if witness.fresh {
            *fresh = now;
        }
    }

    /// When a host that fulfils this wish last answered.
    fn of(&self, wish: Wish) -> Timestamp {
        match (wish.family, wish.fresh) {
            (Some(Family::V4), false) => self.v4,
            (Some(Family::V6), false) => self.v6,
            (Some(Family::V4), true) => self.fresh_v4,
            (Some(Family::V6), true) => self.fresh_v6,
            (None, false) => self.v4.max(self.v6),
            (None, true) => self.fresh_v4.max(self.fresh_v6),
        }
    }
}

impl Dns {
    fn led_to(self) -> Option<IpAddr> {
        match self {
            Self::Sound => None,
            Self::Fresh(address) | Self::Remembered(address) => address,
        }
    }
}

#[cfg(test)]
mod tests;
