//! The calls inside a limiter: those in progress, those that wait, and how long computations take.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::limits::{Limits, WorkTime};

/// A call moves the average computation time by the difference divided by this, so that moving the
/// queue's bound takes dozens of calls.
const FOLLOW_BY: u32 = 16;

/// The average does not fall below the measured time divided by this: computations that fail early
/// must not enlarge the queue.
const FOLLOW_DOWN_TO: u32 = 2;

#[derive(Debug)]
pub(crate) struct Inside {
    limits: Limits,
    /// The caller's measurement. `None` under [`WorkTime::FirstCall`].
    measured: Option<Duration>,
    counts: Mutex<Counts>,
}

#[derive(Debug)]
pub(crate) struct Counts {
    calls: usize,
    refusals: usize,
    waiting: usize,
    /// `None` before it is known.
    work_time: Option<Duration>,
}

/// A call in progress, a sleeping refusal, or a slot of the queue. Dropping it ends that.
#[derive(Debug)]
pub(crate) struct Counted {
    inside: Arc<Inside>,
    count: fn(&mut Counts) -> &mut usize,
}

impl Inside {
    pub(crate) fn new(limits: Limits, work_time: WorkTime) -> Self {
        let measured = match work_time {
            WorkTime::Measured(measured) => Some(measured),
            WorkTime::FirstCall => None,
        };
        Self {
            limits,
            measured,
            counts: Mutex::new(Counts {
                calls: 0,
                refusals: 0,
                waiting: 0,
                work_time: measured,
            }),
        }
    }

    /// Begins a call. `None` if too many are in progress.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Counted> {
        self.count(|counts| &mut counts.calls, self.limits.calls_max)
    }

    /// Begins a refusal. `None` if too many sleep. They are counted separately, so that a banned
    /// address takes no slots from other calls.
    pub(crate) fn enter_refusal(self: &Arc<Self>) -> Option<Counted> {
        self.count(|counts| &mut counts.refusals, self.limits.calls_max)
    }

    /// Takes a slot of the queue. `None` if it is full.
    pub(crate) fn queue(self: &Arc<Self>) -> Option<Counted> {
        let bound = self.work_time().map(|time| self.limits.waiting_max(time));
        self.count(|counts| &mut counts.waiting, bound.unwrap_or(usize::MAX))
    }

    fn count(
        self: &Arc<Self>,
        count: fn(&mut Counts) -> &mut usize,
        most: usize,
    ) -> Option<Counted> {
        let mut counts = self.counts();
        let number = count(&mut counts);
        if *number >= most {
            return None;
        }
        *number = number.saturating_add(1);
        let inside = Arc::clone(self);
        Some(Counted { inside, count })
    }

    /// Records how long a call waited and its computation took.
    pub(crate) fn computed(&self, waited: Duration, worked: Duration) {
        let mut counts = self.counts();
        counts.work_time = Some(match (self.measured, counts.work_time) {
            (Some(measured), Some(average)) => {
                let kept = average.saturating_sub(average / FOLLOW_BY);
                let least = measured / FOLLOW_DOWN_TO;
                kept.saturating_add(worked / FOLLOW_BY).max(least)
            }
            // The original includes the waiting time, and never measures again.
            (_, None) => waited.saturating_add(worked),
            (None, Some(first)) => first,
        });
    }

    /// The estimate of a computation's time. `None` before it is known.
    pub(crate) fn work_time(&self) -> Option<Duration> {
        self.counts().work_time
    }

    /// Number of calls in progress, including refusals, and of calls that wait.
    pub(crate) fn counts_now(&self) -> (usize, usize) {
        let counts = self.counts();
        (counts.calls.saturating_add(counts.refusals), counts.waiting)
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.inside.counts();
        let number = (self.count)(&mut counts);
        *number = number.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS_200: Duration = Duration::from_millis(200);

    fn inside(work_time: WorkTime) -> Inside {
        Inside::new(Limits::default(), work_time)
    }

    #[test]
    fn one_odd_call_moves_the_bound_by_little() {
        let inside = inside(WorkTime::Measured(MS_200));
        inside.computed(Duration::ZERO, Duration::from_millis(1));
        let after = inside.work_time().unwrap();
        assert!(after > Duration::from_millis(187), "{after:?}");
        for _ in 0..1000 {
            inside.computed(Duration::ZERO, Duration::ZERO);
        }
        assert_eq!(inside.work_time(), Some(MS_200 / 2), "not below half");
        for _ in 0..1000 {
            inside.computed(Duration::from_secs(9), MS_200 * 2);
        }
        let slow = inside.work_time().unwrap();
        assert!(
            slow > Duration::from_millis(399) && slow <= MS_200 * 2,
            "{slow:?}"
        );
    }

    #[test]
    fn the_originals_bound_is_its_first_calls() {
        let inside = inside(WorkTime::FirstCall);
        assert_eq!(inside.work_time(), None);
        inside.computed(Duration::from_millis(20), MS_200);
        inside.computed(Duration::ZERO, Duration::from_secs(5));
        assert_eq!(inside.work_time(), Some(Duration::from_millis(220)));
    }
}
