//! What the whole path costs, against the least that could be done (`bench/README.md`).
//!
//! In: the release binaries, an engine, the checker's image. Out: a table of runs, the medians, and the ratio of the two.

mod direct;
mod lab;
mod measure;
mod median;
mod role;
mod stage;
mod whole;
mod wire;

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use protocol::Host;

use crate::direct::Direct;
use crate::measure::{Cost, Start};
use crate::median::median;
use crate::stage::Stage;
use crate::whole::Whole;

/// The label's value of the benchmark's containers, so that no census on the same engine takes them for its own.
pub(crate) const INSTANCE: &str = "fedicensus-bench";

/// Measures checks per second and processor time per check through the whole path, and through a client that drives the engine directly.
#[derive(Debug, Parser)]
#[command(name = "bench-path", version)]
pub(crate) struct Arguments {
    /// Folder of the release binaries `fedicensus` and `fedicensus-lab`
    #[arg(long, default_value = "target/release")]
    programs: PathBuf,
    /// The engine's socket
    #[arg(long, default_value = "/var/run/docker.sock")]
    engine: PathBuf,
    /// The checker's image
    #[arg(long, default_value = "localhost/fedicensus-checker:latest")]
    image: String,
    /// Checks in each run
    #[arg(long, default_value_t = 60)]
    checks: usize,
    /// Runs of each side, alternating
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Checks at the same time
    #[arg(long, default_value_t = 4)]
    in_flight: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let stage = Stage::set(&arguments).await?;
    let outcome = compare(&arguments, &stage).await;
    let struck = stage.strike().await;
    outcome.and(struck)
}

async fn compare(arguments: &Arguments, stage: &Stage) -> Result<()> {
    let direct = stage.direct().await?;
    let hosts: Vec<Host> = stage.hosts.iter().take(arguments.checks).cloned().collect();
    // Once unmeasured: what is read for the first time comes from the disk.
    let few: Vec<Host> = hosts
        .iter()
        .take(arguments.in_flight * 2)
        .cloned()
        .collect();
    directly(&direct, &few, arguments.in_flight).await?;
    through_the_whole_path(stage, &few).await?;

    let mut out = std::io::stdout();
    writeln!(
        out,
        "| run | direct, checks/s | whole, checks/s | direct, CPU s/check | whole, CPU s/check |"
    )?;
    writeln!(out, "|---|---|---|---|---|")?;
    let mut pairs = Vec::new();
    for run in 1..=arguments.runs {
        let least = directly(&direct, &hosts, arguments.in_flight).await?;
        let whole = through_the_whole_path(stage, &hosts).await?;
        write_row(&mut out, &run.to_string(), least, whole)?;
        pairs.push((least, whole));
    }
    let middle = |of: fn(&(Cost, Cost)) -> Cost| Cost {
        rate: median(pairs.iter().map(|pair| of(pair).rate)),
        cpu_seconds: median(pairs.iter().map(|pair| of(pair).cpu_seconds)),
    };
    let (least, whole) = (middle(|pair| pair.0), middle(|pair| pair.1));
    write_row(&mut out, "median", least, whole)?;
    writeln!(
        out,
        "\nwhole path / direct: {:.2} of the checks per second (target: at least 0.90), {:.2} times the CPU per check; {} checks a run, {} in flight",
        whole.rate / least.rate,
        whole.cpu_seconds / least.cpu_seconds,
        hosts.len(),
        arguments.in_flight
    )?;
    Ok(())
}

fn write_row(
    out: &mut impl std::io::Write,
    name: &str,
    direct: Cost,
    whole: Cost,
) -> std::io::Result<()> {
    writeln!(
        out,
        "| {name} | {:.2} | {:.2} | {:.3} | {:.3} |",
        direct.rate, whole.rate, direct.cpu_seconds, whole.cpu_seconds
    )
}

async fn directly(direct: &Direct, hosts: &[Host], in_flight: usize) -> Result<Cost> {
    let ready = direct.prepare(hosts.to_vec()).await;
    let start = Start::now()?;
    direct.run(ready, in_flight).await?;
    start.cost_of(hosts.len())
}

async fn through_the_whole_path(stage: &Stage, hosts: &[Host]) -> Result<Cost> {
    let whole = Whole::prepare(stage).await?;
    let start = Start::now()?;
    whole.run(hosts).await?;
    let cost = start.cost_of(hosts.len())?;
    whole.finish(hosts).await?;
    Ok(cost)
}
