//! The whole path by the number of rows: what a check costs in a small census and in a large one.
//!
//! For each size it prints which part used processor time for a check, and the ratio to the census
//! with the fewest rows. It fails if a size has fewer living hosts than are to be checked, or if a
//! check does not find its host alive.
//!
//! Each census has its own daemon, on the same stage, and they take turns: some living hosts of one
//! census come due, while the others are idle. These hosts are rows at random places in the table
//! that get names of the lab's crowd. No other host is due for a day.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bench::shared::lab;
use bench::shared::making::{self, Asked, World};
use bench::shared::measure::{Cost, Start};
use bench::shared::processes::PARTS;
use bench::shared::stage::Stage;
use census::time::Timestamp;
use orchestrator::ground::clock::{Clock as _, SystemClock};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use rusqlite::{Connection, params};

use crate::whole::Whole;
use crate::{Arguments, middle};

/// Interval between two tests whether a daemon is idle.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Fraction of a processor that an idle daemon may use: far less than regrouping all rows takes,
/// which each start does in the background.
const AT_REST: f64 = 0.005;

/// A list of two million names is published within five minutes, and ten million rows are grouped
/// within half an hour.
const REST_WITHIN: Duration = Duration::from_secs(3600);

/// The last verdict is written a few milliseconds after its container has ended.
const WRITTEN_WITHIN: Duration = Duration::from_secs(10);

const WRITTEN_LOOK_EVERY: Duration = Duration::from_millis(20);

/// The daemon holds the lock for milliseconds.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(30);

/// Random attempts to find an unused row of a living host; one row in four is.
const THROWS_MAX: u32 = 2000;

const NAMED: &str = "UPDATE hosts SET name = ?2, software = ?3, version = ?4, open_registrations = ?5 WHERE id = ?1 AND state = 'alive'";

/// A census with a published list publishes the next one six hours later, not minutes later as a
/// young census does.
const PUBLISHED: &str = "INSERT INTO dumps (at, names) SELECT ?1, count(*) FROM hosts WHERE hidden = 0 AND last_alive IS NOT NULL AND state IN ('alive', 'dying', 'moving')";

const COMES_DUE: &str = "UPDATE hosts SET due = ?2 WHERE id = ?1";

const CAME_OUT_ALIVE: &str = "SELECT 1 FROM hosts WHERE id = ?1 AND state = 'alive' AND in_flight = 0 AND last_checked >= ?2";

struct Grown<'stage> {
    whole: Whole<'stage>,
    rows: u64,
    crowd: Vec<i64>,
    costs: Vec<Cost>,
}

/// Compares the cost of a check in censuses with the numbers of rows in the arguments.
pub(crate) async fn compare(arguments: &Arguments, stage: &Stage) -> Result<()> {
    let mut out = std::io::stdout();
    let in_flight = arguments.in_flight.first().copied().unwrap_or(1);
    let checks = usize::try_from(arguments.checks)?;
    let mut all = Vec::new();
    for rows in &arguments.rows {
        let began = Instant::now();
        let members = checks * usize::try_from(arguments.runs + 1)?;
        let grown = Grown::prepare(stage, in_flight, *rows, members).await?;
        writeln!(
            out,
            "{rows} rows were made and published within {:.0} s.",
            began.elapsed().as_secs_f64()
        )?;
        all.push(grown);
    }
    for round in 0..=arguments.runs {
        for grown in &mut all {
            let cost = grown.round(usize::try_from(round)?, checks).await?;
            // In the first round the cache is empty, as after a start.
            if round > 0 {
                grown.costs.push(cost);
            }
        }
    }
    writeln!(
        out,
        "\nMedians of {} runs, {checks} checks a run, {in_flight} in flight:\n",
        arguments.runs
    )?;
    report(&mut out, &all)?;
    for grown in all {
        grown.whole.stop().await?;
    }
    Ok(())
}

impl<'stage> Grown<'stage> {
    async fn prepare(
        stage: &'stage Stage,
        in_flight: usize,
        rows: u64,
        members: usize,
    ) -> Result<Self> {
        let mut crowd = Vec::new();
        let whole = Whole::with(stage, in_flight, |database| {
            let now = SystemClock.now();
            making::make(database, rows, World::MiddleOfLife, now, Asked::JustNow)?;
            crowd = settle_crowd(database, rows, members, now)?;
            Ok(())
        })
        .await?;
        let grown = Self {
            whole,
            rows,
            crowd,
            costs: Vec::new(),
        };
        grown.comes_to_rest().await?;
        Ok(grown)
    }

