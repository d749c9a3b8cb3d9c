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
//!
//! What DNS said is doubted for as long as nobody answered under the host's own certificate. A
//! resolver that leads every name to one address, where an instance of the census happens to live,
//! makes that one a witness against all others: so a host whose name led to an address is confirmed
//! by hosts at *other* addresses of the same family alone. And an answer that the gateway
//! remembered may stem from an outage that is over, so a failure over it never counts: a host
//! that failed before is looked up again ([`Doubts::wish_for`]).

mod suspects;
mod witnessed;

use std::collections::VecDeque;
use std::hash::RandomState;
use std::net::IpAddr;
use std::time::Duration;

use census::time::Timestamp;
use protocol::Host;
use protocol::egress::{Family, Wish};

use suspects::Suspects;
use witnessed::Witnessed;

/// What stays unconfirmed for this long is dropped (design §3, I5).
pub const CONFIRM_WITHIN: Duration = Duration::from_secs(120);

/// Nobody who could bear witness has answered for this long: ask a canary (design §3, I5).
pub const CANARY_AFTER: Duration = Duration::from_secs(60);

/// Others lived all along when no two of them lived further apart than this: no outage of ours that is worth the name fits between. Of the
/// failures that take no time, some 8 % have such company where 10 000 hosts live, 42 % where 30 000 do and 95 % where 100 000 do, each of whom is
/// asked once in 29 hours; all others are asked twice.
pub const CLOSE: Duration = Duration::from_secs(5);

/// Failures that wait at most. At the gateway's 20 dials a second for two minutes there are never more than 2 400.
pub const WAITING_MAX: usize = 4096;

/// What has to be shown to work before a failure counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// The address families over which the host was tried.
    pub families: Vec<Family>,
    /// What it took from DNS.
    pub dns: Dns,
}

/// What a failing check took from DNS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dns {
    /// Nothing that is in doubt: who answered had the host's own certificate, or it is not about the host's network at all.
    Sound,
    /// An answer that came just now: a witness must have been looked up afresh. If the name led to an address, the witness must live at
    /// another one.
    Fresh(Option<IpAddr>),
    /// An answer from before: it never counts, and its host must be looked up anew.
    Remembered(Option<IpAddr>),
}

/// What a check that ended alive shows to work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Witness {
    /// When its egress was asked for, and its name looked up.
    pub began: Timestamp,
    /// When it said `alive`: what came after, such as peers, shows nothing.
    pub lived: Timestamp,
    /// Where it lives.
    pub address: IpAddr,
    /// Its name was looked up in DNS, not in the gateway's cache.
    pub fresh: bool,
}

/// What a failure has come to once others have lived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    /// It was them.
    Counts,
    /// It may have been us: ask the host once more.
    AskAgain,
}

/// Failures in doubt, oldest first. `T` is what has to be settled or dropped.
#[derive(Debug)]
pub struct Doubts<T> {
    waiting: VecDeque<Waiting<T>>,
    suspects: Suspects,
    witnessed: Witnessed,
    quiet: Quiet,
    last_canary: Timestamp,
}

/// Since when nobody has answered over a family, and nobody who was looked up afresh.
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
    /// What its check relied on.
    asked: Doubt,
    /// The families of which nobody has shown since that they work.
    families: Vec<Family>,
    /// Nobody has shown since that DNS works.
    dns: bool,
    began: Timestamp,
    ended: Timestamp,
}

impl<T> Doubts<T> {
    /// Nothing in doubt yet; nobody has answered since `now`. `key` hashes the names of hosts that
    /// failed once: nobody may choose two that share one.
    pub fn new(now: Timestamp, key: RandomState) -> Self {
        Self {
            waiting: VecDeque::new(),
            suspects: Suspects::new(key),
            witnessed: Witnessed::default(),
            quiet: Quiet::since(now),
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

    /// A check of `host` came out alive: the failures that this decides come back.
    pub fn alive(&mut self, host: &Host, witness: Witness, now: Timestamp) -> Vec<(T, Ruling)> {
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
                let outcome = self.judge(&waiting, now);
                decided.push((waiting.failure, outcome));
            } else {
                self.waiting.push_back(waiting);
            }
        }
        decided
    }

