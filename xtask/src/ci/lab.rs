//! The lab as a newcomer starts it: every service by compose, personas' verdicts, the list through
//! nginx.

use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::extent::{CROWD, IMAGE_TAG, PERSONAS};
use super::step::Context;
use crate::browser;
use crate::engine::Engine;
use crate::fuzz::seed_of_commit;
use crate::step::{Outcome, output, passes, say};

/// CI's lab. Its port differs from that of a lab that someone uses.
pub(super) const NAME: &str = "ci";
const PORT: &str = "18723";

/// Port of the push service, which is part of all endpoints.
const PUSH_PORT: &str = "18724";

const WITHOUT_NETWORK: [&str; 2] = ["orchestrator", "launcher"];

/// Further parts that must have no network, which only the full tier's lab has.
const OPTIONAL_WITHOUT_NETWORK: [&str; 4] = ["intake", "console", "push", "push-endpoint"];

const METRICS_PORT: &str = "9090";
const CONSOLE_PORT: &str = "8081";

/// What the kernel must report about every part: no capabilities, no way to gain any, and a seccomp
/// filter (2).
const CONFINED: [&str; 4] = [
    "CapEff:\t0000000000000000",
    "CapBnd:\t0000000000000000",
    "NoNewPrivs:\t1",
    "Seccomp:\t2",
];

pub(super) fn run(context: &Context<'_>) -> anyhow::Result<Outcome> {
    let engine = context.engine()?;
    let script = |name: &str| {
        let mut command = Command::new(context.root.join(name));
        command
            .env("FEDICENSUS_LAB_NAME", NAME)
            .current_dir(context.root);
        command
    };
    let mut up = script("lab/up");
    up.args(["--keep-images", "--port", PORT]);
    if context.is_full() {
        up.args(["--intake", "--console"]);
        up.args(["--push", PUSH_PORT, "--push-endpoint"]);
    } else {
        let personas = sample(context, &engine)?;
        up.args(["--crowd", CROWD, "--personas", &personas]);
    }
    let looked = passes(&mut up).and_then(|()| look(context, &engine));
    let down = passes(&mut script("lab/down"));
    looked.and(down).map(|()| Outcome::Passed)
}

fn look(context: &Context<'_>, engine: &Engine) -> anyhow::Result<()> {
    let mut inner = WITHOUT_NETWORK.to_vec();
    if context.is_full() {
        inner.extend(OPTIONAL_WITHOUT_NETWORK);
    }
    parts_are_confined(engine, &inner)?;
    metrics_are_apart(engine)?;
    if context.is_full() {
        intake_answers()?;
        console_answers(engine)?;
        push_answers(engine)?;
        browser::look(context.root, PORT)?;
    }
    Ok(())
}

/// Comma-separated personas: one in several of those that the seed names, starting at one that the
/// commit chooses.
fn sample(context: &Context<'_>, engine: &Engine) -> anyhow::Result<String> {
    let image = format!("localhost/fedicensus-lab:{IMAGE_TAG}");
    let label = format!("org.fedicensus=fedicensus-{NAME}");
    let mut run = engine.command();
    run.args(["run", "--rm", "--label", &label, "--network", "none"]);
    run.args([&image, "expect", "--json"]);
    let table: Value = serde_json::from_str(&output(&mut run)?)?;
    let names = named_by_the_seed(&table)?;
    let seed = usize::try_from(seed_of_commit(context.root))?;
    let chosen = drawn(&names, seed);
    let (some, all) = (chosen.len(), names.len());
    say(&format!("{some} of {all} personas, drawn from seed {seed}"))?;
    Ok(chosen.join(","))
}

/// A persona that another one names is found only through that one.
fn named_by_the_seed(table: &Value) -> anyhow::Result<Vec<&str>> {
    let personas = table["personas"].as_array().context("no personas")?;
    let named = personas.iter().filter(|persona| persona["via"] == "seed");
    let names: Option<Vec<_>> = named.map(|persona| persona["host"].as_str()).collect();
    let names = names.filter(|names| !names.is_empty());
    names.context("no names of personas")
}

fn drawn<'names>(names: &[&'names str], seed: usize) -> Vec<&'names str> {
    let every = names.len().div_ceil(PERSONAS).max(1);
    let from_first = names.iter().copied().skip(seed % every);
    from_first.step_by(every).collect()
}

/// Invariant I1's other half: the parts that hold the database, the engine's socket and strangers'
/// requests have no network, and no part can write or gain anything. Both the engine and the kernel
/// are asked about each part's first process: the engine may not have done what was requested.
fn parts_are_confined(engine: &Engine, without_network: &[&str]) -> anyhow::Result<()> {
    let format = "{{.Name}} {{.HostConfig.NetworkMode}} {{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}} {{.HostConfig.SecurityOpt}} {{.State.Pid}}";
    let ids = containers(engine, "label=com.docker.compose.service")?;
    let mut found = 0;
    for id in ids.lines() {
        let line = output(engine.command().args(["inspect", "--format", format, id]))?;
        say(line.trim())?;
        if !line.contains(" true [ALL] ") || !line.contains("no-new-privileges") {
            bail!("a part is not read-only, or has capabilities or may gain some: {line}");
        }
        if line.contains("unconfined") {
            bail!("the engine's seccomp profile is taken off this part: {line}");
        }
        let pid = line.trim().rsplit(' ').next().unwrap_or_default();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))
            .with_context(|| format!("can't see the process {pid} of this part: {line}"))?;
        for wanted in CONFINED {
            if !status.lines().any(|found| found == wanted) {
                bail!("the kernel does not say `{wanted}` of this part: {line}\n{status}");
            }
        }
        // Compose's names end with the service and its number.
        let is = |part: &&str| {
            let mut joints = ["_", "-"].iter();
            joints.any(|by| line.contains(&format!("{by}{part}{by}1 ")))
        };
        let inner = without_network.iter().any(is);
        if inner && !line.contains(" none ") {
            bail!("this part must have no network: {line}");
        }
        found += usize::from(inner);
    }
    if found != without_network.len() {
        bail!("{} were not all there: {ids}", without_network.join(", "));
    }
    Ok(())
}

