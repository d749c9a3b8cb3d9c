//! The record of an address, a user or a browser, and its rules. Pure.

use std::collections::VecDeque;
use std::time::Duration;

/// Time since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Timestamp(pub Duration);

/// Attempts and failures count for this long.
pub const WINDOW: Duration = Duration::from_secs(60);

/// Failures count for this long towards the hourly limit.
const HOUR: Duration = Duration::from_secs(3600);

/// Number of failures that don't lock yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FailureLimits {
    pub(crate) per_minute: u32,
    pub(crate) per_hour: u32,
}

/// A clean-up drops records without newer information.
pub const PURGE_AGE: Duration = Duration::from_secs(3600);

/// Each such period without a ban reduces the count of an address's bans by one.
const QUIET: Duration = Duration::from_secs(24 * 3600);

/// The differences between our rules and the original's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// All bans have the same length, and a failure counts from the end of its call, so that
    /// parallel calls don't see each other's failures.
    Original,
    /// Each ban of an address lasts twice as long as the one before, and a failure counts as soon
    /// as it is known.
    Ours { longest_ban: Duration },
}

/// The times that count, and a ban or lock.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// The latest attempts of an address, or failures of a user or a browser, in the order in which
    /// they were recorded.
    pub times: VecDeque<Timestamp>,
    /// The end of a ban or lock that no clean-up has noticed as ended.
    pub held_until: Option<Timestamp>,
    /// How often an address was banned, minus the quiet days since.
    pub bans: u32,
    /// Start of the count of quiet days.
    pub quiet_since: Timestamp,
}

impl Timestamp {
    #[must_use]
    pub fn plus(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }

    fn since(self, before: Self) -> Duration {
        self.0.saturating_sub(before.0)
    }
}

impl Record {
    /// Whether a ban or lock is in force. An end much further away than the longest ban comes from
    /// a wrong clock. A small excess is possible if a call ends after this one began.
    pub(crate) fn is_held(&self, now: Timestamp, longest: Duration) -> bool {
        let latest = now.plus(longest).plus(WINDOW);
        self.held_until
            .is_some_and(|until| until > now && until <= latest)
    }

    /// Records a time. Returns whether more than `max` lie within the window now. Keeps no more
    /// times than that needs.
    pub(crate) fn count(&mut self, now: Timestamp, max: u32) -> bool {
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        self.times.retain(|time| is_within(*time, now));
        if self.times.len() > max {
            self.times.pop_front();
        }
        self.times.push_back(now);
        self.times.len() > max
    }

    /// Records a failure. Returns whether too many lie within a minute or an hour now.
    pub(crate) fn count_failure(&mut self, now: Timestamp, limits: FailureLimits) -> bool {
        let number = |max| usize::try_from(max).unwrap_or(usize::MAX);
        let (per_minute, per_hour) = (number(limits.per_minute), number(limits.per_hour));
        self.times
            .retain(|time| now.since(*time) < HOUR && time.since(now) < WINDOW);
        if self.times.len() > per_minute.max(per_hour) {
            self.times.pop_front();
        }
        self.times.push_back(now);
        let in_minute = self.times.iter().filter(|time| is_within(**time, now));
        in_minute.count() > per_minute || self.times.len() > per_hour
    }

    pub(crate) fn hold(&mut self, now: Timestamp, time: Duration) -> Timestamp {
        let until = now.plus(time);
        self.held_until = Some(until);
        until
    }

    /// Bans, longer after recent bans.
    pub(crate) fn ban(&mut self, now: Timestamp, base: Duration, rules: Rules) -> Timestamp {
        let time = match rules {
            Rules::Original => base,
            Rules::Ours { longest_ban } => {
                self.calm_down(now);
                let doublings = self.bans;
                self.bans = self.bans.saturating_add(1);
                let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
                base.saturating_mul(factor).min(longest_ban.max(base))
            }
        };
        self.quiet_since = now.plus(time);
        self.hold(now, time)
    }

    /// Reduces the number of bans by one for each quiet day.
    pub(crate) fn calm_down(&mut self, now: Timestamp) {
        if self.bans == 0 {
            return;
        }
        let days = now
            .since(self.quiet_since)
            .as_secs()
            .checked_div(QUIET.as_secs());
        let days = u32::try_from(days.unwrap_or_default()).unwrap_or(u32::MAX);
        if days > 0 {
            self.bans = self.bans.saturating_sub(days);
            self.quiet_since = self.quiet_since.plus(QUIET.saturating_mul(days));
        }
    }

    /// Removes a ban or lock that has ended. Returns whether there was one.
    pub(crate) fn release(&mut self, now: Timestamp, longest: Duration) -> bool {
        let ended = self.held_until.is_some() && !self.is_held(now, longest);
        if ended {
            self.held_until = None;
        }
        ended
    }

    /// Drops times that are older than [`PURGE_AGE`], or in the future because the clock was ahead.
    /// Returns whether anything is left.
    pub(crate) fn purge(&mut self, now: Timestamp) -> bool {
        self.times
            .retain(|time| now.since(*time) <= PURGE_AGE && time.since(now) < WINDOW);
        // The same for the time from which quiet days are counted.
        let latest = self.held_until.unwrap_or(now);
        self.quiet_since = self.quiet_since.min(latest.max(now));
        self.held_until.is_some() || self.bans > 0 || !self.times.is_empty()
    }
}

