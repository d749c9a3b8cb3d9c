//! Clock and processor time of this process.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

use super::median::median;

/// A moment.
#[derive(Debug)]
pub struct Meter {
    clock: Instant,
    cpu_seconds: f64,
}

/// What something took.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Done in a second.
    pub rate: f64,
    /// Done in a second of processor time, which other programs on the machine don't take away.
    pub cpu_rate: f64,
}

impl Meter {
    /// Now.
    pub fn begin() -> Self {
        Self {
            cpu_seconds: cpu_seconds(),
            clock: Instant::now(),
        }
    }

    /// So many were done since then.
    pub fn end(&self, many: usize) -> Cost {
        let many = many as f64;
        Cost {
            rate: many / self.clock.elapsed().as_secs_f64(),
            cpu_rate: many / (cpu_seconds() - self.cpu_seconds),
        }
    }
}

impl Cost {
    /// The middle one of each.
    pub fn median(costs: &[Self]) -> Self {
        Self {
            rate: median(costs.iter().map(|cost| cost.rate)),
            cpu_rate: median(costs.iter().map(|cost| cost.cpu_rate)),
        }
    }
}

/// Of this process, user and system.
fn cpu_seconds() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}
