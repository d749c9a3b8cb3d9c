//! What the pages cost (`bench/README.md`).
//!
//! In: nothing. Out: a table: how long the site of many hosts takes, and the most memory while it is made; with `--browser`, how quick its list is.

mod memory;

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};
use census::state::StateName;
use clap::Parser;
use dump::{Instance, ListedState, Moment, Stop};
use protocol::{DeadReason, Host};
use serde::Deserialize;
use site::facts::{ByState, Facts, Intake};
use site::{Answer, Found, Place, Salt, Site, Why};
use tests::Web;

use crate::memory::most_mb;

const NOW_MS: i64 = 1_795_000_000_000;

/// Measures how long making the pages takes and how much memory.
#[derive(Debug, Parser)]
#[command(name = "bench-site", version)]
struct Arguments {
    /// Hosts, all of them listed, which is more than as many known hosts would have
    #[arg(long, default_value_t = 1_000_000)]
    hosts: u64,
    /// Look at the list with nginx and Chromium, too
    #[arg(long)]
    browser: bool,
}

/// What `browser.mjs` says: bytes on the wire, headers included, and milliseconds.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Quickness {
    start_bytes: u64,
    list_bytes: u64,
    load_ms: f64,
    sort_ms: f64,
    search_ms: f64,
    troubles: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let folder = tempfile::tempdir()?;
    let made = Moment::from_milliseconds(NOW_MS);
    let start = Instant::now();
    let mut site = Site::begin(folder.path(), facts(made), &Stop::default())?;
    for number in 0..arguments.hosts {
        let host = Host::parse(&format!("host{number:07}.example"))?;
        site.instance(&instance(&host, number, made))?;
        let answer = Answer {
            place: Place::Known(StateName::Dead),
            why: Why::Dead,
            found: Some(Found::Dead(DeadReason::NoSuchName)),
            last_checked: Some(made),
            next_check: Some(made),
        };
        site.answer(&host, &answer)?;
    }
    let fed = start.elapsed();
    let staged = site.finish()?;
    let finished = start.elapsed();
    staged.publish()?;
    let published = start.elapsed();
    let mut out = std::io::stdout();
    writeln!(out, "| what | measured |\n|---|---|")?;
    for (what, took) in [
        ("rows and answers taken", fed),
        ("pages written", finished),
        ("published", published),
    ] {
        writeln!(out, "| {what} after | {:.1} s |", took.as_secs_f64())?;
    }
    writeln!(out, "| most memory | {} MB |", most_mb("self")?)?;
    if arguments.browser {
        let found = browsed(folder.path()).await?;
        for (what, bytes) in [
            ("start page with all that it asks for", found.start_bytes),
            ("the list", found.list_bytes),
        ] {
            writeln!(out, "| {what}, on the wire | {bytes} bytes |")?;
        }
        for (what, ms) in [
            ("list asked for, loaded and drawn", found.load_ms),
            ("sorted by name", found.sort_ms),
            ("searched for a name", found.search_ms),
        ] {
            writeln!(out, "| {what} | {ms:.0} ms |")?;
        }
    }
    Ok(())
}

async fn browsed(public: &Path) -> Result<Quickness> {
    let (own, profile) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let web = Web::start(own.path(), public).await?;
    let output = Command::new("node")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/browser.mjs"))
        .args(["chromium", web.address()])
        .arg(profile.path())
        .output()?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let found: Quickness = serde_json::from_slice(&output.stdout)?;
    ensure!(found.troubles.is_empty(), "{:?}", found.troubles);
    Ok(found)
}

fn facts(made: Moment) -> Facts {
    Facts {
        made,
        rows_read: made,
        user_agent: "Fedicensus/0.1.0 (+https://census.example)".to_owned(),
        contact: "https://census.example".to_owned(),
        address: None,
        intake: Intake::Closed,
        known: ByState::new(),
        salt: Salt::from_random(7),
        history: Vec::new(),
    }
}

fn instance(host: &Host, number: u64, made: Moment) -> Instance {
    Instance {
        host: host.as_str().to_owned(),
        // Some hundred kinds, of very different counts.
        software: Some(format!("software{}", number.wrapping_mul(number) % 997)),
        version: Some(format!("4.{}.{}", number % 30, number % 7)),
        state: ListedState::Alive,
        first_seen: made,
        last_alive: made,
    }
}
