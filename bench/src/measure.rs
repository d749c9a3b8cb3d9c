//! Clock and processor time of the whole machine.

use std::time::Instant;

use anyhow::{Context as _, Result};

/// Fields of `/proc/stat`'s first line that are busy time (`man 5 proc_stat`): user, nice, system, irq, softirq, steal.
const BUSY_FIELDS: [usize; 6] = [0, 1, 2, 5, 6, 7];

/// A moment.
#[derive(Debug)]
pub(crate) struct Start {
    clock: Instant,
    busy_seconds: f64,
}

/// What some checks took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    /// Checks in a second.
    pub(crate) rate: f64,
    /// Seconds of processor time for each check: of the whole machine, since an engine's work is done by many processes, some of which
    /// live shorter than a look at them would take.
    pub(crate) cpu_seconds: f64,
}

impl Start {
    /// Now.
    pub(crate) fn now() -> Result<Self> {
        Ok(Self {
            busy_seconds: busy_seconds(&std::fs::read_to_string("/proc/stat")?)?,
            clock: Instant::now(),
        })
    }

    /// What `checks` checks took since then.
    pub(crate) fn cost_of(&self, checks: usize) -> Result<Cost> {
        let seconds = self.clock.elapsed().as_secs_f64();
        let busy = busy_seconds(&std::fs::read_to_string("/proc/stat")?)? - self.busy_seconds;
        let checks = f64::from(u32::try_from(checks)?);
        Ok(Cost {
            rate: checks / seconds,
            cpu_seconds: busy / checks,
        })
    }
}

fn busy_seconds(stat: &str) -> Result<f64> {
    let line = stat.lines().next().context("/proc/stat is empty")?;
    let fields = line
        .split_whitespace()
        .skip(1)
        .map(|field| Ok(field.parse::<f64>()?))
        .collect::<Result<Vec<f64>>>()?;
    let ticks: f64 = BUSY_FIELDS
        .iter()
        .filter_map(|field| fields.get(*field))
        .sum();
    let ticks_per_second = u32::try_from(rustix::param::clock_ticks_per_second())?;
    Ok(ticks / f64::from(ticks_per_second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_and_waiting_are_not_busy() {
        let ticks = f64::from(u32::try_from(rustix::param::clock_ticks_per_second()).unwrap());
        let stat = "cpu  100 20 3 99999 88888 4 50 6 0 0\ncpu0 1 2 3\n";
        assert!((busy_seconds(stat).unwrap() * ticks - 183.0).abs() < 1e-6);
    }
}
