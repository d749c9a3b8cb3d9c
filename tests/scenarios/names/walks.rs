//! Walks through public conversations over real parts: which hosts are found, which are not, what
//! is asked, and what leaves the container.

use std::collections::BTreeSet;

use crate::failures::kills::nothing_is_left;
use anyhow::{Context as _, ensure};
use lab::personas::conversations::{
    CLOSED, FOUND, FOUND_BY_NOTES, HOST, HOSTILE, NOTES_HOST, PRIVATE, QUIET,
};
use lab::request_log;
use protocol::WalkOutcome;
use tests::{Options, PATIENCE, Role, World};

fn hosts() -> impl Iterator<Item = &'static str> {
    [HOST, NOTES_HOST]
        .into_iter()
        .chain(HOSTILE.map(|(host, _)| host))
}

async fn world_of_talk(settings: &[(&'static str, &str)]) -> anyhow::Result<World> {
    let seeds: Vec<&str> = hosts().collect();
    let mut options = Options::new(&seeds);
    for (key, value) in settings {
        options.settings.push((key, (*value).to_owned()));
    }
    let world = World::start(options).await?;
    world
        .until("all who talk live", PATIENCE, |world| {
            for host in hosts() {
                let stored = world.host(host)?;
                if stored.is_none_or(|stored| stored.record.last_alive.is_none()) {
                    return Ok(false);
                }
            }
            Ok(true)
        })
        .await?;
    Ok(world)
}

fn discovered(world: &World, host: &str) -> anyhow::Result<(bool, String)> {
    let output = world.command(&["discover", host])?;
    let said = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8(said)?))
}

fn new_hosts(said: &str) -> BTreeSet<&str> {
    said.lines()
        .filter_map(|line| line.strip_prefix("new: "))
        .collect()
}

