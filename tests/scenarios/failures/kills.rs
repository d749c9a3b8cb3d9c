//! Invariants I4 to I6: a part that is killed at any moment loses nothing, wrongs no host and
//! leaves nothing behind.

use std::time::Duration;

use crate::confinement::containers::{checks_of, containers_of};
use tests::world::EGRESS;
use tests::{Engine, EngineApi, Need, Options, Role, World, unhurried};

const CROWD: u32 = 40;
const SOON: Duration = tests::PATIENCE;

/// A census of a crowd, killed in the middle of its first round.
async fn in_the_middle() -> anyhow::Result<World> {
    let mut options = Options::new(&["seed.lab.test"]);
    options.seeds = lab::crowd::Crowd::new(CROWD, 1).names().collect();
    options.crowd = CROWD;
    // Interrupted checks are repeated within seven seconds.
    options.interval_divisor = unhurried(500);
    let world = World::start(options).await?;
    world
        .until("a list stands and checks are under way", SOON, |world| {
            let stands = world.path("public/current/nodes.json").exists();
            Ok(stands && world.reader()?.counts()?.in_flight > 0 && alive(world)? > 2)
        })
        .await?;
    Ok(world)
}

fn alive(world: &World) -> anyhow::Result<u64> {
    let counts = world.reader()?.counts()?;
    Ok(counts
        .by_state
        .iter()
        .filter(|(state, _)| state.as_str() == "alive")
        .map(|(_, count)| count)
        .sum())
}

/// The whole crowd is alive, and no failure was ever counted against it.
async fn all_live_and_nobody_was_wronged(world: &World) -> anyhow::Result<()> {
    world
        .until("the whole crowd lives", SOON, |world| {
            Ok(alive(world)? >= u64::from(CROWD))
        })
        .await?;
    for name in lab::crowd::Crowd::new(CROWD, 1).names() {
        let stored = world.host(&name)?.expect("known");
        assert!(
            stored.history.iter().all(|entry| entry.verdict == "alive"),
            "{name}: {:?}",
            stored.history
        );
    }
    Ok(())
}

/// No check's container and no egress directory is left.
pub(crate) async fn nothing_is_left(world: &mut World) -> anyhow::Result<()> {
    if let Engine::Socket(socket) = Engine::from_environment() {
        let engine = EngineApi::connect(&socket)?;
        world
            .until("no check is left", SOON, |world| {
                Ok(checks_of(world, &engine)?.is_empty())
            })
            .await?;
        world.stop(Role::Launcher).await?;
        let left = containers_of(world, &engine)?;
        assert!(left.is_empty(), "{left:?}");
    }
    world
        .until("no egress is left", SOON, |world| {
            Ok(std::fs::read_dir(world.path(EGRESS))?.next().is_none())
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_killed_in_the_middle_takes_up_where_it_was() -> anyhow::Result<()> {
    let mut world = in_the_middle().await?;
    let before = alive(&world)?;
    world.kill(Role::Run)?;
    assert!(alive(&world)? >= before, "an acknowledged verdict was lost");
    let list: Vec<String> = world.nodes()?;
    assert!(
        list.iter().all(|name| name.ends_with(".test")),
        "the list on disk is not whole"
    );
    world.begin(Role::Run).await?;
    all_live_and_nobody_was_wronged(&world).await?;
    nothing_is_left(&mut world).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_killed_in_the_middle_wrongs_nobody() -> anyhow::Result<()> {
    let mut world = in_the_middle().await?;
    world.kill(Role::Gateway)?;
    world
        .until("the daemon says that it is an outage", SOON, |world| {
            Ok(world.status()?["daemon"]["outage"].is_object())
        })
        .await?;
    world.begin(Role::Gateway).await?;
    all_live_and_nobody_was_wronged(&world).await?;
    nothing_is_left(&mut world).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_is_asked_to_end_gives_all_hosts_back() -> anyhow::Result<()> {
    let mut world = in_the_middle().await?;
    world.stop(Role::Run).await?;
    let counts = world.reader()?.counts()?;
    assert_eq!(counts.in_flight, 0, "in flight after an orderly end");
    world.begin(Role::Run).await?;
    all_live_and_nobody_was_wronged(&world).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launcher_killed_in_the_middle_leaves_no_container_and_wrongs_nobody()
-> anyhow::Result<()> {
    let Engine::Socket(socket) = Engine::from_environment() else {
        tests::skip(
            Need::Engine,
            "the launcher is a separate process only with an engine; set FEDICENSUS_LAB_ENGINE",
        );
        return Ok(());
    };
    let engine = EngineApi::connect(&socket)?;
    let mut world = in_the_middle().await?;
    let mut orphans = Vec::new();
    world
        .until("checks run", SOON, |world| {
            orphans = containers_of(world, &engine)?;
            Ok(!orphans.is_empty())
        })
        .await?;
    world.kill(Role::Launcher)?;
    world
        .until("the daemon says that it is an outage", SOON, |world| {
            Ok(world.status()?["daemon"]["outage"].is_object())
        })
        .await?;
    world.begin(Role::Launcher).await?;
    all_live_and_nobody_was_wronged(&world).await?;
    nothing_is_left(&mut world).await
}
