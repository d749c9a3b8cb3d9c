//! Groups: all hosts below one registered domain, which has one owner as far as names can tell.
//!
//! Decides whether a due host is checked now, and whether it may be listed, from its group, its
//! record, the time and a random number. A host that is not checked now is postponed, but never for
//! longer than the longest interval.
//!
//! The threshold counts all hosts that have a row, whatever their states. A count that excluded
//! opted-out or redirecting hosts could be manipulated by someone who invents hosts.
//!
//! A held-back host gets a place by [`Evidence`] from outside its group. Decision 0018 says why,
//! and why hosts that were once alive keep their place.

use std::time::Duration;

use crate::state::{Record, State};
use crate::time::{Calendar, Jitter, Timestamp};

/// Checks of a held group's held-back hosts a day: as many as the names that a registered domain
/// adds.
pub const HELD_A_DAY: u32 = 20;

/// Starts of other checks for each check of a held group's host: all held groups together get a
/// twelfth. With the checks of names before their group is held that stays below a tenth.
pub const OTHERS_PER_HELD: i32 = 11;

/// Checks that the oldest host of each held group that responds has before it would leave the list,
/// also if held groups have had their share: anyone can get another's domain held. Two may fail.
const OLDEST_CHECKS: u32 = 3;

/// Independent sources that must have named a held-back host: one could be its own.
pub const SOURCES_MIN: u32 = 2;

/// Sources that are stored for a held-back host: two may close down without setting it back.
pub const SOURCES_MAX: u32 = 4;

/// Checks that must have found a host of a source alive: daily ones take fourteen days.
pub const SOURCE_RESPONSES_MIN: u32 = 13;

/// Checks that must have found a held-back host alive: one may have met a name that answers once.
pub const RESPONSES_MIN: u32 = 2;

/// Hosts of a held group that have a place. Hosters with more customers need a moderator.
pub const PLACES_MAX: u32 = 200;

/// Hosts of a held group that come due together at the end of a span: enough that there are always
/// hosts to check, and few enough that ten thousand invented names are not postponed again each
/// day.
const WAKING_TOGETHER: u64 = 40;

/// Most spans by which a host of a held group is postponed: with up to 28 hours each this stays
/// below four weeks.
const SPANS_MAX: u64 = 23;

/// The operator's decision about a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Decision {
    #[default]
    None,
    /// Its hosts are treated like any others, whatever their number.
    Allow,
    /// None of its hosts is checked or listed.
    Deny,
    /// Its hosts are listed like any others, but only a limited number of them is checked per day.
    Limit {
        /// Checks per day, at least one.
        a_day: u32,
    },
}

impl Decision {
    /// Its word, in the database and in commands.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Limit { .. } => "limit",
        }
    }
}

/// A group's size, decision and current span of checks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Group {
    /// Number of its hosts, in any state.
    pub hosts: u64,
    /// Whether `hosts` exceeds the threshold.
    pub is_over: bool,
    pub decision: Decision,
    /// Time of the first check in the current span.
    pub asked_since: Option<Timestamp>,
    /// Number of checks since then.
    pub asked: u32,
}

/// Whether the group was over the threshold when the host was added, or before the host was ever
/// alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It has a regular place and keeps it, whatever others join the group.
    Own,
    /// It is one of those that made the group too large.
    HeldBack,
}

/// What speaks for a held-back host, from outside its group: a farm chooses what its hosts say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Evidence {
    /// Independent sources that first named it at least [`Calendar::named_at_least`] ago.
    pub sources: u32,
    /// Checks that found it alive.
    pub responses: u32,
    /// Hosts of its group with a place.
    pub places: u32,
}

impl Evidence {
    /// Whether the host gets a place.
    pub fn frees(&self) -> bool {
        self.sources >= SOURCES_MIN && self.responses >= RESPONSES_MIN && self.places < PLACES_MAX
    }
}

/// Whether a due host of a group is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It is checked as if there were no group.
    Ordinary,
    /// It is checked and counts for its group: store [`Group::asked_since`] and [`Group::asked`],
    /// which includes this check.
    Counted { since: Timestamp, asked: u32 },
    /// It is not checked now.
    PutOff {
        /// When it is due again; at most the longest interval away.
        until: Timestamp,
    },
}

impl Group {
    /// Whether it is over the threshold and has no decision.
    pub fn is_held(&self) -> bool {
        self.is_over && self.decision == Decision::None
    }

    /// Whether the group allows a host of it to be listed.
    pub fn lists(&self, place: Place) -> bool {
        match self.decision {
            Decision::None => !self.is_held() || place == Place::Own,
            Decision::Allow | Decision::Limit { .. } => true,
            Decision::Deny => false,
        }
    }

