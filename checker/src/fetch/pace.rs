//! Limits requests per second.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// The span in which requests are counted.
const SPAN: Duration = Duration::from_secs(1);

/// The times of the last requests, at most as many as one second allows.
#[derive(Debug)]
pub(super) struct Pace {
    per_second: usize,
    recent: VecDeque<Instant>,
}

impl Pace {
    pub(super) fn new(per_second: u32) -> Self {
        Self {
            per_second: usize::try_from(per_second).unwrap_or(usize::MAX).max(1),
            recent: VecDeque::new(),
        }
    }

    /// Waits until the next request may be made, and counts it.
    pub(super) async fn turn(&mut self) {
        if self.recent.len() >= self.per_second
            && let Some(oldest) = self.recent.pop_front()
            && let Some(free) = oldest.checked_add(SPAN)
        {
            sleep_until(free).await;
        }
        self.recent.push_back(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_fifth_request_waits_for_the_next_second() {
        let start = Instant::now();
        let mut pace = Pace::new(4);
        let mut times = Vec::new();
        for _ in 0..9 {
            pace.turn().await;
            times.push(start.elapsed().as_secs());
        }
        assert_eq!(times, [0, 0, 0, 0, 1, 1, 1, 1, 2]);
    }
}
