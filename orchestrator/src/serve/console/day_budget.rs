//! Limits the console's decisions per day: each is kept forever, and a console that was taken over
//! could fill the disk with them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Decisions of all moderators per day: twenty full forms.
const DECISIONS_PER_DAY: usize = 2000;

/// Decisions of one moderator per day: a stolen session leaves as many to the others.
const SHARE_PER_DAY: usize = DECISIONS_PER_DAY / 2;

const DAY: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Default)]
pub(super) struct DayBudget {
    began: Option<Instant>,
    /// Decisions that were made. Orders in progress are not counted yet, so their number may come
    /// on top of the limits.
    by_moderator: HashMap<String, usize>,
}

impl DayBudget {
    /// Checks that a moderator may decide once more.
    pub(super) fn check(&mut self, moderator: &str, now: Instant) -> Result<(), String> {
        let is_over = |began: Instant| now.saturating_duration_since(began) >= DAY;
        if self.began.is_none_or(is_over) {
            self.began = Some(now);
            self.by_moderator.clear();
        }
        let all = self.by_moderator.values().sum();
        let own = self.by_moderator.get(moderator).copied().unwrap_or(0);
        for (who, made, most) in [
            ("moderators have", all, DECISIONS_PER_DAY),
            ("you have", own, SHARE_PER_DAY),
        ] {
            if made >= most {
                return Err(format!(
                    "{who} made {made} of {most} decisions today: decide by command, or tomorrow"
                ));
            }
        }
        Ok(())
    }

    /// Counts a decision that was made.
    pub(super) fn charge(&mut self, moderator: &str) {
        let made = self.by_moderator.entry(moderator.to_owned()).or_default();
        *made = made.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // S22
    fn no_more_is_decided_in_a_day_than_the_budget() {
        let (mut budget, now) = (DayBudget::default(), Instant::now());
        let decide = |budget: &mut DayBudget, moderator: &str, at: Instant| {
            let may = budget.check(moderator, at).is_ok();
            if may {
                budget.charge(moderator);
            }
            may
        };
        for _ in 0..SHARE_PER_DAY {
            assert!(decide(&mut budget, "ada", now));
        }
        assert!(!decide(&mut budget, "ada", now), "ada's share");
        for _ in 0..SHARE_PER_DAY {
            assert!(decide(&mut budget, "bea", now), "the others' share");
        }
        assert!(!decide(&mut budget, "cleo", now + DAY / 2));
        assert!(decide(&mut budget, "ada", now + DAY));
    }
}
