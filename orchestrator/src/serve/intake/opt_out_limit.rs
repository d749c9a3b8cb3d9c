//! How many hosts that the census does not know may opt out.
//!
//! In: a registered domain and the moment. Out: go, or how long to wait. Never more than [`DOMAIN_MAX`] of one domain and [`ALL_MAX`] in all in a
//! day, each counted from the first one on. A restart begins anew, which lets a day's worth more through.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Of one registered domain in a day: as many instances as one owner sets up. A hoster of more writes to the operator.
pub(super) const DOMAIN_MAX: u32 = 20;

/// Of all in a day. They cost a row each, for ever: a year of such days has 365 000 of them, some 100 MB.
pub(super) const ALL_MAX: u32 = 1000;

/// A day.
pub(super) const WINDOW: Duration = Duration::from_secs(24 * 60 * 60);

/// What was counted in the present window. It has at most [`ALL_MAX`] domains.
#[derive(Debug, Default)]
pub(super) struct OptOutLimit {
    began: Option<Instant>,
    all: u32,
    domains: HashMap<String, u32>,
}

impl OptOutLimit {
    /// Counts one.
    ///
    /// # Errors
    /// How long until the next window, when there is no room. Nothing is counted then.
    pub(super) fn admit(&mut self, domain: &str, now: Instant) -> Result<(), Duration> {
        let began = match self.began {
            Some(began) if now.saturating_duration_since(began) < WINDOW => began,
            Some(_) | None => {
                self.all = 0;
                self.domains.clear();
                *self.began.insert(now)
            }
        };
        let of_domain = self.domains.get(domain).copied().unwrap_or(0);
        if self.all >= ALL_MAX || of_domain >= DOMAIN_MAX {
            return Err(WINDOW.saturating_sub(now.saturating_duration_since(began)));
        }
        self.all = self.all.saturating_add(1);
        self.domains
            .insert(domain.to_owned(), of_domain.saturating_add(1));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_domain_never_takes_the_room_of_all() {
        let mut limit = OptOutLimit::default();
        let now = Instant::now();
        let mut through = |domain: &str| {
            (0..2000)
                .filter(|_| limit.admit(domain, now).is_ok())
                .count()
        };
        assert_eq!(through("farm.example"), 20);
        assert_eq!(through("other.example"), 20);
    }

    #[test]
    fn a_million_domains_get_no_further_than_the_limit_of_all_and_room_comes_back_after_a_day() {
        let mut limit = OptOutLimit::default();
        let start = Instant::now();
        let mut through = |now| {
            (0..100_000)
                .filter(|number| limit.admit(&format!("n{number}.example"), now).is_ok())
                .count()
        };
        assert_eq!(through(start), 1000);
        assert_eq!(through(start + WINDOW - Duration::from_secs(1)), 0);
        assert_eq!(through(start + WINDOW), 1000);
        assert!(limit.domains.len() <= 1000);
    }
}
