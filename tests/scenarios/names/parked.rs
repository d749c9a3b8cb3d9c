//! A list of public suffixes loses a rule and gets it back: the hosts below it leave and return.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use census::state::Record;
use census::time::{Calendar, Jitter, Timestamp};
use census::transition::transition;
use protocol::Host;
use tests::{Options, Role, World};

use crate::commands::text;

const SOON: Duration = tests::PATIENCE;

/// Below the rule that is removed; the last one is not.
const HOSTS: [&str; 4] = ["one.tld7", "two.tld7", "a.three.tld7", "other.tld8"];

/// A complete list, without the rule for `lost`.
fn write_list(path: &Path, lost: Option<&str>) -> anyhow::Result<()> {
    let mut list = String::from("// ===BEGIN ICANN DOMAINS===\n");
    for tld in (0..1100).map(|number| format!("tld{number}")) {
        if lost != Some(tld.as_str()) {
            writeln!(list, "{tld}")?;
        }
    }
    list.push_str("// ===END ICANN DOMAINS===\n// ===BEGIN PRIVATE DOMAINS===\n");
    list.push_str("// ===END PRIVATE DOMAINS===\n");
    Ok(std::fs::write(path, list)?)
}

fn now() -> anyhow::Result<Timestamp> {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed()?;
    Ok(Timestamp(i64::try_from(since.as_millis())?))
}

async fn find_alive(world: &World) -> anyhow::Result<()> {
    let store = store::open(&world.path("data/census.db"))?;
    let (writer, now) = (store.writer(), now()?);
    for name in HOSTS {
        let record = Record::discovered(Host::parse(name)?, now, now);
        writer.add_now(vec![record.host.clone()], now).await?;
        let verdict = kit::alive();
        let change = transition(&record, &verdict, now, Jitter(0), Calendar::REAL);
        writer.commit(change).await?;
    }
    Ok(())
}

/// While no daemon runs, makes all hosts due.
async fn all_are_due(world: &World) -> anyhow::Result<()> {
    let store = store::open(&world.path("data/census.db"))?;
    for name in HOSTS {
        let host = Host::parse(name)?;
        store.writer().release(&host, now()?, None).await?;
    }
    Ok(())
}

async fn until_parked(world: &World, count: u64) -> anyhow::Result<()> {
    world
        .until(&format!("{count} are parked"), SOON, |world| {
            let status = world.status()?;
            Ok(status["daemon"].is_object() && status["hosts"]["parked"] == count)
        })
        .await
}

fn listed(world: &World) -> anyhow::Result<Vec<String>> {
    let dumped = world.command(&["dump", "--force"])?;
    assert!(dumped.status.success(), "{}", text(&dumped.stderr));
    let mut nodes = world.nodes()?;
    nodes.retain(|name| HOSTS.contains(&name.as_str()));
    Ok(nodes)
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_below_a_suffix_that_is_lost_and_found_leave_the_list_and_return()
-> anyhow::Result<()> {
    let mut world = World::prepare(Options::new(&[])).await?;
    let list = world.path("data/public_suffix_list.dat");
    write_list(&list, None)?;
    find_alive(&world).await?;
    for role in [Role::Gateway, Role::Launcher, Role::Run] {
        world.begin(role).await?;
    }
    until_parked(&world, 0).await?;
    let all = ["a.three.tld7", "one.tld7", "other.tld8", "two.tld7"];
    assert_eq!(listed(&world)?, all);

    world.stop(Role::Run).await?;
    write_list(&list, Some("tld7"))?;
    all_are_due(&world).await?;
    world.begin(Role::Run).await?;
    until_parked(&world, 3).await?;
    assert_eq!(listed(&world)?, ["other.tld8"]);
    let status = text(&world.command(&["status"])?.stdout);
    assert!(status.contains("3 withheld (parked)"), "{status}");

    // By a reload.
    write_list(&list, None)?;
    assert!(world.command(&["admission", "reload"])?.status.success());
    until_parked(&world, 0).await?;
    assert_eq!(listed(&world)?, all);

    // By a start.
    world.stop(Role::Run).await?;
    write_list(&list, Some("tld7"))?;
    all_are_due(&world).await?;
    world.begin(Role::Run).await?;
    until_parked(&world, 3).await?;
    world.kill(Role::Run)?;
    write_list(&list, None)?;
    world.begin(Role::Run).await?;
    until_parked(&world, 0).await?;
    assert_eq!(listed(&world)?, all);
    Ok(())
}
