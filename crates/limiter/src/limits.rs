//! The settings of a limiter, and the bound of its queue.

use std::time::Duration;

use thiserror::Error;

/// The settings of a [`crate::Limiter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long every call takes at least. Longer than [`Self::wait_max`] and the computation
    /// together, or a call's time shows what happened in it.
    pub run_time: Duration,
    /// Added to a call's time: a random share of this.
    pub jitter: Duration,
    /// Computations that run at once.
    pub concurrency: usize,
    /// How long a call waits until its computation may run.
    pub wait_max: Duration,
    /// Calls in progress, and as many refusals that sleep. A call above it is answered at once,
    /// since sleeping calls take memory.
    pub calls_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            run_time: Duration::from_secs(1),
            jitter: Duration::from_millis(100),
            concurrency: 4,
            wait_max: Duration::from_millis(600),
            // A thousand logins a second. A call takes some kilobytes.
            calls_max: 1000,
        }
    }
}

/// How long a computation takes, from which the queue's bound is derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkTime {
    /// Measured by the caller before: the longest of a few computations. A slow average of the
    /// calls follows from there.
    Measured(Duration),
    /// Unknown, and no queue is bounded, until the first call has ended: the time of that one from
    /// then on. The original's rule, for comparisons with it.
    FirstCall,
}

/// Why a limiter can't have these limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unfit {
    /// Nothing could run.
    #[error("at least one computation must be able to run at once")]
    NoConcurrency,
    /// Calls that waited would end later than others.
    #[error(
        "a call may wait {wait_max:?} and then compute for {work_time:?}, which is longer than its constant time of {run_time:?}: raise that time, or let calls wait less"
    )]
    TooShort {
        /// [`Limits::run_time`].
        run_time: Duration,
        /// [`Limits::wait_max`].
        wait_max: Duration,
        /// What a computation takes.
        work_time: Duration,
    },
}

impl Limits {
    /// Whether a limiter can keep its promises with computations that take this long.
    ///
    /// # Errors
    /// When it can't.
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

    /// How many calls may wait: the number that can be computed within the longest wait, less one
    /// for computations that take a little longer, and at least one.
    ///
    /// max(1, floor(concurrency × `wait_max` / `work_time`) − 1), in which a computation without
    /// any time counts as a fifth of [`Self::run_time`].
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

    /// How long a call takes, with this share of the jitter, in [0, 1).
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
            // No time counts as 200 ms.
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
