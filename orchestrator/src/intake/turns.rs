//! How many proofs are read, and how often.
//!
//! In: a registered domain and the moment. Out: a turn, or how long to wait. Never more than [`AT_ONCE_MAX`] at once, one of a registered domain in
//! [`DOMAIN_EVERY`], and [`HOUR_MAX`] in any hour. A restart begins anew, which lets an hour's worth more through.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Readings at once. Each takes a container's place, and a host may let us wait: two of them never hold up the checks.
pub(super) const AT_ONCE_MAX: usize = 2;

/// From one reading of a registered domain to the next: an owner who mends the file tries again after that, and who lets us read for others' sake costs
/// them no more than that.
pub(super) const DOMAIN_EVERY: Duration = Duration::from_secs(60);

/// Readings in any hour, five a minute: far more owners than speak up, and next to nothing beside the checks of an hour.
pub(super) const HOUR_MAX: usize = 300;

/// Over which [`HOUR_MAX`] counts.
const WINDOW: Duration = Duration::from_secs(3600);

/// What was read in the last hour, and what is being read.
#[derive(Debug)]
pub(super) struct Turns {
    places: Arc<Semaphore>,
    /// The oldest first; at most [`HOUR_MAX`].
    begun: Mutex<VecDeque<(Instant, String)>>,
}

/// Leave to read; the place is held until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    _place: OwnedSemaphorePermit,
}

/// Whose bound is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Busy {
    /// This registered domain's.
    Domain(Duration),
    /// That of all.
    All(Duration),
}

impl Turns {
    pub(super) fn new() -> Self {
        Self {
            places: Arc::new(Semaphore::new(AT_ONCE_MAX)),
            begun: Mutex::default(),
        }
    }

    /// Takes a turn; `reading_takes` is how long one lasts at most.
    ///
    /// # Errors
    /// Whose bound is reached, and how long to wait. Nothing is counted then.
    pub(super) fn begin(
        &self,
        domain: &str,
        now: Instant,
        reading_takes: Duration,
    ) -> Result<Turn, Busy> {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let age = |at: &Instant| now.saturating_duration_since(*at);
        while begun.front().is_some_and(|(at, _)| age(at) >= WINDOW) {
            begun.pop_front();
        }
        let last = begun.iter().rev().find(|(_, of)| of == domain);
        if let Some((at, _)) = last
            && age(at) < DOMAIN_EVERY
        {
            return Err(Busy::Domain(DOMAIN_EVERY.saturating_sub(age(at))));
        }
        if let Some((oldest, _)) = begun.front()
            && begun.len() >= HOUR_MAX
        {
            return Err(Busy::All(WINDOW.saturating_sub(age(oldest))));
        }
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return Err(Busy::All(reading_takes));
        };
        begun.push_back((now, domain.to_owned()));
        Ok(Turn { _place: place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAKES: Duration = Duration::from_secs(25);

    fn begin(turns: &Turns, domain: &str, now: Instant) -> Result<(), Busy> {
        turns.begin(domain, now, TAKES).map(drop)
    }

    #[test]
    fn a_domain_is_read_once_in_its_time_whoever_asks_and_keeps_nobody_else_waiting() {
        let (turns, start) = (Turns::new(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(begin(&turns, "a.example", at(0)), Ok(()));
        let wait = Busy::Domain(Duration::from_secs(59));
        assert_eq!(begin(&turns, "a.example", at(1)), Err(wait));
        assert_eq!(begin(&turns, "b.example", at(1)), Ok(()));
        let wait = Busy::Domain(Duration::from_secs(1));
        assert_eq!(begin(&turns, "a.example", at(59)), Err(wait));
        // Who is refused has not begun anew.
        assert_eq!(begin(&turns, "a.example", at(60)), Ok(()));
        assert!(begin(&turns, "a.example", at(61)).is_err());
    }

    #[test]
    fn two_are_read_at_once_and_no_third_waits_for_them() {
        let (turns, now) = (Turns::new(), Instant::now());
        let first = turns.begin("a.example", now, TAKES).unwrap();
        let _second = turns.begin("b.example", now, TAKES).unwrap();
        assert_eq!(begin(&turns, "c.example", now), Err(Busy::All(TAKES)));
        drop(first);
        assert_eq!(
            begin(&turns, "c.example", now),
            Ok(()),
            "nothing was counted"
        );
    }

    #[test]
    fn a_million_domains_get_no_further_than_the_limit_in_any_hour() {
        let (turns, start) = (Turns::new(), Instant::now());
        let through = |now, round: &str| {
            (0..1000)
                .filter(|number| begin(&turns, &format!("n{number}.{round}.example"), now).is_ok())
                .count()
        };
        let half = WINDOW / 2;
        assert_eq!(through(start, "a"), HOUR_MAX);
        assert_eq!(through(start + half, "b"), 0);
        let wait = Busy::All(half);
        assert_eq!(begin(&turns, "x.example", start + half), Err(wait));
        assert_eq!(through(start + WINDOW, "c"), HOUR_MAX);
        assert_eq!(through(start + WINDOW + half, "d"), 0);
        assert!(turns.begun.lock().unwrap().len() <= HOUR_MAX);
    }
}
