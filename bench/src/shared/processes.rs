//! Processor time by part: the processes of the benchmark, the engine's daemons, and the rest of
//! the machine.
//!
//! It reads user and system seconds from `/proc`. Processes that run for milliseconds (shims,
//! runtimes, checkers) are not measured one by one. They are in the rest: the machine's busy time
//! without the other parts, which includes all other work on the machine.

use std::path::Path;

use anyhow::{Context as _, Result};
use tokio::net::UnixStream;

/// The parts that are distinguished, in the order of the tables. The last is the rest.
pub const PARTS: [&str; PARTS_COUNT] = [
    "orchestrator",
    "launcher",
    "gateway",
    "engine's daemons",
    "lab",
    "bench",
    "the rest",
];

pub const PARTS_COUNT: usize = 7;

/// Number of parts, at the beginning, that are the census's own services.
pub const SERVICES: usize = 3;

/// Fields of `/proc/PID/stat` after the name (`man 5 proc_pid_stat`): the parent's id, and ticks in
/// user and system mode.
const PARENT: usize = 1;
const TICKS: [usize; 2] = [11, 12];

/// Programs of engines that serve all containers. Shims and runtimes, in contrast, serve one.
const DAEMONS: [&str; 3] = ["dockerd", "containerd", "podman"];

/// The daemon next to the one that answers. If the system started it, it is not a descendant of the
/// other.
const ENGINE_HELPER: &str = "containerd";

/// Seconds of processor time by part, in the order of [`PARTS`].
pub type Spent = [f64; PARTS_COUNT];

/// The process ids of each part except the last. A part that does not run has none.
#[derive(Debug, Clone, Default)]
pub struct Processes {
    /// `fedicensus run`. `None` if no census runs.
    pub orchestrator: Option<u32>,
    pub launcher: Option<u32>,
    pub gateway: Option<u32>,
    /// The engine's daemons: [`daemons`].
    pub engine: Vec<u32>,
    pub lab: Option<u32>,
}

impl Processes {
    /// Seconds of each part since its start. Zero for the rest, which only the machine's total
    /// shows.
    pub fn spent(&self) -> Result<Spent> {
        let of = |process: Option<u32>| process.map_or(Ok(0.0), seconds);
        let mut engine = 0.0;
        for daemon in &self.engine {
            engine += seconds(*daemon)?;
        }
        Ok([
            of(self.orchestrator)?,
            of(self.launcher)?,
            of(self.gateway)?,
            engine,
            of(self.lab)?,
            own_seconds()?,
            0.0,
        ])
    }
}

/// The daemons of the engine that listens on `socket`: the process that answers, its descendants
/// among the engines' daemons, and a `containerd` that the system started. If the system itself
/// listens and starts them on demand, all daemons of the machine by name.
pub async fn daemons(socket: &Path) -> Result<Vec<u32>> {
    let stream = UnixStream::connect(socket)
        .await
        .with_context(|| socket.display().to_string())?;
    let listener = stream.peer_cred()?.pid();
    let listener = listener.and_then(|id| u32::try_from(id).ok());
    let mut all = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let id = name.to_str().and_then(|name| name.parse().ok());
        // A process may have ended in the meantime.
        let stat = id.map(|id: u32| std::fs::read_to_string(format!("/proc/{id}/stat")));
        if let (Some(id), Some(Ok(stat))) = (id, stat) {
            all.push(Process::parse(id, &stat)?);
        }
    }
    Ok(daemons_among(&all, listener))
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Process {
    id: u32,
    name: String,
    parent: u32,
    ticks: u64,
}

impl Process {
    /// Parses `/proc/PID/stat`. The name may contain blanks and brackets, so it ends at the last
    /// bracket.
    fn parse(id: u32, stat: &str) -> Result<Self> {
        let what = || format!("/proc/{id}/stat is no list of fields: {stat}");
        let (front, back) = stat.rsplit_once(')').with_context(what)?;
        let (_, name) = front.split_once('(').with_context(what)?;
        let fields: Vec<&str> = back.split_whitespace().collect();
        let field = |at: usize| fields.get(at).with_context(what);
        let mut ticks = 0;
        for at in TICKS {
            ticks += field(at)?.parse::<u64>()?;
        }
        Ok(Self {
            id,
            name: name.to_owned(),
            parent: field(PARENT)?.parse()?,
            ticks,
        })
    }

    fn is_daemon(&self) -> bool {
        DAEMONS.contains(&self.name.as_str())
    }
}

fn daemons_among(all: &[Process], listener: Option<u32>) -> Vec<u32> {
    let find = |id: u32| all.iter().find(|process| process.id == id);
    let listener = listener.filter(|id| find(*id).is_some_and(Process::is_daemon));
    let descends = |process: &Process| {
        let mut id = Some(process.id);
        // No line of ancestors is longer than the number of processes.
        for _ in all {
            if id == listener {
                return true;
            }
            id = id.and_then(find).map(|process| process.parent);
        }
        false
    };
    let is_helper = |process: &Process| process.name == ENGINE_HELPER && process.parent == 1;
    all.iter()
        .filter(|process| process.is_daemon())
        .filter(|process| listener.is_none() || is_helper(process) || descends(process))
        .map(|process| process.id)
        .collect()
}

/// Processor time of this process since its start.
pub fn own_seconds() -> Result<f64> {
    seconds(std::process::id())
}

/// Processor time of a process since its start.
fn seconds(id: u32) -> Result<f64> {
    let path = format!("/proc/{id}/stat");
    let stat = std::fs::read_to_string(&path).context(path)?;
    let ticks = u32::try_from(Process::parse(id, &stat)?.ticks)?;
    let ticks_per_second = u32::try_from(rustix::param::clock_ticks_per_second())?;
    Ok(f64::from(ticks) / f64::from(ticks_per_second))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(id: u32, name: &str, parent: u32) -> Process {
        Process {
            id,
            name: name.to_owned(),
            parent,
            ticks: 0,
        }
    }

    #[test]
    fn a_name_with_blanks_and_brackets_shifts_no_field() {
        let stat = "42 (a) b (c) S 7 42 42 0 -1 4194560 1 2 3 4 250 31 9 9 20 0 1 0 5";
        let parsed = Process::parse(42, stat).unwrap();
        let expect = Process {
            ticks: 281,
            ..process(42, "a) b (c", 7)
        };
        assert_eq!(parsed, expect);
        assert!(Process::parse(42, "42 (a) S").is_err());
    }

    #[test]
    fn the_daemons_are_those_of_the_engine_that_listens() {
        let all = [
            process(1, "init", 0),
            process(10, "dockerd", 1),
            process(11, "containerd", 10),
            process(12, "containerd-shim", 11),
            process(20, "containerd", 1),
            process(30, "dockerd", 1),
            process(31, "containerd", 30),
        ];
        assert_eq!(daemons_among(&all, Some(10)), [10, 11, 20]);
        // Started by the system on demand: found by name.
        assert_eq!(daemons_among(&all, Some(1)), [10, 11, 20, 30, 31]);
        assert_eq!(daemons_among(&all, None), [10, 11, 20, 30, 31]);
    }

    #[test]
    fn a_process_that_works_spends_time() {
        let before = own_seconds().unwrap();
        let mut sum = 0_u64;
        while own_seconds().unwrap() < before + 0.02 {
            sum = sum.wrapping_mul(31).wrapping_add(7);
        }
        assert!(own_seconds().unwrap() > before, "{sum}");
    }
}
