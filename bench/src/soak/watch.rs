//! Observes a running census, and prints a table.
//!
//! It reads the launcher's counters, the daemon's state, `/proc` and the database's files, and
//! prints a row per minute and one for all minutes. It fails if the daemon has ended or does not
//! answer.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use bench::shared::measure::{Cost, Start};
use bench::shared::processes::Processes;
use launcher::LauncherClient;
use orchestrator::daemon::LiveState;
use orchestrator::serve::control::{self, Answer, Request};

const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The daemon's name for a check that failed on our side.
const FAULT: &str = "fault";

pub(crate) const HEAD: &str = "| minute | checks/s in containers | without one/s | containers at once, of those allowed | machine idle | CPU s a check of orchestrator, launcher and gateway | resident, MiB | most, MiB | database, MiB | log, MiB | faults | failures that wait | slowest answer, ms |\n\
    |---|---|---|---|---|---|---|---|---|---|---|---|---|";

#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) launcher: PathBuf,
    /// Folder of the database and of the daemon's control socket.
    pub(crate) data: PathBuf,
    pub(crate) list: PathBuf,
    /// Path of the start page, which is published after almost all other files.
    pub(crate) page: PathBuf,
    pub(crate) processes: Processes,
}

#[derive(Debug, Clone)]
struct Look {
    launches: u64,
    running: u32,
    live: LiveState,
    answered: Duration,
}

/// The measurements of some period.
#[derive(Debug)]
pub(crate) struct Row {
    /// Checks in containers, and the machine's cost of each.
    pub(crate) cost: Cost,
    without_a_second: f64,
    running: f64,
    allowed: f64,
    /// Memory of the daemon, and its maximum so far.
    resident_mib: u64,
    most_mib: u64,
    database_mib: u64,
    log_mib: u64,
    faults: u64,
    waiting: u64,
    slowest: Duration,
}

#[derive(Debug)]
pub(crate) struct Seen {
    /// From the first sample to the last.
    pub(crate) row: Row,
    /// Time from the first sample until the list appeared.
    pub(crate) listed_after: Option<Duration>,
    /// Time from the first sample until its start page appeared.
    pub(crate) page_after: Option<Duration>,
    /// The daemon's complaints, each once.
    pub(crate) troubles: Vec<String>,
}

#[derive(Debug, Default)]
struct Sums {
    looks: f64,
    running: f64,
    allowed: f64,
    slowest: Duration,
}

impl Watch {
    /// Observes for this many minutes, and reports each minute at its end.
    pub(crate) async fn minutes(
        &self,
        minutes: u32,
        mut told: impl FnMut(u32, &Row) -> Result<()>,
    ) -> Result<Seen> {
        let began = Instant::now();
        let whole = Start::now(&self.processes)?;
        let first = self.look().await?;
        let (mut listed_after, mut page_after) = (None, None);
        let mut troubles = Vec::new();
        let mut sums = Sums::default();
        for minute in 1..=minutes {
            let start = Start::now(&self.processes)?;
            let before = self.look().await?;
            let mut within = Sums::default();
            let ends = began + Duration::from_secs(60) * minute;
            let mut last = before.clone();
            while Instant::now() < ends {
                let left = ends.saturating_duration_since(Instant::now());
                tokio::time::sleep(left.min(LOOK_EVERY)).await;
                last = self.look().await?;
                within.add(&last);
                sums.add(&last);
                let seen = |place: &Path| place.exists().then(|| began.elapsed());
                listed_after = listed_after.or_else(|| seen(&self.list));
                page_after = page_after.or_else(|| seen(&self.page));
                note_troubles(&last.live, &mut troubles);
            }
            told(minute, &self.row(&start, &before, &last, &within)?)?;
        }
        let last = self.look().await?;
        Ok(Seen {
            row: self.row(&whole, &first, &last, &sums)?,
            listed_after,
            page_after,
            troubles,
        })
    }

    async fn look(&self) -> Result<Look> {
        let status = LauncherClient::socket(&self.launcher).status().await?;
        let asked = Instant::now();
        let socket = self.data.join("control.sock");
        let mut conversation = control::ask(&socket, &Request::Live {})
            .await?
            .context("the daemon has ended")?;
        match conversation.next().await? {
            Answer::Live(live) => Ok(Look {
                launches: status.launches_total,
                running: status.running,
                live: *live,
                answered: asked.elapsed(),
            }),
            other => bail!("the daemon answered {other:?} to a request for its state"),
        }
    }

