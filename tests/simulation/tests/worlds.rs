//! Small worlds: whole runs that take seconds.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "all of it is test code: a panic is how it says what it found"
)]

use std::time::Duration;

use simulation::guard::{Broken, Rule};
use simulation::measure::Sample;
use simulation::plan::{Plan, Sabotage};
use simulation::report::Report;
use simulation::world::{Farm, Life, World};
use simulation::year::run;

/// Fixed, because nobody may be there to try another one if a random seed fails.
const SEED: u64 = 20_261_122;

fn world(name: &str) -> World {
    World::named(name).unwrap()
}

fn simulate(plan: &Plan) -> Report {
    run(plan).unwrap_or_else(|failed| panic!("{failed:#}"))
}

/// A world in which a year happens within a month, so that few hosts meet every event.
fn hurried(name: &str) -> World {
    let mut world = world(name);
    let life = &mut world.life;
    for rate in [
        &mut life.deaths,
        &mut life.moves,
        &mut life.robots,
        &mut life.words,
    ] {
        *rate *= 12.0;
    }
    world
}

/// Every host opts out within days, one way or the other.
fn restless(name: &str) -> World {
    let mut world = world(name);
    (world.life.robots, world.life.words) = (20.0, 20.0);
    world
}

/// No host appears, disappears or fails: a late check is late because of us.
fn still(name: &str) -> World {
    let mut world = world(name);
    world.life = Life::still();
    world
}

fn check_broken(plan: &Plan, expect: Rule) {
    let failed = run(plan).expect_err("the run broke an invariant");
    let text = format!("{failed:#}");
    assert!(text.contains(&format!("seed {}", plan.seed)), "{text}");
    match failed.downcast_ref::<Broken>() {
        Some(broken) => assert_eq!(broken.rule, expect, "{broken}"),
        None => panic!("{:?}: {text}", plan.sabotage),
    }
}

#[test]
fn three_hundred_hosts_live_through_sixty_days() {
    let report = simulate(&Plan::new(hurried("default"), 300, 60, SEED));
    println!("{}", report.table());
    let counts = &report.counts;
    assert!(counts.settled > 3000, "{counts:?}");
    assert!(counts.words > 0 && counts.wasted > 0, "{counts:?}");
    assert!(counts.unconfirmed == 0 && counts.ours == 0, "{counts:?}");
    assert!(report.wrong().mean < 0.15, "{:?}", report.wrong());
    assert!(report.missing().mean < 0.05, "{:?}", report.missing());
}

/// Failures of ours never count against a host: every host that responded before is still listed,
/// however long our network was down.
#[test]
fn an_outage_of_ours_finds_nobody_dead() {
    let report = simulate(&Plan::new(still("outage"), 100, 30, SEED));
    println!("{}", report.table());
    assert!(report.outages >= 3 && report.told > 0);
    assert!(report.counts.unconfirmed > 0, "a silent one");
    assert!(report.missing().worst < 1e-9, "{:?}", report.missing());
    assert!(report.wrong().worst < 1e-9, "{:?}", report.wrong());
}

/// Half of all blocks vanish at times: that alone wrongs hosts of a census with one way out.
#[test]
fn two_ways_that_fail_at_random_wrong_no_host() {
    let mut plan = Plan::new(hurried("ways"), 300, 30, SEED);
    let report = simulate(&plan);
    println!("{}", report.table());
    assert!(report.outages >= 6);
    plan.world.has_second_way = false;
    check_broken(&plan, Rule::Wronged);
}

#[test]
fn second_opinions_cost_less_than_a_tenth() {
    let mut plan = Plan::new(hurried("default"), 300, 30, SEED);
    let one = simulate(&plan).checks_a_verdict();
    plan.world.has_second_way = true;
    let two = simulate(&plan).checks_a_verdict();
    println!("{two:.3} checks for each verdict, with one way {one:.3}");
    assert!(two <= 1.1 * one);
}

#[test]
fn the_same_seed_gives_the_same_table_and_another_one_another() {
    let table = |seed| {
        let plan = Plan::new(hurried("outage"), 60, 12, seed);
        simulate(&plan).world_table()
    };
    let first = table(SEED);
    assert_eq!(first, table(SEED));
    assert_ne!(first, table(SEED + 1));
}

#[test]
fn every_living_host_is_seen_within_its_day_as_long_as_capacity_suffices() {
    for name in ["default", "all-living"] {
        let report = simulate(&Plan::new(world(name), 200, 15, SEED));
        println!("{}", report.table());
        // 49 h until a new host's second check. A deferred host is checked again within an hour.
        let most = Duration::from_secs(50 * 3600);
        assert!(report.longest <= most, "{name}: {:?}", report.longest);
        let seen = report.coverage(|sample: &Sample| sample.within_day_and_jitter);
        assert!(seen.mean > 0.99, "{name}: {seen:?}");
        assert!(
            report.living_share() > 0.9,
            "{name}: {}",
            report.living_share()
        );
    }
}

#[test]
fn few_farm_hosts_are_listed_and_none_delays_others() {
    let mut plan = Plan::new(world("farm"), 100, 8, SEED);
    plan.world.farm = plan.world.farm.map(|farm| Farm { names: 200, ..farm });
    let report = simulate(&plan);
    println!("{}", report.table());
    let worst = report.samples.iter().map(|sample| sample.invented).max();
    assert!(worst <= Some(10), "{worst:?}");
    assert!(report.counts.invented > 0 && report.waiting > 0);
    assert!(
        report.longest <= Duration::from_secs(50 * 3600),
        "{:?}",
        report.longest
    );
}

/// Classes have their shares, so living hosts get nearly all of an engine that can't do half of the
/// work. With fewer hosts, such an engine would start containers so rarely that failures find no
/// witness in time, and the test would measure that.
#[test]
fn under_overload_the_living_keep_nine_tenths_of_what_the_engine_can() {
    let plan = Plan::new(world("overload"), 30_000, 2, SEED);
    let report = simulate(&plan);
    println!("{}", report.table());
    assert!(plan.capacity <= 0.5 * plan.world.need(plan.hosts));
    assert!(report.living_share() > 0.9, "{}", report.living_share());
}

#[test]
fn each_invariant_ends_the_run_that_breaks_it() {
    let plan = |world, sabotage| Plan {
        sabotage: Some(sabotage),
        ..Plan::new(world, 80, 12, SEED)
    };
    for (sabotage, expect) in [
        (Sabotage::ReleaseEarly, Rule::TwoInFlight),
        (Sabotage::StayDue, Rule::NotMovedOn),
        (Sabotage::DeafToWord, Rule::AskedDespiteWord),
        (Sabotage::DeafToRobots, Rule::AskedTooSoon),
        (Sabotage::ListTheOld, Rule::ListedTooLong),
        (Sabotage::ForgetQuietly, Rule::Lost),
    ] {
        check_broken(&plan(restless("all-living"), sabotage), expect);
    }
    let farm = plan(world("farm"), Sabotage::AllowTheFarm);
    check_broken(&farm, Rule::ListedThoughHeld);
    let mut crowded = plan(world("overload"), Sabotage::PickTooMany);
    crowded.capacity /= 4.0;
    check_broken(&crowded, Rule::PickedTooMany);
}