    fn judge(&mut self, waiting: &Waiting<T>, now: Timestamp) -> Ruling {
        let others_lived_all_along =
            self.witnessed
                .spans(&waiting.asked, waiting.began, waiting.ended, now);
        let failed_before = self.suspects.remove(&waiting.host);
        let remembered = matches!(waiting.asked.dns, Dns::Remembered(_));
        if !remembered && (failed_before || others_lived_all_along) {
            return Ruling::Counts;
        }
        self.suspects.add(&waiting.host, now);
        Ruling::AskAgain
    }

    /// What a check of `host` should show besides: whoever failed before is looked up anew, so that it may count.
    pub fn wish_for(&self, host: &Host) -> Wish {
        Wish {
            family: None,
            fresh: self.suspects.contains(host),
        }
    }

    /// What has waited too long comes back, to be dropped. A clock that jumped back drops everything from what is now the future.
    pub fn expire(&mut self, now: Timestamp) -> Vec<T> {
        self.suspects.expire(now);
        let (late, still): (VecDeque<_>, VecDeque<_>) =
            self.waiting.drain(..).partition(|waiting| {
                now.since(waiting.ended) >= CONFIRM_WITHIN
                    || waiting.ended > now.plus(CONFIRM_WITHIN)
            });
        self.waiting = still;
        late.into_iter().map(|waiting| waiting.failure).collect()
    }

    /// The clock was set: nothing that was shown to work before can be placed in time any more.
    pub fn clock_was_set(&mut self, now: Timestamp) {
        self.witnessed.clock_was_set(now);
        self.quiet = Quiet::since(now);
        self.last_canary = now.minus(CANARY_AFTER);
    }

    /// Those that turned out to be ours come back, to be dropped.
    pub fn give_up(&mut self, is_ours: impl Fn(&T) -> bool) -> Vec<T> {
        let (ours, still): (VecDeque<_>, VecDeque<_>) = self
            .waiting
            .drain(..)
            .partition(|waiting| is_ours(&waiting.failure));
        self.waiting = still;
        ours.into_iter().map(|waiting| waiting.failure).collect()
    }

    /// What canaries should be asked for now, one each, what has not been shown for longest first; at most once a minute.
    pub fn wants_canaries(&mut self, now: Timestamp) -> Vec<Wish> {
        if now.since(self.last_canary) < CANARY_AFTER {
            return Vec::new();
        }
        let mut wishes: Vec<Wish> = Vec::new();
        for waiting in &self.waiting {
            // Who has waited for so long has met nobody who would do, whoever answered meanwhile.
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
        // Whoever lives over the one family or the other does for those who need anybody.
        if let Some(anybody) = wishes.iter().position(|wish| wish.family.is_none())
            && wishes.len() > 1
        {
            let fresh = wishes.swap_remove(anybody).fresh;
            wishes.iter_mut().for_each(|wish| wish.fresh |= fresh);
        }
        wishes.sort_by_key(|wish| self.quiet.of(*wish));
        if !wishes.is_empty() {
            self.last_canary = now;
        }
        wishes
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

impl<T> Waiting<T> {
    /// Whom it lacks as witnesses.
    fn lacks(&self) -> Vec<Wish> {
        let led_to = self.asked.dns.led_to().map(Family::of);
        let fresh = |family| self.dns && (led_to.is_none() || led_to == family);
        let mut families: Vec<_> = self.families.iter().copied().map(Some).collect();
        if !families.iter().any(|family| fresh(*family)) {
            // Nobody's family will do for what DNS led to, or anybody's.
            families.extend((self.dns || families.is_empty()).then_some(led_to));
        }
        let wish = |family| Wish {
            family,
            fresh: fresh(family),
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

    /// Since when nobody has answered who would fulfil this wish.
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
