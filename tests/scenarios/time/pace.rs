//! Invariant I8 over real processes: a crowd of names at one address is checked no faster than the
//! address's pace, and all of them are checked in the end, also by two ways out together.
//!
//! Ten thousand names at the real settings take more than a day:
//! `tests/simulation/tests/crowds/paces.rs` covers them in simulated time.

use std::time::Duration;

use lab::crowd::Crowd;
use lab::request_log::{self, Entry};
use tests::{Engine, Options, Role, World};

/// An instance at the same address. Its success proves the address, which is then asked at the pace
/// of its block; before that, the slower pace applies.
const FIRST: &str = "dying.lab.test";

/// All at 127.0.0.1, due at once.
const CROWD: u32 = 120;

/// Shortens the two seconds between two checks in one /24 to 250 milliseconds, and the ten at an
/// address without a proven instance to 1250.
const PACE_DIVISOR: u32 = 8;
const BLOCK_PACE: Duration = Duration::from_millis(250);

/// Checks that were dialled before a window and ask in it: the daemon's `opens_max`.
const UNDER_WAY: usize = 16;

const WINDOW: Duration = Duration::from_secs(10);

const SOON: Duration = tests::PATIENCE;

fn checks(world: &World) -> anyhow::Result<Vec<u64>> {
    let entries: Vec<Entry> = request_log::entries(&world.path("lab/requests.ndjson"))?;
    let mut moments: Vec<_> = entries
        .into_iter()
        .filter(|entry| entry.path == "/robots.txt")
        .map(|entry| entry.ms)
        .collect();
    moments.sort_unstable();
    Ok(moments)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_at_one_address_is_checked_at_its_pace_and_to_the_last() -> anyhow::Result<()> {
    check(1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_at_one_address_is_checked_at_its_pace_by_two_ways() -> anyhow::Result<()> {
    check(2).await
}

/// The first of two ways finds only half of the names.
async fn check(ways: usize) -> anyhow::Result<()> {
    let mut options = Options::new(&[FIRST]);
    // The gateway paces; containers would only be slower.
    options.engine = Engine::Process;
    options.crowd = CROWD;
    options
        .settings
        .push(("lab.pace_divisor", PACE_DIVISOR.to_string()));
    let mut world = World::prepare(options).await?;
    if ways == 1 {
        world.begin(Role::Gateway).await?;
    } else {
        let all = std::fs::read_to_string(world.path("lab/names"))?;
        let half = Crowd::new(CROWD, 1).names().step_by(2);
        let half: String = half.map(|name| format!("{name} nxdomain\n")).collect();
        std::fs::write(world.path("half"), format!("{all}{half}"))?;
        for (role, names) in [(Role::Gateway, "half"), (Role::SecondGateway, "lab/names")] {
            world.begin_way(role, &world.path(names)).await?;
        }
    }
    for role in [Role::Launcher, Role::Run] {
        world.begin(role).await?;
    }
    world
        .until("an instance is proven there", SOON, |world| {
            Ok(world
                .verdict(FIRST)?
                .is_some_and(|(word, _)| word == "alive"))
        })
        .await?;
    let names: Vec<_> = Crowd::new(CROWD, 1).names().collect();
    let arguments: Vec<_> = ["add"]
        .into_iter()
        .chain(names.iter().map(String::as_str))
        .collect();
    let added = world.command(&arguments)?;
    assert!(added.status.success(), "{added:?}");
    world
        .until("the whole crowd lives", SOON, |world| {
            let counts = world.reader()?.counts()?;
            let alive = counts
                .by_state
                .iter()
                .filter(|(state, _)| state.as_str() == "alive");
            Ok(alive.map(|(_, count)| count).sum::<u64>() > u64::from(CROWD))
        })
        .await?;
    let moments = checks(&world)?;
    assert_eq!(moments.len(), usize::try_from(CROWD)? + 1, "one check each");
    let window = u64::try_from(WINDOW.as_millis())?;
    let most = moments
        .iter()
        .map(|start| {
            let end = start + window;
            moments
                .iter()
                .filter(|at| (*start..end).contains(at))
                .count()
        })
        .max()
        .unwrap_or_default();
    let allowed = usize::try_from(WINDOW.as_millis() / BLOCK_PACE.as_millis())? + 1 + UNDER_WAY;
    let took = moments.last().unwrap_or(&0) - moments.first().unwrap_or(&0);
    eprintln!("{CROWD} checks in {took} ms, at most {most} of {allowed} in {WINDOW:?}");
    assert!(most <= allowed, "{most} checks within {WINDOW:?}");
    Ok(())
}
