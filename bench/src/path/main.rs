//! The cost of the whole path, compared with the least possible work (`bench/README.md`).
//!
//! It needs the release binaries, an engine and the checker's image. It prints a table of runs, or
//! of medians by checks in parallel, the ratio of the two sides, and which part used processor
//! time, for each distance of the hosts.

mod whole;

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use bench::shared::direct::Direct;
use bench::shared::lab::{self, Distances};
use bench::shared::measure::{Cost, Start};
use bench::shared::median::median;
use bench::shared::processes::{PARTS, PARTS_COUNT};
use bench::shared::stage::{Equipment, Stage};
use clap::Parser;
use protocol::Host;

use crate::whole::Whole;

/// A first check requests peers, and all checks of the whole path are first checks.
const PEERS_EVERY: usize = 1;

/// Measures checks per second and processor time per check through the whole path, and through a
/// client that drives the engine directly.
#[derive(Debug, Parser)]
#[command(name = "bench-path", version)]
struct Arguments {
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
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=200_000))]
    checks: u32,
    /// Runs of each side, alternating
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Checks at the same time, 1 to 64; several, with commas between them, one after the other
    #[arg(long, default_value = "4", value_delimiter = ',', value_parser = in_flight)]
    in_flight: Vec<usize>,
    #[command(flatten)]
    distances: Distances,
    /// Folder for the databases
    #[arg(long, default_value = "/tmp")]
    folder: PathBuf,
}

fn in_flight(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=64) => Ok(number),
        Ok(_) | Err(_) => Err("it is no number of 1 to 64, as `checks_max` has to be".to_owned()),
    }
}

/// The medians of both sides.
#[derive(Debug, Clone, Copy)]
struct Pair {
    answer_ms: u16,
    in_flight: usize,
    direct: Cost,
    whole: Cost,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut pairs = Vec::new();
    for &answer_ms in &arguments.distances.answer_ms {
        let stage = Stage::set(Equipment {
            programs: arguments.programs.clone(),
            engine: arguments.engine.clone(),
            image: arguments.image.clone(),
            below: arguments.folder.clone(),
            crowd: arguments.checks,
            answer_ms,
            in_flight_max: arguments.in_flight.iter().copied().max(),
        })
        .await?;
        let outcome = compare(&arguments, answer_ms, &stage, &mut pairs).await;
        let struck = stage.strike().await;
        outcome.and(struck)?;
    }
    report(&arguments, &pairs)
}

async fn compare(
    arguments: &Arguments,
    answer_ms: u16,
    stage: &Stage,
    pairs: &mut Vec<Pair>,
) -> Result<()> {
    let direct = stage.direct().await?;
    let hosts = lab::hosts(lab::crowd(arguments.checks))?;
    let mut out = std::io::stdout();
    for &in_flight in &arguments.in_flight {
        // A warm-up that is not measured, because the first read comes from the disk.
        let few: Vec<Host> = hosts.iter().take(in_flight * 2).cloned().collect();
        directly(stage, &direct, &few, in_flight).await?;
        through_the_whole_path(stage, &few, in_flight).await?;
        let (mut least, mut whole) = (Vec::new(), Vec::new());
        for _ in 0..arguments.runs {
            least.push(directly(stage, &direct, &hosts, in_flight).await?);
            whole.push(through_the_whole_path(stage, &hosts, in_flight).await?);
        }
        if arguments.in_flight.len() == 1 {
            writeln!(out, "Answers after {answer_ms} ms:\n")?;
            write_runs(&mut out, &least, &whole)?;
        }
        pairs.push(Pair {
            answer_ms,
            in_flight,
            direct: middle(&least),
            whole: middle(&whole),
        });
    }
    Ok(())
}

fn report(arguments: &Arguments, pairs: &[Pair]) -> Result<()> {
    let mut out = std::io::stdout();
    write_medians(&mut out, pairs)?;
    writeln!(
        out,
        "\nMedians of {} runs, {} checks a run; target: at least 0.90 of the checks per second.\n",
        arguments.runs, arguments.checks,
    )?;
    write_parts(&mut out, pairs)?;
    Ok(())
}

/// The median of each figure.
fn middle(costs: &[Cost]) -> Cost {
    let middle = |of: &dyn Fn(&Cost) -> f64| median(costs.iter().map(of));
    let mut by_part = [0.0; PARTS_COUNT];
    for (at, part) in by_part.iter_mut().enumerate() {
        let of = |cost: &Cost| cost.cpu_seconds_by_part.get(at).copied();
        *part = middle(&|cost| of(cost).unwrap_or_default());
    }
    Cost {
        rate: middle(&|cost| cost.rate),
        cpu_seconds: middle(&|cost| cost.cpu_seconds),
        cpu_seconds_by_part: by_part,
        idle: middle(&|cost| cost.idle),
    }
}

