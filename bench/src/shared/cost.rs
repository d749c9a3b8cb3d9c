//! Elapsed and processor time of this process.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

use super::median::median;

#[derive(Debug)]
pub struct Meter {
    clock: Instant,
    cpu_seconds: f64,
}

#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Items per second.
    pub rate: f64,
    /// Items per second of processor time, which does not depend on other programs on the machine.
    pub cpu_rate: f64,
}

impl Meter {
    pub fn begin() -> Self {
        Self {
            cpu_seconds: cpu_seconds(),
            clock: Instant::now(),
        }
    }

    /// The cost of this many items since the start.
    pub fn end(&self, many: usize) -> Cost {
        let many = many as f64;
        Cost {
            rate: many / self.clock.elapsed().as_secs_f64(),
            cpu_rate: many / (cpu_seconds() - self.cpu_seconds),
        }
    }
}

impl Cost {
    pub fn median(costs: &[Self]) -> Self {
        Self {
            rate: median(costs.iter().map(|cost| cost.rate)),
            cpu_rate: median(costs.iter().map(|cost| cost.cpu_rate)),
        }
    }
}

fn cpu_seconds() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}
