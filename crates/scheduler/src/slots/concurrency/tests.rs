use proptest::prelude::*;

use super::*;

struct Engine {
    concurrency: Concurrency,
    now: Timestamp,
}

impl Engine {
    fn new(least: u32, most: u32) -> Self {
        let now = Timestamp(1_700_000_000_000);
        Self {
            concurrency: Concurrency::new(Bounds { least, most }, now),
            now,
        }
    }

    fn start(&mut self, took_ms: u64) {
        let in_progress = self.concurrency.allowed();
        self.start_beside(took_ms, in_progress);
    }

    fn start_beside(&mut self, took_ms: u64, in_progress: u32) {
        let asked = self.now;
        let took = Duration::from_millis(took_ms);
        self.now = self.now.plus(took);
        let started = Started {
            took,
            in_progress,
            asked,
        };
        self.concurrency.started(started, self.now);
    }

    fn fail(&mut self) {
        let asked = self.now;
        self.now = self.now.plus(Duration::from_millis(100));
        self.concurrency.failed(asked, self.now);
    }

    /// Starts that take this engine's natural time: `each_ms` for each container in progress.
    fn go_well(&mut self, starts: u32, each_ms: u64) -> u32 {
        for _ in 0..starts {
            let took = each_ms * u64::from(self.concurrency.allowed());
            self.start(took);
        }
        self.concurrency.allowed()
    }
}

#[test]
fn it_begins_with_the_least_and_grows_to_the_most_while_the_engine_is_well() {
    let mut engine = Engine::new(2, 16);
    assert_eq!(engine.concurrency.allowed(), 2);
    assert_eq!(engine.go_well(5, 50), 3, "one more for five starts");
    assert_eq!(engine.go_well(200, 50), 16);
}

/// Twice as many containers take twice as long if the processors are busy: no reason for a
/// decrease.
#[test]
fn starts_that_take_longer_because_there_are_more_are_not_slow() {
    let mut engine = Engine::new(1, 64);
    assert_eq!(engine.go_well(3000, 20), 64);
    // A number that was never reached is expected to take proportionally longer.
    let mut engine = Engine::new(1, 64);
    assert_eq!(engine.go_well(45, 50), 8);
    for _ in 0..WINDOW {
        engine.start_beside(50 * 32, 32);
    }
    assert!(engine.concurrency.allowed() >= 8);
}

#[test]
fn it_backs_off_when_starts_take_twice_as_long_as_usual_and_recovers() {
    let mut engine = Engine::new(2, 16);
    engine.go_well(200, 50);
    for _ in 0..8 {
        engine.start(50 * 16 * 3);
        engine.start(50 * 16);
    }
    assert_eq!(engine.concurrency.allowed(), 16, "half of them is chance");
    for _ in 0..11 {
        engine.start(50 * 16 * 3);
    }
    assert_eq!(engine.concurrency.allowed(), 12);
    assert_eq!(engine.go_well(200, 50), 16);
}

#[test]
fn it_backs_off_when_the_engine_fails_and_recovers() {
    let mut engine = Engine::new(2, 16);
    engine.go_well(200, 50);
    engine.fail();
    assert_eq!(engine.concurrency.allowed(), 16, "one may be chance");
    engine.fail();
    assert_eq!(engine.concurrency.allowed(), 12);
    for _ in 0..40 {
        engine.fail();
    }
    assert_eq!(engine.concurrency.allowed(), 2, "and no further");
    assert_eq!(engine.go_well(200, 50), 16);
}

#[test]
fn what_was_asked_for_before_a_decrease_brings_no_other() {
    let mut engine = Engine::new(1, 16);
    engine.go_well(300, 50);
    let asked = engine.now;
    engine.now = engine.now.plus(Duration::from_secs(3));
    // All sixteen containers in progress are late.
    for _ in 0..16 {
        engine.concurrency.failed(asked, engine.now);
    }
    assert_eq!(engine.concurrency.allowed(), 12);
}