fn write_runs(
    out: &mut impl std::io::Write,
    least: &[Cost],
    whole: &[Cost],
) -> std::io::Result<()> {
    writeln!(
        out,
        "| run | direct, checks/s | whole, checks/s | direct, CPU s/check | whole, CPU s/check |\n|---|---|---|---|---|"
    )?;
    for ((run, direct), whole) in (1..).zip(least).zip(whole) {
        writeln!(
            out,
            "| {run} | {:.2} | {:.2} | {:.3} | {:.3} |",
            direct.rate, whole.rate, direct.cpu_seconds, whole.cpu_seconds
        )?;
    }
    writeln!(out)
}

fn write_medians(out: &mut impl std::io::Write, pairs: &[Pair]) -> std::io::Result<()> {
    writeln!(
        out,
        "| answer, ms | in flight | direct, checks/s | whole, checks/s | whole / direct | direct, CPU s/check | whole, CPU s/check | CPU, whole / direct | direct, idle | whole, idle |\n|---|---|---|---|---|---|---|---|---|---|"
    )?;
    for pair in pairs {
        let (direct, whole) = (pair.direct, pair.whole);
        writeln!(
            out,
            "| {} | {} | {:.2} | {:.2} | {:.2} | {:.3} | {:.3} | {:.2} | {:.0} % | {:.0} % |",
            pair.answer_ms,
            pair.in_flight,
            direct.rate,
            whole.rate,
            whole.rate / direct.rate,
            direct.cpu_seconds,
            whole.cpu_seconds,
            whole.cpu_seconds / direct.cpu_seconds,
            direct.idle * 100.0,
            whole.idle * 100.0,
        )?;
    }
    Ok(())
}

/// Seconds of processor time per check, by part.
fn write_parts(out: &mut impl std::io::Write, pairs: &[Pair]) -> std::io::Result<()> {
    let columns = PARTS.map(|part| format!(" {part} |")).concat();
    writeln!(
        out,
        "| answer, ms | in flight, CPU s/check |{columns} all |\n|---{}|",
        "|---".repeat(PARTS_COUNT + 2)
    )?;
    for pair in pairs {
        for (side, cost) in [("direct", pair.direct), ("whole", pair.whole)] {
            let parts = cost.cpu_seconds_by_part;
            writeln!(
                out,
                "| {} | {}, {side} |{} {:.3} |",
                pair.answer_ms,
                pair.in_flight,
                parts.map(|spent| format!(" {spent:.4} |")).concat(),
                cost.cpu_seconds
            )?;
        }
    }
    Ok(())
}

async fn directly(
    stage: &Stage,
    direct: &Direct,
    hosts: &[Host],
    in_flight: usize,
) -> Result<Cost> {
    let ready = direct
        .prepare(Vec::from(hosts).into_iter(), PEERS_EVERY)
        .await;
    let processes = stage.processes(None)?;
    let start = Start::now(&processes)?;
    direct.run(ready, in_flight).await?;
    start.cost_of(hosts.len())
}

async fn through_the_whole_path(stage: &Stage, hosts: &[Host], in_flight: usize) -> Result<Cost> {
    let whole = Whole::prepare(stage, in_flight).await?;
    let processes = whole.processes()?;
    let start = Start::now(&processes)?;
    whole.run(hosts).await?;
    let cost = start.cost_of(hosts.len())?;
    whole.finish(hosts).await?;
    Ok(cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(["bench-path"].iter().chain(arguments))
    }

    #[test]
    fn hosts_are_far_away_first_and_then_near() {
        let answer_ms = |given: &[&str]| parsed(given).map(|all| all.distances.answer_ms);
        assert_eq!(answer_ms(&[]).unwrap(), [150, 0]);
        assert_eq!(answer_ms(&["--answer-ms", "0,5000"]).unwrap(), [0, 5000]);
        assert!(answer_ms(&["--answer-ms", "5001"]).is_err());
    }

    #[test]
    fn checks_in_flight_are_a_number_or_a_list() {
        assert_eq!(parsed(&[]).unwrap().in_flight, [4]);
        let list = parsed(&["--in-flight", "1,2,16"]).unwrap();
        assert_eq!(list.in_flight, [1, 2, 16]);
        for wrong in ["0", "65", "1,,2", "many"] {
            assert!(parsed(&["--in-flight", wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_figure_has_its_own_median() {
        let cost = |rate: f64, first: f64| {
            let mut parts = [0.0; PARTS_COUNT];
            parts[0] = first;
            Cost {
                rate,
                cpu_seconds: 1.0,
                cpu_seconds_by_part: parts,
                idle: 0.0,
            }
        };
        let middle = middle(&[cost(1.0, 9.0), cost(2.0, 7.0), cost(3.0, 8.0)]);
        assert!((middle.rate - 2.0).abs() < 1e-9);
        assert!((middle.cpu_seconds_by_part[0] - 8.0).abs() < 1e-9);
    }
}
