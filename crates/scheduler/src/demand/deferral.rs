//! When a host that the gateway deferred is due again.

use std::time::Duration;

use census::state::Record;
use census::time::Timestamp;
use protocol::egress::Deferral;

use crate::command::Wait;

/// Longest deferral for a host that has responded before; it waits up to twice as long. It then
/// asks again before the turn that the gateway promised. That costs no look-up, unless it failed
/// before.
///
/// Such a host never waits behind more than a minute of others. Otherwise anyone who lists junk
/// names below its domain, or points names at its address, could delay it until it is off the list.
const RESPONDED_WAIT_MAX: Duration = Duration::from_secs(30);

/// Early asks per minute that are harmless: ten a second, some milliseconds each.
const EARLY_ASKS_MAX: u32 = 600;

/// Early asks wait at most this many times as long: half an hour, compared to the fortnight for
/// which a host stays listed.
const STRETCH_MAX: u32 = 60;

/// Counts hosts that ask before their promised turn. Anyone who runs tens of thousands of
/// responding names could cause thousands of early asks a second. So the more ask early, the longer
/// each of them waits.
#[derive(Debug, Default)]
pub(crate) struct EarlyAsks {
    minute: i64,
    this_minute: u32,
    last_minute: u32,
}

impl EarlyAsks {
    /// How long a deferred host waits. The gateway promises turns one by one, so a host that has
    /// never responded keeps to its promise. Hosts that wait for anything other than a pace return
    /// spread out.
    pub(crate) fn wait(
        &mut self,
        record: &Record,
        why: Deferral,
        retry_after: Duration,
        now: Timestamp,
    ) -> Wait {
        match why {
            Deferral::GroupPace | Deferral::AddressPace | Deferral::BlockPace => {
                if record.last_alive.is_none() || retry_after <= RESPONDED_WAIT_MAX {
                    return Wait::Until(now.plus(retry_after));
                }
                Wait::Spread {
                    at_least: RESPONDED_WAIT_MAX.saturating_mul(self.count(now)),
                    at_most: retry_after,
                }
            }
            Deferral::DialPace | Deferral::Dns | Deferral::NoFamily | Deferral::Full => {
                Wait::spread(retry_after)
            }
        }
    }

    /// Counts one early ask. Returns the factor for its wait.
    fn count(&mut self, now: Timestamp) -> u32 {
        let minute = now.0.div_euclid(60_000);
        if minute != self.minute {
            let follows = minute.checked_sub(self.minute) == Some(1);
            self.last_minute = if follows { self.this_minute } else { 0 };
            (self.minute, self.this_minute) = (minute, 0);
        }
        self.this_minute = self.this_minute.saturating_add(1);
        let busiest = self.last_minute.max(self.this_minute);
        (busiest / EARLY_ASKS_MAX)
            .saturating_add(1)
            .min(STRETCH_MAX)
    }
}

/// Whether the gateway deferred a host because of its paces, before it dialled.
pub(crate) fn is_pace(why: Deferral) -> bool {
    match why {
        Deferral::GroupPace | Deferral::AddressPace | Deferral::BlockPace | Deferral::DialPace => {
            true
        }
        Deferral::Dns | Deferral::NoFamily | Deferral::Full => false,
    }
}

#[cfg(test)]
mod tests {
    use census::state::State;
    use census::time::{Calendar, Jitter};

    use super::*;

    const TOLD: Duration = Duration::from_secs(48 * 3600);

    fn record(last_alive: Option<Timestamp>) -> Record {
        Record {
            last_alive,
            ..kit::record(State::Discovered)
        }
    }

    /// Makes `count` early asks within a minute. Returns the shortest wait of the last one.
    fn minute(early: &mut EarlyAsks, minute: i64, count: u32) -> Duration {
        let (record, now) = (record(Some(Timestamp(1))), Timestamp(minute * 60_000));
        let waits = (0..count).map(|_| early.wait(&record, Deferral::GroupPace, TOLD, now));
        let due = waits.last().unwrap().due(now, Jitter(0), Calendar::REAL);
        due.since(now)
    }

    #[test]
    fn few_early_asks_wait_half_a_minute_and_many_wait_longer() {
        let mut early = EarlyAsks::default();
        let wait = RESPONDED_WAIT_MAX;
        assert_eq!(minute(&mut early, 1, EARLY_ASKS_MAX - 1), wait);
        assert_eq!(minute(&mut early, 2, 1), wait);
        assert_eq!(minute(&mut early, 3, EARLY_ASKS_MAX * 5), wait * 6);
        assert_eq!(
            minute(&mut early, 4, 1),
            wait * 6,
            "the minute before counts"
        );
        assert_eq!(minute(&mut early, 9, 1), wait, "that was long ago");
        let most = minute(&mut early, 10, EARLY_ASKS_MAX * 100);
        assert_eq!(most, wait * STRETCH_MAX);
    }

    #[test]
    fn junk_below_its_domain_keeps_no_responding_host_waiting() {
        let now = Timestamp(1_700_000_000_000);
        let wait = |record: &Record, told| {
            let wait = EarlyAsks::default().wait(record, Deferral::GroupPace, told, now);
            let due = wait.due(now, Jitter(u32::MAX), Calendar::REAL);
            due.since(now)
        };
        let (stranger, responding) = (record(None), record(Some(Timestamp(1))));
        assert_eq!(wait(&stranger, TOLD), TOLD, "a promised turn is kept");
        assert!(wait(&responding, TOLD) <= RESPONDED_WAIT_MAX * 2);
        let three = Duration::from_secs(3);
        assert_eq!(wait(&responding, three), three);
    }

    #[test]
    fn no_host_waits_longer_than_its_turn() {
        let mut early = EarlyAsks::default();
        minute(&mut early, 1, EARLY_ASKS_MAX * 100);
        let (told, now) = (RESPONDED_WAIT_MAX * 2, Timestamp(60_000));
        let wait = early.wait(&record(Some(now)), Deferral::BlockPace, told, now);
        let due = wait.due(now, Jitter(u32::MAX), Calendar::REAL);
        assert_eq!(due.since(now), told);
    }

    #[test]
    fn a_clock_at_the_ends_of_time_does_no_harm() {
        let mut early = EarlyAsks::default();
        for now in [i64::MIN, i64::MAX, 0] {
            assert_eq!(early.count(Timestamp(now)), 1);
        }
    }
}
