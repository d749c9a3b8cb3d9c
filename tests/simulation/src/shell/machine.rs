//! The machine: processors that start containers, and what the daemon would measure of them.

use std::time::Duration;

use census::time::Timestamp;
use scheduler::slots::concurrency::Pressure;

/// Over how long the daemon observes idle processors, in looks of a second.
const IDLE_OVER: usize = 10;

#[derive(Debug)]
pub(crate) struct Machine {
    cost: Duration,
    /// When each processor has done what was given to it.
    free_at: Vec<Timestamp>,
    /// Share of the processors' time that was used, of each of the last seconds.
    used: Vec<f64>,
    looked: Timestamp,
}

impl Machine {
    /// A machine with this number of processors, each of which needs `cost` for a container.
    pub(crate) fn new(processors: usize, cost: Duration, now: Timestamp) -> Self {
        Self {
            cost,
            free_at: vec![now; processors],
            used: Vec::new(),
            looked: now,
        }
    }

    /// Starts a container. Returns when it gives its first output.
    pub(crate) fn start(&mut self, now: Timestamp) -> Timestamp {
        let Some(first) = self.free_at.iter_mut().min() else {
            return now;
        };
        *first = (*first).max(now).plus(self.cost);
        *first
    }

    /// What the daemon measures each second.
    pub(crate) fn look(&mut self, now: Timestamp) -> Pressure {
        let passed = now.since(self.looked).as_secs_f64().max(0.001);
        let processors = self.free_at.len() as f64;
        let busy = |free_at: &Timestamp| free_at.since(self.looked).as_secs_f64().min(passed);
        let used = self.free_at.iter().map(busy).sum::<f64>() / (processors * passed);
        self.looked = now;
        self.used.push(used);
        if self.used.len() > IDLE_OVER {
            self.used.remove(0);
        }
        let queued =
            |free_at: &Timestamp| free_at.since(now).as_secs_f64() / self.cost.as_secs_f64();
        let load = self.free_at.iter().map(queued).sum::<f64>() / processors;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_what_it_can_and_makes_up_for_nothing_later() {
        let mut machine = Machine::new(1, Duration::from_millis(500), Timestamp(0));
        let starts = [0, 0, 0, 60_000, 60_000].map(|at| machine.start(Timestamp(at)).0);
        assert_eq!(starts, [500, 1000, 1500, 60_500, 61_000]);
        let mut machine = Machine::new(2, Duration::from_millis(500), Timestamp(0));
        let starts = [0, 0, 0].map(|at| machine.start(Timestamp(at)).0);
        assert_eq!(starts, [500, 500, 1000]);
    }
}