#[test]
fn a_machine_that_is_tight_gets_no_more_and_one_that_is_overloaded_less() {
    let mut engine = Engine::new(2, 16);
    engine.go_well(30, 50);
    let before = engine.concurrency.allowed();
    for _ in 0..30 {
        engine.concurrency.pressure(Pressure::High, engine.now);
        engine.start(50 * u64::from(before));
    }
    assert_eq!(engine.concurrency.allowed(), before);
    engine
        .concurrency
        .pressure(Pressure::Overloaded, engine.now);
    let less = engine.concurrency.allowed();
    assert!(less < before, "{less} of {before}");
    engine
        .concurrency
        .pressure(Pressure::Overloaded, engine.now);
    assert_eq!(engine.concurrency.allowed(), less, "the load average lags");
    engine.now = engine.now.plus(EASE_EVERY);
    engine
        .concurrency
        .pressure(Pressure::Overloaded, engine.now);
    assert!(engine.concurrency.allowed() < less);
    engine.now = engine.now.plus(HIGH_FOR);
    engine.concurrency.pressure(Pressure::Low, engine.now);
    assert_eq!(engine.go_well(300, 50), 16);
}

#[test]
fn who_does_not_use_its_places_gets_no_more() {
    let mut engine = Engine::new(4, 16);
    for _ in 0..100 {
        engine.start_beside(50, 3);
    }
    assert_eq!(engine.concurrency.allowed(), 4);
}

#[test]
fn a_machine_that_is_slower_for_good_is_accepted_in_the_end() {
    let mut engine = Engine::new(2, 16);
    engine.go_well(200, 20);
    assert!(engine.go_well(50, 90) < 16, "it backs off first");
    assert_eq!(engine.go_well(2000, 90), 16);
}

#[test]
fn starts_of_over_ten_seconds_are_too_slow_though_they_be_usual() {
    let mut engine = Engine::new(1, 8);
    for _ in 0..200 {
        engine.start(START_MAX.as_secs() * 1000 + 1);
    }
    assert_eq!(engine.concurrency.allowed(), 1);
}

#[test]
fn some_milliseconds_more_are_noise() {
    let mut engine = Engine::new(1, 8);
    engine.go_well(200, 1);
    for _ in 0..20 {
        engine.start(190);
    }
    assert_eq!(engine.concurrency.allowed(), 8);
}

#[test]
fn bounds_that_contradict_each_other_give_one_place_at_least() {
    for (least, most, expect) in [(0, 0, 1), (5, 2, 2), (0, 4, 1)] {
        let engine = Engine::new(least, most);
        assert_eq!(engine.concurrency.allowed(), expect, "{least} {most}");
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Start { took_ms: u64, in_progress: u32 },
    Fail,
    Pressure(Pressure),
    Pass { ms: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pressure = prop::sample::select(vec![Pressure::Low, Pressure::High, Pressure::Overloaded]);
    let step = prop_oneof![
        4 => (0..20_000_u64, 0..100_u32).prop_map(|(took_ms, in_progress)| Step::Start { took_ms, in_progress }),
        1 => Just(Step::Fail),
        1 => pressure.prop_map(Step::Pressure),
        1 => (0..60_000_u64).prop_map(|ms| Step::Pass { ms }),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn it_stays_within_its_bounds_whatever_happens_and_comes_back_from_it(least in 1..8_u32, more in 0..56_u32, steps in steps()) {
        let most = least + more;
        let mut engine = Engine::new(least, most);
        for step in steps {
            match step {
                Step::Start { took_ms, in_progress } => engine.start_beside(took_ms, in_progress),
                Step::Fail => engine.fail(),
                Step::Pressure(pressure) => engine.concurrency.pressure(pressure, engine.now),
                Step::Pass { ms } => engine.now = engine.now.plus(Duration::from_millis(ms)),
            }
            prop_assert!((least..=most).contains(&engine.concurrency.allowed()));
        }
        prop_assert_eq!(engine.go_well(10_000, 50), most);
    }

    /// One slow start or failure among those judged together causes no decrease, whichever it is.
    #[test]
    fn no_single_sample_lowers_it(bads in prop::collection::vec((0..5_usize, any::<bool>()), 1..40)) {
        let mut engine = Engine::new(2, 16);
        engine.go_well(300, 50);
        for (at, failed) in bads {
            for n in 0..WINDOW {
                match (n == at, failed) {
                    (true, true) => engine.fail(),
                    (true, false) => engine.start(9_999),
                    (false, _) => engine.start(50 * 16),
                }
                prop_assert_eq!(engine.concurrency.allowed(), 16);
            }
        }
    }
}
