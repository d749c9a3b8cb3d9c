//! Groups: all hosts below one registered domain, which has one owner as far as names can tell.
//!
//! Decides whether a due host is checked now, and whether it may be listed, from its group, its
//! record, the time and a random number. A host that is not checked now is postponed, but never for
//! longer than the longest interval.
//!
//! The threshold counts all hosts that have a row, whatever their states. A count that excluded
//! opted-out or redirecting hosts could be manipulated by someone who invents hosts. Decision 0007
//! says why hosts that were once alive keep their place.

use std::time::Duration;

use crate::state::{Record, State};
use crate::time::{Calendar, Jitter, Timestamp};

/// Hosts of a held group that come due together at the end of a span: enough that there is always a
/// host to check, and few enough that ten thousand invented names are not postponed again each day.
const WAKING_TOGETHER: u64 = 8;

/// Most spans by which a host of a held group is postponed: with 27 hours each this stays below
/// four weeks.
const SPANS_MAX: u64 = 23;

/// The operator's decision about a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
            (Decision::None, Place::HeldBack) => (1, self.spans()),
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
        let spans = self.hosts.div_ceil(2).clamp(1, SPANS_MAX);
        let rest = calendar
            .day(Jitter(0))
            .saturating_mul(u32::try_from(spans).unwrap_or(1))
            .saturating_add(calendar.again_soon(Jitter(u32::MAX)));
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
