//! A clock that does not accept a jump at once (invariant I5).
//!
//! It combines the machine's clock with a monotonic time that cannot be set, and ignores jumps that
//! last less than an hour. Otherwise a clock that is a year ahead would make all hosts look dead
//! and all checks overdue, until it is corrected.
//!
//! One jump is accepted at once: from before a moment that the census has already reached to after
//! it. A machine without a battery makes this jump when it gets the time. If it were doubted for an
//! hour, responding hosts would be recorded as last alive a year ago.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use census::time::{Timestamp, rfc3339};
use rustix::time::{ClockId, clock_gettime};

use super::{Clock, SystemClock};

/// Largest deviation from the monotonic time: services that keep a clock right move it by seconds.
const JUMP_MIN: Duration = Duration::from_secs(120);

/// A clock that keeps its new setting for this long is accepted: either it is right now, or no one
/// minds.
const BELIEVED_AFTER: Duration = Duration::from_secs(3600);

#[derive(Debug)]
pub struct SteadyClock {
    /// In the time of [`awake_or_asleep`].
    started: Duration,
    steady: Mutex<Steady>,
}

impl SteadyClock {
    /// Starts with the machine's current time.
    pub fn start() -> Self {
        Self {
            started: awake_or_asleep(),
            steady: Mutex::new(Steady::new(SystemClock.now())),
        }
    }

    fn passed(&self) -> Duration {
        awake_or_asleep().saturating_sub(self.started)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Steady) -> T) -> T {
        act(&mut self.steady.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Timestamp {
        let (machine, passed) = (SystemClock.now(), self.passed());
        self.with(|steady| steady.now(machine, passed))
    }

    fn trouble(&self) -> Option<String> {
        self.with(|steady| steady.trouble())
    }

    fn was_at(&self, known: Timestamp) {
        self.with(|steady| steady.was_at(known));
    }
}

/// Time since the machine was started. The runtime's monotonic time is no substitute: it stops
/// while a laptop is suspended, and the laptop's clock is right when it wakes up.
fn awake_or_asleep() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
}

/// The rule as a function of both clocks' readings.
#[derive(Debug)]
struct Steady {
    /// The machine's clock, as far as it is accepted, at the start of the monotonic time.
    began: Timestamp,
    /// A moment that an earlier process had reached and that is ahead of this process's first
    /// reading.
    known: Option<Timestamp>,
    doubted: Option<Doubted>,
}

#[derive(Debug, Clone, Copy)]
struct Doubted {
    /// By the doubted clock.
    began: Timestamp,
    /// When the doubt began, in monotonic time.
    since: Duration,
}

impl Steady {
    fn new(machine: Timestamp) -> Self {
        Self {
            began: machine,
            known: None,
            doubted: None,
        }
    }

    fn was_at(&mut self, known: Timestamp) {
        self.known = Some(known).filter(|known| *known > self.began);
    }

    fn now(&mut self, machine: Timestamp, passed: Duration) -> Timestamp {
        let began = machine.minus(passed);
        let is_set_right = self.known.take_if(|known| machine >= *known).is_some();
        if is_set_right || is_near(began, self.began) {
            self.believe(began);
            return machine;
        }
        let since = match self.doubted {
            Some(doubted)
                if is_near(began, doubted.began) || self.has_paused_again(began, doubted) =>
            {
                doubted.since
            }
            Some(_) | None => passed,
        };
        if passed.saturating_sub(since) >= BELIEVED_AFTER {
            self.believe(began);
            return machine;
        }
        self.doubted = Some(Doubted { began, since });
        self.began.plus(passed)
    }

    /// A virtual machine that is paused now and then gains on its monotonic time with each pause.
    /// If the hour began again each time, its clock would never be accepted.
    fn has_paused_again(&self, began: Timestamp, doubted: Doubted) -> bool {
        began > doubted.began && doubted.began > self.began
    }

    fn believe(&mut self, began: Timestamp) {
        self.began = began;
        self.doubted = None;
    }

    fn trouble(&self) -> Option<String> {
        let doubted = self.doubted?;
        let (by, way) = if doubted.began > self.began {
            (doubted.began.since(self.began), "ahead")
        } else {
            (self.began.since(doubted.began), "back")
        };
        Some(format!(
            "this machine's clock was set {way} by {} at {}; is it right? The census measures time itself for an hour, then uses the clock",
            in_words(by),
            rfc3339(self.began.plus(doubted.since)),
        ))
    }
}

fn is_near(one: Timestamp, other: Timestamp) -> bool {
    one.since(other).max(other.since(one)) < JUMP_MIN
}

