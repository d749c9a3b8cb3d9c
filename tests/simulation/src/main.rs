//! `simulation`: runs a simulation from its arguments, and prints a table.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use rand::Rng as _;
use simulation::firstday::{FirstDay, first_day};
use simulation::measure::Sample;
use simulation::plan::Plan;
use simulation::world::{WORLDS, World};
use simulation::year::run;

/// Most hosts: names and addresses of the simulated world have numbers below this.
const HOSTS_MAX: i64 = 16_000_000;

const DAYS_MAX: i64 = 36_500;

/// Simulates years of a census in minutes: an invented Fediverse, a virtual clock, the real rules.
#[derive(Debug, Parser)]
#[command(name = "simulation", version)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Hosts known at the start
    #[arg(long, default_value_t = 30_000, value_parser = clap::value_parser!(u32).range(1..=HOSTS_MAX))]
    hosts: u32,
    /// Days
    #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=DAYS_MAX))]
    days: u32,
    /// Chance; without it another run each time
    #[arg(long, global = true)]
    seed: Option<u64>,
    /// Containers a second that the engine can start; without it what the world says
    #[arg(long)]
    capacity: Option<f64>,
    /// Which world: default, all-living, overload, farm, farms, outage, ways, or a file with hosts
    #[arg(long, default_value = "default")]
    world: String,
    /// Folder below which the database is made; without it the one for temporary files
    #[arg(long, global = true)]
    below: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// How soon the known Fediverse is checked and listed. Exits with 1 if a goal was missed
    #[command(name = "firstday")]
    FirstDay(FirstDay),
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if let Some(Command::FirstDay(plan)) = &arguments.command {
        return live_first_day(plan, &arguments);
    }
    let (name, days) = (&arguments.world, arguments.days);
    let seed = told_seed(&arguments)?;
    let mut plan = match World::named(name) {
        Some(world) => Plan::new(world, arguments.hosts, days, seed),
        None => Plan::of_file(Path::new(name), days, seed).with_context(|| {
            let names = WORLDS.map(|world| world.name).join(", ");
            format!("the world is none of {names}, and no file with hosts")
        })?,
    };
    if let Some(capacity) = arguments.capacity {
        anyhow::ensure!(
            capacity.is_finite() && capacity > 0.0,
            "--capacity {capacity}: it must be more than 0"
        );
        plan.capacity = capacity;
    }
    plan.below = arguments.below.unwrap_or(plan.below);
    plan.watched_by = Some(tell);
    let report = run(&plan)?;
    Ok(write!(std::io::stdout(), "{}", report.table())?)
}

fn live_first_day(plan: &FirstDay, arguments: &Arguments) -> anyhow::Result<()> {
    let below = arguments.below.clone().unwrap_or_else(std::env::temp_dir);
    let report = first_day(plan, told_seed(arguments)?, &below)?;
    write!(std::io::stdout(), "{}", report.table())?;
    if let Some(path) = &plan.minutes {
        report.write_minutes(path)?;
    }
    anyhow::ensure!(
        report.missed.is_empty(),
        "missed: {}",
        report.missed.join("; ")
    );
    Ok(())
}

/// The run's seed, printed before anything can fail.
fn told_seed(arguments: &Arguments) -> anyhow::Result<u64> {
    let seed = arguments.seed.unwrap_or_else(|| rand::rng().random());
    writeln!(std::io::stdout(), "seed {seed}")?;
    Ok(seed)
}

/// Prints the progress on stderr. A failed write is ignored.
fn tell(sample: &Sample) {
    writeln!(
        std::io::stderr(),
        "day {:.2}: {:.2} % of the living seen within 29 h, {:.2} % within 31 h; {} checks, {} rows, {} MB",
        sample.day,
        sample.within_day * 100.0,
        sample.within_day_and_jitter * 100.0,
        sample.checks,
        sample.rows,
        sample.bytes / 1_000_000,
    )
    .unwrap_or(());
}