    /// Waits until the list is published and the daemon is idle.
    async fn comes_to_rest(&self) -> Result<()> {
        let processes = self.whole.processes()?;
        let began = Instant::now();
        loop {
            let start = Start::now(&processes)?;
            tokio::time::sleep(LOOK_EVERY).await;
            // With zero checks, this is the total spent.
            let [spent, ..] = start.cost_of(0)?.cpu_seconds_by_part;
            let rests = spent < AT_REST * LOOK_EVERY.as_secs_f64();
            if rests && self.whole.page().exists() {
                return Ok(());
            }
            ensure!(
                began.elapsed() < REST_WITHIN,
                "the daemon of {} rows does not come to rest",
                self.rows
            );
        }
    }

    async fn round(&self, round: usize, checks: usize) -> Result<Cost> {
        let members = self.crowd.chunks(checks).nth(round).unwrap_or_default();
        let database = self.whole.database();
        let began = SystemClock.now();
        let processes = self.whole.processes()?;
        let start = Start::now(&processes)?;
        let due = async { come_due(&database, members, began) };
        self.whole.checks(members.len(), due).await?;
        let ended = Instant::now();
        while let Some(id) = left_over(&database, members, began)? {
            ensure!(
                ended.elapsed() < WRITTEN_WITHIN,
                "row {id}: did not come out alive"
            );
            tokio::time::sleep(WRITTEN_LOOK_EVERY).await;
        }
        start.cost_of(members.len())
    }
}

/// Gives some living rows, at random places in the table, the names and software of the lab's
/// crowd. Returns their ids.
fn settle_crowd(database: &Path, rows: u64, members: usize, now: Timestamp) -> Result<Vec<i64>> {
    let connection = open(database)?;
    let crowd = lab::crowd(u32::try_from(members)?);
    let mut chance = StdRng::seed_from_u64(1);
    let mut taken = BTreeSet::new();
    let mut ids = Vec::with_capacity(members);
    connection.execute_batch("BEGIN")?;
    for (number, name) in (1..).zip(crowd.names()) {
        let (software, version) = crowd.software(number);
        let said = ::lab::personas::shapes::open_registrations(software);
        let mut throws = 0;
        loop {
            let id = chance.random_range(1..=i64::try_from(rows)?);
            let named = || connection.execute(NAMED, params![id, name, software, version, said]);
            if taken.insert(id) && named()? == 1 {
                ids.push(id);
                break;
            }
            throws += 1;
            ensure!(
                throws < THROWS_MAX,
                "of {rows} rows, {members} that live can't be found"
            );
        }
    }
    connection.execute(PUBLISHED, [now.0])?;
    connection.execute_batch("COMMIT")?;
    Ok(ids)
}

fn come_due(database: &Path, members: &[i64], now: Timestamp) -> Result<()> {
    let connection = open(database)?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    for id in members {
        connection.execute(COMES_DUE, params![id, now.0])?;
    }
    Ok(connection.execute_batch("COMMIT")?)
}

/// One of them that has not been found alive since then. `None` if all have.
fn left_over(database: &Path, members: &[i64], since: Timestamp) -> Result<Option<i64>> {
    let connection = open(database)?;
    let mut statement = connection.prepare(CAME_OUT_ALIVE)?;
    for id in members {
        if !statement.exists(params![id, since.0])? {
            return Ok(Some(*id));
        }
    }
    Ok(None)
}

fn open(database: &Path) -> Result<Connection> {
    let connection = Connection::open(database)?;
    connection.busy_timeout(LOCK_WAIT_MAX)?;
    Ok(connection)
}

fn report(out: &mut impl std::io::Write, all: &[Grown<'_>]) -> Result<()> {
    let columns = PARTS.map(|part| format!(" {part} |")).concat();
    writeln!(
        out,
        "| rows, CPU s/check | checks/s |{columns} all | orchestrator, to the fewest rows | all, to the fewest rows |\n|---{}|",
        "|---".repeat(PARTS.len() + 4)
    )?;
    let mut fewest = None;
    for grown in all {
        let cost = middle(&grown.costs);
        let parts = cost.cpu_seconds_by_part;
        let [orchestrator, ..] = parts;
        let (first, first_all) = *fewest.get_or_insert((orchestrator, cost.cpu_seconds));
        let ratio = orchestrator / first;
        writeln!(
            out,
            "| {} | {:.2} |{} {:.3} | {ratio:.2} | {:.2} |",
            grown.rows,
            cost.rate,
            parts.map(|spent| format!(" {spent:.4} |")).concat(),
            cost.cpu_seconds,
            cost.cpu_seconds / first_all,
        )?;
    }
    writeln!(out, "\nThe target is 1.20 or less at ten million rows.")?;
    Ok(())
}
