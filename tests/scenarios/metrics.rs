//! The metrics: they change with events, and Prometheus's own tool accepts both the page and our
//! rules.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use orchestrator::serve::metrics::page;
use tests::world::WITH_METRICS;
use tests::{Options, Role, World};

const SOON: Duration = tests::PATIENCE;

async fn world(seeds: &[&str]) -> anyhow::Result<World> {
    let mut options = Options::new(seeds);
    let (key, value) = WITH_METRICS;
    options.settings.push((key, value.to_owned()));
    World::start(options).await
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_move_with_what_is_checked_and_are_those_of_status() -> anyhow::Result<()> {
    let world = world(&["mastodon.lab.test", "tls-expired.lab.test"]).await?;
    let alive = "fedicensus_verdicts_total{reason=\"none\",verdict=\"alive\"}";
    world
        .until(
            "one lives, one was found dead, and both are surveyed",
            SOON,
            |world| {
                let found = world.metrics()?;
                let counted = |series: &str| found.get(series).copied().unwrap_or(0.0);
                Ok(counted(alive) >= 1.0
                    && counted(
                        "fedicensus_verdicts_total{reason=\"tls_expired\",verdict=\"dead\"}",
                    ) >= 1.0
                    && counted("fedicensus_hosts{state=\"alive\"}") >= 1.0
                    && counted("fedicensus_dump_timestamp_seconds") > 0.0)
            },
        )
        .await?;
    let before = world.metrics()?;
    let check = world.command(&["check", "mastodon.lab.test"])?;
    ensure!(check.status.success(), "{check:?}");
    let after = world.metrics()?;
    for series in [
        alive,
        "fedicensus_check_duration_seconds_count{ended=\"verdict\"}",
        "fedicensus_check_phase_duration_seconds_count{phase=\"opening\"}",
        "fedicensus_check_phase_duration_seconds_count{phase=\"launching\"}",
        "fedicensus_check_phase_duration_seconds_sum{phase=\"running\"}",
        "fedicensus_gateway_opens_total",
        "fedicensus_gateway_dials_total",
        "fedicensus_gateway_connections_total",
        "fedicensus_gateway_bytes_total{direction=\"down\"}",
        "fedicensus_gateway_bytes_total{direction=\"up\"}",
        "fedicensus_launcher_launches_total",
        "fedicensus_last_alive_timestamp_seconds",
    ] {
        let (then, now) = (before.get(series), after.get(series));
        ensure!(then < now, "{series}: {then:?}, then {now:?}");
    }
    for (series, value) in [
        ("fedicensus_gateway_up", 1.0),
        ("fedicensus_launcher_up", 1.0),
        ("fedicensus_launcher_unfit", 0.0),
        ("fedicensus_outage", 0.0),
    ] {
        assert_eq!(after.get(series), Some(&value), "{series}");
    }
    // The same number in both, between two looks.
    let lives = |found: &BTreeMap<String, f64>| found.get(alive).copied().unwrap_or(0.0);
    let status = world.status()?["daemon"]["ended"]["alive"].as_f64();
    let status = status.context("status counts them too")?;
    assert!(lives(&after) <= status && status <= lives(&world.metrics()?));
    // A day has ten thousands of checks, and its log is read by a person.
    for role in [Role::Gateway, Role::Launcher, Role::Run] {
        let log = world.log(role);
        let of_checks = log.lines().find(|line| line.contains("mastodon.lab.test"));
        assert_eq!(of_checks, None, "{role:?}");
    }
    Ok(())
}

/// A new census checks five seeds, and then nothing for hours.
#[tokio::test(flavor = "multi_thread")]
async fn census_whose_names_all_fail_is_ill_everywhere() -> anyhow::Result<()> {
    let seeds = ["a.nowhere.test", "b.nowhere.test", "c.nowhere.test"];
    let world = world(&seeds).await?;
    world
        .until("it is ill", SOON, |world| {
            let said = String::from_utf8(world.command(&["health"])?.stderr)?;
            Ok(said.contains("NO CHECK SUCCEEDS"))
        })
        .await?;
    for command in ["health", "status"] {
        let output = world.command(&[command])?;
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let said = String::from_utf8(output.stderr)?;
        ensure!(said.contains("NO CHECK SUCCEEDS since "), "{said}");
        ensure!(said.contains("this machine's resolver"), "{said}");
    }
    let found = world.metrics()?;
    for series in ["fedicensus_blackout", "fedicensus_ill"] {
        assert_eq!(found.get(series), Some(&1.0), "{series}");
    }
    ensure!(world.log(Role::Run).contains("NO CHECK SUCCEEDS"));
    world
        .until("the page says the same", SOON, |world| {
            let page = std::fs::read_to_string(world.path("public/current/index.html"))?;
            let sentence = ["NO CHECK SUCCEEDS since ", "this machine's resolver"];
            Ok(sentence.iter().all(|words| page.contains(words)))
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_is_gone_is_told_as_gone_and_comes_back() -> anyhow::Result<()> {
    let mut world = world(&["mastodon.lab.test"]).await?;
    let up = |world: &World, part: &str| {
        let series = format!("fedicensus_{part}_up");
        anyhow::Ok(world.metrics()?.get(&series) == Some(&1.0))
    };
    world
        .until("all is there", SOON, |world| {
            Ok(up(world, "gateway")? && up(world, "launcher")?)
        })
        .await?;
    world.kill(Role::Gateway)?;
    let found = world.metrics()?;
    assert_eq!(found.get("fedicensus_gateway_up"), Some(&0.0));
    assert_eq!(
        found.get("fedicensus_gateway_dials_total"),
        None,
        "an old number"
    );
    // Nothing is due: a check must run into the failure.
    world.command(&["check", "mastodon.lab.test"])?;
    world
        .until("the metrics show the outage", SOON, |world| {
            Ok(world.metrics()?.get("fedicensus_outage") == Some(&1.0))
        })
        .await?;
    world.begin(Role::Gateway).await?;
    world
        .until("it is back, and the outage over", SOON, |world| {
            Ok(up(world, "gateway")? && world.metrics()?.get("fedicensus_outage") == Some(&0.0))
        })
        .await?;
    // A launcher that runs without answering.
    world.freeze(Role::Launcher)?;
    let is_up = up(&world, "launcher");
    world.thaw(Role::Launcher)?;
    assert!(!is_up?, "it hangs");
    Ok(())
}

/// Prometheus's tool; `None` if it is missing.
fn promtool(arguments: &[&str]) -> Option<Command> {
    if !tests::are_there(&["promtool"]) {
        return None;
    }
    let mut command = Command::new("promtool");
    command.args(arguments);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/prometheus");
    command.current_dir(root);
    Some(command)
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_has_nothing_to_say_of_what_it_is_told() -> anyhow::Result<()> {
    let Some(mut promtool) = promtool(&["check", "metrics"]) else {
        return Ok(());
    };
    let world = world(&["mastodon.lab.test"]).await?;
    let mut whole = String::new();
    world
        .until("every metric is there", SOON, |world| {
            let (_, page) = world.ask_metrics("GET /metrics")?;
            let has = |name: &str| page.contains(&format!("\n# TYPE {name} "));
            let missing: Vec<_> = page::all()
                .map(|metric| metric.name)
                .filter(|name| !has(name) && !page.starts_with(&format!("# HELP {name} ")))
                .collect();
            ensure!(missing.is_empty(), "missing: {missing:?}");
            whole = page;
            Ok(true)
        })
        .await?;
    let mut child = promtool
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    child
        .stdin
        .take()
        .context("its input")?
        .write_all(whole.as_bytes())?;
    let said = child.wait_with_output()?;
    let words = String::from_utf8_lossy(&said.stderr) + String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success() && words.is_empty(), "{words}");
    Ok(())
}

#[test]
fn prometheus_takes_the_rules_and_each_alert_fires_when_it_should() -> anyhow::Result<()> {
    for arguments in [
        &["check", "rules", "alerts.yml"][..],
        &["check", "config", "prometheus.yml"],
        &["test", "rules", "alerts.test.yml", "alerts.days.test.yml"],
    ] {
        let Some(mut promtool) = promtool(arguments) else {
            return Ok(());
        };
        let said = promtool.output()?;
        let words = String::from_utf8_lossy(&said.stderr) + String::from_utf8_lossy(&said.stdout);
        assert!(said.status.success(), "{arguments:?}: {words}");
    }
    Ok(())
}
