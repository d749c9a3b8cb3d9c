//! What a flood of invented names costs a running census in the lab (`bench/README.md`).
//!
//! In: an engine, the lab. Out: a row of a table: rows, checks, entries of the list, memory, and how fast the honest hosts were found.
//!
//! Everything is the product's: fifty servers are checked in containers, their lists come through checkers' stdout, and the farm's hosts that come in
//! are checked as well and live. Alone the days are shorter.

mod lab;
mod memory;
mod role;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Parser;
use protocol::Host;
use store::Reader;
use tempfile::TempDir;
use tokio::process::Command;

use crate::role::Role;

/// The label of the containers.
const INSTANCE: &str = "fedicensus-bench";

/// The domain of the lab's farm.
const FARM: &str = "farm-of-names.test";

/// The servers that name its hosts.
const SERVERS: u32 = 50;

/// The rules that are the default outside the lab, whose names have no public suffix: twenty a registered domain and day.
const RULES: &str = "domain test 2147483647\ndomain farm-of-names.test 20\n";

/// Between two looks at the database.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// A day of the census, whose hosts are asked every 29 hours.
const DAY_HOURS: u32 = 29;

/// Measures what a flood of invented names costs a running census.
#[derive(Debug, Parser)]
#[command(name = "bench-flood-lab", version)]
struct Arguments {
    /// Invented names behind one domain, in fifty equal lists; 0: no flood
    #[arg(long, default_value_t = 10_000_000)]
    names: u64,
    /// Honest instances, which name each other
    #[arg(long, default_value_t = 200)]
    crowd: u32,
    /// Days that it lasts
    #[arg(long, default_value_t = 4)]
    days: u32,
    /// Seconds that a day takes
    #[arg(long, default_value_t = 120)]
    day_seconds: u32,
    /// Checks in flight
    #[arg(long, default_value_t = 8)]
    in_flight: u32,
    /// Without rules, limits and groups
    #[arg(long)]
    without: bool,
    /// The engine's API socket
    #[arg(long, default_value = "/var/run/docker.sock")]
    engine: PathBuf,
    /// The checker's image
    #[arg(long, default_value = "localhost/fedicensus-checker:latest")]
    image: String,
    /// Folder with `fedicensus` and `fedicensus-lab`
    #[arg(long, default_value = "target/release")]
    programs: PathBuf,
}

/// The honest hosts, as they come.
#[derive(Debug, Default)]
struct Honest {
    /// Seconds until half, and until all of them had lived.
    half_s: Option<f64>,
    all_s: Option<f64>,
    lived: usize,
}

#[tokio::main(flavor = "multi_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let folder = tempfile::tempdir()?;
    let path = folder.path();
    for name in ["lab", "egress", "sockets", "data", "public"] {
        std::fs::create_dir(path.join(name))?;
    }
    std::fs::write(path.join("rules"), RULES)?;
    let farm = arguments.names.to_string();
    let further = ["--personas", "seed.lab.test", "--farm", &farm];
    let mut lab = lab::start(&arguments.programs, path, arguments.crowd, &further)?;
    lab.makes(&path.join("lab/names")).await?;
    let crowd = lab::hosts(lab::crowd(arguments.crowd))?;
    let role = |name| {
        let mut command = fedicensus(&arguments, path);
        Role::start(name, command.arg(name), path)
    };
    let mut gateway = role("gateway")?;
    gateway
        .listens_on(&path.join("sockets/gateway.sock"))
        .await?;
    let mut launcher = role("launcher")?;
    launcher
        .listens_on(&path.join("sockets/launcher.sock"))
        .await?;
    let mut census = role("run")?;
    census.listens_on(&path.join("data/control.sock")).await?;

    let mut seeds: Vec<String> = crowd.iter().take(1).map(Host::to_string).collect();
    if arguments.names > 0 {
        seeds.extend((0..SERVERS).map(|number| format!("social.names-{number:02}.test")));
    }
    let mut add = fedicensus(&arguments, path);
    let added = add.arg("add").args(&seeds).output().await?;
    ensure!(added.status.success(), "fedicensus add failed");
    let began = Instant::now();
    let ends = Duration::from_secs(u64::from(arguments.days * arguments.day_seconds));
    let last_day = ends - Duration::from_secs(u64::from(arguments.day_seconds));
    let (mut honest, mut before_last_day) = (Honest::default(), None);
    while began.elapsed() < ends {
        tokio::time::sleep(LOOK_EVERY).await;
        let reader = store::open_read_only(&path.join("data/census.db"))?;
        honest.look(&reader, &crowd, began.elapsed().as_secs_f64())?;
        if before_last_day.is_none() && began.elapsed() >= last_day {
            before_last_day = Some(farm_checks(path)?);
        }
    }
    let checks = farm_checks(path)?;
    let mut dump = fedicensus(&arguments, path);
    let dumped = dump.args(["dump", "--force"]).output().await?;
    ensure!(dumped.status.success(), "fedicensus dump failed");
    let memory_mb = memory::most_mb(&census.id()?.to_string())?;
    report(
        &arguments,
        &folder,
        &crowd,
        &honest,
        (checks, checks - before_last_day.unwrap_or(0)),
        memory_mb,
    )?;
    census.stop().await?;
    launcher.stop().await?;
    gateway.stop().await?;
    lab.stop().await
}