/// Through the web server as deployed: Prometheus gets the metrics at its port, and a visitor at
/// the public port does not.
fn metrics_are_apart(engine: &Engine) -> anyhow::Result<()> {
    let place = published(engine, METRICS_PORT)?;
    let page = answered(&format!("http://{place}/metrics"))?;
    let launcher_is_up = "fedicensus_launcher_up 1\n";
    for wanted in ["fedicensus_build_info{", launcher_is_up, "\n200"] {
        if !page.contains(wanted) {
            bail!("the metrics at {place} have no `{}`: {page}", wanted.trim());
        }
    }
    let refused = [
        format!("http://127.0.0.1:{PORT}/metrics"),
        format!("http://{place}/"),
        format!("http://{place}/nodes.json"),
    ];
    for url in refused {
        if !answered(&url)?.ends_with("\n404") {
            bail!("{url} must not be answered");
        }
    }
    let lines = page.lines().count();
    say(&format!(
        "metrics: {lines} lines at {place}, none at the public port"
    ))
}

/// Through the web server, which mounts the volume of the console's socket read-only.
fn console_answers(engine: &Engine) -> anyhow::Result<()> {
    let place = published(engine, CONSOLE_PORT)?;
    for (path, status) in [("/login", "200"), ("/metrics", "404")] {
        let url = format!("http://{place}{path}");
        let page = answered(&url)?;
        if !page.ends_with(&format!("\n{status}")) {
            bail!("{url} must be answered with {status}: {page}");
        }
    }
    let metrics = published(engine, METRICS_PORT)?;
    let metrics = format!("http://{metrics}/console/metrics");
    if !answered(&metrics)?.contains("limiter_compute_successes ") {
        bail!("{metrics} has no metrics of the login limiter");
    }
    say(&format!(
        "console: the login is at {place}, its metrics are not"
    ))
}

/// Through the web server: clients at the push service's port, subscribers at the list's, and the
/// paths of nodes and Prometheus at neither.
fn push_answers(engine: &Engine) -> anyhow::Result<()> {
    let address = format!("http://127.0.0.1:{PUSH_PORT}");
    let list = format!("http://127.0.0.1:{PORT}");
    let metrics = format!("http://{}", published(engine, METRICS_PORT)?);
    let connections = "fedicensus_push_connections 0\n";
    let database = "fedicensus_push_database_bytes ";
    for (url, wanted) in [
        (format!("{address}/status"), "\"status\":\"OK\""),
        (format!("{list}/subscribe"), "{\"key\":"),
        (format!("{metrics}/push/metrics"), connections),
        (format!("{metrics}/push-endpoint/metrics"), database),
        (format!("{address}/metrics"), "\n404"),
        (format!("{address}/subscribe"), "\n404"),
        (format!("{address}/notif/{}", "0".repeat(32)), "\n404"),
    ] {
        let page = answered(&url)?;
        if !page.contains(wanted) {
            bail!("{url} must be answered with `{}`: {page}", wanted.trim());
        }
    }
    say(&format!("push: the service is at {address}"))
}

/// The ids of the lab's containers that a filter selects, a line each.
fn containers(engine: &Engine, filter: &str) -> anyhow::Result<String> {
    let label = format!("label=org.fedicensus=fedicensus-{NAME}");
    let filters = ["--filter", &label, "--filter", filter];
    output(engine.command().args(["ps", "-q"]).args(filters))
}

/// The address at which a port of the web server's container is published, on this machine only.
fn published(engine: &Engine, port: &str) -> anyhow::Result<String> {
    let web = containers(engine, "label=com.docker.compose.service=web")?;
    let places = output(engine.command().args(["port", web.trim(), port]))?;
    let place = places.lines().next().unwrap_or_default();
    if !place.starts_with("127.0.0.1:") {
        bail!("port {port} is published further than this machine: {place}");
    }
    Ok(place.to_owned())
}

fn answered(url: &str) -> anyhow::Result<String> {
    let format = "\n%{http_code}";
    output(Command::new("curl").args(["-sS", "--max-time", "30", "-w", format, url]))
}

/// Through the web server, which mounts the volume of the intake's socket read-only.
fn intake_answers() -> anyhow::Result<()> {
    let url = format!("http://127.0.0.1:{PORT}/submit/nobody.example.com");
    let answer = answered(&url)?;
    let status = answer.lines().next_back().unwrap_or_default();
    // Without the intake, nginx answers 502 or 503.
    if status.starts_with('5') {
        bail!("the intake does not answer {url}: {status}");
    }
    say(&format!("intake: {url} is answered with {status}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_persona_that_the_seed_names_is_drawn_by_some_commit() {
        let json = r#"{"personas": [{"host": "a", "via": "start"}, {"host": "b", "via": "seed"},
            {"host": "c", "via": {"host": "b"}}, {"host": "d", "via": "seed"}]}"#;
        let table: Value = serde_json::from_str(json).unwrap();
        assert_eq!(named_by_the_seed(&table).unwrap(), ["b", "d"]);

        let names: Vec<String> = (0..3 * PERSONAS).map(|number| number.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut all: Vec<_> = (0..3).flat_map(|seed| drawn(&names, seed)).collect();
        all.sort_by_key(|name| name.parse::<usize>().unwrap());
        assert_eq!(all, names);
        assert_eq!(drawn(&names, 7).len(), PERSONAS);
    }
}
