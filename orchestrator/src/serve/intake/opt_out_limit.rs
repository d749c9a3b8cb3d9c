//! Limits the opt-outs of hosts that the census does not know.
//!
//! At most [`DOMAIN_MAX`] of one domain and [`ALL_MAX`] in total pass within a day, counted from
//! the first one. A restart begins a new count, which admits up to another day's worth.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Per registered domain and day: as many instances as one owner sets up. A hoster with more writes
/// to the operator.
pub(super) const DOMAIN_MAX: u32 = 20;

/// In total per day. Each costs a row forever: a year of such days makes 365 000 rows, some 100 MB.
pub(super) const ALL_MAX: u32 = 1000;

pub(super) const WINDOW: Duration = Duration::from_secs(24 * 60 * 60);

/// The counts of the current window, for at most [`ALL_MAX`] domains.
#[derive(Debug, Default)]
pub(super) struct OptOutLimit {
    began: Option<Instant>,
    all: u32,
    domains: HashMap<String, u32>,
}

impl OptOutLimit {
    /// Counts one opt-out.
    ///
    /// # Errors
    /// The time until the next window if there is no room. Nothing is counted then.
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
    fn a_million_domains_share_one_limit_a_day() {
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
