//! A simulated engine that starts a limited number of containers a second.

use std::time::Duration;

use census::time::Timestamp;

/// The engine's capacity, and how much of it is unused.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Engine {
    /// Containers a second.
    capacity: f64,
    ready: f64,
    at: Timestamp,
    started: u64,
}

impl Engine {
    /// An engine that starts this number of containers a second.
    pub(crate) fn new(capacity: f64, now: Timestamp) -> Self {
        Self {
            capacity,
            ready: 1.0,
            at: now,
            started: 0,
        }
    }

    /// Most containers started at once: a second's worth, and the fraction left over from the
    /// second before.
    pub(crate) fn at_once(&self) -> f64 {
        self.capacity + 1.0
    }

    pub(crate) fn started(&self) -> u64 {
        self.started
    }

    /// Hosts that may be resolved, dialled or checked at once: the engine's starts in twenty
    /// seconds, so that dead hosts that wait for timeouts leave room for others. At least two.
    pub(crate) fn opens_max(&self) -> u32 {
        (self.capacity * 20.0).ceil().clamp(2.0, 256.0) as u32
    }

    /// Starts a container if possible.
    pub(crate) fn start(&mut self, now: Timestamp) -> bool {
        let elapsed = now.since(self.at).as_secs_f64();
        self.ready = (self.ready + elapsed * self.capacity).min(self.at_once());
        self.at = now;
        // Rounding errors of sums must not cost a second.
        let can = self.ready >= 0.999_999;
        if can {
            self.ready = (self.ready - 1.0).max(0.0);
            self.started += 1;
        }
        can
    }

    /// When it can start another container.
    pub(crate) fn next(&self) -> Timestamp {
        let lacks = (1.0 - self.ready).max(0.0) / self.capacity;
        self.at.plus(Duration::from_secs_f64(lacks.min(1e9)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of containers started in `seconds`, with as many requests each second as
    /// possible.
    fn starts(capacity: f64, seconds: i64) -> u64 {
        let mut engine = Engine::new(capacity, Timestamp(0));
        for second in 0..seconds {
            while engine.start(Timestamp(second * 1000)) {}
        }
        engine.started()
    }

    #[test]
    fn it_starts_what_it_can_and_no_more() {
        assert_eq!(starts(0.5, 100), 50);
        assert_eq!(starts(3.0, 100), 298);
        assert_eq!(starts(9.6, 1000) / 10, 959);
    }

    #[test]
    fn what_it_did_not_start_is_not_made_up_for_later() {
        let mut engine = Engine::new(2.0, Timestamp(0));
        for _ in 0..3 {
            assert!(engine.start(Timestamp(3_600_000)));
        }
        assert!(!engine.start(Timestamp(3_600_000)));
        assert_eq!(engine.next(), Timestamp(3_600_500));
    }

    #[test]
    fn a_slow_engine_still_leaves_room_for_a_dead_host_beside_a_living_one() {
        assert_eq!(Engine::new(0.001, Timestamp(0)).opens_max(), 2);
        assert_eq!(Engine::new(1.0, Timestamp(0)).opens_max(), 20);
        assert_eq!(Engine::new(1000.0, Timestamp(0)).opens_max(), 256);
    }
}
