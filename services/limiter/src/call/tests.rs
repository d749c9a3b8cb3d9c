//! The original's own tests, its bugs, and what must hold no matter what is dropped when.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use tokio::task::JoinHandle;
use tokio::time::{advance, sleep};

use super::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn limits(run_time: u64, concurrency: usize, wait_max: u64) -> Limits {
    Limits {
        run_time: ms(run_time),
        jitter: Duration::ZERO,
        concurrency,
        wait_max: ms(wait_max),
        calls_max: 10_000,
    }
}

fn limiter(limits: Limits, work_time: WorkTime) -> Arc<Limiter> {
    Arc::new(Limiter::new(limits, work_time).unwrap())
}

async fn called(limiter: &Limiter, work: Duration) -> Call<Result<&'static str, Infallible>> {
    let compute = |permit| async move {
        sleep(work).await;
        drop(permit);
        Ok("done")
    };
    limiter.call(0.0, compute).await
}

async fn refused(limiter: &Limiter) -> Call<()> {
    let entry = limiter.enter().unwrap();
    limiter.refuse(entry, Status::WaitLimitFull, 0.0).await
}

type Running = JoinHandle<Call<Result<&'static str, Infallible>>>;

/// A call in its own task, which has begun when this returns.
async fn spawned(limiter: &Arc<Limiter>, work: Duration) -> Running {
    let limiter = Arc::clone(limiter);
    let running = tokio::spawn(async move { called(&limiter, work).await });
    tokio::task::yield_now().await;
    running
}

async fn several(limiter: &Arc<Limiter>, count: usize, work: Duration) -> Vec<Running> {
    let mut calls = Vec::new();
    for _ in 0..count {
        calls.push(spawned(limiter, work).await);
    }
    calls
}

fn took<T>(call: &Call<T>) -> Duration {
    let times = call.times.unwrap();
    times.exited - times.entered
}

#[tokio::test(start_paused = true)]
async fn every_call_takes_the_constant_time() {
    let limiter = limiter(limits(200, 1, 100), WorkTime::Measured(ms(100)));
    let call = called(&limiter, Duration::ZERO).await;
    assert_eq!(call.status, Status::Ran);
    assert_eq!(call.value, Some(Ok("done")));
    assert_eq!(took(&call), ms(200));
    let refused = refused(&limiter).await;
    assert_eq!(took(&refused), ms(200));
    let (status, value) = (refused.status, refused.value);
    assert_eq!((status, value), (Status::WaitLimitFull, None));
    let work = |_permit| async { Err::<(), _>("broken") };
    let failed = limiter.call(0.0, work).await;
    assert_eq!(took(&failed), ms(200));
    let (status, value) = (failed.status, failed.value);
    assert_eq!((status, value), (Status::Ran, Some(Err("broken"))));
    assert_eq!(limiter.metrics().errors().get(), 1);
    assert_eq!(limiter.metrics().ended(Status::Ran).get(), 1);
    let long = called(&limiter, ms(500)).await;
    assert_eq!(took(&long), ms(500), "a longer computation shows");
}

