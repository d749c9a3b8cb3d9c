//! Limits how many proofs are read, and how often.
//!
//! At most [`AT_ONCE_MAX`] are read at once, one per registered domain in [`DOMAIN_EVERY`], and
//! [`HOUR_MAX`] in any hour. Hosts that were never alive get only a part of these, so that invented
//! names leave turns for owners of instances. A restart begins with an empty hour, which admits up
//! to another hour's worth.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::proofs::Seen;

/// Readings at once. Each takes a container slot, and a host can be slow: two of them never hold up
/// the checks.
pub(super) const AT_ONCE_MAX: usize = 2;

/// Time between two readings of a registered domain. An owner who corrects the file tries again
/// after that, and strangers who request readings cost the domain no more.
pub(super) const DOMAIN_EVERY: Duration = Duration::from_secs(60);

/// Readings in any hour, five a minute: far more than the owners who prove themselves, and very few
/// compared with an hour's checks.
pub(super) const HOUR_MAX: usize = 300;

/// Readings at once of hosts that were never alive: one slot is left for the others while an
/// invented host keeps us waiting.
pub(super) const STRANGERS_AT_ONCE_MAX: usize = 1;

/// Readings in any hour of hosts that were never alive. Few new instances submit themselves, so a
/// third stays for the others.
pub(super) const STRANGERS_HOUR_MAX: usize = 200;

/// The period of [`HOUR_MAX`].
const WINDOW: Duration = Duration::from_secs(3600);

/// What was read in the last hour, and what is being read.
#[derive(Debug)]
pub(super) struct ProofLimit {
    places: Arc<Semaphore>,
    strangers: Arc<Semaphore>,
    /// The oldest first; at most [`HOUR_MAX`].
    begun: Mutex<VecDeque<Begun>>,
}

#[derive(Debug)]
struct Begun {
    at: Instant,
    domain: String,
    seen: Seen,
}

/// Permission to read; the slots are held until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    _place: OwnedSemaphorePermit,
    _stranger: Option<OwnedSemaphorePermit>,
}

/// Which limit is reached, and how long to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Busy {
    Domain(Duration),
    All(Duration),
}

impl ProofLimit {
    pub(super) fn new() -> Self {
        Self {
            places: Arc::new(Semaphore::new(AT_ONCE_MAX)),
            strangers: Arc::new(Semaphore::new(STRANGERS_AT_ONCE_MAX)),
            begun: Mutex::default(),
        }
    }

