//! When a host may be walked again, depending on how it answered.
//!
//! A failed walk says nothing about the host as an instance (invariant I3), so nothing here changes
//! its state.

use std::time::Duration;

use crate::time::{Jitter, Timestamp};

/// The pause after the first failure, and its increase for each further one.
const STEP: Duration = Duration::from_secs(30);

/// The longest pause after failures.
const PAUSE_MAX: Duration = Duration::from_hours(24);

/// The pause of a host that shows its conversations only after a login: owners rarely change that.
const ACCESS_PAUSE: Duration = Duration::from_hours(28 * 24);

/// The longest pause that a host may request: longer than any serious one.
const STATED_MAX: Duration = Duration::from_hours(28 * 24);

/// How a host answered, as far as it matters for the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Answered,
    /// It does not have what was requested.
    NotFound,
    /// It responds, but requires a login.
    AccessControlled,
    /// It did not answer, was too slow, or limits our requests.
    Unresponsive,
    /// The answer is not what was requested.
    NotJson,
}

/// Consecutive failures, and until when a host is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backoff {
    /// Failures since the last answer, at most one per pause.
    pub failures: u32,
    /// Time from which the host may be requested. `None` if it may be at any time.
    pub free_at: Option<Timestamp>,
}

impl Backoff {
    /// Whether the host is left alone at `now`. At `free_at` itself it no longer is.
    pub fn is_paused(self, now: Timestamp) -> bool {
        self.free_at.is_some_and(|free_at| now < free_at)
    }

    /// The state after an answer. `stated` is the pause that the host requested, which replaces
    /// ours. `jitter` varies our pause by a tenth in either direction; `None` leaves it as it is.
    #[must_use]
    pub fn after(
        self,
        answer: Answer,
        stated: Option<Duration>,
        now: Timestamp,
        jitter: Option<Jitter>,
    ) -> Self {
        let (failures, own) = match answer {
            Answer::Answered | Answer::NotFound => (0, None),
            Answer::AccessControlled => (0, Some(now.plus(ACCESS_PAUSE))),
            // A request within a pause, by hand or by mistake, does not count as another failure.
            Answer::Unresponsive | Answer::NotJson if self.is_paused(now) => {
                (self.failures, self.free_at)
            }
            Answer::Unresponsive | Answer::NotJson => {
                let failures = self.failures.saturating_add(1);
                (failures, Some(now.plus(pause(failures, jitter))))
            }
        };
        let stated = stated.map(|stated| now.plus(stated.min(STATED_MAX)));
        Self {
            failures,
            free_at: stated.or(own),
        }
    }
}

/// 30 seconds for each consecutive failure.
fn pause(failures: u32, jitter: Option<Jitter>) -> Duration {
    let pause = STEP.saturating_mul(failures).min(PAUSE_MAX);
    let Some(jitter) = jitter else { return pause };
    let tenth = pause.checked_div(10).unwrap_or_default();
    let spread = u64::try_from(tenth.as_millis()).unwrap_or(u64::MAX);
    pause
        .saturating_sub(tenth)
        .saturating_add(Duration::from_millis(jitter.of(spread.saturating_mul(2))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FAILS: Answer = Answer::Unresponsive;
    const OK: Answer = Answer::Answered;

    /// The state after these answers at these seconds.
    fn after(answers: &[(i64, Answer)]) -> Backoff {
        let start = Backoff::default();
        answers.iter().fold(start, |backoff, (second, answer)| {
            backoff.after(*answer, None, at(*second), None)
        })
    }

    fn at(second: i64) -> Timestamp {
        Timestamp(second * 1000)
    }

    fn check(answers: &[(i64, Answer)], failures: u32, free_at: Option<i64>) {
        let found = after(answers);
        assert_eq!(found.failures, failures, "{answers:?}");
        assert_eq!(found.free_at, free_at.map(at), "{answers:?}");
    }

    #[test]
    fn each_failure_in_a_row_adds_half_a_minute() {
        check(&[(0, FAILS)], 1, Some(30));
        check(&[(0, FAILS), (30, FAILS)], 2, Some(90));
        check(&[(0, FAILS), (30, FAILS), (90, FAILS)], 3, Some(180));
        let four = [(0, FAILS), (30, FAILS), (90, FAILS), (180, FAILS)];
        check(&four, 4, Some(300));
    }

    #[test]
    fn a_pause_ends_at_its_very_moment() {
        let paused = after(&[(0, FAILS)]);
        assert!(paused.is_paused(Timestamp(29_999)));
        assert!(!paused.is_paused(Timestamp(30_000)));
    }

    #[test]
    fn a_success_ends_it_all_at_once_and_within_a_pause_too() {
        check(
            &[(0, FAILS), (30, FAILS), (90, OK), (91, FAILS)],
            1,
            Some(121),
        );
        check(&[(0, FAILS), (5, OK)], 0, None);
        check(&[(0, FAILS), (30, Answer::NotFound)], 0, None);
    }

    #[test]
    fn a_pause_counts_one_failure() {
        check(&[(0, FAILS), (1, FAILS), (2, Answer::NotJson)], 1, Some(30));
    }

    #[test]
    fn a_closed_server_is_left_alone_for_long_and_has_not_failed() {
        check(
            &[(0, FAILS), (30, Answer::AccessControlled)],
            0,
            Some(30 + 28 * 86_400),
        );
    }

    #[test]
    fn a_stated_time_counts_in_place_of_ours_and_none_counts_for_ever() {
        let stated = |seconds| Some(Duration::from_secs(seconds));
        let start = after(&[(0, FAILS), (30, FAILS)]);
        for (answer, seconds, free_at) in [
            (FAILS, 5, 95),
            (FAILS, 3600, 3690),
            (OK, 60, 150),
            (FAILS, u64::MAX, 90 + 28 * 86_400),
        ] {
            let found = start.after(answer, stated(seconds), at(90), None);
            assert_eq!(found.free_at, Some(at(free_at)), "{answer:?} {seconds}");
        }
    }

    proptest! {
        #[test]
        fn a_pause_is_within_a_tenth_of_its_length_and_a_day(failures in any::<u32>(), jitter in any::<u32>()) {
            let length = pause(failures, None);
            prop_assert!(length <= PAUSE_MAX);
            let spread = pause(failures, Some(Jitter(jitter)));
            prop_assert!(spread * 10 >= length * 9 && spread * 10 <= length * 11);
        }

        /// After any sequence: a pause ends exactly at `free_at`, and has one failure.
        #[test]
        fn no_history_breaks_the_rules(
            history in proptest::collection::vec((0_i64..100_000_000, 0_u8..5, any::<u32>()), 1..40),
        ) {
            let mut backoff = Backoff::default();
            let mut now = Timestamp(0);
            for (wait, answer, jitter) in history {
                now = now.plus(Duration::from_millis(u64::try_from(wait).unwrap()));
                let answer = [OK, Answer::NotFound, Answer::AccessControlled, FAILS, Answer::NotJson][usize::from(answer)];
                let was_paused = backoff.is_paused(now);
                let next = backoff.after(answer, None, now, Some(Jitter(jitter)));
                prop_assert!(next.failures <= backoff.failures + u32::from(!was_paused));
                if let Some(free_at) = next.free_at {
                    prop_assert!(free_at > now);
                    prop_assert!(next.is_paused(Timestamp(free_at.0 - 1)) && !next.is_paused(free_at));
                }
                backoff = next;
            }
        }
    }
}
