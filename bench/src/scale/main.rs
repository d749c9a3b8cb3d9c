//! The cost of a census by its size: a check, memory, the dump; and the cost of new names
//! (`names`). See `bench/README.md`.
//!
//! For each size it prints tables: processor time and elapsed time of taking a host and of writing
//! a verdict; memory of a process with the census open; the parts of a dump.

mod checks;
mod dumped;
mod held;
mod names;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result};
use bench::shared::cost::Cost;
use bench::shared::making::{self, World};
use clap::{Parser, Subcommand};

use crate::checks::{Arrival, Census, Costs};

/// Measures a census by its size.
#[derive(Debug, Parser)]
#[command(name = "bench-scale", version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Rows, one census each, smallest first
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 100_000, 1_000_000, 10_000_000])]
    rows: Vec<u64>,
    /// Checks a round, each way
    #[arg(long, default_value_t = 2000)]
    checks: u32,
    /// Rounds that are measured, all sizes in each; one before them is not
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Living instances of the census that is dumped; 0 for no dump
    #[arg(long, default_value_t = 1_000_000)]
    dumped: u64,
    /// Junk names that a source names while memory is looked at
    #[arg(long, default_value_t = 10_000_000)]
    junk: u64,
    /// Where the databases lie meanwhile
    #[arg(long, default_value = "/tmp")]
    folder: PathBuf,
    /// Opens this census, says what memory it takes, and ends: how the benchmark calls itself
    #[arg(long, hide = true)]
    hold: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measures what it costs to be named
    Names(names::Arguments),
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(Command::Names(arguments)) = &arguments.command {
        return names::measure(arguments).await;
    }
    if let Some(path) = &arguments.hold {
        return held::hold(path, arguments.checks, arguments.junk).await;
    }
    let folder = tempfile::tempdir_in(&arguments.folder)?;
    say(&format!("SQLite {}, compiled in.\n", rusqlite::version()))?;
    if !arguments.rows.is_empty() {
        cost_by_rows(&arguments, folder.path()).await?;
        memory_by_rows(&arguments, folder.path())?;
    }
    if arguments.dumped > 0 {
        dumped::measure(folder.path(), arguments.dumped)?;
    }
    Ok(())
}

/// Prints a line of a table, or of text.
pub(crate) fn say(line: &str) -> Result<()> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}

fn file(folder: &Path, rows: u64) -> PathBuf {
    folder.join(format!("census-{rows}.db"))
}

/// A size with all its measurements.
struct Size {
    census: Census,
    /// By way: one at a time, many at once.
    costs: [Vec<Costs>; 2],
}

async fn cost_by_rows(arguments: &Arguments, folder: &Path) -> Result<()> {
    let mut sizes = Vec::new();
    for rows in &arguments.rows {
        let path = file(folder, *rows);
        let began = Instant::now();
        making::make(&path, *rows, World::MiddleOfLife)?;
        let made = began.elapsed().as_secs_f64();
        let looked_at = making::look_for_faults(&path, *rows)?;
        let bytes = std::fs::metadata(&path)?.len() as f64;
        say(&format!(
            "{rows} rows were made in {made:.0} s, {:.0} MB, {:.0} bytes a row; {looked_at}",
            bytes / 1e6,
            bytes / *rows as f64
        ))?;
        sizes.push(Size {
            census: Census::open(&path)?,
            costs: Default::default(),
        });
    }
    for round in 0..=arguments.rounds {
        for size in &mut sizes {
            for (arrival, costs) in Arrival::ALL.into_iter().zip(&mut size.costs) {
                let cost = size.census.round(arrival, arguments.checks).await?;
                // In the first round the cache is empty and pages are full, as after a start from a
                // backup.
                if round > 0 {
                    costs.push(cost);
                }
            }
        }
    }
    for (number, arrival) in Arrival::ALL.into_iter().enumerate() {
        report(&sizes, number, arrival)?;
    }
    loads(&sizes)
}

fn report(sizes: &[Size], number: usize, arrival: Arrival) -> Result<()> {
    say(&format!(
        "\n{}, µs of processor time (of the clock), medians:\n\n| rows | a pick | a write of a verdict | both | to the smallest |\n|---|---|---|---|---|",
        arrival.as_str()
    ))?;
    let mut smallest = None;
    for size in sizes {
        let costs = size.costs.get(number).map_or(&[][..], Vec::as_slice);
        let pick = Cost::median(&costs.iter().map(|cost| cost.pick).collect::<Vec<_>>());
        let settle = Cost::median(&costs.iter().map(|cost| cost.settle).collect::<Vec<_>>());
        let (cpu, clock) = (
            micros(pick.cpu_rate) + micros(settle.cpu_rate),
            micros(pick.rate) + micros(settle.rate),
        );
        let smallest = *smallest.get_or_insert(cpu);
        let rows = size.census.rows();
        say(&format!(
            "| {rows} | {:.1} ({:.1}) | {:.1} ({:.1}) | {cpu:.1} ({clock:.1}) | {:.2} |",
            micros(pick.cpu_rate),
            micros(pick.rate),
            micros(settle.cpu_rate),
            micros(settle.rate),
            cpu / smallest,
        ))?;
    }
    Ok(())
}

fn micros(rate: f64) -> f64 {
    1e6 / rate
}

/// The scheduler's additional query every ten seconds.
fn loads(sizes: &[Size]) -> Result<()> {
    say(
        "\nMeasuring the load, once in ten seconds:\n\n| rows | ms of processor time | a check at 10 a second, µs |\n|---|---|---|",
    )?;
    for size in sizes {
        let cost = size.census.load()?;
        let ms = 1e3 / cost.cpu_rate;
        say(&format!(
            "| {} | {ms:.2} | {:.1} |",
            size.census.rows(),
            ms * 1e3 / 100.0
        ))?;
    }
    Ok(())
}

fn memory_by_rows(arguments: &Arguments, folder: &Path) -> Result<()> {
    say(&format!(
        "\nMemory of a process that has the census open, MiB:\n\n| rows | names recognised, bytes each | after the start | after {} checks each way | after {} junk names | most at any time |\n|---|---|---|---|---|---|",
        arguments.checks, arguments.junk
    ))?;
    for rows in &arguments.rows {
        let held = held::by_another_process(&file(folder, *rows), arguments.checks, arguments.junk)
            .with_context(|| format!("memory of a census of {rows} rows"))?;
        let mib = |kib: u64| kib as f64 / 1024.0;
        say(&format!(
            "| {rows} | {}, {:.1} | {:.0} | {:.0} | {:.0} | {:.0} |",
            held.names,
            held.filter_bytes as f64 / held.names.max(1) as f64,
            mib(held.opened_kib),
            mib(held.checked_kib),
            mib(held.junk_kib),
            mib(held.most_kib),
        ))?;
    }
    Ok(())
}
