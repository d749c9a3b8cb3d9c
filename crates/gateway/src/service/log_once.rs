//! Logs a failure of this machine when it begins and when it is over, instead of once per check.
//!
//! Pure: it takes a failure or a success and the time, and returns whether that should be logged.

use std::time::{Duration, Instant};

/// Time without failures after which a failure is over. On a full disk every second check succeeds,
/// in the space that the one before it freed.
pub(crate) const QUIET: Duration = Duration::from_mins(1);

/// A logged failure, and when it last happened.
#[derive(Debug, Default)]
pub(crate) struct LogOnce(Option<(String, Instant)>);

impl LogOnce {
    /// Records a failure with this reason. Returns whether that is not logged yet.
    pub(crate) fn seen(&mut self, reason: &str, now: Instant) -> bool {
        let known = self.0.take().map(|(known, _)| known);
        let is_news = known.as_deref() != Some(reason);
        self.0 = Some((reason.to_owned(), now));
        is_news
    }

    /// Records a success. Returns whether a failure is over now.
    pub(crate) fn absent(&mut self, now: Instant) -> bool {
        let quiet = |(_, last): &(String, Instant)| now.saturating_duration_since(*last) >= QUIET;
        let is_over = self.0.as_ref().is_some_and(quiet);
        if is_over {
            self.0 = None;
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_logged_once_for_every_reason_and_once_when_it_is_over() {
        let begin = Instant::now();
        let mut log = LogOnce::default();
        assert!(!log.absent(begin), "there was none");
        assert!(log.seen("full", begin));
        for second in 1..600 {
            let now = begin + Duration::from_secs(second);
            // Every second attempt succeeds.
            assert!(!log.absent(now));
            assert!(!log.seen("full", now));
        }
        let now = begin + Duration::from_secs(600);
        assert!(log.seen("read-only", now), "another reason");
        assert!(!log.absent(now + QUIET - Duration::from_secs(1)));
        assert!(log.absent(now + QUIET));
        assert!(!log.absent(now + QUIET), "logged already");
        assert!(log.seen("read-only", now + QUIET), "it is back");
    }
}
