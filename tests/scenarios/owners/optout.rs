//! Invariant I7: a host that opts out is left alone.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use census::state::{OptedOutBy, State};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tests::{Options, Role, World};

const SOON: Duration = tests::PATIENCE;

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_who_opts_out_is_off_the_next_dump_and_never_asked_again() -> anyhow::Result<()> {
    let mut options = Options::new(&["mastodon.lab.test", "pleroma.lab.test", FAILS]);
    // A day in ten seconds.
    options.interval_divisor = 10_000;
    let world = World::start(options).await?;
    let both = ["mastodon.lab.test", "pleroma.lab.test"];
    world
        .until("both live", SOON, |world| {
            Ok(both.iter().all(|host| is(world, host, "alive")))
        })
        .await?;
    world.command(&["dump"])?;
    assert!(world.nodes()?.contains(&"mastodon.lab.test".to_owned()));
    assert_shown(&world, "mastodon.lab.test")?;
    world
        .until("one fails, and is listed", SOON, |world| {
            world.command(&["dump", "--force"])?;
            Ok(answer(world, FAILS)?[0] == "dying" && world.nodes()?.contains(&FAILS.to_owned()))
        })
        .await?;

    for host in ["mastodon.lab.test", FAILS] {
        assert_ne!(named_in(&world, host)?, "");
        let class = if host == FAILS { "failing" } else { "up" };
        assert_eq!(hashed_in(&world, host)?, [(class.to_owned(), 0)]);
        let said = world.command(&["opt-out", host])?;
        assert!(said.status.success(), "{said:?}");
    }
    let dumped = world.command(&["dump", "--force"])?;
    assert!(dumped.status.success(), "{dumped:?}");
    assert!(!world.nodes()?.contains(&"mastodon.lab.test".to_owned()));
    let withheld = json!(["withheld", "withheld", null, false, null, null]);
    for host in ["mastodon.lab.test", FAILS] {
        assert_eq!(answer(&world, host)?, withheld);
        assert_eq!(named_in(&world, host)?, "");
        assert_eq!(hashed_in(&world, host)?, [("withheld".to_owned(), 0)]);
    }

    // A check in progress when the owner asked may still end; its result must not count, and no
    // other check may follow.
    let asked_then = asked(&world);
    let others_then = world
        .host("pleroma.lab.test")?
        .expect("known")
        .record
        .alive_count;
    world
        .until(
            "the other one was asked three times more",
            SOON * 2,
            |world| {
                Ok(world
                    .host("pleroma.lab.test")?
                    .expect("known")
                    .record
                    .alive_count
                    >= others_then + 3)
            },
        )
        .await?;
    let stored = world.host("mastodon.lab.test")?.expect("known");
    assert_eq!(
        stored.record.state,
        State::OptedOut {
            by: OptedOutBy::Owner
        }
    );
    assert_eq!(stored.record.due, None);
    assert!(
        asked(&world) <= asked_then + 4,
        "it was asked again: {} requests, then {asked_then}",
        asked(&world)
    );

    // Only the owner can undo it.
    assert!(
        !world
            .command(&[
                "opt-out",
                "mastodon.lab.test",
                "--by",
                "moderator",
                "--undo"
            ])?
            .status
            .success()
    );
    assert!(
        world
            .command(&["opt-out", "mastodon.lab.test", "--undo"])?
            .status
            .success()
    );
    world
        .until("it lives again", SOON, |world| {
            Ok(is(world, "mastodon.lab.test", "alive"))
        })
        .await?;
    world.command(&["dump", "--force"])?;
    assert_eq!(
        hashed_in(&world, "mastodon.lab.test")?,
        [("up".to_owned(), 0)]
    );
    assert_shown(&world, "mastodon.lab.test")
}

/// Listed and failing after its first checks.
const FAILS: &str = "dying.lab.test";

/// Reads one published tree: a newer one replaces and deletes it at any time.
fn in_one_tree<T>(world: &World, read: impl Fn(&Path) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let public = world.path("public");
    let current = || std::fs::read_link(public.join("current"));
    loop {
        let tree = current()?;
        let found = read(&public.join(&tree));
        if current()? == tree {
            return found;
        }
    }
}

/// The published files that name a host.
pub(super) fn named_in(world: &World, host: &str) -> anyhow::Result<String> {
    in_one_tree(world, |tree| {
        let grep = Command::new("grep")
            .args(["-rlF", host])
            .arg(tree)
            .output()?;
        Ok(String::from_utf8(grep.stdout)?)
    })
}

/// Class and age of a host in the file of all answers. Fails if any other file than the answers has
/// the host's salted hash.
fn hashed_in(world: &World, host: &str) -> anyhow::Result<Vec<(String, u8)>> {
    in_one_tree(world, |tree| hashed_below(tree, host))
}

