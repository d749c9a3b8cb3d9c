//! When a host is checked next, and whether its peers are requested. A host that is never checked
//! has no due time.

use std::time::Duration;

use crate::state::{Record, State};
use crate::time::{Calendar, Jitter, Timestamp};

/// How often an interrupted check is repeated within the hour, before its host waits for its
/// ordinary time: a check that crashes us each time must not do so every hour.
const INTERRUPTIONS_REPEATED_MAX: u32 = 2;

/// Whether a check was a host's first with a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    First,
    Later,
}

impl Which {
    /// Which check the next one of `record` is.
    pub fn of(record: &Record) -> Self {
        match record.last_checked {
            None => Self::First,
            Some(_) => Self::Later,
        }
    }
}

/// The ordinary interval of a host in this state, after its first check or a later one. `None` if
/// it is never checked.
pub fn ordinary_interval(
    state: &State,
    doublings: u8,
    which: Which,
    jitter: Jitter,
    calendar: Calendar,
) -> Option<Duration> {
    if state.is_never_asked() {
        return None;
    }
    match state {
        State::Discovered | State::Alive | State::Dying { .. } | State::Moving { .. } => {
            Some(match which {
                Which::First => calendar.second_check(jitter),
                Which::Later => calendar.day(jitter),
            })
        }
        State::Moved { .. } => Some(calendar.week(jitter)),
        State::Dead | State::OptedOut { .. } => Some(calendar.weeks(doublings, jitter)),
        State::Parked => None,
    }
}

/// The next due time. It is written when a check is taken and before it starts, so that no crash
/// can cause a loop.
pub fn due_when_taken(
    record: &Record,
    now: Timestamp,
    jitter: Jitter,
    calendar: Calendar,
) -> Option<Timestamp> {
    let which = Which::of(record);
    ordinary_interval(&record.state, record.doublings, which, jitter, calendar)
        .map(|interval| now.plus(interval))
}

/// The next due time of a host whose check was interrupted: within the hour, or its ordinary time
/// from the third interruption in a row.
///
/// `interruptions` includes this one. `ordinary_due` is the result of [`due_when_taken`], and
/// `None` if the host is never checked.
pub fn due_after_interruption(
    interruptions: u32,
    ordinary_due: Option<Timestamp>,
    now: Timestamp,
    jitter: Jitter,
    calendar: Calendar,
) -> Option<Timestamp> {
    let ordinary = clamp_due(ordinary_due?, now, calendar);
    if interruptions > INTERRUPTIONS_REPEATED_MAX {
        Some(ordinary)
    } else {
        Some(ordinary.min(now.plus(calendar.again_soon(jitter))))
    }
}

/// The due time, or the longest interval from now if it is later than that: clocks jump.
pub fn clamp_due(due: Timestamp, now: Timestamp, calendar: Calendar) -> Timestamp {
    due.min(now.plus(calendar.longest()))
}

/// Whether to request peers this time: at the first `alive` and at every `every`-th one after it,
/// or never if `every` is 0.
///
/// `record` is the record before the check.
pub fn asks_peers(record: &Record, every: u32) -> bool {
    record.alive_count.checked_rem(every) == Some(0)
}

#[cfg(test)]
mod tests {
    use protocol::Host;

    use super::*;
    use crate::state::{Before, OptedOutBy};

    const NOW: Timestamp = Timestamp(1_000_000_000_000);
    const JITTER: Jitter = Jitter(u32::MAX);
    const HOUR: Duration = Duration::from_secs(3600);

    fn check(state: State, doublings: u8, expect_hours: Option<u32>) {
        let host = Host::parse("a.example").unwrap();
        let record = Record {
            state,
            doublings,
            last_checked: Some(NOW),
            ..Record::discovered(host, NOW, NOW)
        };
        let due = due_when_taken(&record, NOW, JITTER, Calendar::REAL);
        let expect = expect_hours.map(|hours| NOW.plus(HOUR * hours));
        assert_eq!(due, expect, "{record:?}");
    }

