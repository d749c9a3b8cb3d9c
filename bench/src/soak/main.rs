//! A census of a million hosts that runs for half an hour with real containers (`bench/README.md`).
//!
//! It needs the release binaries, an engine and the checker's image. It prints the measurements of
//! each minute, which part used processor time, and the ratio to a bare client of the engine in the
//! same run, for each distance of the hosts in turn.

mod history;
mod making;
mod watch;
mod world;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bench::shared::lab::{self, Distances};
use bench::shared::measure::{Cost, Start};
use bench::shared::processes::{PARTS, own_seconds};
use bench::shared::role::Role;
use bench::shared::stage::{Equipment, Stage};
use clap::Parser;
use orchestrator::ground::clock::{Clock as _, SystemClock};

use crate::making::{make, states};
use crate::watch::{HEAD, Seen, Watch};
use crate::world::{Kind, World};

/// The census's default, so that the bare client gets the same lists.
const PEERS_EVERY: usize = 3;

/// Number of hosts that the bare client checks, one after the other.
const DIRECT_HOSTS: u32 = 10_000;

/// Checks of the bare client at the same time, unless a number is given.
const DIRECT_IN_FLIGHT: u16 = 8;

/// Runs a census of many hosts with real containers, and the bare client before and after it.
#[derive(Debug, Parser)]
#[command(name = "bench-soak", version)]
struct Arguments {
    /// Hosts in the database
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rows: u32,
    /// Which hosts
    #[arg(long, value_enum, default_value = "living")]
    world: Kind,
    /// Minutes that the census runs
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
    /// Minutes of the bare client before, and as many after; 0: none
    #[arg(long, default_value_t = 2)]
    direct_minutes: u32,
    /// Minutes for which nobody was asked before: what came due meanwhile is late
    #[arg(long, default_value_t = 60)]
    late_minutes: u32,
    /// Checks at the same time, at most for the census; default: the daemon's own, and 8 for the
    /// bare client
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=64))]
    in_flight: Option<u16>,
    /// Checks at the same time at least, however busy the machine is; default: the daemon's
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=64))]
    checks_min: Option<u16>,
    #[command(flatten)]
    distances: Distances,
    /// Where the database lies meanwhile
    #[arg(long, default_value = "/tmp")]
    folder: PathBuf,
    /// Folder of the release binaries `fedicensus` and `fedicensus-lab`
    #[arg(long, default_value = "target/release")]
    programs: PathBuf,
    /// The engine's socket
    #[arg(long, default_value = "/var/run/docker.sock")]
    engine: PathBuf,
    /// The checker's image
    #[arg(long, default_value = "localhost/fedicensus-checker:latest")]
    image: String,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let living = World::living_of(arguments.world, arguments.rows);
    let world = World::new(lab::crowd(living), living, arguments.rows);
    let mut rows = String::new();
    for &answer_ms in &arguments.distances.answer_ms {
        writeln!(std::io::stdout(), "\nAnswers after {answer_ms} ms.\n")?;
        let stage = Stage::set(Equipment {
            programs: arguments.programs.clone(),
            engine: arguments.engine.clone(),
            image: arguments.image.clone(),
            below: arguments.folder.clone(),
            crowd: living,
            answer_ms,
            in_flight_max: arguments.in_flight.map(usize::from),
        })
        .await?;
        let outcome = soak(&arguments, world, living, &stage).await;
        let struck = stage.strike().await;
        rows += &format!("| {answer_ms} | {}\n", outcome?.row);
        struck?;
    }
    let head = HEAD.replacen("minute", "answer, ms", 1);
    write!(std::io::stdout(), "\n{head}\n{rows}")?;
    Ok(())
}

async fn soak(arguments: &Arguments, world: World, living: u32, stage: &Stage) -> Result<Seen> {
    let mut out = std::io::stdout();
    lead_to_the_lab(&stage.folder().join("lab/names"), world)?;
    let before = directly(arguments, living, stage).await?;
    let (data, public) = (stage.folder().join("data"), stage.folder().join("public"));
    for folder in [&data, &public] {
        std::fs::create_dir(folder)?;
    }
    let database = data.join("census.db");
    let (making, spent_s) = (Instant::now(), own_seconds()?);
    let late = Duration::from_secs(60) * arguments.late_minutes;
    let made = make(&database, world, SystemClock.now(), late).await?;
    let states_before = states(&database)?;
    writeln!(
        out,
        "{} hosts with {} verdicts behind them, {} MB, made in {:.0} s, {:.0} s of processor time.",
        arguments.rows,
        made.verdicts,
        made.bytes / 1_000_000,
        making.elapsed().as_secs_f64(),
        own_seconds()? - spent_s,
    )?;
    let starting = Instant::now();
    let mut orchestrator = census(arguments, stage)?;
    orchestrator.listens_on(&data.join("control.sock")).await?;
    writeln!(
        out,
        "The daemon was there after {:.1} s.\n\n{HEAD}",
        starting.elapsed().as_secs_f64()
    )?;
    let watch = Watch {
        launcher: stage.launcher_socket(),
        data,
        list: public.join("current/nodes.json"),
        page: public.join("current/index.html"),
        processes: stage.processes(Some(&orchestrator))?,
    };
    let seen = watch
        .minutes(arguments.minutes, |minute, row| {
            Ok(writeln!(std::io::stdout(), "| {minute} | {row}")?)
        })
        .await?;
    writeln!(out, "| all | {}\n", seen.row)?;
    let stopping = Instant::now();
    orchestrator.stop().await?;
    let stopped_s = stopping.elapsed().as_secs_f64();
    let after = directly(arguments, living, stage).await?;
    tell(&mut out, &seen, before, after)?;
    writeln!(out, "\nThe daemon ended within {stopped_s:.1} s.")?;
    writeln!(out, "\n| state | hosts before | after |\n|---|---|---|")?;
    for ((state, count), (_, later)) in states_before.into_iter().zip(states(&database)?) {
        writeln!(out, "| {} | {count} | {later} |", state.as_str())?;
    }
    Ok(seen)
}

