//! The original's own tests of its login limiter, and tests of what we added.

use std::convert::Infallible;

use prometheus::IntCounter;
use tokio::time::{Instant, advance};

use super::record::Record;
use super::state::Memory;
use super::*;
use crate::limits::{Limits, WorkTime};

const FAST: Limits = Limits {
    run_time: Duration::from_millis(10),
    jitter: Duration::ZERO,
    concurrency: 4,
    wait_max: Duration::from_millis(5),
    calls_max: 1000,
};

struct World {
    limiter: LoginLimiter<Memory>,
    began: Instant,
}

impl World {
    fn new(limits: LoginLimits) -> Self {
        let work_time = WorkTime::Measured(Duration::from_millis(1));
        let limiter = Arc::new(Limiter::new(FAST, work_time).unwrap());
        let known = Arc::new(Limiter::new(FAST, work_time).unwrap());
        Self {
            limiter: LoginLimiter::new(limiter, known, limits, Memory::new(1000)),
            began: Instant::now(),
        }
    }

    #[track_caller]
    fn counted(&self, which: [fn(&Metrics) -> &IntCounter; 2], expect: [u64; 2]) {
        let counters = which.map(|of| of(self.limiter.metrics()).get());
        assert_eq!(counters, expect);
    }

    /// With so many attempts of an address a minute.
    fn with_attempts(attempts_per_minute: u32) -> Self {
        Self::new(LoginLimits {
            attempts_per_minute,
            ..limits()
        })
    }

    /// With so many failures of a user a minute.
    fn with_failures(failures_per_minute: u32) -> Self {
        Self::new(LoginLimits {
            failures_per_minute,
            ..limits()
        })
    }

    fn now(&self) -> Timestamp {
        Timestamp(Duration::from_secs(1_000_000)).plus(self.began.elapsed())
    }

    async fn login(&self, who: Who<'_>, is_right: bool) -> Login<(), Infallible> {
        let work = |_permit| async move { Ok::<_, Infallible>(is_right.then_some(())) };
        self.attempt(who, Refusals::TakeTime, work).await.unwrap()
    }

    async fn attempt<E, F: Future<Output = Result<Option<()>, E>>>(
        &self,
        who: Who<'_>,
        refusals: Refusals,
        work: impl FnOnce(Permit) -> F,
    ) -> Result<Login<(), E>, Infallible> {
        let now = self.now();
        self.limiter.attempt(now, 0.0, who, refusals, work).await
    }

    async fn status(&self, who: Who<'_>, is_right: bool) -> &'static str {
        self.login(who, is_right).await.call.status.as_str()
    }

    fn record(&self, address: &str) -> Record {
        let key = Key::Address(address.to_owned());
        self.limiter.with_state(|state| state.get(&key)).unwrap()
    }

    async fn statuses(&self, count: usize, who: Who<'_>, is_right: bool) -> Vec<&'static str> {
        let mut found = Vec::new();
        for _ in 0..count {
            found.push(self.status(who, is_right).await);
        }
        found
    }
}

fn from(address: &str) -> Who<'_> {
    Who {
        address: Some(address),
        ..Who::default()
    }
}

fn of(user: &str) -> Who<'_> {
    Who {
        user: Some(user),
        ..Who::default()
    }
}

fn user_from(address: &str) -> Who<'_> {
    Who {
        user: Some("user"),
        ..from(address)
    }
}