fn asked_of(world: &World, host: &str) -> anyhow::Result<Vec<String>> {
    let entries = request_log::entries(&world.path("lab/requests.ndjson"))?;
    Ok(entries
        .into_iter()
        .filter(|entry| entry.host == host && entry.path.starts_with("/api/"))
        .map(|entry| entry.path)
        .collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_named_in_public_is_found_and_who_does_not_want_to_be_is_not() -> anyhow::Result<()>
{
    let world = world_of_talk(&[]).await?;
    for (host, found) in [(HOST, &FOUND[..]), (NOTES_HOST, &FOUND_BY_NOTES)] {
        let (is_done, said) = discovered(&world, host)?;
        assert!(is_done, "{said}");
        let expected: BTreeSet<&str> = found.iter().copied().collect();
        assert_eq!(new_hosts(&said), expected, "{said}");
        assert!(said.contains("read until nothing new came"), "{said}");
        for name in found {
            ensure!(world.host(name)?.is_some(), "{name} did not come in");
        }
        // At most once a week.
        let (is_done, said) = discovered(&world, host)?;
        assert!(!is_done && said.contains("within the last week"), "{said}");
        let explained = world.command(&["explain", host])?.stdout;
        let explained = String::from_utf8(explained)?;
        assert!(explained.contains(" complete: "), "{explained}");
    }
    for (host, outcome) in HOSTILE {
        let (_, said) = discovered(&world, host)?;
        let outcome = WalkOutcome::ALL
            .into_iter()
            .find(|one| one.as_str() == outcome);
        let words = outcome.context("an outcome")?.in_words();
        assert!(said.contains(words), "{host}: {said}");
        assert_eq!(new_hosts(&said), BTreeSet::new(), "{host}");
        let requests = asked_of(&world, host)?.len();
        assert!(requests <= 40, "{host}: {requests} requests");
    }
    for name in QUIET {
        ensure!(world.host(name)?.is_none(), "{name} was found");
    }
    // A host whose posts were read as copies was not asked for them, and no failure was counted
    // against any host.
    let checked = world.command(&["check", CLOSED])?;
    ensure!(checked.status.success(), "{checked:?}");
    assert_eq!(asked_of(&world, CLOSED)?, ["/api/v1/instance/peers"]);
    for (host, _) in HOSTILE {
        let stored = world.host(host)?.context("its row")?;
        assert_eq!(stored.record.state, census::state::State::Alive, "{host}");
    }
    assert_private(&world)
}

/// Asserts that no handle, text or id of a conversation is in what the census keeps or prints.
fn assert_private(world: &World) -> anyhow::Result<()> {
    for role in [Role::Run, Role::Gateway, Role::Launcher] {
        assert!(!world.log(role).contains(PRIVATE), "{role:?} logged it");
    }
    let mut folders = vec![world.path("data"), world.path("public")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.is_file() {
                files += 1;
                let bytes = std::fs::read(&path)?;
                let is_there = bytes
                    .windows(PRIVATE.len())
                    .any(|part| part == PRIVATE.as_bytes());
                ensure!(!is_there, "{} has it", path.display());
            }
        }
    }
    ensure!(files > 2, "only {files} files were searched");
    Ok(())
}

/// If the operator enables it, the daemon walks automatically, through each host once.
#[tokio::test(flavor = "multi_thread")]
async fn the_daemon_walks_as_often_as_it_may_and_says_so_on_its_pages() -> anyhow::Result<()> {
    // A walk about every second.
    let world = world_of_talk(&[("walks_per_hour", "60")]).await?;
    world
        .until("all who are named are known", PATIENCE, |world| {
            for name in FOUND.iter().chain(&FOUND_BY_NOTES) {
                if world.host(name)?.is_none() {
                    return Ok(false);
                }
            }
            Ok(true)
        })
        .await?;
    let feeds = asked_of(&world, HOST)?;
    let feeds = feeds
        .iter()
        .filter(|path| path.ends_with("timelines/public"));
    assert_eq!(feeds.count(), 1);
    let dumped = world.command(&["dump", "--force"])?;
    ensure!(dumped.status.success(), "{dumped:?}");
    let page = std::fs::read_to_string(world.path("public/current/owners.html"))?;
    assert!(page.contains("id=\"conversations\""));
    assert!(!page.contains("Nothing is read about users or posts"));
    Ok(())
}

/// A walk that a kill cuts short changes neither its host's state nor its turn. A walk that had
/// ended before stays remembered.
#[tokio::test(flavor = "multi_thread")]
async fn a_walk_that_a_kill_cuts_short_leaves_no_trace() -> anyhow::Result<()> {
    const ENDLESS: &str = "endless.lab.test";
    const LIMITED: &str = "feed-limited.lab.test";
    let mut world = world_of_talk(&[]).await?;
    let (_, said) = discovered(&world, LIMITED)?;
    assert!(said.contains("not read to the end: "), "{said}");
    let mut asking = world.begin_command(&["discover", ENDLESS])?;
    world
        .until("the walk is under way", PATIENCE, |world| {
            Ok(asked_of(world, ENDLESS)?.len() > 4)
        })
        .await?;
    world.kill(Role::Run)?;
    let end = asking.wait()?;
    assert!(!end.success(), "it said that the walk was done");
    world.begin(Role::Run).await?;
    let stored = world.host(ENDLESS)?.context("its row")?;
    assert_eq!(stored.record.state, census::state::State::Alive);
    world
        .until("it is walked from the beginning", PATIENCE, |world| {
            Ok(discovered(world, ENDLESS)?
                .1
                .contains("read up to our limits"))
        })
        .await?;
    // A completed walk is remembered: that server is left alone.
    let before = asked_of(&world, LIMITED)?.len();
    let (is_done, said) = discovered(&world, LIMITED)?;
    assert!(!is_done && said.contains("within the last week"), "{said}");
    assert_eq!(asked_of(&world, LIMITED)?.len(), before);
    nothing_is_left(&mut world).await
}
