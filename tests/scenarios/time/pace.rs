//! Invariant I8 over real processes: a crowd of names at one address or in one domain is checked no
//! faster than its pace, and all of them are checked in the end. Two ways out share the pace.
//!
//! Ten thousand names at the real settings take more than a day:
//! `tests/simulation/tests/crowds/paces.rs` covers them in simulated time.

use std::time::Duration;

use lab::crowd::Crowd;
use lab::farm::Farm;
use lab::request_log::{self, Entry};
use tests::{Engine, Options, Role, World};

/// An instance at the same address. Its success proves the address, which is then asked at the pace
/// of its block; before that, the slower pace applies.
const FIRST: &str = "dying.lab.test";

/// All at 127.0.0.1, due at once.
const CROWD: u32 = 120;

/// Shortens the two seconds between two checks in one /24 to 250 milliseconds, and the ten at an
/// address without a proven instance to 1250.
const BLOCK_DIVISOR: u32 = 8;

/// Shortens the ten seconds between two look-ups in one domain to the same.
const DOMAIN_DIVISOR: u32 = 40;
const PACE: Duration = Duration::from_millis(250);

/// How much slower a census with two ways is, and its names: each way alone must be able to keep
/// the pace busy, or two that don't share it would not be noticed.
const SLOWER: u32 = 8;
const BY_TWO_WAYS: usize = 45;

/// Checks that were dialled before a window and ask in it: the daemon's `opens_max`.
const UNDER_WAY: usize = 16;
const UNDER_WAY_BY_TWO: usize = 4;

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
    check(Crowd::new(CROWD, 1).names(), BLOCK_DIVISOR, 1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_ways_together_keep_the_pace_of_an_address() -> anyhow::Result<()> {
    let names = Crowd::new(CROWD, 1).names();
    check(names.take(BY_TWO_WAYS), BLOCK_DIVISOR, 2).await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_ways_together_keep_the_pace_of_a_domain() -> anyhow::Result<()> {
    let names = Farm::new(u64::from(CROWD) * 10).customers();
    check(names.take(BY_TWO_WAYS), DOMAIN_DIVISOR, 2).await
}

/// Adds `names` to a census with one way out, or with two of which the first finds half of them.
async fn check(
    names: impl Iterator<Item = String>,
    divisor: u32,
    ways: usize,
) -> anyhow::Result<()> {
    let names: Vec<_> = names.collect();
    let (slower, window, under_way) = match ways {
        1 => (1, WINDOW, UNDER_WAY),
        _ => (SLOWER, WINDOW * 4, UNDER_WAY_BY_TWO),
    };
    let mut options = Options::new(&[FIRST]);
    // The gateway paces; containers would only be slower.
    options.engine = Engine::Process;
    options.crowd = CROWD;
    options.farm = u64::from(CROWD) * 10;
    options
        .settings
        .push(("lab.pace_divisor", (divisor / slower).to_string()));
    if ways == 2 {
        let few = UNDER_WAY_BY_TWO.to_string();
        options
            .settings
            .extend(["checks_max", "lab.opens_max"].map(|key| (key, few.clone())));
    }
    let mut world = World::prepare(options).await?;
    if ways == 1 {
        world.begin(Role::Gateway).await?;
    } else {
        let all = std::fs::read_to_string(world.path("lab/names"))?;
        let half = names.iter().step_by(2);
        let half: String = half.map(|name| format!("{name} nxdomain\n")).collect();
        std::fs::write(world.path("half"), all + &half)?;
        world.begin_way(Role::Gateway, &world.path("half")).await?;
        let names = world.path("lab/names");
        world.begin_way(Role::SecondGateway, &names).await?;
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
            Ok(alive.map(|(_, count)| count).sum::<u64>() > u64::try_from(names.len())?)
        })
        .await?;
    let moments = checks(&world)?;
    assert_eq!(moments.len(), names.len() + 1, "one check each");
    let pace = u64::try_from((PACE * slower).as_millis())?;
    let window = u64::try_from(window.as_millis())?;
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
    let allowed = usize::try_from(window / pace)? + 1 + under_way;
    let took = moments.last().unwrap_or(&0) - moments.first().unwrap_or(&0);
    let count = names.len();
    eprintln!("{count} checks in {took} ms, at most {most} of {allowed} in {window} ms");
    assert!(most <= allowed, "{most} checks within {window} ms");
    Ok(())
}
