//! What is seen of a census while it runs, and the table of it.
//!
//! In: the launcher's counters, the daemon's state, `/proc`, the database's files. Out: a row a minute and one of all minutes. Refused: a daemon that has
//! ended, or does not answer.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use bench::shared::measure::{Cost, Start};
use bench::shared::processes::Processes;
use bench::shared::wire;
use orchestrator::daemon::LiveState;
use orchestrator::serve::control::{self, Answer, Request};

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The daemon's word for a check that failed on our side.
const FAULT: &str = "fault";

/// The head of the table.
pub(crate) const HEAD: &str = "| minute | checks/s in containers | without one/s | containers at once, of those allowed | machine idle | CPU s a check of orchestrator, launcher and gateway | resident, MiB | most, MiB | database, MiB | log, MiB | faults | failures that wait | slowest answer, ms |\n\
    |---|---|---|---|---|---|---|---|---|---|---|---|---|";

/// Where to look.
#[derive(Debug)]
pub(crate) struct Watch {
    /// The launcher's gate.
    pub(crate) launcher: PathBuf,
    /// Folder of the database and of the daemon's control socket.
    pub(crate) data: PathBuf,
    /// Where the list appears.
    pub(crate) list: PathBuf,
    /// Where its start page does, which comes after nearly all else that is published.
    pub(crate) page: PathBuf,
    /// All who have a part in it.
    pub(crate) processes: Processes,
}

/// One moment.
#[derive(Debug, Clone)]
struct Look {
    launches: u64,
    running: u32,
    live: LiveState,
    answered: Duration,
}

/// What some time showed.
#[derive(Debug)]
pub(crate) struct Row {
    /// Checks through containers, and what the machine spent on each.
    pub(crate) cost: Cost,
    without_a_second: f64,
    running: f64,
    allowed: f64,
    /// Memory that the daemon holds.
    pub(crate) resident_mib: u64,
    /// The most that it held until now.
    pub(crate) most_mib: u64,
    database_mib: u64,
    log_mib: u64,
    faults: u64,
    waiting: u64,
    slowest: Duration,
}

/// All of it.
#[derive(Debug)]
pub(crate) struct Seen {
    /// From the first look to the last.
    pub(crate) row: Row,
    /// How long after the first look the list was there.
    pub(crate) listed_after: Option<Duration>,
    /// And its start page.
    pub(crate) page_after: Option<Duration>,
    /// What the daemon complained of, each once.
    pub(crate) troubles: Vec<String>,
}

/// Sums over looks.
#[derive(Debug, Default)]
struct Sums {
    looks: f64,
    running: f64,
    allowed: f64,
    slowest: Duration,
}

impl Watch {
    /// Looks for so many minutes, and has each of them told as it is over.
    ///
    /// # Errors
    /// When a part has ended, or does not answer.
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
        let status = wire::launcher_status(&self.launcher).await?;
        let asked = Instant::now();
        let socket = self.data.join("control.sock");
        let mut conversation = control::ask(&socket, &Request::Live {})
            .await?
            .context("the daemon has ended")?;
        match conversation.next().await? {
            Answer::Live(live) => Ok(Look {
                launches: status.launches_total,
                running: status.running,
                live,
                answered: asked.elapsed(),
            }),
            other => bail!("the daemon answered {other:?} to a request for its state"),
        }
    }

    fn row(&self, start: &Start<'_>, before: &Look, after: &Look, sums: &Sums) -> Result<Row> {
        let launched = after.launches - before.launches;
        let cost = start.cost_of(usize::try_from(launched)?)?;
        let ended = ended(&after.live) - ended(&before.live);
        // Containers that were started and have not ended yet make this a few too small.
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
    /// The row's cells behind the minute.
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

/// Checks that ended in a verdict.
fn ended(live: &LiveState) -> u64 {
    let all: u64 = live.ended.values().sum();
    all - faults(live)
}

fn faults(live: &LiveState) -> u64 {
    live.ended.get(FAULT).copied().unwrap_or_default()
}

fn note_troubles(live: &LiveState, troubles: &mut Vec<String>) {
    let outage = live.outage.as_ref().map(|(what, _)| what.clone());
    let silence = live.nobody_lives.as_ref();
    let silence = silence.map(|silence| format!("nobody lives: {silence:?}"));
    let all = [
        outage,
        silence,
        live.dump_trouble.clone(),
        live.clock_trouble.clone(),
    ];
    for trouble in all.into_iter().flatten() {
        if !troubles.contains(&trouble) {
            troubles.push(trouble);
        }
    }
}

/// Memory that a process holds, and the most that it held until now.
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

/// A file's size; nothing where there is none.
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