fn hashed_below(tree: &Path, host: &str) -> anyhow::Result<Vec<(String, u8)>> {
    let index: Value = serde_json::from_slice(&std::fs::read(tree.join("why/index.json"))?)?;
    let salt = index["salt"].as_str().context("a salt")?;
    let hash = Sha256::digest(format!("{salt}{host}"));
    let (bytes, digits) = (hash.get(..8).context("a hash")?, hex::encode(hash));
    let key: String = digits.chars().skip(3).take(16).collect();
    for path in tests::files_below(tree)? {
        let file = std::fs::read(&path)?;
        let has = |text: &[u8]| file.windows(text.len()).any(|part| part == text);
        let is_answer = path.starts_with(tree.join("why"));
        ensure!(is_answer || !has(bytes) && !has(key.as_bytes()), "{path:?}");
    }
    let all = std::fs::read(tree.join(format!("why/{salt}/all.bin")))?;
    let end = all
        .iter()
        .position(|byte| *byte == b'\n')
        .context("a line")?;
    let (head, entries) = all.split_at(end.saturating_add(1));
    let head: Value = serde_json::from_slice(head)?;
    let said = entries.chunks(10).filter_map(|entry| {
        let (found, rest) = entry.split_at_checked(8)?;
        let [class, age] = rest else { return None };
        let class = head["classes"][usize::from(*class)].as_str()?;
        (found == bytes).then(|| (class.to_owned(), *age))
    });
    Ok(said.collect())
}

/// The host's answer on the published pages.
fn answer(world: &World, host: &str) -> anyhow::Result<Value> {
    in_one_tree(world, |tree| answer_below(tree, host))
}

fn answer_below(tree: &Path, host: &str) -> anyhow::Result<Value> {
    let read = |path: &str| -> anyhow::Result<Value> {
        let file = std::fs::read(tree.join("why").join(path))?;
        Ok(serde_json::from_slice(&file)?)
    };
    let index = read("index.json")?;
    let salt = index["salt"].as_str().context("a salt")?;
    let hash = hex::encode(Sha256::digest(format!("{salt}{host}")));
    // A small world has sixteen files.
    let digits = |from, count| hash.chars().skip(from).take(count).collect::<String>();
    let shard = read(&format!("{salt}/{}.json", digits(0, 1)))?;
    Ok(shard["hosts"][digits(3, 16)].clone())
}

/// The answer of a listed host has its month and software, and the month has a badge.
fn assert_shown(world: &World, host: &str) -> anyhow::Result<()> {
    let answer = answer(world, host)?;
    assert_eq!(answer[8], "mastodon", "{answer}");
    let month = answer[7].as_str().context("a month")?;
    let badge = format!("public/current/badges/known-since-{month}.svg");
    assert!(world.path(&badge).exists(), "{badge}");
    Ok(())
}

/// A check finds one opt-out, the operator enters an owner's, and a moderator makes one just before
/// the daemon is killed. The list that would lose a third of its names is held back.
#[tokio::test(flavor = "multi_thread")]
async fn a_listed_host_that_withdraws_brings_the_next_list_forward() -> anyhow::Result<()> {
    let hosts = "changing-its-mind mastodon pleroma misskey".split(' ');
    let hosts: Vec<_> = hosts.map(|name| format!("{name}.lab.test")).collect();
    let mut options = Options::new(&[]);
    options.seeds = hosts.clone();
    // Ten minutes are six seconds, and the ordinary pause is more than 216.
    options.interval_divisor = 100;
    let mut world = World::start(options).await?;
    world
        .until("all are listed", SOON, |world| {
            // A command would open the database before the daemon does.
            anyhow::ensure!(world.host(&hosts[0])?.is_some());
            for host in hosts.iter().filter(|host| !is(world, host, "alive")) {
                world.command(&["check", host])?;
            }
            let is_made = world.command(&["dump"])?.status.success();
            // Their peers may be listed as well.
            let nodes = world.nodes()?;
            Ok(is_made && hosts.iter().all(|host| nodes.contains(host)))
        })
        .await?;
    // The first one changes its mind after two checks.
    let ways: [&[&str]; 3] = [&["check"], &["opt-out"], &["opt-out", "--by", "moderator"]];
    for (host, way) in hosts.iter().zip(ways) {
        world
            .until("it has opted out", SOON, |world| {
                world.command(&[way, &[host]].concat())?;
                Ok(is(world, host, "opted_out"))
            })
            .await?;
        if way.contains(&"moderator") {
            world.kill(Role::Run)?;
            world.begin(Role::Run).await?;
        }
        world
            .until(host, Duration::from_secs(200), |world| {
                Ok(!world.nodes()?.contains(host))
            })
            .await?;
    }
    Ok(())
}

pub(super) fn is(world: &World, host: &str, state: &str) -> bool {
    world
        .host(host)
        .ok()
        .flatten()
        .is_some_and(|stored| stored.record.state.name().as_str() == state)
}

/// Invariant I7: an opt-out by robots.txt lasts as long as robots.txt says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_comes_back_when_robots_txt_allows_it_again() -> anyhow::Result<()> {
    let host = "changing-its-mind.lab.test";
    let mut options = Options::new(&[host, "pleroma.lab.test"]);
    // A week in a minute.
    options.interval_divisor = 10_000;
    let world = World::start(options).await?;
    for state in ["opted_out", "alive"] {
        world
            .until(state, SOON, |world| Ok(is(world, host, state)))
            .await?;
    }
    world.command(&["dump", "--force"])?;
    assert!(world.nodes()?.contains(&host.to_owned()));
    Ok(())
}

fn asked(world: &World) -> usize {
    let log = std::fs::read_to_string(world.path("lab/requests.ndjson")).unwrap_or_default();
    log.lines()
        .filter(|line| line.contains("\"mastodon.lab.test\""))
        .count()
}
