//! The opposite: one responding host is enough to confirm failures. An attacker with half of all
//! hosts can neither stop the census nor make honest hosts count as dead.

use std::time::Duration;

use tests::{Options, Role, Watch, World};
use tokio::time::Instant;

use super::{DIVISOR, SOON, crowd, options, until_all_live};

#[tokio::test(flavor = "multi_thread")]
async fn one_living_host_in_the_world_is_enough_for_failures_to_count() -> anyhow::Result<()> {
    let dead = [
        "tls-expired.lab.test",
        "status-500.lab.test",
        "port-closed.lab.test",
        "dns-nxdomain.lab.test",
    ];
    let mut options = Options::new(&dead);
    options.seeds.push("mastodon.lab.test".to_owned());
    options.interval_divisor = DIVISOR;
    let world = World::start(options).await?;
    world
        .until("all the dead are found dead", SOON, |world| {
            let found = dead.map(|name| world.verdict(name));
            found.into_iter().try_fold(true, |all, verdict| {
                Ok(all && verdict?.is_some_and(|(word, _)| word == "dead"))
            })
        })
        .await?;
    let (word, _) = world.verdict("mastodon.lab.test")?.expect("it lives");
    assert_eq!(word, "alive");
    Ok(())
}

/// Tarpits that hold a check for all of its time, drips, floods, bombs, resets. They fail at the
/// same time, and some flap.
const HOSTILE: [&str; 36] = [
    "drip.lab.test",
    "drip-headers.lab.test",
    "tarpit.lab.test",
    "hellpot.lab.test",
    "silent.lab.test",
    "silent-all.lab.test",
    "tls-silent.lab.test",
    "tls-slow.lab.test",
    "robots-drip.lab.test",
    "endless-hops.lab.test",
    "chunk-endless.lab.test",
    "header-endless.lab.test",
    "interim-endless.lab.test",
    "interim-flood.lab.test",
    "peers-drip.lab.test",
    "peers-endless.lab.test",
    "peers-silent.lab.test",
    "peers-reset.lab.test",
    "flapping.lab.test",
    "dying.lab.test",
    "changing-its-mind.lab.test",
    "moving.lab.test",
    "gzip-bomb.lab.test",
    "gzip-bomb-pointer.lab.test",
    "huge-text.lab.test",
    "deep.lab.test",
    "reset-all.lab.test",
    "tls-reset.lab.test",
    "tls-expired.lab.test",
    "dns-timeout.lab.test",
    "dns-servfail.lab.test",
    "dns-nxdomain.lab.test",
    "port-closed.lab.test",
    "flood.lab.test",
    "late.lab.test",
    "robots-endless.lab.test",
];

/// The honest hosts must get at least this part of the checks that they get alone. Measured: nine
/// tenths, with twelve slots and sixteen hosts that hold one for up to a minute. If all slots were
/// always held, a round would take eighty seconds instead of thirty.
const HONEST_RATE_MIN: f64 = 0.3;

/// How long the rate is measured: two days of this world.
const MEASURED: Duration = Duration::from_secs(60);

fn lived(world: &World) -> anyhow::Result<u32> {
    crowd()
        .map(|name| {
            Ok(world
                .host(&name)?
                .map_or(0, |stored| stored.record.alive_count))
        })
        .sum()
}

/// Checks per second that found honest hosts alive.
async fn honest_rate(world: &World) -> anyhow::Result<f64> {
    let (began, before) = (Instant::now(), lived(world)?);
    world
        .until("two days have passed", MEASURED * 2, |_| {
            Ok(began.elapsed() >= MEASURED)
        })
        .await?;
    Ok(f64::from(lived(world)? - before) / began.elapsed().as_secs_f64())
}

#[tokio::test(flavor = "multi_thread")] // S53
async fn half_of_all_hosts_cannot_stop_the_census_or_wrong_others() -> anyhow::Result<()> {
    let world = World::start(options()).await?;
    until_all_live(&world).await?;
    let alone = honest_rate(&world).await?;
    let log = world.log(Role::Run);
    let alarms: Vec<_> = log
        .lines()
        .filter(|line| line.contains(" ERROR "))
        .collect();
    assert_eq!(alarms, [""; 0], "two quiet days");
    assert!(world.command(&["health"])?.status.success());
    let mut watch = Watch::begin(&world, "half of all hosts are hostile", crowd())?;
    let added = world.command(&[&["add"][..], &HOSTILE].concat())?;
    assert!(added.status.success(), "{added:?}");
    world
        .until("the hostile are being checked", SOON, |world| {
            let judged = HOSTILE
                .iter()
                .filter(|name| matches!(world.verdict(name), Ok(Some(_))));
            Ok(judged.count() > HOSTILE.len() / 3)
        })
        .await?;
    let with_hostile = honest_rate(&world).await?;
    eprintln!("honest checks a second: {alone:.2} alone, {with_hostile:.2} with the hostile");
    watch.over(&world)?;
    assert!(
        with_hostile >= alone * HONEST_RATE_MIN,
        "{with_hostile:.2}/s with the hostile, {alone:.2}/s alone"
    );
    watch.recovers(&world, SOON).await
}
