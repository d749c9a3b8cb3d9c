//! A server that opens and closes its registrations, as readers of the list and mirrors see it.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context as _, ensure};
use census::state::State;
use census::time::Calendar;
use dump::changes::{Change, Mirror, Row};
use dump::line;
use lab::crowd::Crowd;
use serde_json::{Value, json};
use tests::{Options, PATIENCE, World};

use crate::time::passing::{CROWD, check_until, stored};

/// Reports each of [`SAID`] in two checks, one after the other.
const HOST: &str = "registrations.lab.test";

const SAID: [Option<bool>; 3] = [Some(false), Some(true), None];

/// A census of the host and a crowd, all responding. No host becomes due again during the test.
async fn living() -> anyhow::Result<World> {
    let mut options = Options::new(&[HOST]);
    options.crowd = CROWD;
    options.seeds.extend(Crowd::new(CROWD, 1).names());
    options.interval_divisor = Calendar::REAL.divisor;
    let world = World::start(options).await?;
    world
        .until("everybody lives", PATIENCE, |world| {
            for name in Crowd::new(CROWD, 1).names().chain([HOST.to_owned()]) {
                if stored(world, &name)?.record.state != State::Alive {
                    return Ok(false);
                }
            }
            Ok(true)
        })
        .await?;
    Ok(world)
}

fn of_host(rows: &[Value]) -> anyhow::Result<Value> {
    let row = rows.iter().find(|row| row["host"] == HOST);
    row.cloned().context("the host is missing")
}

fn printed(world: &World, arguments: &[&str]) -> anyhow::Result<Vec<Value>> {
    let output = world.command(arguments)?;
    ensure!(output.status.success(), "{arguments:?}: {output:?}");
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Asserts that each file of rows has it, and so do the commands.
fn assert_shown(world: &World, said: Option<bool>) -> anyhow::Result<()> {
    let data = world.path("public/current/data");
    let ndjson = std::fs::read_to_string(data.join("instances.ndjson"))?;
    let lines: Vec<Value> = ndjson
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    assert_eq!(of_host(&lines)?["open_registrations"], json!(said));

    let csv = std::fs::read_to_string(data.join("instances.csv"))?;
    let fields: BTreeSet<&str> = csv
        .lines()
        .filter(|line| line.starts_with("host,") || line.starts_with(HOST))
        .filter_map(|line| line.split(',').nth(6))
        .collect();
    let word = said.map(|open| open.to_string()).unwrap_or_default();
    assert_eq!(
        fields,
        BTreeSet::from(["open_registrations", word.as_str()])
    );

    let table = Command::new("sqlite3")
        .args(["-readonly", "-nullvalue", "NULL"])
        .arg(data.join("instances.sqlite"))
        .arg(format!(
            "SELECT open_registrations FROM instances WHERE host = '{HOST}'"
        ))
        .output()?;
    ensure!(table.status.success(), "{table:?}");
    let value = match said {
        Some(open) => u8::from(open).to_string(),
        None => "NULL".to_owned(),
    };
    assert_eq!(String::from_utf8(table.stdout)?.trim(), value);

    for arguments in [
        &["status", "--hosts", "--json"][..],
        &["explain", "--json", HOST],
    ] {
        let row = of_host(&printed(world, arguments)?)?;
        assert_eq!(row["open_registrations"], json!(said), "{arguments:?}");
    }
    Ok(())
}

fn changes(world: &World) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(world.path("public/current/data/changes"))? {
        paths.push(entry?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|end| end == "ndjson"));
    paths.sort();
    let files: Result<Vec<_>, _> = paths.iter().map(std::fs::read).collect();
    Ok(files?)
}

/// The host's registrations in the changes, oldest first.
fn flips(files: &[Vec<u8>]) -> anyhow::Result<Vec<Option<bool>>> {
    let mut flips = Vec::new();
    for file in files {
        for section in line::parse(file)? {
            flips.extend(section.changes.iter().filter_map(|change| match change {
                Change::Changed(row) if row.host == HOST => Some(row.instance.open_registrations),
                _ => None,
            }));
        }
    }
    Ok(flips)
}

/// The published list, without the times at which hosts were last found alive.
fn list(world: &World) -> anyhow::Result<Vec<Row>> {
    let rows = dump::standing_rows(&world.path("public/current"))?.context("no list")?;
    rows.map(|row| Ok(Row::from(row?))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_flips_its_registrations_shows_in_the_next_list_and_in_the_changes()
-> anyhow::Result<()> {
    if !tests::are_there(&["sqlite3"]) {
        return Ok(());
    }
    let world = living().await?;
    let mut mirror = None;
    let mut names = None;
    for (number, said) in (0..).zip(SAID) {
        check_until(&world, HOST, &format!("says {said:?}"), |stored| {
            stored.record.instance.open_registrations == said
        })
        .await?;
        let dumped = world.command(&["dump", "--force"])?;
        ensure!(dumped.status.success(), "{dumped:?}");
        assert_shown(&world, said)?;

        let files = changes(&world)?;
        assert_eq!(flips(&files)?, SAID[1..=number]);
        let list = list(&world)?;
        let mirror = mirror.get_or_insert_with(|| Mirror::new(list.clone()));
        mirror.follow(files.iter().map(Vec::as_slice))?;
        assert_eq!(mirror.rows().cloned().collect::<Vec<_>>(), list);

        // The list of names does not depend on it.
        let nodes = std::fs::read(world.path("public/current/nodes.json"))?;
        assert!(*names.get_or_insert(nodes.clone()) == nodes);
    }
    Ok(())
}