    fn row(&self, start: &Start<'_>, before: &Look, after: &Look, sums: &Sums) -> Result<Row> {
        let launched = after.launches - before.launches;
        let cost = start.cost_of(usize::try_from(launched)?)?;
        let ended = ended(&after.live) - ended(&before.live);
        // Slightly too low, because of containers that were started and have not ended yet.
        let without = u32::try_from(ended.saturating_sub(launched))?;
        let orchestrator = self.processes.orchestrator.context("no daemon")?;
        let (resident_mib, most_mib) = memory_mib(orchestrator)?;
        let launched = f64::from(u32::try_from(launched)?);
        Ok(Row {
            cost,
            without_a_second: if launched > 0.0 {
                f64::from(without) * cost.rate / launched
            } else {
                0.0
            },
            running: sums.running / sums.looks.max(1.0),
            allowed: sums.allowed / sums.looks.max(1.0),
            resident_mib,
            most_mib,
            database_mib: mib(&self.data.join("census.db")),
            log_mib: mib(&self.data.join("census.db-wal")),
            faults: faults(&after.live) - faults(&before.live),
            waiting: after.live.waiting,
            slowest: sums.slowest,
        })
    }
}

impl Sums {
    fn add(&mut self, look: &Look) {
        self.looks += 1.0;
        self.running += f64::from(look.running);
        self.allowed += f64::from(look.live.pace.checks_allowed);
        self.slowest = self.slowest.max(look.answered);
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.2} | {:.2} | {:.1} of {:.1} | {:.0} % | {:.4} | {} | {} | {} | {} | {} | {} | {} |",
            self.cost.rate,
            self.without_a_second,
            self.running,
            self.allowed,
            self.cost.idle * 100.0,
            self.cost.own_seconds(),
            self.resident_mib,
            self.most_mib,
            self.database_mib,
            self.log_mib,
            self.faults,
            self.waiting,
            self.slowest.as_millis(),
        )
    }
}

fn ended(live: &LiveState) -> u64 {
    let all: u64 = live.ended.values().sum();
    all - faults(live)
}

fn faults(live: &LiveState) -> u64 {
    live.ended.get(FAULT).copied().unwrap_or_default()
}

fn note_troubles(live: &LiveState, troubles: &mut Vec<String>) {
    let outage = live.outage.as_ref().map(|(what, _)| what.clone());
    let blackout = live.blackout.as_ref();
    let blackout = blackout.map(|blackout| format!("no check succeeds: {blackout:?}"));
    let all = [
        outage,
        blackout,
        live.dump_trouble.clone(),
        live.clock_trouble.clone(),
    ];
    for trouble in all.into_iter().flatten() {
        if !troubles.contains(&trouble) {
            troubles.push(trouble);
        }
    }
}

fn memory_mib(id: u32) -> Result<(u64, u64)> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let field = |name: &'static str| -> Result<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
        let kib: u64 = kib.context(name)?.trim().parse()?;
        Ok(kib / 1024)
    };
    Ok((field("VmRSS:")?, field("VmHWM:")?))
}

/// A file's size. Zero if it does not exist.
fn mib(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len() / 1024 / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_no_check_that_ended_well() {
        let words = [("alive", 7), ("dead", 2), ("fault", 1)];
        let ended_in = words.map(|(word, count)| (word.to_owned(), count));
        let live = LiveState {
            ended: ended_in.into(),
            ..LiveState::default()
        };
        assert_eq!((ended(&live), faults(&live)), (9, 1));
    }

    #[test]
    fn a_trouble_is_told_once() {
        let live = LiveState {
            outage: Some(("the engine is down".to_owned(), 0)),
            dump_trouble: Some("held back".to_owned()),
            ..LiveState::default()
        };
        let mut troubles = Vec::new();
        note_troubles(&live, &mut troubles);
        note_troubles(&live, &mut troubles);
        assert_eq!(troubles, ["the engine is down", "held back"]);
    }

    #[test]
    fn a_process_holds_memory_and_never_more_than_its_most() {
        let (resident, most) = memory_mib(std::process::id()).unwrap();
        assert!(resident > 0 && resident <= most);
    }
}
