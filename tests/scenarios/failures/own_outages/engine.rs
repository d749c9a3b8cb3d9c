//! The engine is stopped or refuses calls, or the checker's image is missing or broken.
//!
//! The engine is the tests' own, which fails at will; `real_engine` covers a real one.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::*;
use tests::Engine;

/// Over plain processes, whatever engine there is: a real engine does not fail at will.
fn over_processes() -> Options {
    Options {
        engine: Engine::Process,
        ..options()
    }
}

async fn while_the_engine(
    world: &World,
    trouble: &str,
    name: &str,
    says: &[&str],
) -> anyhow::Result<()> {
    let fault = Fault::begin(world, name)?;
    let file = world.path("engine-trouble");
    std::fs::write(&file, trouble)?;
    fault.is_said(world, says).await?;
    fault.lasts(world).await?;
    std::fs::remove_file(&file)?;
    fault.ends_well(world).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_is_gone_or_refuses_everything_wrongs_nobody() -> anyhow::Result<()> {
    let world = living(over_processes()).await?;
    let says = ["OUTAGE", "the engine can't be reached"];
    while_the_engine(&world, "down", "engine stopped", &says).await?;
    let says = ["OUTAGE", "the engine refused", "status 500"];
    while_the_engine(&world, "every", "engine answers 500 to everything", &says).await
}

/// The engine reports itself as up but runs nothing.
#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_refuses_some_calls_wrongs_nobody() -> anyhow::Result<()> {
    let world = living(over_processes()).await?;
    for call in ["create", "start"] {
        let says = ["OUTAGE", call, "status 500"];
        let name = format!("engine answers 500 to every {call}");
        while_the_engine(&world, call, &name, &says).await?;
    }
    Ok(())
}

fn checker(world_directory: &Path, script: &str) -> anyhow::Result<()> {
    let temporary = world_directory.join("checker.new");
    std::fs::write(&temporary, format!("#!/bin/sh\n{script}\n"))?;
    std::fs::set_permissions(&temporary, std::fs::Permissions::from_mode(0o755))?;
    Ok(std::fs::rename(
        &temporary,
        world_directory.join("checker"),
    )?)
}

fn sound() -> anyhow::Result<String> {
    let test = std::env::current_exe()?;
    let profile = test.ancestors().nth(2).context("target/PROFILE/deps")?;
    let checker = profile.join("fedicensus-checker");
    Ok(format!("exec {} \"$@\"", checker.display()))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_is_missing_wrongs_nobody_and_is_found_when_it_is_there() -> anyhow::Result<()>
{
    let directory = tempfile::tempdir()?;
    checker(directory.path(), &sound()?)?;
    let mut options = over_processes();
    let path = directory.path().join("checker");
    options.checker = Some(path.display().to_string());
    let world = living(options).await?;
    let fault = Fault::begin(&world, "checker image missing")?;
    std::fs::remove_file(&path)?;
    let says = ["OUTAGE", "the engine has no image", "build it"];
    fault.is_said(&world, &says).await?;
    fault.lasts(&world).await?;
    checker(directory.path(), &sound()?)?;
    fault.ends_well(&world).await
}

/// A complete report of a checker of an earlier protocol.
const FORMER: &str = r#"
echo '{"hello":{"protocol":1,"checker":"0.1.0"}}'
echo '{"alive":{"software":"mastodon","version":"4.5.2","private":"no"}}'
echo '{"peers_end":{"outcome":"none","dropped":0}}'
echo '{"done":{"requests":3,"bytes":900,"millis":40}}'
"#;

/// A broken build never counts against hosts, however it breaks and however often it is repaired
/// and broken again.
#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_is_broken_wrongs_nobody() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    checker(directory.path(), &sound()?)?;
    let mut options = over_processes();
    options.checker = Some(directory.path().join("checker").display().to_string());
    let world = living(options).await?;
    let broken = [
        ("exits with 1 at once", "exit 1", "exit code 1"),
        (
            "prints garbage",
            "head -c 3000 /dev/urandom",
            "printed nothing that this version understands",
        ),
        (
            "is of a later version",
            r#"echo '{"hello":{"protocol":99,"checker":"9.0.0"}}'; exec sleep 1"#,
            "printed nothing that this version understands",
        ),
        (
            "is of an earlier version and reports well",
            FORMER,
            "printed nothing that this version understands",
        ),
        (
            "crashes at start",
            "echo 'panicked at main.rs' >&2; kill -SEGV $$",
            "panicked at main.rs",
        ),
    ];
    for (name, script, says) in broken {
        let fault = Fault::begin(&world, &format!("checker image {name}"))?;
        checker(directory.path(), script)?;
        let says = [
            "OUTAGE",
            "checks in a row failed through our own fault",
            "build the checker's image of this version",
            says,
        ];
        fault.is_said(&world, &says).await?;
        fault.lasts(&world).await?;
        checker(directory.path(), &sound()?)?;
        fault.ends_well(&world).await?;
        // On a slow machine, any check may have faulted since.
        world
            .until("no fault of ours counts against a host", SOON, |world| {
                let mut faults =
                    crowd().map(|name| Ok(world.host(&name)?.context("known")?.faults));
                faults.try_fold(true, |none, faults: anyhow::Result<u32>| {
                    Ok(none && faults? == 0)
                })
            })
            .await?;
    }
    Ok(())
}
