//! The log's line of an hour: what its checks came to. Checks themselves are logged at `debug`,
//! since a day has ten thousands.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use census::time::{Calendar, Timestamp};

const HOUR: Duration = Duration::from_hours(1);

/// The shortest hour of a lab, so that its log stays readable.
const HOUR_MIN: Duration = Duration::from_secs(10);

/// Ended checks by outcome, and when the hour began.
#[derive(Debug)]
pub(in crate::daemon) struct Hour {
    lasts: Duration,
    began: Timestamp,
    before: BTreeMap<String, u64>,
    /// Failures of this hour that changed no host's state.
    uncounted: u64,
}

impl Hour {
    pub(in crate::daemon) fn start(now: Timestamp, calendar: Calendar) -> Self {
        Self {
            lasts: calendar.shortened(HOUR).max(HOUR_MIN),
            began: now,
            before: BTreeMap::new(),
            uncounted: 0,
        }
    }

    /// A failure did not count: it was the first, hit others as well, or nothing confirmed it.
    pub(super) fn failure_did_not_count(&mut self) {
        self.uncounted = self.uncounted.saturating_add(1);
    }

    /// The line of an hour that is over. `ended` counts all checks since the daemon's start.
    pub(in crate::daemon) fn line(
        &mut self,
        now: Timestamp,
        ended: impl FnOnce() -> BTreeMap<String, u64>,
    ) -> Option<String> {
        // A clock that was set back begins another hour.
        if now >= self.began && now.since(self.began) < self.lasts {
            return None;
        }
        let ended = ended();
        let before = |outcome: &String| self.before.get(outcome).copied().unwrap_or(0);
        let new = |(outcome, count): (&String, &u64)| count.saturating_sub(before(outcome));
        let sum: u64 = ended.iter().map(new).sum();
        let checks = if sum == 1 { "check" } else { "checks" };
        let mut line = format!("{sum} {checks} in the last hour");
        let mut separator = ": ";
        for (outcome, count) in &ended {
            let count = new((outcome, count));
            if count > 0 {
                // Writing to a String can't fail.
                write!(line, "{separator}{count} {outcome}").ok();
                separator = ", ";
            }
        }
        match std::mem::take(&mut self.uncounted) {
            0 => {}
            1 => line.push_str("; 1 failure did not count"),
            several => {
                write!(line, "; {several} failures did not count").ok();
            }
        }
        (self.began, self.before) = (now, ended);
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hour_has_one_line_with_its_own_checks() {
        let start = Timestamp(1_790_000_000_000);
        let mut hour = Hour::start(start, Calendar::REAL);
        let ended = |alive: u64, fault: u64| {
            let counts = [("alive", alive), ("fault", fault)];
            counts
                .map(|(outcome, count)| (outcome.to_owned(), count))
                .into()
        };
        let early = start.plus(HOUR - Duration::from_millis(1));
        assert_eq!(hour.line(early, || ended(7, 1)), None);
        for (hours, counts, expect) in [
            (
                1,
                ended(8, 1),
                "9 checks in the last hour: 8 alive, 1 fault",
            ),
            (
                2,
                ended(9, 1),
                "1 check in the last hour: 1 alive; 2 failures did not count",
            ),
            (3, ended(9, 1), "0 checks in the last hour"),
        ] {
            if hours == 2 {
                hour.failure_did_not_count();
                hour.failure_did_not_count();
            }
            let line = hour.line(start.plus(HOUR * hours), || counts);
            assert_eq!(line.as_deref(), Some(expect));
        }
        assert!(hour.line(start, || ended(9, 1)).is_some(), "set back");
    }
}
