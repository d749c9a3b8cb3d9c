//! The limiter: constant time, few parallel computations, bounded waiting.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout};

use crate::inside::{Counted, Inside};
use crate::limits::{Limits, Unfit, WorkTime};
use crate::metrics::Metrics;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// The computation ran, whatever its result.
    Ran,
    WaitLimitFull,
    /// It waited as long as a call may.
    ExceededMaxWait,
    /// Too many calls are in progress, so this one was answered at once.
    TooManyCalls,
    BannedIp,
    /// Its address made too many attempts, and is banned from now on.
    RateLimited,
    LockedUser,
}

impl Status {
    pub const ALL: [Self; 7] = [
        Self::Ran,
        Self::WaitLimitFull,
        Self::ExceededMaxWait,
        Self::TooManyCalls,
        Self::BannedIp,
        Self::RateLimited,
        Self::LockedUser,
    ];

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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call<T> {
    pub status: Status,
    /// The computation's result, if it ran.
    pub value: Option<T>,
    /// When it began and ended. `None` for a call that was answered at once.
    pub times: Option<Times>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    pub entered: Instant,
    /// When its constant time was over.
    pub exited: Instant,
}

#[derive(Debug)]
pub(crate) struct Entry {
    #[expect(dead_code, reason = "its drop gives the slot back")]
    in_progress: Counted,
    pub(crate) entered: Instant,
}

/// The right to compute. The caller moves it into the computation. A blocking computation may
/// outlive its call, if the client disconnects, and still counts as running.
#[derive(Debug)]
pub struct Permit {
    _running: OwnedSemaphorePermit,
}

#[derive(Debug)]
pub struct Limiter {
    limits: Limits,
    running: Arc<Semaphore>,
    inside: Arc<Inside>,
    metrics: Arc<Metrics>,
}

impl Limiter {
    /// A limiter for computations that take this long.
    ///
    /// # Errors
    /// Fails if the limits contradict each other or the computations' time. [`WorkTime::FirstCall`]
    /// is not checked against them.
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

    /// Runs the computation if it may, and returns when the constant time is over.
    ///
    /// `jitter_share` is uniform in [0, 1) and unpredictable. Dropping the future releases what the
    /// call holds. The computation drops the [`Permit`] at its end.
    pub async fn call<T, E, F>(
        &self,
        jitter_share: f64,
        work: impl FnOnce(Permit) -> F,
    ) -> Call<Result<T, E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let Some(entry) = self.enter() else {
            return self.answered_at_once();
        };
        self.call_from(entry, jitter_share, || None, work, |_, _| ())
            .await
    }

    /// Begins a call: its constant time counts from here. `None` if too many are in progress.
    pub(crate) fn enter(&self) -> Option<Entry> {
        Some(Entry {
            in_progress: self.inside.enter()?,
            entered: Instant::now(),
        })
    }

    /// Like [`Self::call`]. `refusal` is called when the computation may run, and may still refuse
    /// it. `ended` receives the result before the call sleeps, and the total time of the call.
    pub(crate) async fn call_from<T, E, F>(
        &self,
        entry: Entry,
        jitter_share: f64,
        refusal: impl FnOnce() -> Option<Status>,
        work: impl FnOnce(Permit) -> F,
        ended: impl FnOnce(&Result<T, E>, Duration),
    ) -> Call<Result<T, E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let target = self.target(entry.entered, jitter_share);
        let (status, value) = match self.compute(entry.entered, refusal, work).await {
            Ok(value) => (Status::Ran, Some(value)),
            Err(status) => (status, None),
        };
        if let Some(value) = &value {
            let exit = target.max(Instant::now());
            ended(value, exit.saturating_duration_since(entry.entered));
        }
        let times = self.exit(entry.entered, target).await;
        let failed = value.as_ref().is_some_and(Result::is_err);
        self.metrics.computed(status, failed, times);
        Call {
            status,
            value,
            times: Some(times),
        }
    }

    /// Takes as long as a call that computes, without using a slot for computations.
    pub(crate) async fn refuse<T>(
        &self,
        entry: Entry,
        status: Status,
        jitter_share: f64,
    ) -> Call<T> {
        let Some(_refusing) = self.inside.enter_refusal() else {
            return self.answered_at_once();
        };
        let entered = entry.entered;
        drop(entry);
        let times = self.exit(entered, self.target(entered, jitter_share)).await;
        self.metrics.computed(status, false, times);
        Call {
            status,
            value: None,
            times: Some(times),
        }
    }

    /// The current estimate of a computation's time. `None` before the first one under
    /// [`WorkTime::FirstCall`].
    pub fn work_time(&self) -> Option<Duration> {
        self.inside.work_time()
    }

    /// Most calls that may wait now. `None` while there is no bound.
    pub fn waiting_max(&self) -> Option<usize> {
        let work_time = self.work_time()?;
        Some(self.limits.waiting_max(work_time))
    }

    pub fn in_progress(&self) -> usize {
        self.inside.counts_now().0
    }

    /// Number of calls that wait until they may compute.
    pub fn waiting(&self) -> usize {
        self.inside.counts_now().1
    }

    pub fn running(&self) -> usize {
        let free = self.running.available_permits();
        self.limits.concurrency.saturating_sub(free)
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The result of a call that was not admitted.
    pub(crate) fn answered_at_once<T>(&self) -> Call<T> {
        self.metrics.ended(Status::TooManyCalls).inc();
        Call {
            status: Status::TooManyCalls,
            value: None,
            times: None,
        }
    }

    async fn compute<T, F>(
        &self,
        entered: Instant,
        refusal: impl FnOnce() -> Option<Status>,
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
        if let Some(status) = refusal() {
            return Err(status);
        }
        let began = Instant::now();
        let value = work(Permit { _running: running }).await;
        let (waited, worked) = (began.saturating_duration_since(entered), began.elapsed());
        self.inside.computed(waited, worked);
        self.metrics.waited.observe(waited.as_secs_f64());
        self.metrics.worked.observe(worked.as_secs_f64());
        Ok(value)
    }

    fn target(&self, entered: Instant, jitter_share: f64) -> Instant {
        let target = entered.checked_add(self.limits.call_time(jitter_share));
        target.unwrap_or(entered)
    }

    async fn exit(&self, entered: Instant, target: Instant) -> Times {
        if Instant::now() > target {
            self.metrics.overruns.inc();
        }
        sleep_until(target).await;
        Times {
            entered,
            exited: Instant::now(),
        }
    }
}

#[cfg(test)]
mod tests;
