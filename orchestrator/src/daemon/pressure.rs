//! Measures the machine's pressure: memory, idle processors, load, and the kernel's figures.
//!
//! Reads `/proc`, which shows the whole machine in a container too. A figure that can't be read
//! does not count.

use std::collections::VecDeque;
use std::path::Path;

use scheduler::slots::concurrency::Pressure;

/// Memory of a check in MiB: its limit of 64, and what the engine's processes need for it.
const CHECK_MIB: u64 = 80;

/// Pressure is high if the available memory is less than this many more checks take, and overloaded
/// below the second number.
const CHECKS_LEFT: (u64, u64) = (4, 2);

/// Percentage of the last seconds in which the processors were idle. Pressure is high below the
/// first number, so that the machine answers others, and overloaded below the second one if the
/// load says so too.
const IDLE: (f64, f64) = (10.0, 3.0);

/// Readings of the processors' time that are kept, one a second: long enough that chance evens out.
const READINGS: usize = 10;

/// Load average over a minute per processor: processes that run or wait for a disk. It lags, and a
/// check's short processes raise it on machines with a third of their time idle, so it decides
/// alone only where idle time can't be read.
const LOAD: (f64, f64) = (3.0, 5.0);

/// Percentage of ten seconds in which all processes waited for memory. Starting another check would
/// then make none faster.
const MEMORY_STALLS: (f64, f64) = (5.0, 20.0);

/// Most bytes read of a file of `/proc`. The longest is `stat`, with a line per processor and one
/// for interrupts.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// The figures; `None` if one could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Readings {
    available_mib: Option<u64>,
    load_a_processor: Option<f64>,
    idle: Option<f64>,
    memory_stalls: Option<f64>,
}

/// Looks at the machine, with what earlier looks saw.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// Idle and whole time of all processors.
    times: VecDeque<(u64, u64)>,
}

impl Looks {
    /// Measures the machine with a few small reads that need no disk. Returns the highest pressure
    /// and its cause.
    pub(super) fn look(&mut self, proc: &Path) -> (Pressure, &'static str) {
        let read = |name: &str| read(&proc.join(name)).unwrap_or_default();
        let stat = read("stat");
        let processors = processors(&stat);
        let idle = self.idle(&stat);
        Readings {
            idle,
            available_mib: available_mib(&read("meminfo")),
            load_a_processor: load(&read("loadavg"))
                .filter(|_| processors > 0)
                .map(|load| load / f64::from(processors)),
            memory_stalls: stalls(&read("pressure/memory")),
        }
        .pressure()
    }

    /// Percentage of idle time since the oldest kept reading; `None` at the first one.
    fn idle(&mut self, stat: &str) -> Option<f64> {
        let (idle, whole) = times(stat)?;
        let (idle_then, then) = self.times.front().copied().unwrap_or((idle, whole));
        self.times.push_back((idle, whole));
        if self.times.len() > READINGS {
            self.times.pop_front();
        }
        let passed = whole.checked_sub(then).filter(|passed| *passed > 0)?;
        Some(idle.saturating_sub(idle_then) as f64 * 100.0 / passed as f64)
    }
}

fn read(path: &Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

impl Readings {
    /// The highest of the three pressures, and its cause.
    fn pressure(self) -> (Pressure, &'static str) {
        let above = |value: f64, (tight, over): (f64, f64)| {
            if value > over {
                Pressure::Overloaded
            } else if value > tight {
                Pressure::High
            } else {
                Pressure::Low
            }
        };
        let memory = self.available_mib.map(|available| {
            if available < CHECK_MIB * CHECKS_LEFT.1 {
                Pressure::Overloaded
            } else if available < CHECK_MIB * CHECKS_LEFT.0 {
                Pressure::High
            } else {
                Pressure::Low
            }
        });
        let load = self.load_a_processor.map(|load| above(load, LOAD));
        let load = match self.idle {
            Some(idle) if idle < IDLE.1 => load,
            Some(idle) if idle < IDLE.0 => Some(Pressure::High),
            Some(_) => None,
            None => load,
        };
        let stalls = self
            .memory_stalls
            .map(|stalls| above(stalls, MEMORY_STALLS));
        let causes = [(load, "processor"), (memory, "memory"), (stalls, "memory")];
        let known = causes
            .into_iter()
            .filter_map(|(it, cause)| Some((it?, cause)));
        let worst = known.max_by_key(|(pressure, _)| *pressure);
        worst.unwrap_or((Pressure::Low, ""))
    }
}

fn available_mib(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib / 1024)
}

