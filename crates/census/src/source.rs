//! What is remembered about a public list between two readings, and how a reading changes it.
//!
//! It decides when to read the list next and whether to accept its names. A list that names at
//! least ten times as many hosts as the last time is paused, and none of its names is accepted
//! until an operator approves it: its author and its content may have changed.

use std::time::Duration;

use crate::time::Timestamp;

/// Growth factor from which a source is suspicious.
pub const SUSPECT_TIMES: u64 = 10;

/// What is remembered about a source. The default is for a source that was never read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// Time of the last attempt, with any result except a fault on our side.
    pub tried: Option<Timestamp>,
    /// The last reading whose names were accepted.
    pub taken: Option<Taken>,
    /// Why it is no longer read.
    pub paused: Option<Pause>,
    /// The error of the last attempt, for display.
    pub trouble: Option<String>,
}

/// A reading whose names were accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    pub at: Timestamp,
    /// Number of different names, admitted or not.
    pub names: u64,
}

/// A source that grew too fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    pub since: Timestamp,
    /// Number of names at that time.
    pub names: u64,
    /// Number of names at the reading before.
    pub before: u64,
}

/// What happens to a reading's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// All of them are passed to the gate.
    Take,
    /// None of them is.
    Pause(Pause),
}

impl Memory {
    /// When a source with this `interval` is to be read next. `None` while it is paused. A source
    /// that was never read is due at once. An attempt that is ahead of `now` counts as now, since
    /// clocks jump.
    pub fn due(&self, interval: Duration, now: Timestamp) -> Option<Timestamp> {
        match (self.paused, self.tried) {
            (Some(_), _) => None,
            (None, None) => Some(now),
            (None, Some(tried)) => Some(tried.min(now).plus(interval)),
        }
    }

    /// The memory after a reading of `names` different names, and what happens to them.
    #[must_use]
    pub fn after_reading(&self, names: u64, now: Timestamp) -> (Self, Decision) {
        let tried = Some(now);
        let suspect = self
            .taken
            .filter(|last| names >= last.names.saturating_mul(SUSPECT_TIMES));
        let (taken, paused, decision) = match suspect {
            Some(last) => {
                let pause = Pause {
                    since: now,
                    names,
                    before: last.names,
                };
                (self.taken, Some(pause), Decision::Pause(pause))
            }
            None => (Some(Taken { at: now, names }), None, Decision::Take),
        };
        let after = Self {
            tried,
            taken,
            paused,
            trouble: None,
        };
        (after, decision)
    }

    /// The memory after an attempt that failed through the source's fault.
    #[must_use]
    pub fn after_trouble(&self, trouble: String, now: Timestamp) -> Self {
        Self {
            tried: Some(now),
            trouble: Some(trouble),
            ..self.clone()
        }
    }

    /// The memory after an operator approved the source: it is due, and the next reading is
    /// accepted, whatever its size.
    #[must_use]
    pub fn resumed(&self) -> Self {
        match self.paused {
            None => self.clone(),
            Some(_) => Self::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INTERVAL: Duration = Duration::from_secs(6 * 3600);

    fn taken(names: u64) -> Memory {
        Memory::default().after_reading(names, Timestamp(1)).0
    }

    fn check(before: u64, names: u64, expect: bool) {
        let (after, decision) = taken(before).after_reading(names, Timestamp(2));
        assert_eq!(decision == Decision::Take, expect, "{before}, {names}");
        assert_eq!(after.paused.is_none(), expect);
        let last = after.taken.unwrap();
        assert_eq!(last.names, if expect { names } else { before });
    }

    #[test]
    fn ten_times_the_names_pause_a_source() {
        check(1000, 9999, true);
        check(1000, 10_000, false);
        check(1000, u64::MAX, false);
        check(1000, 1, true);
        check(3, 30, false);
        let (_, decision) = Memory::default().after_reading(u64::MAX, Timestamp(1));
        assert_eq!(decision, Decision::Take);
    }

    #[test]
    fn what_is_paused_is_not_read_until_an_operator_says_so() {
        let (paused, _) = taken(10).after_reading(500, Timestamp(2));
        assert_eq!(paused.due(INTERVAL, Timestamp(i64::MAX)), None);
        let resumed = paused.resumed();
        assert_eq!(resumed.due(INTERVAL, Timestamp(3)), Some(Timestamp(3)));
        let (after, decision) = resumed.after_reading(600, Timestamp(4));
        assert_eq!(decision, Decision::Take);
        assert_eq!(after.taken.unwrap().names, 600);
        // Resuming a source that is not paused changes nothing.
        assert_eq!(taken(10).resumed(), taken(10));
    }

    #[test]
    fn trouble_is_remembered_and_waits_its_interval_too() {
        let after = taken(10).after_trouble("404".to_owned(), Timestamp(1000));
        assert_eq!(after.taken, taken(10).taken);
        let due = Timestamp(1000).plus(INTERVAL);
        assert_eq!(after.due(INTERVAL, Timestamp(2000)), Some(due));
        let (after, _) = after.after_reading(11, Timestamp(2000));
        assert_eq!(after.trouble, None);
    }

    #[test]
    fn a_clock_that_was_set_back_delays_no_source_beyond_its_interval() {
        let after = Memory::default().after_reading(1, Timestamp(i64::MAX)).0;
        let due = Timestamp(5).plus(INTERVAL);
        assert_eq!(after.due(INTERVAL, Timestamp(5)), Some(due));
    }

    proptest! {
        /// However a list grows, each accepted reading is less than ten times as large as the one
        /// before.
        #[test] // S70
        fn nothing_grows_tenfold_unseen(sizes in proptest::collection::vec(1_u64..1_000_000, 1..20)) {
            let mut memory = Memory::default();
            for (at, names) in (0..).map(Timestamp).zip(sizes) {
                let before = memory.taken.map(|taken| taken.names);
                let (after, decision) = memory.after_reading(names, at);
                match decision {
                    Decision::Take => {
                        prop_assert!(before.is_none_or(|before| names < before * 10));
                        prop_assert_eq!(after.taken.map(|taken| taken.names), Some(names));
                    }
                    Decision::Pause(pause) => {
                        prop_assert_eq!((Some(pause.before), pause.names), (before, names));
                        prop_assert_eq!(after.taken.map(|taken| taken.names), before);
                        prop_assert_eq!(after.due(INTERVAL, Timestamp(i64::MAX)), None);
                        break;
                    }
                }
                memory = after;
            }
        }
    }
}
