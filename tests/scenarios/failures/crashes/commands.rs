//! Kills commands that write without a daemon: they take the database's lock, and release it by
//! ending.

use std::time::Duration;

use anyhow::ensure;
use protocol::Host;
use tests::{Options, World};

use super::Chance;
use super::list;

/// Names of an import: several of its batches.
const NAMES: usize = 1500;

const KILLS: u32 = 24;

fn name(number: usize) -> String {
    format!("c{number}.lab.test")
}

/// Runs a command and kills it after less than `most`. Returns whether it had succeeded by then.
async fn cut_off(
    world: &World,
    chance: &mut Chance,
    most: Duration,
    arguments: &[&str],
) -> anyhow::Result<bool> {
    let mut child = world.begin_command(arguments)?;
    tokio::time::sleep(chance.moment(most)).await;
    child.kill()?;
    Ok(child.wait()?.success())
}

fn known(world: &World) -> anyhow::Result<usize> {
    let reader = world.reader()?;
    let damage = reader.damage()?;
    ensure!(damage.is_empty(), "{damage:#?}");
    Ok(usize::try_from(reader.counts()?.hosts)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_killed_at_any_moment_keeps_a_whole_beginning_and_goes_on() -> anyhow::Result<()>
{
    let mut chance = Chance::new();
    let world = World::prepare(Options::new(&[])).await?;
    let list = world.path("list");
    let text: String = (0..NAMES)
        .map(|number| format!("{}\n", name(number)))
        .collect();
    std::fs::write(&list, text)?;
    let path = list.display().to_string();
    let mut before = 0;
    // The first kills happen while the database is being created.
    for kill in 1..=KILLS {
        let most = Duration::from_millis(if kill < KILLS / 3 { 100 } else { 600 });
        let ended = cut_off(&world, &mut chance, most, &["import", &path]).await?;
        if before == 0 && !world.path("data/census.db").exists() {
            continue;
        }
        // The next command is not locked out, and creates what the killed one had not created.
        let added = world.command(&["add", "first.lab.test"])?;
        ensure!(added.status.success(), "{added:?}");
        let now = known(&world)? - 1;
        ensure!(now >= before, "{before} names became {now}");
        ensure!(!ended || now == NAMES, "said to be done with {now} names");
        let reader = world.reader()?;
        for number in 0..=now.min(NAMES - 1) {
            let is_there = reader.record(&Host::parse(&name(number))?)?.is_some();
            ensure!(is_there == (number < now), "not the first {now}: {number}");
        }
        before = now;
    }
    let ended = world.command(&["import", &path])?;
    ensure!(ended.status.success(), "{ended:?}");
    assert_eq!(known(&world)?, NAMES + 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opt_out_killed_at_any_moment_is_made_or_not_and_kept_once_said() -> anyhow::Result<()> {
    let mut chance = Chance::new();
    let world = World::prepare(Options::new(&[])).await?;
    let mut said = Vec::new();
    for kill in 0..KILLS {
        let host = name(usize::try_from(kill)?);
        ensure!(
            world.command(&["add", &host])?.status.success(),
            "locked out"
        );
        let arguments = ["opt-out", &host, "--by", "owner"];
        if cut_off(&world, &mut chance, Duration::from_millis(150), &arguments).await? {
            said.push(host.clone());
        }
        for host in &said {
            let stored = world.host(host)?.expect("known");
            assert_eq!(
                stored.record.state.name().as_str(),
                "opted_out",
                "{host} was promised"
            );
            assert_eq!(stored.record.due, None, "{host}");
        }
        let state = world.host(&host)?.expect("known").record.state;
        ensure!(
            ["discovered", "opted_out"].contains(&state.name().as_str()),
            "{state:?}"
        );
    }
    known(&world)?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dump_killed_at_any_moment_leaves_a_whole_list_and_the_next_one_tidies_up()
-> anyhow::Result<()> {
    let mut chance = Chance::new();
    let world = World::prepare(Options::new(&[])).await?;
    ensure!(
        world.command(&["add", "a.lab.test"])?.status.success(),
        "no database"
    );
    for _ in 0..KILLS {
        cut_off(&world, &mut chance, Duration::from_millis(150), &["dump"]).await?;
        list::whole(&world.path("public"))?;
        let dumped = world.command(&["dump"])?;
        ensure!(dumped.status.success(), "{dumped:?}");
        let (plain, unpacked) = list::whole(&world.path("public"))?.expect("published");
        assert_eq!(plain, unpacked);
        ensure!(
            list::half_written(&world.path("public"))?.is_empty(),
            "left behind"
        );
    }
    Ok(())
}