/// Whether a time is strictly newer than the window. A time shortly after `now` comes from a call
/// that ended after this one began; a time long after it comes from a wrong clock.
fn is_within(time: Timestamp, now: Timestamp) -> bool {
    now.since(time) < WINDOW && time.since(now) < WINDOW
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const DAY: Duration = QUIET;

    fn at(seconds: f64) -> Timestamp {
        Timestamp(Duration::from_secs(1_000_000) + Duration::from_secs_f64(seconds))
    }

    #[test]
    fn what_is_a_minute_old_no_longer_counts() {
        for (second, expect) in [(59.999, true), (60.0, false), (60.001, false)] {
            let mut record = Record::default();
            assert!(!record.count(at(0.0), 1));
            assert_eq!(record.count(at(second), 1), expect, "{second}");
        }
        // Never with ten seconds between failures, and at the seventh with 9.9 seconds.
        let first_over = |step: f64| {
            let mut record = Record::default();
            (0..50).find(|n| record.count(at(f64::from(*n) * step), 6))
        };
        assert_eq!((first_over(10.0), first_over(9.9)), (None, Some(6)));
        assert!(Record::default().count(at(0.0), 0), "none is allowed");
    }

    #[test] // S76
    fn failures_below_the_limit_of_a_minute_lock_by_the_hour() {
        let limits = FailureLimits {
            per_minute: 6,
            per_hour: 30,
        };
        let first_over = |step: f64| {
            let mut record = Record::default();
            (0..500).find(|n| record.count_failure(at(f64::from(*n) * step), limits))
        };
        for (step, expect) in [
            (1.0, Some(6)),
            (9.9, Some(6)),
            (10.0, Some(30)),
            (119.0, Some(30)),
            (120.0, None),
        ] {
            assert_eq!(first_over(step), expect, "{step}");
        }
    }

    #[test]
    fn a_ban_ends_at_its_end_without_a_clean_up() {
        let mut record = Record::default();
        let until = record.ban(at(0.0), MINUTE * 30, Rules::Original);
        assert_eq!(until, at(1800.0));
        let longest = MINUTE * 30;
        for (second, expect) in [
            (0.0, true),
            (1799.999, true),
            (1800.0, false),
            (1801.0, false),
        ] {
            assert_eq!(record.is_held(at(second), longest), expect, "{second}");
        }
        assert!(
            !record.is_held(Timestamp::default(), longest),
            "a clock that was set back"
        );
        assert!(!record.release(at(1.0), longest));
        assert!(record.release(at(1800.0), longest));
        assert!(!record.release(at(1800.0), longest), "counted once");
    }

    #[test]
    fn bans_double_for_those_who_come_back_and_fade() {
        let rules = Rules::Ours { longest_ban: DAY };
        let mut record = Record::default();
        let mut now = at(0.0);
        let mut minutes = Vec::new();
        for _ in 0..8 {
            let until = record.ban(now, MINUTE * 30, rules);
            minutes.push(until.since(now).as_secs() / 60);
            now = until;
        }
        assert_eq!(minutes, [30, 60, 120, 240, 480, 960, 1440, 1440]);
        for _ in 0..100 {
            now = record.ban(now, MINUTE * 30, rules);
        }
        record.bans = 2;
        record.calm_down(now.plus(DAY - MINUTE));
        assert_eq!(record.bans, 2);
        record.calm_down(now.plus(DAY));
        assert_eq!(record.bans, 1);
        // A part of a day is not lost, and none counts twice.
        record.calm_down(now.plus(DAY));
        assert_eq!(record.bans, 1);
        record.calm_down(now.plus(DAY * 2));
        assert_eq!(record.bans, 0);
    }

    #[test]
    fn an_hour_old_record_is_purged_unless_it_holds() {
        let mut record = Record {
            times: [at(0.0), at(1.0)].into(),
            ..Record::default()
        };
        assert!(record.purge(at(3600.0)), "exactly an hour");
        assert_eq!(record.times.len(), 2);
        assert!(record.purge(at(3600.001)));
        assert_eq!(record.times.len(), 1);
        record.hold(at(0.0), MINUTE * 90);
        assert!(record.purge(at(3602.0)));
        record.held_until = None;
        assert!(!record.purge(at(3602.0)));
    }

    /// Entries made while the clock was ahead don't count forever.
    #[test]
    fn what_a_wrong_clock_wrote_ends() {
        let mut record = Record::default();
        let year = DAY * 365;
        let rules = Rules::Ours { longest_ban: DAY };
        record.count(at(0.0).plus(year), 6);
        record.ban(at(0.0).plus(year), MINUTE * 30, rules);
        assert!(!record.is_held(at(0.0), DAY));
        assert!(record.release(at(0.0), DAY));
        assert!(record.purge(at(0.0)), "it was banned");
        assert!(record.times.is_empty());
        record.calm_down(at(0.0).plus(DAY));
        assert!(!record.purge(at(0.0).plus(DAY)));
    }

    /// A lock by a call that ended later also applies to a call that was made slightly before.
    #[test]
    fn a_lock_holds_for_a_call_of_the_moment_before() {
        let mut record = Record::default();
        record.hold(at(2.0), MINUTE * 10);
        assert!(record.is_held(at(1.0), MINUTE * 10));
        assert!(!record.release(at(1.0), MINUTE * 10));
    }

    proptest! {
        /// At most one more than the maximum is kept, and the answer is the same as with all times.
        #[test]
        fn a_record_is_bounded_and_counts_right(
            max in 0_u32..8,
            steps in proptest::collection::vec(0_u64..30_000, 1..200),
        ) {
            let (mut record, mut now, mut all) = (Record::default(), at(0.0), Vec::new());
            for step in steps {
                now = now.plus(Duration::from_millis(step));
                all.push(now);
                let within = all.iter().filter(|time| now.since(**time) < WINDOW).count();
                let over = record.count(now, max);
                prop_assert_eq!(over, within > usize::try_from(max).unwrap());
                prop_assert!(record.times.len() <= usize::try_from(max).unwrap() + 1);
            }
        }
    }
}