#[tokio::test(start_paused = true)]
async fn jitter_comes_on_top() {
    let jittery = Limits {
        jitter: ms(200),
        ..limits(100, 1, 20)
    };
    let limiter = limiter(jittery, WorkTime::Measured(ms(20)));
    for (share, expect) in [(0.0, 100), (0.5, 200), (0.99, 298)] {
        let work = |_permit| async { Ok::<_, Infallible>(()) };
        let call = limiter.call(share, work).await;
        assert_eq!(took(&call), ms(expect), "{share}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_no_longer_than_it_may() {
    let limiter = limiter(limits(500, 1, 50), WorkTime::Measured(ms(200)));
    let first = spawned(&limiter, ms(200)).await;
    advance(ms(10)).await;
    let second = called(&limiter, Duration::ZERO).await;
    assert_eq!(second.status, Status::ExceededMaxWait);
    assert_eq!(second.value, None);
    assert_eq!(took(&second), ms(500));
    assert_eq!(first.await.unwrap().status, Status::Ran);
}

/// Five calls at once and one more, as in the original's test of back-pressure.
#[tokio::test(start_paused = true)]
async fn no_more_calls_wait_than_may() {
    for work_time in [WorkTime::FirstCall, WorkTime::Measured(ms(200))] {
        let limiter = limiter(limits(800, 2, 410), work_time);
        called(&limiter, ms(200)).await;
        assert_eq!(limiter.waiting_max(), Some(3));
        let first = several(&limiter, 5, ms(200)).await;
        advance(ms(10)).await;
        assert_eq!((limiter.running(), limiter.waiting()), (2, 3));
        let last = called(&limiter, ms(200)).await;
        assert_eq!(last.status, Status::WaitLimitFull);
        assert_eq!(took(&last), ms(800));
        for call in first {
            let call = call.await.unwrap();
            let has_waited = matches!(call.status, Status::Ran | Status::ExceededMaxWait);
            assert!(has_waited, "{call:?}");
        }
        let counts = (limiter.running(), limiter.waiting(), limiter.in_progress());
        assert_eq!(counts, (0, 0, 0));
    }
}

/// The original loses a slot of its queue with each of these, and refuses everyone in the end.
#[tokio::test(start_paused = true)]
async fn waiting_in_vain_costs_no_slot() {
    let limiter = limiter(limits(500, 1, 50), WorkTime::Measured(ms(200)));
    for _ in 0..20 {
        let first = spawned(&limiter, ms(200)).await;
        let second = called(&limiter, ms(1)).await.status;
        assert_eq!(second, Status::ExceededMaxWait);
        first.await.unwrap();
    }
    assert_eq!(called(&limiter, ms(1)).await.status, Status::Ran);
    assert_eq!(limiter.metrics().ended(Status::ExceededMaxWait).get(), 20);
}

/// In the original, calls that came before the setup enlarge the queue.
#[tokio::test(start_paused = true)]
async fn calls_before_the_bound_is_known_do_not_raise_it() {
    let limiter = limiter(limits(800, 2, 410), WorkTime::FirstCall);
    for call in several(&limiter, 6, ms(200)).await {
        call.await.unwrap();
    }
    let bound = limiter.waiting_max().unwrap();
    let calls = several(&limiter, 20, ms(200)).await;
    assert_eq!((limiter.running(), limiter.waiting()), (2, bound));
    for call in calls {
        call.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn more_calls_than_may_sleep_are_answered_at_once() {
    let few = Limits {
        calls_max: 3,
        ..limits(500, 4, 50)
    };
    let limiter = limiter(few, WorkTime::Measured(ms(200)));
    let calls = several(&limiter, 3, ms(1)).await;
    advance(ms(100)).await;
    let before = Instant::now();
    let refused = called(&limiter, ms(1)).await;
    let (status, times) = (refused.status, refused.times);
    assert_eq!((status, times), (Status::TooManyCalls, None));
    assert_eq!(Instant::now(), before);
    for call in calls {
        assert_eq!(call.await.unwrap().status, Status::Ran);
    }
    assert_eq!(called(&limiter, ms(1)).await.status, Status::Ran);
}

/// A disconnecting client does not end a computation on another thread, which still counts as
/// running.
#[tokio::test(start_paused = true)]
async fn a_computation_that_outlives_its_call_counts_until_its_end() {
    let limiter = limiter(limits(500, 1, 100), WorkTime::Measured(ms(200)));
    let compute = |permit| async move {
        let blocking = tokio::spawn(async move {
            sleep(ms(300)).await;
            drop(permit);
        });
        blocking.await.map_err(|error| error.to_string())
    };
    let calling = {
        let limiter = Arc::clone(&limiter);
        tokio::spawn(async move { limiter.call(0.0, compute).await })
    };
    tokio::task::yield_now().await;
    calling.abort();
    assert!(calling.await.unwrap_err().is_cancelled());
    assert_eq!((limiter.running(), limiter.in_progress()), (1, 0));
    let next = called(&limiter, ms(1)).await.status;
    assert_eq!(next, Status::ExceededMaxWait);
    assert_eq!(called(&limiter, ms(1)).await.status, Status::Ran);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_limiter_leaves_nothing_behind() {
    let limiter = limiter(limits(500, 1, 100), WorkTime::Measured(ms(200)));
    let weak = Arc::downgrade(&limiter.inside);
    let call = spawned(&limiter, ms(10)).await;
    drop(limiter);
    call.await.unwrap();
    assert!(weak.upgrade().is_none());
}

#[tokio::test(start_paused = true)]
async fn the_page_tells_waiting_and_computing_apart() {
    let limiter = limiter(limits(500, 1, 300), WorkTime::Measured(ms(200)));
    let first = spawned(&limiter, ms(250)).await;
    assert_eq!(called(&limiter, ms(125)).await.status, Status::Ran);
    first.await.unwrap();
    refused(&limiter).await;
    let page = limiter.metrics().page();
    for line in [
        "limiter_compute_successes 2",
        "limiter_compute_failures{final_status=\"wait-limit-full\"} 1",
        "limiter_compute_failures{final_status=\"error\"} 0",
        "# TYPE limiter_compute_duration_seconds summary",
        "limiter_compute_duration_seconds_sum 1.5",
        "limiter_wait_seconds_sum 0.25",
        "limiter_wait_seconds_bucket{le=\"0.001\"} 1",
        "limiter_work_seconds_sum 0.375",
        "limiter_work_seconds_bucket{le=\"+Inf\"} 2",
        "login_rate_limiter_banned_ips_total 0",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} in\n{page}");
    }
}

/// A step of a run: a call arrives, time passes, or a caller disconnects.
#[derive(Debug, Clone)]
enum Step {
    Call,
    Pass { ms: u64 },
    HangUp { which: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Call),
        1 => (0_u64..300).prop_map(|ms| Step::Pass { ms }),
        1 => (0_usize..64).prop_map(|which| Step::HangUp { which }),
    ]
}

/// All computations take the measured time, so that the queue's bound stays the same.
const WORK: Duration = Duration::from_millis(200);

/// Runs the steps, and checks the state after each of them.
async fn run(concurrency: usize, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let limiter = limiter(limits(600, concurrency, 300), WorkTime::Measured(WORK));
    let running = Arc::new(AtomicUsize::new(0));
    let mut calls: Vec<JoinHandle<()>> = Vec::new();
    for step in steps {
        match step {
            Step::Call => {
                let (limiter, running) = (Arc::clone(&limiter), Arc::clone(&running));
                calls.push(tokio::spawn(async move {
                    let compute = |permit| async move {
                        // Like a blocking computation, it continues when its call is dropped.
                        let computing = tokio::spawn(async move {
                            let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                            assert!(now <= concurrency, "{now} at once");
                            sleep(WORK).await;
                            running.fetch_sub(1, Ordering::SeqCst);
                            drop(permit);
                        });
                        computing.await
                    };
                    let call = limiter.call(0.0, compute).await;
                    assert!(call.value.is_none_or(|ended| ended.is_ok()));
                }));
            }
            Step::Pass { ms: millis } => advance(ms(millis)).await,
            Step::HangUp { which } => {
                if !calls.is_empty() {
                    calls.swap_remove(which % calls.len()).abort();
                }
            }
        }
        tokio::task::yield_now().await;
        prop_assert!(limiter.running() <= concurrency);
        let bound = limiter.limits.waiting_max(WORK);
        let waiting = limiter.waiting();
        prop_assert!(waiting <= bound, "{waiting} of {bound}");
    }
    for call in calls {
        prop_assert!(call.await.is_ok());
    }
    sleep(Duration::from_secs(1)).await;
    let left = (limiter.running(), limiter.waiting(), limiter.in_progress());
    prop_assert_eq!(left, (0, 0, 0));
    Ok(())
}

fn paused() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap()
}

proptest! {
    #[test]
    fn never_more_inside_than_may_be_and_nothing_is_lost(
        concurrency in 1_usize..5,
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        paused().block_on(run(concurrency, steps))?;
    }
}

#[test]
fn ten_thousand_callers_who_hang_up_cost_no_slot() {
    let hang_up = [Step::Call, Step::Pass { ms: 3 }, Step::HangUp { which: 0 }];
    let steps = hang_up.iter().cycle().take(30_000).cloned().collect();
    paused().block_on(run(2, steps)).unwrap();
}