fn user_with(device: &'static str) -> Who<'static> {
    Who {
        device: Some(device),
        ..of("user")
    }
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn limits() -> LoginLimits {
    LoginLimits::default()
}

#[tokio::test(start_paused = true)]
async fn without_an_address_and_a_user_nothing_is_counted() {
    let world = World::new(LoginLimits {
        attempts_per_minute: 0,
        failures_per_minute: 0,
        ..limits()
    });
    for _ in 0..3 {
        let login = world.login(Who::default(), false).await;
        assert_eq!((login.call.value, login.began), (Some(Ok(None)), None));
    }
    assert!(world.limiter.with_state(|state| state.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn one_attempt_too_many_bans_the_address() {
    let world = World::with_attempts(2);
    let found = world.statuses(4, from("a"), true).await;
    assert_eq!(found, ["ran", "ran", "rate-limited", "banned-ip"]);
    assert_eq!(world.status(from("b"), true).await, "ran");
    world.counted([|of| &of.verify_successes, |of| &of.banned_ips], [3, 1]);
}

#[tokio::test(start_paused = true)] // S76
async fn one_failure_too_many_locks_the_user() {
    let world = World::with_failures(2);
    let mut found = Vec::new();
    for address in ["a", "b", "c", "d", "e"] {
        found.push(world.status(user_from(address), false).await);
    }
    assert_eq!(found, ["ran", "ran", "ran", "locked-user", "locked-user"]);
    world.counted([|of| &of.verify_failures, |of| &of.locked_users], [3, 1]);
    // The attempts counted for their addresses.
    assert_eq!(world.record("e").times.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_ban_ends_and_the_window_is_still_full() {
    let world = World::new(LoginLimits {
        attempts_per_minute: 1,
        ban: ms(200),
        clean_up_every: ms(100),
        ..limits()
    });
    let mut found = world.statuses(3, from("a"), true).await;
    advance(ms(250)).await;
    found.push(world.status(from("a"), true).await);
    assert_eq!(found, ["ran", "rate-limited", "banned-ip", "rate-limited"]);
    world.counted([|of| &of.banned_ips, |of| &of.unbanned_ips], [2, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_lock_ends() {
    let world = World::new(LoginLimits {
        failures_per_minute: 1,
        lock: ms(200),
        clean_up_every: ms(100),
        ..limits()
    });
    let mut found = world.statuses(3, of("user"), false).await;
    advance(ms(250)).await;
    found.push(world.status(of("user"), true).await);
    assert_eq!(found, ["ran", "ran", "locked-user", "ran"]);
    world.counted([|of| &of.locked_users, |of| &of.unlocked_users], [1, 1]);
}

/// They neither extend a ban, nor count once it has ended.
#[tokio::test(start_paused = true)]
async fn attempts_during_a_ban_are_not_recorded() {
    let world = World::new(LoginLimits {
        attempts_per_minute: 1,
        ban: Duration::from_secs(90),
        ..limits()
    });
    for _ in 0..20 {
        world.status(from("a"), true).await;
        advance(Duration::from_secs(4)).await;
    }
    let record = world.record("a");
    assert_eq!((record.times.len(), record.bans), (2, 1));
    advance(Duration::from_secs(15)).await;
    assert_eq!(world.status(from("a"), true).await, "ran");
}

#[tokio::test(start_paused = true)]
async fn success_forgives_no_failure() {
    let world = World::with_failures(1);
    let steps = [
        (false, "ran"),
        (true, "ran"),
        (false, "ran"),
        (true, "locked-user"),
    ];
    for (is_right, expect) in steps {
        assert_eq!(world.status(of("user"), is_right).await, expect);
    }
}

/// An error is not a free guess.
#[tokio::test(start_paused = true)]
async fn a_computation_that_fails_is_a_failure() {
    let world = World::with_failures(1);
    for expect in ["ran", "ran", "locked-user"] {
        let work = |_permit| async { Err::<Option<()>, _>("no memory") };
        let attempt = world.attempt(of("user"), Refusals::TakeTime, work).await;
        assert_eq!(attempt.unwrap().call.status.as_str(), expect);
    }
    assert_eq!(world.limiter.metrics().errors().get(), 2);
}

#[tokio::test(start_paused = true)]
async fn others_failures_do_not_lock_a_known_browser() {
    let world = World::with_failures(2);
    let known = user_with("d1");
    world.statuses(3, of("user"), false).await;
    assert_eq!(world.status(of("user"), true).await, "locked-user");
    assert_eq!(world.status(known, true).await, "ran");
    // A stolen cookie is not a free guess either.
    let found = world.statuses(4, known, false).await;
    assert_eq!(found, ["ran", "ran", "ran", "locked-user"]);
    assert_eq!(world.status(user_with("d2"), true).await, "ran");
}

#[tokio::test(start_paused = true)]
async fn refusals_take_as_long_as_computations_unless_they_are_dropped() {
    let world = World::with_attempts(0);
    let login = world.login(from("a"), true).await;
    assert_eq!(login.call.status, Status::RateLimited);
    let until = login.began.unwrap().until;
    assert_eq!(until, world.now().plus(Duration::from_secs(1800) - ms(10)));
    let times = world.login(from("a"), true).await.call.times.unwrap();
    assert_eq!(times.exited - times.entered, ms(10));
    let before = Instant::now();
    let work = |_permit| async { Ok::<_, Infallible>(Some(())) };
    let dropped = world.attempt(from("a"), Refusals::AtOnce, work).await;
    let dropped = dropped.unwrap().call;
    assert_eq!((dropped.status, dropped.times), (Status::BannedIp, None));
    assert_eq!(Instant::now(), before);
    let metrics = world.limiter.metrics();
    let counted = [Status::RateLimited, Status::BannedIp].map(|status| metrics.ended(status).get());
    let why = "by their reason, and not the one that was dropped";
    assert_eq!(counted, [1, 1], "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_clean_up_leaves_what_is_needed() {
    let world = World::new(limits());
    for address in ["a", "b", "b", "b", "b", "b", "b", "b"] {
        world.status(from(address), true).await;
    }
    let left = |world: &World| world.limiter.with_state(|state| state.len());
    advance(Duration::from_secs(3601)).await;
    world.limiter.clean_up(world.now()).unwrap();
    assert_eq!(left(&world), 1, "an address that was banned");
    advance(Duration::from_secs(25 * 3600)).await;
    world.limiter.clean_up(world.now()).unwrap();
    assert_eq!(left(&world), 0);
}

/// No login succeeds while it is unknown which addresses are banned.
#[tokio::test(start_paused = true)]
async fn a_state_that_fails_lets_nobody_in() {
    struct Broken;
    impl State for Broken {
        type Error = &'static str;
        fn get(&mut self, _key: &Key) -> Result<Record, Self::Error> {
            Err("broken")
        }
        fn put(&mut self, _key: Key, _record: Record) -> Result<(), Self::Error> {
            Err("broken")
        }
        fn retain(
            &mut self,
            _keep: impl FnMut(&Key, &mut Record) -> bool,
        ) -> Result<(), Self::Error> {
            Ok(())
        }
    }
    let work_time = WorkTime::Measured(ms(1));
    let limiter = Arc::new(Limiter::new(FAST, work_time).unwrap());
    let limiter = LoginLimiter::new(limiter.clone(), limiter, limits(), Broken);
    for who in [from("a"), of("user")] {
        let work = |_permit| async { Ok::<_, Infallible>(Some(())) };
        let attempt = limiter.attempt(Timestamp::default(), 0.0, who, Refusals::TakeTime, work);
        assert_eq!(attempt.await, Err("broken"));
    }
}

/// Parallel guesses from many addresses, and by callers who disconnect, get no further than guesses
/// one after the other.
#[tokio::test(start_paused = true)]
async fn guesses_at_once_lock_like_guesses_in_turn() {
    let ran = |rules| async move {
        let world = Arc::new(World::new(LoginLimits {
            failures_per_minute: 2,
            rules,
            ..limits()
        }));
        let mut calls = Vec::new();
        for number in 0..9 {
            let world = Arc::clone(&world);
            let call = tokio::spawn(async move {
                let address = number.to_string();
                world.status(user_from(&address), false).await
            });
            tokio::task::yield_now().await;
            if number == 0 {
                call.abort();
            }
            calls.push(call);
        }
        let mut ran = 0;
        for call in calls {
            ran += usize::from(matches!(call.await, Ok("ran")));
        }
        (ran, world.limiter.metrics().locked_users.get())
    };
    let longest_ban = Duration::from_secs(3600);
    let ours = ran(Rules::Ours { longest_ban }).await;
    assert_eq!(ours, (2, 1), "and the one who hung up");
    let (originals, _) = ran(Rules::Original).await;
    assert_eq!(originals, 8);
}

/// A login limiter with room for few calls, whose addresses may try once a minute.
fn small_world() -> Arc<World> {
    let few = Limits {
        calls_max: 5,
        ..FAST
    };
    let work_time = WorkTime::Measured(ms(1));
    let [limiter, known] = [(); 2].map(|()| Arc::new(Limiter::new(few, work_time).unwrap()));
    let limits = LoginLimits {
        attempts_per_minute: 1,
        ..limits()
    };
    Arc::new(World {
        limiter: LoginLimiter::new(limiter, known, limits, Memory::new(1000)),
        began: Instant::now(),
    })
}

async fn at_once(
    world: &Arc<World>,
    addresses: &[&'static str],
) -> Vec<tokio::task::JoinHandle<&'static str>> {
    let mut calls = Vec::new();
    for &address in addresses {
        let world = Arc::clone(world);
        calls.push(tokio::spawn(async move {
            world.status(from(address), true).await
        }));
        tokio::task::yield_now().await;
    }
    calls
}

#[tokio::test(start_paused = true)]
async fn a_banned_address_keeps_nobody_from_logging_in() {
    let world = small_world();
    let calls = at_once(&world, &["a"; 12]).await;
    assert_eq!(world.status(from("b"), true).await, "ran");
    let mut found = Vec::new();
    for call in calls {
        found.push(call.await.unwrap());
    }
    assert_eq!(found[..3], ["ran", "rate-limited", "banned-ip"]);
    assert_eq!(found[11], "too-many-calls");
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_strangers_keeps_no_known_browser_out() {
    let world = small_world();
    let calls = at_once(&world, &["1", "2", "3", "4", "5", "6"]).await;
    let known = Who {
        device: Some("d1"),
        ..user_from("7")
    };
    assert_eq!(world.status(known, true).await, "ran");
    let mut refused = 0;
    for call in calls {
        refused += usize::from(call.await.unwrap() == "too-many-calls");
    }
    assert_eq!(refused, 1);
}

/// The state's time is part of the constant time: a wrong password is written, a right one is not.
#[tokio::test]
async fn the_state_is_used_within_the_constant_time() {
    struct Watched(Memory, Vec<Instant>);
    impl State for Watched {
        type Error = Infallible;
        fn get(&mut self, key: &Key) -> Result<Record, Infallible> {
            self.1.push(Instant::now());
            self.0.get(key)
        }
        fn put(&mut self, key: Key, record: Record) -> Result<(), Infallible> {
            let put = self.0.put(key, record);
            self.1.push(Instant::now());
            put
        }
        fn retain(
            &mut self,
            keep: impl FnMut(&Key, &mut Record) -> bool,
        ) -> Result<(), Infallible> {
            self.0.retain(keep)
        }
    }
    let limiter = Arc::new(Limiter::new(FAST, WorkTime::Measured(ms(1))).unwrap());
    let state = Watched(Memory::new(10), Vec::new());
    let limiter = LoginLimiter::new(limiter.clone(), limiter, limits(), state);
    for (is_right, uses) in [(true, 4), (false, 6)] {
        let who = user_from("a");
        let work = |_permit| async move { Ok::<_, Infallible>(is_right.then_some(())) };
        let attempt = limiter.attempt(Timestamp::default(), 0.0, who, Refusals::TakeTime, work);
        let times = attempt.await.unwrap().call.times.unwrap();
        let used = limiter.with_state(|state| std::mem::take(&mut state.1));
        assert_eq!(used.len(), uses, "{is_right}");
        let within = |at: &Instant| (times.entered..times.exited).contains(at);
        let all_within = used.iter().all(within);
        assert!(all_within, "{is_right}: {used:?} and {times:?}");
    }
}