fn in_words(duration: Duration) -> String {
    // Rounded: the two clocks are never read at the same moment.
    let minutes = duration.as_secs().saturating_add(30) / 60;
    match (minutes / 1440, minutes / 60) {
        (0, 0) => format!("{minutes} minutes"),
        (0, hours) => format!("{hours} hours"),
        (days, _) => format!("{days} days"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const T0: Timestamp = Timestamp(1_700_000_000_000);
    const MINUTE: Duration = Duration::from_secs(60);
    const YEAR: Duration = Duration::from_secs(365 * 86_400);

    /// A clock that has run for an hour, and the monotonic time then.
    fn running() -> (Steady, Duration) {
        let mut steady = Steady::new(T0);
        let passed = MINUTE * 60;
        assert_eq!(steady.now(T0.plus(passed), passed), T0.plus(passed));
        (steady, passed)
    }

    #[test]
    fn a_year_forward_and_back_within_the_hour_moves_nothing() {
        for set in [T0.plus(YEAR), T0.minus(YEAR)] {
            let (mut steady, passed) = running();
            for minutes in 0..59 {
                let passed = passed + MINUTE * minutes;
                assert_eq!(steady.now(set.plus(passed), passed), T0.plus(passed));
            }
            let trouble = steady.trouble().unwrap();
            assert!(
                trouble.contains("by 365 days at 2023-11-14T23:13:20Z"),
                "{trouble}"
            );
            let passed = passed + MINUTE * 59;
            assert_eq!(steady.now(T0.plus(passed), passed), T0.plus(passed));
            assert_eq!(steady.trouble(), None);
        }
    }

    #[test]
    fn a_clock_that_stays_where_it_was_set_is_believed_after_an_hour() {
        let (mut steady, passed) = running();
        steady.now(T0.plus(YEAR).plus(passed), passed);
        let passed = passed + BELIEVED_AFTER;
        let set = T0.plus(YEAR).plus(passed);
        assert_eq!(steady.now(set, passed), set);
        assert_eq!(steady.trouble(), None);
    }

    #[test]
    fn a_clock_that_is_set_again_and_again_is_not_believed() {
        let (mut steady, mut passed) = running();
        for day in 1..100 {
            passed += BELIEVED_AFTER - MINUTE;
            let by = MINUTE * 1440 * day;
            let set = if day % 2 == 0 {
                T0.plus(by)
            } else {
                T0.minus(by)
            };
            assert_eq!(steady.now(set.plus(passed), passed), T0.plus(passed));
        }
    }

    #[test]
    fn a_machine_that_is_paused_time_and_again_catches_up() {
        let (mut steady, mut passed) = running();
        let (mut paused, mut behind_max) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..1000 {
            passed += MINUTE * 20;
            paused += MINUTE * 3;
            let right = T0.plus(passed).plus(paused);
            behind_max = behind_max.max(right.since(steady.now(right, passed)));
        }
        assert!(behind_max <= MINUTE * 12, "{behind_max:?} behind");
    }

    #[test]
    fn a_clock_that_began_in_the_past_is_believed_as_soon_as_it_is_set_right() {
        let year_ago = T0.minus(YEAR);
        for minutes_until_told in [1, 30, 600] {
            let mut steady = Steady::new(year_ago);
            steady.was_at(T0);
            let passed = MINUTE * minutes_until_told;
            let wrong = year_ago.plus(passed);
            assert_eq!(steady.now(wrong, passed), wrong, "nobody knows better");
            assert_eq!(steady.now(T0.plus(passed), passed), T0.plus(passed));
            assert_eq!(steady.trouble(), None);
            // Only once: from then on, it is doubted like any other.
            let set = T0.plus(YEAR).plus(passed);
            assert_eq!(steady.now(set, passed), T0.plus(passed));
        }
    }

    #[test]
    fn a_clock_that_began_in_the_past_and_stays_there_is_gone_by() {
        let mut steady = Steady::new(T0.minus(YEAR));
        steady.was_at(T0);
        for days in 0..370 {
            let passed = MINUTE * 1440 * days;
            let machine = T0.minus(YEAR).plus(passed);
            assert_eq!(steady.now(machine, passed), machine);
        }
        assert_eq!(steady.known, None, "it has come to where it was");
    }

    #[test]
    fn a_census_that_was_off_for_a_while_believes_no_jump_for_that() {
        let mut steady = Steady::new(T0);
        steady.was_at(T0.minus(YEAR));
        let set = T0.plus(YEAR).plus(MINUTE);
        assert_eq!(steady.now(set, MINUTE), T0.plus(MINUTE));
    }

    #[test]
    fn a_clock_that_is_kept_right_in_small_steps_is_followed() {
        let (mut steady, mut passed) = running();
        let mut drift = Duration::ZERO;
        for _ in 0..1000 {
            passed += MINUTE;
            drift += Duration::from_secs(1);
            let machine = T0.plus(passed).plus(drift);
            assert_eq!(steady.now(machine, passed), machine);
        }
        assert_eq!(steady.trouble(), None);
    }

    proptest! {
        /// Whatever happens to the machine's clock, time advances as it passes, except for jumps
        /// accepted after an hour.
        #[test]
        fn no_setting_of_the_clock_moves_time_within_an_hour(jumps in prop::collection::vec(any::<i32>(), 1..59)) {
            let (mut steady, passed) = running();
            for (minutes, jump) in (1..).zip(jumps) {
                let passed = passed + MINUTE * minutes;
                let machine = Timestamp(T0.plus(passed).0 + i64::from(jump) * 1000);
                let now = steady.now(machine, passed);
                let fair = T0.plus(passed);
                // Steps of less than two minutes are followed, and 59 of them add up.
                prop_assert!(now.since(fair).max(fair.since(now)) < JUMP_MIN * 59);
            }
        }
    }
}
