//! The limiter: constant time, few computations at once, bounded waiting.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout};

use std::time::Duration;

use crate::inside::Inside;
use crate::limits::{Limits, Unfit, WorkTime};
use crate::metrics::Metrics;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// The computation ran, whatever its result.
    Ran,
    /// As many calls wait as may.
    WaitLimitFull,
    /// It waited as long as a call may.
    ExceededMaxWait,
    /// Too many calls are in progress, so this one got its answer at once.
    TooManyCalls,
    /// Its address is banned.
    BannedIp,
    /// Its address made too many attempts and is banned from now on.
    RateLimited,
    /// Its user is locked.
    LockedUser,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Ran,
        Self::WaitLimitFull,
        Self::ExceededMaxWait,
        Self::TooManyCalls,
        Self::BannedIp,
        Self::RateLimited,
        Self::LockedUser,
    ];

    /// The name in metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::WaitLimitFull => "wait-limit-full",
            Self::ExceededMaxWait => "exceeded-max-wait",
            Self::TooManyCalls => "too-many-calls",
            Self::BannedIp => "banned-ip",
            Self::RateLimited => "rate-limited",
            Self::LockedUser => "locked-user",
        }
    }
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call<T> {
    /// How it ended.
    pub status: Status,
    /// The computation's result, if it ran.
    pub value: Option<T>,
    /// When; `None` for a call that was answered at once.
    pub times: Option<Times>,
}

/// When a call began and ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// The call was made.
    pub entered: Instant,
    /// Its constant time was over.
    pub exited: Instant,
}

/// The right to compute. Moved into the computation, so that one that outlives its call, as a
/// blocking one does whose client hung up, still counts as running.
#[derive(Debug)]
pub struct Permit {
    _running: OwnedSemaphorePermit,
}

/// Bounds a computation; see the crate's documentation.
#[derive(Debug)]
pub struct Limiter {
    limits: Limits,
    running: Arc<Semaphore>,
    inside: Arc<Inside>,
    metrics: Arc<Metrics>,
}

impl Limiter {
    /// A limiter of computations that take this long.
    ///
    /// # Errors
    /// When the limits contradict each other or the computations' time. [`WorkTime::FirstCall`] is
    /// not checked against them.
    pub fn new(limits: Limits, work_time: WorkTime) -> Result<Self, Unfit> {
        let known = match work_time {
            WorkTime::Measured(measured) => measured,
            WorkTime::FirstCall => limits.run_time.saturating_sub(limits.wait_max),
        };
        if work_time != WorkTime::FirstCall || limits.concurrency == 0 {
            limits.check(known)?;
        }
        Ok(Self {
            running: Arc::new(Semaphore::new(
                limits.concurrency.min(Semaphore::MAX_PERMITS),
            )),
            inside: Arc::new(Inside::new(limits, work_time)),
            metrics: Arc::default(),
            limits,
        })
    }

    /// Computes, if it may, and returns when its constant time is over.
    ///
    /// `jitter_share` is uniform in [0, 1) and can't be foreseen. Dropping the future gives back
    /// what the call holds; the [`Permit`] is the computation's, to drop at its end.
    pub async fn call<T, E, F>(
        &self,
        jitter_share: f64,
        work: impl FnOnce(Permit) -> F,
    ) -> Call<Result<T, E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let Some(_in_progress) = self.inside.enter() else {
            return self.answered_at_once(Status::TooManyCalls);
        };
        let entered = Instant::now();
        let (status, value) = match self.compute(entered, work).await {
            Ok(value) => (Status::Ran, Some(value)),
            Err(status) => (status, None),
        };
        let times = self.exit(entered, jitter_share).await;
        let failed = value.as_ref().is_some_and(Result::is_err);
        self.metrics.computed(status, failed, times);
        Call {
            status,
            value,
            times: Some(times),
        }
    }

    /// Computes nothing, and returns when the constant time is over.
    pub async fn wait_only<T>(&self, jitter_share: f64) -> Call<T> {
        self.refuse(Status::WaitLimitFull, jitter_share).await
    }

    /// Takes as long as a call that computes.
    pub(crate) async fn refuse<T>(&self, status: Status, jitter_share: f64) -> Call<T> {
        let Some(_in_progress) = self.inside.enter() else {
            return self.answered_at_once(Status::TooManyCalls);
        };
        let times = self.exit(Instant::now(), jitter_share).await;
        self.metrics.computed(status, false, times);
        Call {
            status,
            value: None,
            times: Some(times),
        }
    }

    /// How long a computation takes now; `None` before the first one under
    /// [`WorkTime::FirstCall`].
    pub fn work_time(&self) -> Option<Duration> {
        self.inside.work_time()
    }

    /// How many calls may wait now; `None` while that has no bound.
    pub fn waiting_max(&self) -> Option<usize> {
        let work_time = self.work_time()?;
        Some(self.limits.waiting_max(work_time))
    }

    /// Calls in progress.
    pub fn in_progress(&self) -> usize {
        self.inside.counts_now().0
    }

    /// Calls that wait until they may compute.
    pub fn waiting(&self) -> usize {
        self.inside.counts_now().1
    }

    /// Computations that run.
    pub fn running(&self) -> usize {
        let free = self.running.available_permits();
        self.limits.concurrency.saturating_sub(free)
    }

    /// What was counted.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    async fn compute<T, F>(
        &self,
        entered: Instant,
        work: impl FnOnce(Permit) -> F,
    ) -> Result<T, Status>
    where
        F: Future<Output = T>,
    {
        let waiting = self.inside.queue().ok_or(Status::WaitLimitFull)?;
        let running = Arc::clone(&self.running).acquire_owned();
        // The semaphore is never closed.
        let Ok(Ok(running)) = timeout(self.limits.wait_max, running).await else {
            return Err(Status::ExceededMaxWait);
        };
        drop(waiting);
        let began = Instant::now();
        let value = work(Permit { _running: running }).await;
        let (waited, worked) = (began.saturating_duration_since(entered), began.elapsed());
        self.inside.computed(waited, worked);
        self.metrics.worked(waited, worked);
        Ok(value)
    }

    async fn exit(&self, entered: Instant, jitter_share: f64) -> Times {
        let target = entered.checked_add(self.limits.call_time(jitter_share));
        sleep_until(target.unwrap_or(entered)).await;
        Times {
            entered,
            exited: Instant::now(),
        }
    }

    fn answered_at_once<T>(&self, status: Status) -> Call<T> {
        self.metrics.answered_at_once(status);
        Call {
            status,
            value: None,
            times: None,
        }
    }
}

#[cfg(test)]
mod tests;
