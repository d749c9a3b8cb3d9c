//! Dying → Dead and Moving → Moved (design §6): only after more than six failures, and only after seven days. Both.
//!
//! A census asks daily, so the two come together; told apart they are by an operator who asks far more often, and by a census that was off.

use std::time::Duration;

use anyhow::Context as _;
use census::state::{Record, State, StateName};
use census::time::{Calendar, Timestamp};
use lab::crowd::Crowd;
use store::Stored;
use tests::{Options, Role, World};
use tokio::time::Instant;

/// The time between two checks passes in ten seconds, seven days pass in sixty: a machine on which everything else is tested at the same time has to manage
/// eight checks in a row within these.
const CALENDAR: Calendar = Calendar { divisor: 10_000 };

/// Each story is told well within this.
const SOON: Duration = Duration::from_secs(160);

/// Failures count when others have lived close by: one of these is asked each second.
const CROWD: u32 = 10;

/// What design §6 says: "count > 6".
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

fn stored(world: &World, host: &str) -> anyhow::Result<Stored> {
    // There is a moment at which the database is there and the seeds are not.
    world.host(host)?.context("a seed is not known yet")
}

async fn until_state(world: &World, host: &str, state: StateName) -> anyhow::Result<Stored> {
    let mut found = None;
    world
        .until(&format!("{host} is {state:?}"), SOON, |world| {
            let stored = stored(world, host)?;
            if stored.record.state.name() == state {
                found = Some(stored);
            }
            Ok(found.is_some())
        })
        .await?;
    Ok(found.expect("found above"))
}

/// When the verdict `word` came in since the last other one, oldest first.
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

fn is_borne_out(run: &[Timestamp]) -> bool {
    let (Some(first), Some(last)) = (run.first(), run.last()) else {
        return false;
    };
    run.len() > FAILURES_BORNE && last.since(*first) > CALENDAR.dying_at_least()
}

/// The last verdict was the first one that made both true.
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

#[tokio::test(flavor = "multi_thread")]
async fn who_fails_or_redirects_daily_is_dead_or_has_moved_after_a_week_and_not_before()
-> anyhow::Result<()> {
    let world = among_the_living(&[DYING, MOVING]).await?;
    let since_dying = until_state(&world, DYING, StateName::Dying).await?;
    let since_moving = until_state(&world, MOVING, StateName::Moving).await?;
    for (host, begun) in [(DYING, &since_dying), (MOVING, &since_moving)] {
        assert_eq!(begun.record.alive_count, 2, "{host} lived twice");
        assert_listed(&world, host, true)?;
    }

    let dead = until_state(&world, DYING, StateName::Dead).await?;
    let failures = last_run(&dead, "dead");
    assert_eq!(failures.first(), Some(&since_dying.record.since));
    assert_eq!(failures.last(), Some(&dead.record.since));
    assert_just_borne_out(&failures);
    assert_listed(&world, DYING, false)?;

    let moved = until_state(&world, MOVING, StateName::Moved).await?;
    let redirects = last_run(&moved, "moved");
    assert_eq!(redirects.first(), Some(&since_moving.record.since));
    assert_eq!(redirects.last(), Some(&moved.record.since));
    assert_just_borne_out(&redirects);
    assert_listed(&world, MOVING, false)?;
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
    let world = among_the_living(&[DYING]).await?;
    let begun = until_state(&world, DYING, StateName::Dying).await?;
    world
        .until("an operator has asked often", SOON, |world| {
            world.command(&["check", DYING])?;
            Ok(failures(&stored(world, DYING)?.record) >= 8)
        })
        .await?;
    let often = stored(&world, DYING)?;
    let last = often.history.first().expect("its entries").at;
    let took = last.since(begun.record.since);
    assert!(
        took < CALENDAR.dying_at_least(),
        "too slow a machine to tell: {took:?}"
    );
    assert_eq!(often.record.since, begun.record.since);
    assert_listed(&world, DYING, true)?;

    let dead = until_state(&world, DYING, StateName::Dead).await?;
    let week_over = begun.record.since.plus(CALENDAR.dying_at_least());
    let (fatal, before) = (&dead.history[0], &dead.history[1]);
    assert_eq!(fatal.at, dead.record.since);
    assert!(
        fatal.at > week_over,
        "{:?} is before {week_over:?}",
        fatal.at
    );
    assert!(
        before.at <= week_over,
        "it was not dead at the first failure after the week"
    );
    assert_listed(&world, DYING, false)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_week_in_which_the_census_was_off_makes_nobody_dead() -> anyhow::Result<()> {
    let mut world = among_the_living(&[DYING]).await?;
    until_state(&world, DYING, StateName::Dying).await?;
    world.stop(Role::Run).await?;
    let begun = stored(&world, DYING)?;
    let counted = failures(&begun.record);
    let off = Instant::now();
    world
        .until("a week has passed", SOON, |_| {
            Ok(off.elapsed() > CALENDAR.dying_at_least())
        })
        .await?;
    world.begin(Role::Run).await?;

    world
        .until("it has failed again", SOON, |world| {
            Ok(failures(&stored(world, DYING)?.record) > counted)
        })
        .await?;
    world
        .until("it is dead after all", SOON, |world| {
            world.command(&["check", DYING])?;
            Ok(stored(world, DYING)?.record.state == State::Dead)
        })
        .await?;
    let dead = stored(&world, DYING)?;
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
