//! Dying → Dead and Moving → Moved: only after more than six failures, and only after seven days.
//! Both conditions must hold.
//!
//! A census checks daily, so both become true together. Two tests separate them: an operator who
//! checks far more often, and a census that was stopped.

use census::state::{Record, State, StateName};
use census::time::{Calendar, Jitter, Timestamp};
use lab::crowd::Crowd;
use store::Stored;
use tests::{Options, Role, World};

use crate::time::passing::{CROWD, check_until, pass, pass_meanwhile, stored};

/// A real day, so that none passes during a test.
const CALENDAR: Calendar = Calendar::REAL;

/// Failures that leave the state as it is: `FAILURES_BORNE` of `census::transition`.
const FAILURES_BORNE: usize = 6;

const DYING: &str = "dying.lab.test";
const MOVING: &str = "moving.lab.test";

async fn among_the_living(hosts: &[&str]) -> anyhow::Result<World> {
    let mut options = Options::new(hosts);
    options.crowd = CROWD;
    options.seeds.extend(Crowd::new(CROWD, 1).names());
    options.interval_divisor = CALENDAR.divisor;
    World::start(options).await
}

async fn check_until_state(world: &World, host: &str, state: StateName) -> anyhow::Result<Stored> {
    check_until(world, host, &format!("is {state:?}"), |stored| {
        stored.record.state.name() == state
    })
    .await
}

async fn check_again(world: &World, host: &str) -> anyhow::Result<Stored> {
    let before = stored(world, host)?.record.last_checked;
    check_until(world, host, "was asked again", |stored| {
        stored.record.last_checked != before
    })
    .await
}

/// The times of the last uninterrupted run of the verdict `word`, oldest first.
fn last_run(stored: &Stored, word: &str) -> Vec<Timestamp> {
    let mut run: Vec<_> = stored
        .history
        .iter()
        .take_while(|entry| entry.verdict == word)
        .map(|entry| entry.at)
        .collect();
    run.reverse();
    run
}

/// The run that ended in its present state. A scheduled check, next to the test's own, may add a
/// verdict to the history after that.
fn run_to_state(stored: &Stored, word: &str) -> Vec<Timestamp> {
    let mut run = last_run(stored, word);
    run.retain(|at| *at <= stored.record.since);
    run
}

fn is_borne_out(run: &[Timestamp]) -> bool {
    let (Some(first), Some(last)) = (run.first(), run.last()) else {
        return false;
    };
    run.len() > FAILURES_BORNE && last.since(*first) > CALENDAR.dying_at_least()
}

/// Asserts that the last verdict was the first one for which both conditions held.
fn assert_just_borne_out(run: &[Timestamp]) {
    assert!(is_borne_out(run), "too soon: {run:?}");
    let before = run.get(..run.len() - 1).unwrap_or_default();
    assert!(!is_borne_out(before), "too late: {run:?}");
}

fn failures(record: &Record) -> u32 {
    match &record.state {
        State::Dying { count, .. } => *count,
        other => panic!("{} is {other:?}", record.host),
    }
}

fn assert_listed(world: &World, host: &str, expect: bool) -> anyhow::Result<()> {
    let dumped = world.command(&["dump", "--force"])?;
    assert!(dumped.status.success(), "{dumped:?}");
    assert_eq!(
        world.nodes()?.contains(&host.to_owned()),
        expect,
        "{host} in the list"
    );
    Ok(())
}

/// A host that begins to fail is checked each day until it is in `last`.
async fn daily(host: &str, first: StateName, word: &str, last: StateName) -> anyhow::Result<World> {
    let mut world = among_the_living(&[host]).await?;
    let begun = check_until_state(&world, host, first).await?;
    assert_eq!(begun.record.alive_count, 2, "{host} lived twice");
    assert_listed(&world, host, true)?;
    let mut found = begun;
    while found.record.state.name() == first {
        pass_meanwhile(&mut world, CALENDAR.day(Jitter(u32::MAX / 2))).await?;
        found = check_again(&world, host).await?;
    }
    assert_eq!(found.record.state.name(), last);
    let run = run_to_state(&found, word);
    assert_eq!(run.last(), Some(&found.record.since));
    assert_just_borne_out(&run);
    assert_listed(&world, host, false)?;
    Ok(world)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_fails_daily_is_dead_after_a_week_and_not_before() -> anyhow::Result<()> {
    daily(DYING, StateName::Dying, "dead", StateName::Dead).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_redirects_daily_has_moved_after_a_week_and_not_before() -> anyhow::Result<()> {
    let world = daily(MOVING, StateName::Moving, "moved", StateName::Moved).await?;
    let moved = stored(&world, MOVING)?;
    let State::Moved { target } = &moved.record.state else {
        panic!("{:?}", moved.record.state);
    };
    assert!(
        world.host(target.as_str())?.is_some(),
        "{target} is a candidate"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_failures_within_a_week_stay_dying() -> anyhow::Result<()> {
    let mut world = among_the_living(&[DYING]).await?;
    check_until_state(&world, DYING, StateName::Dying).await?;
    let often = check_until(&world, DYING, "has failed often", |stored| {
        failures(&stored.record) >= 8
    })
    .await?;
    let run = last_run(&often, "dead");
    assert_eq!(run.first(), Some(&often.record.since));
    assert_listed(&world, DYING, true)?;

    pass_meanwhile(&mut world, CALENDAR.dying_at_least()).await?;
    let dead = check_again(&world, DYING).await?;
    assert_eq!(dead.record.state, State::Dead);
    assert_just_borne_out(&run_to_state(&dead, "dead"));
    assert_listed(&world, DYING, false)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_week_in_which_the_census_was_off_makes_nobody_dead() -> anyhow::Result<()> {
    let mut world = among_the_living(&[DYING]).await?;
    check_until_state(&world, DYING, StateName::Dying).await?;
    world.stop(Role::Run).await?;
    pass(&world, CALENDAR.dying_at_least())?;
    let begun = stored(&world, DYING)?;
    assert!(failures(&begun.record) < 6, "{begun:?}");
    world.begin(Role::Run).await?;

    let again = check_again(&world, DYING).await?;
    assert!(failures(&again.record) > failures(&begun.record));
    let dead = check_until_state(&world, DYING, StateName::Dead).await?;
    let failures = last_run(&dead, "dead");
    let fatal = failures
        .iter()
        .position(|at| *at == dead.record.since)
        .expect("the fatal one");
    assert_eq!(
        failures.first(),
        Some(&begun.record.since),
        "the week off is one week of failing"
    );
    assert_eq!(fatal, FAILURES_BORNE, "dead at the seventh failure");
    Ok(())
}