    #[test]
    fn second_checks_are_spread_over_a_day_that_begins_after_20_hours() {
        let host = Host::parse("a.example").unwrap();
        let record = Record::discovered(host, NOW, NOW);
        let due = |jitter| due_when_taken(&record, NOW, Jitter(jitter), Calendar::REAL);
        assert_eq!(due(0), Some(NOW.plus(HOUR * 20)));
        assert_eq!(due(u32::MAX), Some(NOW.plus(HOUR * 49)));
    }

    #[test]
    fn what_may_come_back_is_asked_daily_and_the_rest_weekly() {
        let (before, count) = (Before::Alive, 3);
        let dying = State::Dying {
            before,
            count,
            gone: false,
            gone_last: false,
        };
        let moving = State::Moving {
            before,
            count,
            target: Host::parse("b.example").unwrap(),
        };
        for state in [State::Discovered, State::Alive, dying, moving] {
            check(state, 0, Some(31));
        }
    }

    #[test]
    fn what_is_settled_is_asked_weekly_and_then_more_seldom() {
        let target = Host::parse("b.example").unwrap();
        // 178.5 h: the helper uses whole hours, so only the doubled intervals test it.
        check(State::Dead, 1, Some(357));
        check(State::Dead, 2, Some(714));
        let by = OptedOutBy::Robots;
        check(State::OptedOut { by }, 1, Some(357));
        let moved = State::Moved { target };
        let moved = ordinary_interval(&moved, 2, Which::Later, JITTER, Calendar::REAL);
        assert_eq!(moved, Some(Calendar::REAL.week(JITTER)));
    }

    #[test]
    fn who_opted_out_by_word_of_mouth_or_is_parked_is_never_due() {
        for by in [OptedOutBy::Owner, OptedOutBy::Moderator] {
            check(State::OptedOut { by }, 0, None);
        }
        check(State::Parked, 0, None);
        let due = due_after_interruption(1, None, NOW, JITTER, Calendar::REAL);
        assert_eq!(due, None);
    }

    #[test]
    fn the_third_interruption_in_a_row_waits_for_the_ordinary_time() {
        let ordinary = NOW.plus(HOUR * 20);
        for (interruptions, expect) in [
            (1, NOW.plus(HOUR)),
            (2, NOW.plus(HOUR)),
            (3, ordinary),
            (u32::MAX, ordinary),
        ] {
            let usual = Some(ordinary);
            let due = due_after_interruption(interruptions, usual, NOW, JITTER, Calendar::REAL);
            assert_eq!(due, Some(expect), "{interruptions}");
        }
    }

    #[test]
    fn an_interruption_never_puts_a_check_off() {
        let ordinary = NOW.minus(HOUR);
        let due = due_after_interruption(1, Some(ordinary), NOW, JITTER, Calendar::REAL);
        assert_eq!(due, Some(ordinary));
    }

    #[test]
    fn due_times_are_never_further_away_than_the_longest_interval() {
        let longest = NOW.plus(HOUR * 738);
        let far = Timestamp(i64::MAX);
        assert_eq!(clamp_due(far, NOW, Calendar::REAL), longest);
        assert_eq!(clamp_due(longest, NOW, Calendar::REAL), longest);
        assert_eq!(clamp_due(NOW, NOW, Calendar::REAL), NOW);
        let interrupted = due_after_interruption(3, Some(far), NOW, JITTER, Calendar::REAL);
        assert_eq!(interrupted, Some(longest));
    }

    #[test]
    fn peers_are_asked_for_at_the_first_alive_and_every_third_after() {
        let host = Host::parse("a.example").unwrap();
        let mut record = Record::discovered(host, NOW, NOW);
        let mut asked = |every| {
            [0, 1, 2, 3, 4, 5, 6].map(|alive_count| {
                record.alive_count = alive_count;
                asks_peers(&record, every)
            })
        };
        let (yes, no) = (true, false);
        assert_eq!(asked(3), [yes, no, no, yes, no, no, yes]);
        assert_eq!(asked(1), [yes; 7]);
        assert_eq!(asked(0), [no; 7]);
    }
}
