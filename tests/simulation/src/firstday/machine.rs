//! The machine of a first day: two processors that start containers, and what the daemon would
//! measure of them.

use std::time::Duration;

use census::time::Timestamp;
use scheduler::slots::concurrency::Pressure;

/// Over how long the daemon observes idle processors, in looks of a second.
const IDLE_OVER: usize = 10;

/// An engine, by what a check costs: processor time as measured with hosts 150 ms away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Engine {
    /// Docker 28: 10.6 checks a second of two processors that are a sixth idle.
    Docker28,
    /// Docker 20.10 with fuse-overlayfs: 7.1 checks a second.
    Docker20,
}

impl Engine {
    fn cost(self) -> Duration {
        match self {
            Self::Docker28 => Duration::from_millis(158),
            Self::Docker20 => Duration::from_millis(280),
        }
    }

    /// Hours within which the living should be listed.
    pub(crate) fn hours(self) -> u32 {
        match self {
            Self::Docker28 => 3,
            Self::Docker20 => 4,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Machine {
    cost: Duration,
    /// When each processor has done what was given to it.
    free_at: [Timestamp; 2],
    /// Share of the processors' time that was used, of each of the last seconds.
    used: Vec<f64>,
    looked: Timestamp,
}

impl Machine {
    pub(crate) fn new(engine: Engine, now: Timestamp) -> Self {
        Self {
            cost: engine.cost(),
            free_at: [now; 2],
            used: Vec::new(),
            looked: now,
        }
    }

    /// Starts a container. Returns when it gives its first output.
    pub(crate) fn start(&mut self, now: Timestamp) -> Timestamp {
        let [one, other] = &mut self.free_at;
        let first = if *one <= *other { one } else { other };
        *first = (*first).max(now).plus(self.cost);
        *first
    }

    /// What the daemon measures each second.
    pub(crate) fn look(&mut self, now: Timestamp) -> Pressure {
        let passed = now.since(self.looked).as_secs_f64().max(0.001);
        let busy = |free_at: &Timestamp| free_at.since(self.looked).as_secs_f64().min(passed);
        let used = self.free_at.iter().map(busy).sum::<f64>() / (2.0 * passed);
        self.looked = now;
        self.used.push(used);
        if self.used.len() > IDLE_OVER {
            self.used.remove(0);
        }
        let queued =
            |free_at: &Timestamp| free_at.since(now).as_secs_f64() / self.cost.as_secs_f64();
        let load = self.free_at.iter().map(queued).sum::<f64>() / 2.0;
        match self.idle() {
            idle if idle < 0.03 && load > 5.0 => Pressure::Overloaded,
            idle if idle < 0.1 => Pressure::High,
            _ => Pressure::Low,
        }
    }

    /// The share of the last ten seconds in which the processors were idle.
    pub(crate) fn idle(&self) -> f64 {
        1.0 - self.used.iter().sum::<f64>() / self.used.len().max(1) as f64
    }
}
