//! Invariant I5: our own failure never counts against a host.

use std::collections::BTreeMap;
use std::time::Duration;

use tests::{Options, World};

const SOON: Duration = Duration::from_secs(120);
const CROWD: u32 = 12;

async fn a_living_crowd() -> anyhow::Result<World> {
    let mut options = Options::new(&[]);
    options.seeds = lab::crowd::Crowd::new(CROWD, 1).names().collect();
    options.canaries = options.seeds.iter().take(2).cloned().collect();
    options.crowd = CROWD;
    // A day in ten seconds: everybody is asked several times while one watches.
    options.interval_divisor = 10_000;
    let world = World::start(options).await?;
    world
        .until("the whole crowd lives", SOON, |world| {
            Ok(states(world)?.get("alive") == Some(&u64::from(CROWD)))
        })
        .await?;
    Ok(world)
}

fn states(world: &World) -> anyhow::Result<BTreeMap<String, u64>> {
    let counts = world.reader()?.counts()?;
    Ok(counts
        .by_state
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(state, count)| (state.as_str().to_owned(), count))
        .collect())
}

/// How many have run into the trouble: their failures wait for confirmation, or they were put off.
fn troubled(world: &World) -> anyhow::Result<u64> {
    let mut noted = 0;
    for name in lab::crowd::Crowd::new(CROWD, 1).names() {
        noted += u64::from(
            world
                .host(&name)?
                .is_some_and(|stored| stored.last_note.is_some()),
        );
    }
    Ok(noted + world.status()?["daemon"]["waiting"].as_u64().unwrap_or(0))
}

/// Plays `trouble` instead of every address in the names file, until everybody has run into it; gives the old file back afterwards.
async fn while_dns_plays(world: &World, trouble: &str) -> anyhow::Result<()> {
    let names = world.path("lab/names");
    let sound = std::fs::read_to_string(&names)?;
    let played: String = sound
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_whitespace().next())
        .map(|name| format!("{name} {trouble}\n"))
        .collect();
    replace(world, &played)?;
    world
        .until("most of the crowd ran into it", SOON, |world| {
            Ok(troubled(world)? > u64::from(CROWD / 2))
        })
        .await?;
    assert_eq!(
        states(world)?,
        BTreeMap::from([("alive".to_owned(), u64::from(CROWD))]),
        "somebody was wronged"
    );
    replace(world, &sound)
}

fn replace(world: &World, text: &str) -> anyhow::Result<()> {
    let beside = world.path("lab/names.new");
    std::fs::write(&beside, text)?;
    Ok(std::fs::rename(&beside, world.path("lab/names"))?)
}

/// After the trouble all come out alive again, and nobody's history holds anything else.
async fn nobody_was_wronged(world: &World) -> anyhow::Result<()> {
    let then: Vec<_> = lab::crowd::Crowd::new(CROWD, 1)
        .names()
        .map(|name| {
            (
                name.clone(),
                world
                    .host(&name)
                    .ok()
                    .flatten()
                    .map_or(0, |stored| stored.record.alive_count),
            )
        })
        .collect();
    world
        .until("everybody came out alive again", SOON, |world| {
            Ok(then.iter().all(|(name, count)| {
                world
                    .host(name)
                    .ok()
                    .flatten()
                    .is_some_and(|stored| stored.record.alive_count > *count)
            }))
        })
        .await?;
    for (name, _) in then {
        let stored = world.host(&name)?.expect("known");
        assert!(
            stored.history.iter().all(|entry| entry.verdict == "alive"),
            "{name}: {:?}",
            stored.history
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn name_servers_that_fail_for_all_change_no_state() -> anyhow::Result<()> {
    let world = a_living_crowd().await?;
    while_dns_plays(&world, "servfail").await?;
    nobody_was_wronged(&world).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resolver_that_denies_every_name_changes_no_state() -> anyhow::Result<()> {
    let world = a_living_crowd().await?;
    while_dns_plays(&world, "nxdomain").await?;
    nobody_was_wronged(&world).await
}
