//! Limits the console's decisions per day: each is kept forever, and a console that was taken over
//! could fill the disk with them.

use std::time::{Duration, Instant};

/// Decisions per day: twenty full forms.
pub(crate) const DECISIONS_PER_DAY: usize = 2000;

const DAY: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Default)]
pub(super) struct DayBudget {
    began: Option<Instant>,
    decisions: usize,
}

impl DayBudget {
    /// Takes `decisions` from the day's budget.
    pub(super) fn take(&mut self, decisions: usize, now: Instant) -> Result<(), String> {
        let is_over = |began: Instant| now.saturating_duration_since(began) >= DAY;
        if self.began.is_none_or(is_over) {
            self.began = Some(now);
            self.decisions = 0;
        }
        let decisions = self.decisions.saturating_add(decisions);
        if decisions > DECISIONS_PER_DAY {
            return Err(format!(
                "moderators have made {} of {DECISIONS_PER_DAY} decisions today: decide by command, or tomorrow",
                self.decisions
            ));
        }
        self.decisions = decisions;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_decided_in_a_day_than_the_budget() {
        let (mut budget, now) = (DayBudget::default(), Instant::now());
        assert!(budget.take(DECISIONS_PER_DAY - 1, now).is_ok());
        assert!(budget.take(2, now).is_err());
        assert!(budget.take(1, now).is_ok(), "a refusal takes nothing");
        assert!(budget.take(1, now + DAY / 2).is_err());
        assert!(budget.take(DECISIONS_PER_DAY, now + DAY).is_ok());
    }
}