    /// Whether a due host of the group is checked now.
    ///
    /// Checks are counted in spans of a shortest day, 27 hours, that begin with their first check.
    /// So a group with no more hosts than its limit is never slowed down. Half of a limit, rounded
    /// down, is reserved for hosts that were alive within the last 14 days: they would drop off the
    /// list (invariant I11) if invented names could use all of it.
    pub fn turn(
        &self,
        record: &Record,
        place: Place,
        now: Timestamp,
        jitter: Jitter,
        calendar: Calendar,
    ) -> Turn {
        let (a_day, spans) = match (self.decision, place) {
            (Decision::Allow, _) => return Turn::Ordinary,
            (Decision::None, Place::Own) => return Turn::Ordinary,
            (Decision::None, Place::HeldBack) if !self.is_over => return Turn::Ordinary,
            (Decision::Deny, _) => {
                let until = now.plus(calendar.weeks(crate::time::DOUBLINGS_MAX, jitter));
                return Turn::PutOff { until };
            }
            (Decision::None, Place::HeldBack) => (HELD_A_DAY, self.spans()),
            (Decision::Limit { a_day }, _) => (share(a_day, record, now, calendar), 1),
        };
        let span = calendar.day(Jitter(0));
        // A span that begins in the future is from before the clock was set back.
        let begun = self
            .asked_since
            .filter(|since| *since <= now && now.since(*since) < span);
        if let Some(until) = self.rests_until(record, now, calendar) {
            return Turn::PutOff { until };
        }
        match begun {
            None => Turn::Counted {
                since: now,
                asked: 1,
            },
            Some(since) if self.asked < a_day => Turn::Counted {
                since,
                asked: self.asked.saturating_add(1),
            },
            Some(since) => Turn::PutOff {
                until: later(since, span, spans, jitter, calendar),
            },
        }
    }

    /// When a host is due again if held groups have had their share of the starts. Spread evenly,
    /// because that share grows evenly. A host with a place is due again the next day: it leaves
    /// the list if it doesn't get a turn in 14 days (invariant I11).
    pub fn next_turn(
        &self,
        place: Place,
        now: Timestamp,
        jitter: Jitter,
        calendar: Calendar,
    ) -> Timestamp {
        let spans = match place {
            Place::Own => 1,
            Place::HeldBack => u32::try_from(self.spans()).unwrap_or(1),
        };
        let most = calendar.day(Jitter(0)).saturating_mul(spans);
        let most_ms = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
        now.plus(calendar.again_soon(Jitter(u32::MAX)))
            .plus(Duration::from_millis(jitter.of(most_ms)))
    }

    /// Whether the oldest host of a held group can wait until there is room for it.
    pub fn oldest_can_wait(record: &Record, now: Timestamp, calendar: Calendar) -> bool {
        let most = calendar.unlisted_after().checked_div(OLDEST_CHECKS);
        let waited = record.last_checked.filter(|checked| *checked <= now);
        waited.is_some_and(|checked| Some(now.since(checked)) < most)
    }

    /// Until when a checked host of a held group waits for the others: until half of them could be
    /// checked. Otherwise the same few hosts, which happen to come due at the end of each span,
    /// could get all checks.
    fn rests_until(
        &self,
        record: &Record,
        now: Timestamp,
        calendar: Calendar,
    ) -> Option<Timestamp> {
        if self.decision != Decision::None {
            return None;
        }
        let a_day = u64::from(HELD_A_DAY).saturating_mul(2);
        let spans = self.hosts.div_ceil(a_day).clamp(1, SPANS_MAX);
        // The hour is the most by which a span begins late.
        let hour = calendar.again_soon(Jitter(u32::MAX));
        let rest = calendar
            .day(Jitter(0))
            .saturating_add(hour)
            .saturating_mul(u32::try_from(spans).unwrap_or(1))
            .saturating_add(hour);
        let checked = record.last_checked?;
        let rests = checked <= now && now.since(checked) < rest;
        rests.then(|| checked.plus(rest))
    }

    /// Number of spans over which waiting hosts are spread.
    fn spans(&self) -> u64 {
        self.hosts
            .checked_div(WAKING_TOGETHER)
            .unwrap_or(1)
            .clamp(1, SPANS_MAX)
    }
}

/// How many of `a_day` checks a host like this may use.
fn share(a_day: u32, record: &Record, now: Timestamp, calendar: Calendar) -> u32 {
    let lived_lately = record
        .last_alive
        .is_some_and(|alive| now.since(alive) < calendar.unlisted_after());
    let is_listable = match record.state {
        State::Alive | State::Dying { .. } | State::Moving { .. } => lived_lately,
        State::Discovered
        | State::Dead
        | State::Moved { .. }
        | State::OptedOut { .. }
        | State::Parked => false,
    };
    if is_listable {
        a_day
    } else {
        a_day.div_ceil(2)
    }
}

/// Within the hour after the end of one of the next `spans` spans. All hosts that wait for a span
/// come due before the hosts checked in it come due again, so that they take turns.
fn later(
    since: Timestamp,
    span: Duration,
    spans: u64,
    jitter: Jitter,
    calendar: Calendar,
) -> Timestamp {
    let skipped = u64::from(jitter.0).checked_rem(spans).unwrap_or(0);
    let ends = u32::try_from(skipped.saturating_add(1)).unwrap_or(1);
    since
        .plus(span.saturating_mul(ends))
        .plus(calendar.again_soon(jitter))
}

#[cfg(test)]
mod tests;
