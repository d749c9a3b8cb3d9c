//! Elapsed and processor time, of the whole machine and by process.

use std::time::Instant;

use anyhow::{Context as _, Result};

use super::processes::{Processes, SERVICES, Spent};

/// Fields of `/proc/stat`'s first line that are busy time (`man 5 proc_stat`): user, nice, system,
/// irq, softirq, steal.
const BUSY_FIELDS: [usize; 6] = [0, 1, 2, 5, 6, 7];

/// Fields that are idle time: idle, and waiting for a disk.
const IDLE_FIELDS: [usize; 2] = [3, 4];

#[derive(Debug)]
pub struct Start<'processes> {
    clock: Instant,
    machine: Machine,
    spent: Spent,
    processes: &'processes Processes,
}

#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Checks per second.
    pub rate: f64,
    /// Seconds of processor time per check, of the whole machine: many processes do an engine's
    /// work, and some of them are too short-lived to be measured one by one.
    pub cpu_seconds: f64,
    pub cpu_seconds_by_part: Spent,
    /// Idle fraction of the processors' time.
    pub idle: f64,
}

impl Cost {
    /// Seconds of processor time of the census's own services per check.
    pub fn own_seconds(&self) -> f64 {
        self.cpu_seconds_by_part.iter().take(SERVICES).sum()
    }
}

/// Seconds of all processors together.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Machine {
    busy_seconds: f64,
    idle_seconds: f64,
}

impl<'processes> Start<'processes> {
    pub fn now(processes: &'processes Processes) -> Result<Self> {
        Ok(Self {
            machine: Machine::now()?,
            spent: processes.spent()?,
            processes,
            clock: Instant::now(),
        })
    }

    /// The cost of `checks` checks since the start. With zero checks, the total.
    pub fn cost_of(&self, checks: usize) -> Result<Cost> {
        let seconds = self.clock.elapsed().as_secs_f64();
        let machine = Machine::now()?;
        let busy = machine.busy_seconds - self.machine.busy_seconds;
        let idle = machine.idle_seconds - self.machine.idle_seconds;
        let mut by_part = self.processes.spent()?;
        for (now, then) in by_part.iter_mut().zip(self.spent) {
            *now -= then;
        }
        // Ticks are counted at different times, so a part may be a hundredth ahead of the machine.
        let rest = (busy - by_part.iter().sum::<f64>()).max(0.0);
        if let Some(last) = by_part.last_mut() {
            *last = rest;
        }
        let checks = f64::from(u32::try_from(checks)?);
        Ok(Cost {
            rate: checks / seconds,
            cpu_seconds: busy / checks.max(1.0),
            cpu_seconds_by_part: by_part.map(|spent| spent / checks.max(1.0)),
            idle: idle / (idle + busy),
        })
    }
}

impl Machine {
    fn now() -> Result<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat")?)
    }

    fn parse(stat: &str) -> Result<Self> {
        let line = stat.lines().next().context("/proc/stat is empty")?;
        let fields = line
            .split_whitespace()
            .skip(1)
            .map(|field| Ok(field.parse::<f64>()?))
            .collect::<Result<Vec<f64>>>()?;
        let ticks_per_second = f64::from(u32::try_from(rustix::param::clock_ticks_per_second())?);
        let seconds = |of: &[usize]| {
            let ticks: f64 = of.iter().filter_map(|field| fields.get(*field)).sum();
            ticks / ticks_per_second
        };
        Ok(Self {
            busy_seconds: seconds(&BUSY_FIELDS),
            idle_seconds: seconds(&IDLE_FIELDS),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_and_waiting_are_not_busy() {
        let ticks = f64::from(u32::try_from(rustix::param::clock_ticks_per_second()).unwrap());
        let stat = "cpu  100 20 3 700 88 4 50 6 0 0\ncpu0 1 2 3\n";
        let machine = Machine::parse(stat).unwrap();
        assert!((machine.busy_seconds * ticks - 183.0).abs() < 1e-6);
        assert!((machine.idle_seconds * ticks - 788.0).abs() < 1e-6);
    }

    #[test]
    fn what_no_part_spent_is_the_rests() {
        let own = Processes {
            launcher: Some(std::process::id()),
            gateway: Some(std::process::id()),
            lab: Some(std::process::id()),
            ..Processes::default()
        };
        let cost = Start::now(&own).unwrap().cost_of(1).unwrap();
        let sum: f64 = cost.cpu_seconds_by_part.iter().sum();
        assert!(sum >= cost.cpu_seconds - 1e-6, "{cost:?}");
    }
}
