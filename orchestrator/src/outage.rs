//! Something of ours does not work, and nothing is checked until it does (invariant I5).
//!
//! In: faults that reach further than one check. Out: whether checks may start, and when to look whether it works again. Pure.

use std::time::Duration;

use census::time::Timestamp;

/// First pause before looking again.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// Longest pause: an engine that was restarted is found again within a minute.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The present outage, if there is one.
#[derive(Debug, Default)]
pub struct Outage {
    current: Option<Current>,
}

#[derive(Debug)]
struct Current {
    what: String,
    since: Timestamp,
    pause: Duration,
    look_at: Timestamp,
}

impl Outage {
    /// Something failed. Gives true when this is news.
    pub fn begin(&mut self, what: String, now: Timestamp) -> bool {
        if self.current.is_some() {
            return false;
        }
        self.current = Some(Current {
            what,
            since: now,
            pause: PAUSE_MIN,
            look_at: now.plus(PAUSE_MIN),
        });
        true
    }

    /// It still fails: look again later.
    pub fn goes_on(&mut self, what: String, now: Timestamp) {
        if let Some(current) = &mut self.current {
            current.pause = current.pause.saturating_mul(2).min(PAUSE_MAX);
            current.look_at = now.plus(current.pause);
            current.what = what;
        }
    }

    /// It works again. Gives how long it did not.
    pub fn end(&mut self, now: Timestamp) -> Option<Duration> {
        self.current.take().map(|current| now.since(current.since))
    }

    /// Whether there is one.
    pub fn is_on(&self) -> bool {
        self.current.is_some()
    }

    /// Whether it is time to look if it works again. A clock that was set back does not put it off.
    pub fn wants_look(&self, now: Timestamp) -> bool {
        self.current
            .as_ref()
            .is_some_and(|current| now >= current.look_at || current.look_at > now.plus(PAUSE_MAX))
    }

    /// What does not work and since when.
    pub fn describe(&self) -> Option<(String, Timestamp)> {
        self.current
            .as_ref()
            .map(|current| (current.what.clone(), current.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_grow_further_apart_up_to_a_minute_and_only_the_first_failure_is_news() {
        let mut outage = Outage::default();
        let mut now = Timestamp(0);
        assert!(outage.begin("engine".to_owned(), now));
        assert!(!outage.begin("engine".to_owned(), now));
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let mut waited = 0;
            while !outage.wants_look(now) {
                now = now.plus(Duration::from_secs(1));
                waited += 1;
            }
            pauses.push(waited);
            outage.goes_on("engine".to_owned(), now);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert!(outage.end(now).is_some());
        assert!(!outage.is_on() && outage.end(now).is_none());
    }

    #[test]
    fn a_clock_set_back_does_not_put_the_look_off() {
        let mut outage = Outage::default();
        outage.begin("gateway".to_owned(), Timestamp(1_000_000_000));
        assert!(outage.wants_look(Timestamp(0)));
    }
}
