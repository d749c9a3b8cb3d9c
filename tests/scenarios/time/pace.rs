//! Invariant I8 over real processes: a crowd of names at one address is checked no faster than the
//! address's pace, and all of them are checked in the end, also by two ways out together.
//!
//! Ten thousand names at the real settings take more than a day:
//! `tests/simulation/tests/crowds/paces.rs` covers them in simulated time.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use lab::crowd::Crowd;
use lab::request_log::{self, Entry};
use tests::{Engine, Options, Role, World};

/// An instance at the same address. Its success proves the address, which is then asked at the pace
/// of its block; before that, the slower pace applies.
const FIRST: &str = "dying.lab.test";

/// The pace of checks in one /24, and of those below one domain, before they are divided.
const BLOCK_PACE: Duration = Duration::from_secs(2);
const DOMAIN_PACE: Duration = Duration::from_secs(10);

/// Visits that were dialled before others and ask later: the daemon's `opens_max`.
const UNDER_WAY: u32 = 16;

/// From a visit's dial to its first request: on a busy machine a process starts slowly. A domain
/// has fewer names than may be under way.
const LATE_MAX: Duration = Duration::from_secs(8);

const SOON: Duration = tests::PATIENCE;

/// Visits by the host's address and name, as the lab saw them.
fn visits(world: &World) -> anyhow::Result<Vec<(u64, String)>> {
    let entries: Vec<Entry> = request_log::entries(&world.path("lab/requests.ndjson"))?;
    let mut visits: Vec<_> = entries
        .into_iter()
        .filter(|entry| entry.path == "/robots.txt")
        .map(|entry| (entry.ms, entry.host))
        .collect();
    visits.sort_unstable();
    Ok(visits)
}

/// Fails if any visits are closer than their pace allows, though each may ask this much late.
fn assert_paced(what: &str, moments: &[u64], pace: Duration, late: Duration) {
    for (since, earlier) in moments.iter().enumerate() {
        for (later, between) in moments[since + 1..].iter().zip(1_u32..) {
            let took = Duration::from_millis(later - earlier);
            let least = pace * between;
            assert!(took + late >= least, "{what}: {between} in {took:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_at_one_address_is_checked_at_its_pace_and_to_the_last() -> anyhow::Result<()> {
    check(1, 120, 8).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_at_one_address_is_checked_at_its_pace_by_two_ways() -> anyhow::Result<()> {
    check(2, 40, 4).await
}

/// A crowd is due at once.
async fn check(ways: usize, crowd: u32, divisor: u32) -> anyhow::Result<()> {
    let mut options = Options::new(&[FIRST]);
    // The gateway paces; containers would only be slower.
    options.engine = Engine::Process;
    options.crowd = crowd;
    options
        .settings
        .push(("lab.pace_divisor", divisor.to_string()));
    let mut world = World::prepare(options).await?;
    if ways == 1 {
        world.begin(Role::Gateway).await?;
    } else {
        let names = world.path("lab/names");
        for role in [Role::Gateway, Role::SecondGateway] {
            world.begin_way(role, &names).await?;
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
    let names: Vec<_> = Crowd::new(crowd, 1).names().collect();
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
            Ok(alive.map(|(_, count)| count).sum::<u64>() > u64::from(crowd))
        })
        .await?;
    let visits = visits(&world)?;
    assert_eq!(visits.len(), usize::try_from(crowd)? + 1, "one check each");
    let (block, domain) = (BLOCK_PACE / divisor, DOMAIN_PACE / divisor);
    let mut paced = BTreeMap::<_, Vec<u64>>::new();
    for (at, name) in visits.iter().filter(|(_, name)| name != FIRST) {
        let below = name.split_once('.').context("a domain")?.1;
        for key in [
            ("one block", block, block * UNDER_WAY),
            (below, domain, LATE_MAX),
        ] {
            paced.entry(key).or_default().push(*at);
        }
    }
    for ((what, pace, late), moments) in paced {
        let took = moments.last().zip(moments.first()).map(|(a, b)| a - b);
        eprintln!("{what}: {} visits in {took:?} ms", moments.len());
        assert_paced(what, &moments, pace, late);
    }
    Ok(())
}
