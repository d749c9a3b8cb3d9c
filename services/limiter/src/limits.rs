//! The settings of a limiter, and the bound of its queue.

use std::time::Duration;

use thiserror::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long every call takes at least. Longer than [`Self::wait_max`] and the computation
    /// together; otherwise a call's time shows what happened in it.
    pub run_time: Duration,
    /// Upper bound of the random time that is added to a call.
    pub jitter: Duration,
    pub concurrency: usize,
    /// Longest wait of a call until its computation may run.
    pub wait_max: Duration,
    /// Most calls in progress, and most sleeping refusals. Further calls are answered at once,
    /// because sleeping calls take memory.
    pub calls_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            run_time: Duration::from_secs(1),
            jitter: Duration::from_millis(100),
            concurrency: 4,
            wait_max: Duration::from_millis(600),
            // A thousand logins a second. A call takes a few kilobytes.
            calls_max: 1000,
        }
    }
}

/// How long a computation takes, which determines the queue's bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkTime {
    /// The caller's measurement: the longest of a few computations. A slow average of the calls
    /// adjusts it.
    Measured(Duration),
    /// Unknown until the first call has ended, and then the time of that call. Until then the queue
    /// has no bound. This is the original's rule, for comparisons with it.
    FirstCall,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unfit {
    #[error("at least one computation must be able to run at once")]
    NoConcurrency,
    /// Calls that waited would end later than others.
    #[error(
        "a call may wait {wait_max:?} and then compute for {work_time:?}, which is longer than its constant time of {run_time:?}: raise that time, or let calls wait less"
    )]
    TooShort {
        run_time: Duration,
        wait_max: Duration,
        work_time: Duration,
    },
}

impl Limits {
    /// Checks that a limiter can keep its promises with computations that take this long.
    pub fn check(&self, work_time: Duration) -> Result<(), Unfit> {
        if self.concurrency == 0 {
            return Err(Unfit::NoConcurrency);
        }
        if self.wait_max.saturating_add(work_time) > self.run_time {
            return Err(Unfit::TooShort {
                run_time: self.run_time,
                wait_max: self.wait_max,
                work_time,
            });
        }
        Ok(())
    }

    /// Most calls that may wait: the number of computations within the longest wait, less one in
    /// case computations take a little longer, and at least one.
    ///
    /// max(1, floor(concurrency × `wait_max` / `work_time`) − 1). A `work_time` of zero counts as a
    /// fifth of [`Self::run_time`].
    pub fn waiting_max(&self, work_time: Duration) -> usize {
        let fifth = self.run_time.checked_div(5).unwrap_or_default();
        let work_time = if work_time.is_zero() {
            fifth
        } else {
            work_time
        };
        let concurrency = u128::try_from(self.concurrency).unwrap_or(u128::MAX);
        let turns = concurrency
            .saturating_mul(self.wait_max.as_nanos())
            .checked_div(work_time.as_nanos())
            .unwrap_or(u128::MAX);
        usize::try_from(turns)
            .unwrap_or(usize::MAX)
            .saturating_sub(1)
            .max(1)
    }

    /// Duration of a call with this share of the jitter, in [0, 1).
    pub(crate) fn call_time(&self, jitter_share: f64) -> Duration {
        let share = if jitter_share.is_finite() {
            jitter_share.clamp(0.0, 1.0)
        } else {
            0.0
        };
        self.run_time.saturating_add(self.jitter.mul_f64(share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(concurrency: usize, wait_ms: u64) -> Limits {
        Limits {
            concurrency,
            wait_max: Duration::from_millis(wait_ms),
            ..Limits::default()
        }
    }

    #[test]
    fn as_many_wait_as_get_their_turn() {
        for (concurrency, wait_ms, work_ms, expect) in [
            (4, 600, 220, 9),
            (2, 410, 200, 3),
            (4, 600, 1, 2399),
            (4, 600, 600, 3),
            (1, 600, 600, 1),
            (1, 100, 600, 1),
            (1, 0, 200, 1),
            // A time of zero counts as 200 ms.
            (4, 600, 0, 11),
        ] {
            let found = limits(concurrency, wait_ms).waiting_max(Duration::from_millis(work_ms));
            assert_eq!(found, expect, "{concurrency} {wait_ms} {work_ms}");
        }
        let endless = Limits {
            run_time: Duration::ZERO,
            ..limits(1, 600)
        };
        assert_eq!(endless.waiting_max(Duration::ZERO), usize::MAX - 1);
    }

    #[test]
    fn a_constant_time_that_waiting_and_work_exceed_is_refused() {
        let limits = limits(4, 600);
        assert_eq!(limits.check(Duration::from_millis(400)), Ok(()));
        let unfit = limits.check(Duration::from_millis(401)).unwrap_err();
        assert!(matches!(unfit, Unfit::TooShort { .. }), "{unfit}");
        let none = Limits {
            concurrency: 0,
            ..limits
        };
        assert_eq!(none.check(Duration::ZERO), Err(Unfit::NoConcurrency));
    }

    #[test]
    fn jitter_is_a_share_and_nothing_else() {
        let limits = Limits::default();
        for (share, expect_ms) in [(0.0, 1000), (0.5, 1050), (7.0, 1100), (f64::NAN, 1000)] {
            assert_eq!(limits.call_time(share), Duration::from_millis(expect_ms));
        }
    }
}