/// Leads hosts that close the connection to the lab as well, which has no personas of these names.
fn lead_to_the_lab(names_file: &Path, world: World) -> Result<()> {
    let names = std::fs::read_to_string(names_file)?;
    let line = names.lines().find(|line| line.contains(".crowd-"));
    let line = line.or_else(|| names.lines().find(|line| line.contains(" 127.0.0.1 ")));
    let place = line.and_then(|line| line.split_once(' '));
    let (_, place) = place.context("the lab's names file has no line of its own server")?;
    let mut file = std::fs::File::options().append(true).open(names_file)?;
    let lines: String = world
        .patterns()
        .map(|pattern| format!("{pattern} {place}\n"))
        .collect();
    file.write_all(lines.as_bytes())?;
    Ok(())
}

/// Runs the bare client for the requested time. `None` if it is not requested.
async fn directly(arguments: &Arguments, living: u32, stage: &Stage) -> Result<Option<Cost>> {
    if arguments.direct_minutes == 0 {
        return Ok(None);
    }
    let direct = stage.direct().await?;
    let until = Instant::now() + Duration::from_secs(60) * arguments.direct_minutes;
    let hosts = lab::hosts(lab::crowd(living.min(DIRECT_HOSTS)))?;
    let hosts = hosts.into_iter().cycle();
    let hosts = hosts.take_while(move |_| Instant::now() < until);
    let ready = direct.prepare(hosts, PEERS_EVERY).await;
    let processes = stage.processes(None)?;
    let start = Start::now(&processes)?;
    let in_flight = usize::from(arguments.in_flight.unwrap_or(DIRECT_IN_FLIGHT));
    let checked = direct.run(ready, in_flight).await?;
    start.cost_of(checked).map(Some)
}

/// The daemon with its default settings, except those for the lab.
fn census(arguments: &Arguments, stage: &Stage) -> Result<Role> {
    let least = arguments.checks_min;
    let lab: Vec<_> = least
        .map(|least| ("checks_min", least.to_string()))
        .into_iter()
        .collect();
    let checks_max = arguments.in_flight.map(usize::from);
    let mut command = stage.fedicensus(stage.folder(), checks_max, &lab)?;
    Role::start("run", command.arg("run"), stage.folder())
}

fn tell(
    out: &mut impl std::io::Write,
    seen: &Seen,
    before: Option<Cost>,
    after: Option<Cost>,
) -> Result<()> {
    let soak = seen.row.cost;
    let sides = [
        ("bare client before", before),
        ("soak", Some(soak)),
        ("bare client after", after),
    ];
    let columns = PARTS.map(|part| format!(" {part} |")).concat();
    writeln!(
        out,
        "| CPU s/check | checks/s |{columns} all | idle |\n|---{}|",
        "|---".repeat(PARTS.len() + 3)
    )?;
    for (side, cost) in sides {
        let Some(cost) = cost else { continue };
        let parts = cost.cpu_seconds_by_part;
        writeln!(
            out,
            "| {side} | {:.2} |{} {:.3} | {:.0} % |",
            cost.rate,
            parts.map(|spent| format!(" {spent:.4} |")).concat(),
            cost.cpu_seconds,
            cost.idle * 100.0
        )?;
    }
    if let (Some(before), Some(after)) = (before, after) {
        writeln!(
            out,
            "\n{:.2} checks a second in containers, {:.2} of the bare client's (target: 9.6, or 0.95 of it).",
            soak.rate,
            soak.rate / f64::midpoint(before.rate, after.rate)
        )?;
    }
    let there = |after: Option<Duration>| {
        after.map_or("not there".to_owned(), |after| {
            format!("there after {:.0} s", after.as_secs_f64())
        })
    };
    writeln!(
        out,
        "\nThe first list was {}, its start page {}.",
        there(seen.listed_after),
        there(seen.page_after)
    )?;
    if seen.troubles.is_empty() {
        writeln!(out, "The daemon complained of nothing.")?;
    }
    for trouble in &seen.troubles {
        writeln!(out, "The daemon complained: {trouble}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_hosts_that_hang_up_are_led_to_the_labs_own_place() {
        let folder = tempfile::tempdir().unwrap();
        let names = folder.path().join("names");
        std::fs::write(
            &names,
            "# NAME\nx.test nodata\n*.crowd-1.test 127.0.0.1 77\n",
        )
        .unwrap();
        lead_to_the_lab(&names, World::new(lab::crowd(10), 10, 40)).unwrap();
        let text = std::fs::read_to_string(&names).unwrap();
        assert!(text.ends_with("\n*.crowd-1.test 127.0.0.1 77\n*.open-1.test 127.0.0.1 77\n"));
    }

    #[test]
    fn a_names_file_without_a_server_is_no_way_to_one() {
        let folder = tempfile::tempdir().unwrap();
        let names = folder.path().join("names");
        std::fs::write(&names, "x.test nodata\n").unwrap();
        assert!(lead_to_the_lab(&names, World::new(lab::crowd(10), 10, 40)).is_err());
    }
}