impl Honest {
    fn look(&mut self, reader: &Reader, crowd: &[Host], now_s: f64) -> Result<()> {
        self.lived = 0;
        for host in crowd {
            let stored = reader.record(host)?;
            if stored.is_some_and(|stored| stored.record.last_alive.is_some()) {
                self.lived += 1;
            }
        }
        if self.lived * 2 >= crowd.len() {
            self.half_s.get_or_insert(now_s);
        }
        if self.lived == crowd.len() {
            self.all_s.get_or_insert(now_s);
        }
        Ok(())
    }
}

/// A command of `fedicensus`, with the settings of all roles. Paces are off: they would measure themselves.
fn fedicensus(arguments: &Arguments, folder: &Path) -> Command {
    let at = |name: &str| folder.join(name).display().to_string();
    let divisor = DAY_HOURS * 3600 / arguments.day_seconds.max(1);
    let (rules, limit, threshold) = match arguments.without {
        true => (String::new(), Some("2147483647"), "1000000"),
        false => (at("rules"), None, "10"),
    };
    let mut command = Command::new(arguments.programs.join("fedicensus"));
    command.envs([
        ("FEDICENSUS_CONTACT", "bench@census.test".to_owned()),
        ("FEDICENSUS_SEEDS", String::new()),
        ("FEDICENSUS_CANARIES", String::new()),
        ("FEDICENSUS_INSTANCE", INSTANCE.to_owned()),
        ("FEDICENSUS_CHECKS_MAX", arguments.in_flight.to_string()),
        ("FEDICENSUS_CHECKS_MIN", arguments.in_flight.to_string()),
        (
            "FEDICENSUS_ENGINE_SOCKET",
            arguments.engine.display().to_string(),
        ),
        ("FEDICENSUS_CHECKER_IMAGE", arguments.image.clone()),
        ("FEDICENSUS_DATA_DIR", at("data")),
        ("FEDICENSUS_PUBLIC_DIR", at("public")),
        ("FEDICENSUS_GATEWAY_SOCKET", at("sockets/gateway.sock")),
        ("FEDICENSUS_LAUNCHER_SOCKET", at("sockets/launcher.sock")),
        ("FEDICENSUS_EGRESS_DIR", at("egress")),
        ("FEDICENSUS_EGRESS_VOLUME", String::new()),
        ("FEDICENSUS_LAB_NAMES_FILE", at("lab/names")),
        ("FEDICENSUS_LAB_EXTRA_CA", at("lab/ca.pem")),
        ("FEDICENSUS_LAB_ALLOW_PRIVATE", "true".to_owned()),
        ("FEDICENSUS_LAB_RESERVED_SUFFIXES", "true".to_owned()),
        ("FEDICENSUS_LAB_PACE_DIVISOR", "1000000".to_owned()),
        ("FEDICENSUS_STARTS_PER_SECOND", "1000".to_owned()),
        ("FEDICENSUS_LAB_INTERVAL_DIVISOR", divisor.to_string()),
        ("FEDICENSUS_ADMISSION_RULES", rules),
        ("FEDICENSUS_GROUP_THRESHOLD", threshold.to_owned()),
    ]);
    if let Some(limit) = limit {
        command.envs([
            ("FEDICENSUS_SOURCE_LIMIT", limit),
            ("FEDICENSUS_SHARED_SUFFIX_LIMIT", limit),
            ("FEDICENSUS_ADMISSIONS_LIMIT", limit),
        ]);
    }
    command
}

/// Checks of the farm's hosts that ended, as the daemon's log tells.
fn farm_checks(folder: &Path) -> Result<usize> {
    let log = std::fs::read_to_string(folder.join("run.log"))?;
    let is_one = |line: &&str| line.contains(" checked ") && line.contains(FARM);
    Ok(log.lines().filter(is_one).count())
}

fn report(
    arguments: &Arguments,
    folder: &TempDir,
    crowd: &[Host],
    honest: &Honest,
    (checks, checks_last_day): (usize, usize),
    memory_mb: u64,
) -> Result<()> {
    let database = folder.path().join("data/census.db");
    let reader = store::open_read_only(&database)?;
    let mut others = 0_u64;
    for host in crowd {
        others += u64::from(reader.record(host)?.is_some());
    }
    for number in 0..SERVERS {
        let host = Host::parse(&format!("social.names-{number:02}.test"))?;
        others += u64::from(reader.record(&host)?.is_some());
    }
    let listed: Vec<String> =
        serde_json::from_slice(&std::fs::read(folder.path().join("public/nodes.json"))?)?;
    let entries = listed.iter().filter(|name| name.ends_with(FARM)).count();
    let days = |seconds: Option<f64>| {
        let days = seconds.map(|seconds| seconds / f64::from(arguments.day_seconds));
        days.map_or("never".to_owned(), |days| format!("{days:.2}"))
    };
    let mut out = std::io::stdout();
    writeln!(
        out,
        "| names, rules | rows | waiting | checks, last day | listed | honest that lived | half of them after, days | all after, days | memory of the daemon, MB | database, MB |\n|---|---|---|---|---|---|---|---|---|---|"
    )?;
    writeln!(
        out,
        "| {}, {} | {} | {} | {checks} in {} days, {checks_last_day} | {entries} | {} of {} | {} | {} | {memory_mb} | {} |",
        arguments.names,
        if arguments.without { "without" } else { "with" },
        reader.counts()?.hosts.saturating_sub(others),
        reader.waiting()?,
        arguments.days,
        honest.lived,
        crowd.len(),
        days(honest.half_s),
        days(honest.all_s),
        std::fs::metadata(&database)?.len() / 1_000_000,
    )?;
    Ok(())
}