    /// Takes a turn; `reading_takes` is the longest duration of a reading.
    ///
    /// # Errors
    /// The limit that is reached, and how long to wait. Nothing is counted then.
    pub(super) fn begin(
        &self,
        domain: &str,
        seen: Seen,
        now: Instant,
        reading_takes: Duration,
    ) -> Result<Turn, Busy> {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let age = |at: &Instant| now.saturating_duration_since(*at);
        while begun.front().is_some_and(|one| age(&one.at) >= WINDOW) {
            begun.pop_front();
        }
        let last = begun.iter().rev().find(|one| one.domain == domain);
        if let Some(Begun { at, .. }) = last
            && age(at) < DOMAIN_EVERY
        {
            return Err(Busy::Domain(DOMAIN_EVERY.saturating_sub(age(at))));
        }
        let full_until = |oldest: &Begun| Busy::All(WINDOW.saturating_sub(age(&oldest.at)));
        if let Some(oldest) = begun.front()
            && begun.len() >= HOUR_MAX
        {
            return Err(full_until(oldest));
        }
        let stranger = match seen {
            Seen::Alive => None,
            Seen::Never => {
                let mut strangers = begun.iter().filter(|one| one.seen == Seen::Never);
                if let Some(oldest) = strangers.next()
                    && strangers.count().saturating_add(1) >= STRANGERS_HOUR_MAX
                {
                    return Err(full_until(oldest));
                }
                let place = Arc::clone(&self.strangers).try_acquire_owned();
                Some(place.map_err(|_none_free| Busy::All(reading_takes))?)
            }
        };
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return Err(Busy::All(reading_takes));
        };
        begun.push_back(Begun {
            at: now,
            domain: domain.to_owned(),
            seen,
        });
        Ok(Turn {
            _place: place,
            _stranger: stranger,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAKES: Duration = Duration::from_secs(25);

    fn begin(limit: &ProofLimit, domain: &str, now: Instant) -> Result<(), Busy> {
        limit.begin(domain, Seen::Alive, now, TAKES).map(drop)
    }

    #[test] // S19
    fn domain_is_read_once_a_minute_and_delays_no_other() {
        let (limit, start) = (ProofLimit::new(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(begin(&limit, "a.example", at(0)), Ok(()));
        let wait = Busy::Domain(Duration::from_secs(59));
        assert_eq!(begin(&limit, "a.example", at(1)), Err(wait));
        assert_eq!(begin(&limit, "b.example", at(1)), Ok(()));
        let wait = Busy::Domain(Duration::from_secs(1));
        assert_eq!(begin(&limit, "a.example", at(59)), Err(wait));
        // A refused request does not restart the wait.
        assert_eq!(begin(&limit, "a.example", at(60)), Ok(()));
        assert!(begin(&limit, "a.example", at(61)).is_err());
    }

    #[test] // S19
    fn two_proofs_are_read_at_once_and_no_third_waits() {
        let (limit, now) = (ProofLimit::new(), Instant::now());
        let first = limit.begin("a.example", Seen::Alive, now, TAKES).unwrap();
        let _second = limit.begin("b.example", Seen::Alive, now, TAKES).unwrap();
        assert_eq!(begin(&limit, "c.example", now), Err(Busy::All(TAKES)));
        drop(first);
        assert_eq!(
            begin(&limit, "c.example", now),
            Ok(()),
            "nothing was counted"
        );
    }

    #[test] // S59
    fn invented_hosts_leave_a_third_to_hosts_that_responded() {
        let (limit, start) = (ProofLimit::new(), Instant::now());
        let stranger = |name: &str, now| limit.begin(name, Seen::Never, now, TAKES);
        let held = stranger("a.example", start).unwrap();
        let second = stranger("b.example", start).map(drop);
        assert_eq!(second, Err(Busy::All(TAKES)));
        assert_eq!(begin(&limit, "c.example", start), Ok(()));
        drop(held);

        let half = start + WINDOW / 2;
        let through = (0..1000)
            .filter(|number| stranger(&format!("n{number}.example"), half).is_ok())
            .count();
        assert_eq!(through, STRANGERS_HOUR_MAX - 1, "with the one before");
        let wait = Busy::All(WINDOW / 2);
        assert_eq!(stranger("x.example", half).map(drop), Err(wait));
        let through = (0..1000)
            .filter(|number| begin(&limit, &format!("m{number}.example"), half).is_ok())
            .count();
        assert_eq!(through, HOUR_MAX - STRANGERS_HOUR_MAX - 1, "likewise");
        let later = start + WINDOW;
        assert!(stranger("x.example", later).is_ok(), "the first has left");
        assert!(stranger("y.example", later).is_err());
    }

    #[test] // S19
    fn a_million_domains_get_no_further_than_the_limit_in_any_hour() {
        let (limit, start) = (ProofLimit::new(), Instant::now());
        let through = |now, round: &str| {
            (0..1000)
                .filter(|number| begin(&limit, &format!("n{number}.{round}.example"), now).is_ok())
                .count()
        };
        let half = WINDOW / 2;
        assert_eq!(through(start, "a"), HOUR_MAX);
        assert_eq!(through(start + half, "b"), 0);
        let wait = Busy::All(half);
        assert_eq!(begin(&limit, "x.example", start + half), Err(wait));
        assert_eq!(through(start + WINDOW, "c"), HOUR_MAX);
        assert_eq!(through(start + WINDOW + half, "d"), 0);
        assert!(limit.begun.lock().unwrap().len() <= HOUR_MAX);
    }
}
