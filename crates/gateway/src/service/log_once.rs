//! What is wrong with this machine, told when it begins and when it is over, and not once a check.
//!
//! In: what failed, or that it went well. Out: whether that is news. Pure: the clock is the caller's.

use std::time::{Duration, Instant};

/// How long nothing may fail before a trouble is over. On a full disk every second check goes well, in the room that the one before it gave back.
pub(crate) const QUIET: Duration = Duration::from_mins(1);

/// A trouble that was told, and when it was last seen.
#[derive(Debug, Default)]
pub(crate) struct Trouble(Option<(String, Instant)>);

impl Trouble {
    /// It failed for this reason. Gives whether that was not told yet.
    pub(crate) fn seen(&mut self, reason: &str, now: Instant) -> bool {
        let known = self.0.take().map(|(known, _)| known);
        let is_news = known.as_deref() != Some(reason);
        self.0 = Some((reason.to_owned(), now));
        is_news
    }

    /// It went well. Gives whether a trouble is over by that.
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
    fn a_trouble_is_told_once_for_every_reason_and_once_when_it_is_over() {
        let begin = Instant::now();
        let mut trouble = Trouble::default();
        assert!(!trouble.absent(begin), "there was none");
        assert!(trouble.seen("full", begin));
        for second in 1..600 {
            let now = begin + Duration::from_secs(second);
            // Every second one goes well.
            assert!(!trouble.absent(now));
            assert!(!trouble.seen("full", now));
        }
        let now = begin + Duration::from_secs(600);
        assert!(trouble.seen("read-only", now), "another reason");
        assert!(!trouble.absent(now + QUIET - Duration::from_secs(1)));
        assert!(trouble.absent(now + QUIET));
        assert!(!trouble.absent(now + QUIET), "told already");
        assert!(trouble.seen("read-only", now + QUIET), "it is back");
    }
}