/// The first number of `loadavg`: the average over a minute.
fn load(loadavg: &str) -> Option<f64> {
    loadavg.split_whitespace().next()?.parse().ok()
}

/// Idle time, waits for disks included, and whole time of all processors: the line `cpu` of `stat`.
fn times(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let times: Option<Vec<u64>> = line.split_whitespace().map(|it| it.parse().ok()).collect();
    let times = times?;
    let idle = times.get(3..5)?.iter().sum();
    Some((idle, times.iter().take(8).sum()))
}

/// Number of lines `cpu0`, `cpu1` … in `stat`. It counts the whole machine, even if a container may
/// use fewer, because the load is the whole machine's too.
fn processors(stat: &str) -> u32 {
    let lines = stat.lines().filter_map(|line| line.strip_prefix("cpu"));
    let processors = lines.filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    u32::try_from(processors.count()).unwrap_or(u32::MAX)
}

/// `avg10` of the line `full` of `pressure/memory`.
fn stalls(pressure: &str) -> Option<f64> {
    let line = pressure
        .lines()
        .find_map(|line| line.strip_prefix("full "))?;
    let average = line
        .split_whitespace()
        .find_map(|part| part.strip_prefix("avg10="))?;
    average.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str = "MemTotal:       24689764 kB\nMemFree:        11690000 kB\nMemAvailable:    AVAILABLE kB\nBuffers:          1 kB\n";
    const STAT: &str =
        "cpu  1 2 3\ncpu0 1 2 3\ncpu1 1 2 3\nintr 5 6\nctxt 99\nprocesses 7\nprocs_running 2\n";
    const PRESSURE: &str = "some avg10=90.00 avg60=1.00 avg300=0.10 total=5\nfull avg10=STALLS avg60=0.00 avg300=0.00 total=3\n";

    #[track_caller]
    fn check(available_mib: u64, load: &str, stalls: &str, expect: Pressure, cause: &str) {
        let proc = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(proc.path().join(name), text).unwrap();
        std::fs::create_dir(proc.path().join("pressure")).unwrap();
        let available = (available_mib * 1024).to_string();
        write("meminfo", &MEMINFO.replace("AVAILABLE", &available));
        write("stat", STAT);
        write("loadavg", &format!("{load} 9.00 9.00 2/155 9999\n"));
        write("pressure/memory", &PRESSURE.replace("STALLS", stalls));
        let (found, why) = Looks::default().look(proc.path());
        assert_eq!(found, expect);
        assert!(expect == Pressure::Low || why == cause, "{why}");
    }

    #[test]
    fn memory_load_and_stalls_press_each_by_itself() {
        check(8000, "1.50", "0.00", Pressure::Low, "");
        check(319, "1.50", "0.00", Pressure::High, "memory");
        check(159, "1.50", "0.00", Pressure::Overloaded, "memory");
        // Two processors.
        check(8000, "6.01", "0.00", Pressure::High, "processor");
        check(8000, "10.01", "0.00", Pressure::Overloaded, "processor");
        check(8000, "1.50", "5.01", Pressure::High, "memory");
        check(8000, "1.50", "20.01", Pressure::Overloaded, "memory");
        check(319, "16.01", "0.00", Pressure::Overloaded, "processor");
    }

    #[test]
    fn idle_processors_outweigh_the_load() {
        let proc = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(proc.path().join(name), text).unwrap();
        write("loadavg", "10.01 9.00 9.00 2/155 9999\n");
        for (idle, expect) in [
            (20, Pressure::Low),
            (9, Pressure::High),
            (2, Pressure::Overloaded),
        ] {
            let mut looks = Looks::default();
            for seconds in [1, 2] {
                let (idle, busy) = (seconds * idle, seconds * (100 - idle));
                write(
                    "stat",
                    &format!("cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0\ncpu1\n"),
                );
                looks.look(proc.path());
            }
            assert_eq!(looks.look(proc.path()).0, expect, "{idle}");
        }
    }

    #[test]
    fn what_is_not_there_or_not_understood_presses_nobody() {
        let proc = tempfile::tempdir().unwrap();
        assert_eq!(Looks::default().look(proc.path()).0, Pressure::Low);
        for name in ["meminfo", "stat", "loadavg"] {
            std::fs::write(proc.path().join(name), "MemAvailable: many\ncpu?\n\u{0}").unwrap();
        }
        assert_eq!(Looks::default().look(proc.path()).0, Pressure::Low);
        // A load is meaningless without the number of processors.
        std::fs::write(proc.path().join("loadavg"), "99.00 1 1").unwrap();
        assert_eq!(Looks::default().look(proc.path()).0, Pressure::Low);
    }
}
