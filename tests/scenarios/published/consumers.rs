//! The examples on published files: completing a name, a share button for one software, and a
//! chooser of servers that let people sign up.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use census::state::StateName;
use lab::crowd::Crowd;
use serde_json::Value;
use store::Stored;
use tests::{Options, PATIENCE, Role, Web, World};

/// Generated instances, in addition to the named ones.
const CROWD: u32 = 12;

/// Paths below the tests.
const SCRIPTS: [&str; 3] = [
    "../examples/autocomplete.js",
    "../examples/chooser.js",
    "scenarios/published/consumers/consumers.mjs",
];

const PREFIX: &str = "m";
const SOFTWARE: &str = "mastodon";

/// Those of `names` whose rows are alive and fit, sorted.
fn that<'n>(
    world: &World,
    names: &'n [String],
    fits: impl Fn(&Stored) -> bool,
) -> anyhow::Result<Vec<&'n str>> {
    let mut found = Vec::new();
    for name in names {
        let stored = world.host(name)?.context("a row")?;
        if fits(&stored) {
            found.push(name.as_str());
        }
    }
    found.sort_unstable();
    ensure!(
        !found.is_empty(),
        "no host fits: the comparison would say nothing"
    );
    Ok(found)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_need_nothing_but_the_published_files() -> anyhow::Result<()> {
    if !tests::are_there(&["nginx", "node"]) {
        return Ok(());
    }
    let mut names: Vec<String> = ["mastodon.lab.test", "misskey.lab.test", "pleroma.lab.test"]
        .map(str::to_owned)
        .to_vec();
    names.extend(Crowd::new(CROWD, 1).names());
    let seeds: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut options = Options::new(&seeds);
    options.crowd = CROWD;
    let mut world = World::start(options).await?;
    world
        .until("all respond", PATIENCE, |world| {
            for name in &names {
                let stored = world.host(name)?;
                let is_alive = |stored: Stored| stored.record.state.name() == StateName::Alive;
                if !stored.is_some_and(is_alive) {
                    return Ok(false);
                }
            }
            Ok(true)
        })
        .await?;
    ensure!(world.command(&["dump", "--force"])?.status.success());
    // Others still begin to respond, and the next list would have them.
    world.stop(Role::Run).await?;
    let listed = world.nodes()?;
    let folder = tempfile::tempdir()?;
    let web = Web::start(folder.path(), &world.path("public")).await?;
    let scripts = tempfile::tempdir()?;
    for script in SCRIPTS {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
        let name = from.file_name().context("a name")?;
        std::fs::copy(&from, scripts.path().join(name))?;
    }
    std::fs::write(scripts.path().join("package.json"), r#"{"type":"module"}"#)?;
    let output = Command::new("node")
        .arg(scripts.path().join("consumers.mjs"))
        .args([web.address(), PREFIX, SOFTWARE])
        .output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{stderr}");
    let found: Value = serde_json::from_slice(&output.stdout)?;
    let expect = serde_json::json!({
        "completions": that(&world, &listed, |stored| stored.record.host.as_str().starts_with(PREFIX))?,
        "share": that(&world, &listed, |stored| stored.record.instance.software.as_deref() == Some(SOFTWARE))?,
        "chooser": that(&world, &listed, |stored| {
            stored.record.instance.open_registrations == Some(true)
                && stored.record.state.name() == StateName::Alive
        })?,
    });
    assert_eq!(found, expect);
    Ok(())
}
