//! Groups: all hosts below one registered domain, which names one owner as far as names can tell.
//!
//! In: what is known of a group and of one host in it, the time, a random number. Out: whether the
//! host is asked now, and whether it may be listed. Refused: nothing; who is not asked is put off,
//! never for longer than the longest interval.
//!
//! The threshold counts all hosts that have a row, whatever their states: a count that went down by what hosts say of themselves (an opt-out, a
//! redirect) could be played with by those who make them up. Why hosts that have lived keep their place: decision 0007.

use std::time::Duration;

use crate::state::{Record, State};
use crate::time::{Calendar, Jitter, Timestamp};

/// Hosts that come due together when a span is over, of a held group: enough that somebody is there to be asked, and few enough that ten thousand
/// made-up names are not put off anew each day.
const WAKING_TOGETHER: u64 = 8;

/// Spans that a host of a held group is put off at most: with 27 hours each it stays below four weeks.
const SPANS_MAX: u64 = 23;

/// What the operator decided about a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Nobody has looked at it.
    None,
    /// Its hosts are like any others, however many there are.
    Allow,
    /// None of its hosts is asked or listed.
    Deny,
    /// Its hosts are listed like any others, and so many of them are asked a day at most.
    Limit {
        /// Checks a day, one at least.
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

/// What made-up names below a group's domain showed, for whoever decides about it. It decides nothing by itself: honest owners have wildcards too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wildcard {
    /// A made-up name has no address.
    No,
    /// Two of them have an address in common.
    SamePlace,
    /// Two of them have addresses, and none in common.
    Apart,
}

impl Wildcard {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::No, Self::SamePlace, Self::Apart];

    /// Its word, in the database and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::SamePlace => "same_place",
            Self::Apart => "apart",
        }
    }
}

/// What is known of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// Its hosts, whatever their states.
    pub hosts: u64,
    /// They are more than the threshold.
    pub is_over: bool,
    /// What the operator decided.
    pub decision: Decision,
    /// When the first host of the span that is counted in was asked.
    pub asked_since: Option<Timestamp>,
    /// How many were asked since then.
    pub asked: u32,
}

/// Whether a host came into its group, or had never lived, when that was over the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It has a place of its own, and keeps it whatever others join the group.
    Own,
    /// It is one of those that made the group too big.
    HeldBack,
}

/// Whether a due host of a group is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// As if there were no group.
    Ordinary,
    /// It is its group's turn, which counts from now on: [`Group::asked_since`] and [`Group::asked`].
    Counted {
        /// Start of the span.
        since: Timestamp,
        /// Asked in it, this one included.
        asked: u32,
    },
    /// Not now.
    PutOff {
        /// When it is due again; at most the longest interval away.
        until: Timestamp,
    },
}

impl Group {
    /// Whether it is over the threshold and nobody has looked at it.
    pub fn is_held(&self) -> bool {
        self.is_over && self.decision == Decision::None
    }

    /// Whether a host of the group may be on the list, as far as its group has a say.
    pub fn lists(&self, place: Place) -> bool {
        match self.decision {
            Decision::None => !self.is_held() || place == Place::Own,
            Decision::Allow | Decision::Limit { .. } => true,
            Decision::Deny => false,
        }
    }

    /// Whether a due host of the group is asked now.
    ///
    /// Checks are counted in spans of a shortest day, 27 hours, that begin with the first check in them: so a group of no more hosts than its limit is
    /// never slowed down. Half of a limit, less when it is odd, is for hosts that lived within the last 14 days, which would fall off the list
    /// (invariant I11) if made-up names could use all of it.
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
            (Decision::None, Place::HeldBack) => (1, self.spans()),
            (Decision::Limit { a_day }, _) => (share(a_day, record, now, calendar), 1),
        };
        let span = calendar.day(Jitter(0));
        // A span that begins in the future was begun by a clock that has been set back since.
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

    /// Until when a host of a held group that was asked leaves the turn to others: while half of them may have theirs. Else the same few, which come
    /// due by chance just when a span is over, could have all of them.
    fn rests_until(
        &self,
        record: &Record,
        now: Timestamp,
        calendar: Calendar,
    ) -> Option<Timestamp> {
        if self.decision != Decision::None {
            return None;
        }
        let spans = self.hosts.div_ceil(2).clamp(1, SPANS_MAX);
        let rest = calendar
            .day(Jitter(0))
            .saturating_mul(u32::try_from(spans).unwrap_or(1))
            .saturating_add(calendar.again_soon(Jitter(u32::MAX)));
        let checked = record.last_checked?;
        let rests = checked <= now && now.since(checked) < rest;
        rests.then(|| checked.plus(rest))
    }

    /// Over how many spans those who wait are spread.
    fn spans(&self) -> u64 {
        self.hosts
            .checked_div(WAKING_TOGETHER)
            .unwrap_or(1)
            .clamp(1, SPANS_MAX)
    }
}

/// How many of `a_day` may be used up when this host's turn comes.
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

/// Within the hour after the end of one of the next `spans` spans. All who wait for a span come due before those whom it asked first come due again,
/// so that they take turns.
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
