//! Detects that the machine's clock was set.

use std::time::Duration;

use census::time::{Calendar, Timestamp};
use tokio::time::Instant;

/// A clock that moved this much against the monotonic clock was set.
const CLOCK_JUMP_MIN: Duration = Duration::from_secs(120);

/// Compares the clock with the monotonic clock.
#[derive(Debug)]
pub(super) struct ClockWatch {
    /// The clock's time at `started`.
    offset: Timestamp,
    started: Instant,
    /// What was last logged about the machine's clock.
    trouble: Option<String>,
}

impl ClockWatch {
    pub(super) fn start(now: Timestamp) -> Self {
        Self {
            offset: now,
            started: Instant::now(),
            trouble: None,
        }
    }

    /// Logs when trouble with the machine's clock begins and ends.
    pub(super) fn log_trouble(&mut self, trouble: Option<String>) {
        match &trouble {
            Some(what) if self.trouble.is_none() => tracing::error!(what, "the clock"),
            None if self.trouble.is_some() => {
                tracing::info!("the census uses this machine's clock again");
            }
            Some(_) | None => {}
        }
        self.trouble = trouble;
    }

    /// By how much the clock was set, if it was.
    pub(super) fn jump(&mut self, now: Timestamp) -> Option<Duration> {
        let expected = self.offset.plus(self.started.elapsed());
        let jump = now.since(expected).max(expected.since(now));
        if jump < CLOCK_JUMP_MIN {
            return None;
        }
        self.offset = now.minus(self.started.elapsed());
        Some(jump)
    }
}

/// The census can't know which of two clocks was right; the operator may.
pub(super) fn log_odd_time(now: Timestamp, last_dump: Timestamp) {
    let last = census::time::rfc3339(last_dump);
    if last_dump > now.plus(CLOCK_JUMP_MIN) {
        tracing::error!(
            last,
            "the last list's time is in the future: is this machine's clock right? Once it is later than that list, the census uses it at once; until then, for an hour at most, no list is published unless a host withdraws"
        );
    } else if now.since(last_dump) > Calendar::REAL.unlisted_after() {
        tracing::warn!(
            last,
            "the last list is weeks old: the census was off, or this machine's clock is ahead. A list that lost many names is held back"
        );
    }
}
