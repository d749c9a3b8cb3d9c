//! How far away a host is: its answers arrive as late as on a real network.
//!
//! From the median and the host's name it draws the round trips of one connection. A host draws the
//! same ones on each connection and in each run, so that runs can be compared.

use std::f64::consts::TAU;
use std::time::Duration;

use tokio::time::sleep;

use crate::crowd::chance;

/// Longest median round trip, in milliseconds: half of a check's time for the first byte.
pub const ANSWER_MS_MAX: u16 = 5000;

/// Standard deviation of a round trip's logarithm: one in twenty takes 2.5 times the median.
const SIGMA: f64 = 0.55;

/// This many hosts in a thousand are slow servers.
const SLOW_IN_1000: u64 = 30;

/// Additional time for each answer of a slow server.
const SLOW_BY: Duration = Duration::from_secs(2);

/// The distance of one host. A median of zero is no distance at all, not even for a slow server.
#[derive(Debug)]
pub(crate) struct Distance {
    median: Duration,
    seed: u64,
    drawn: u64,
}

impl Distance {
    pub(crate) fn new(median: Duration, host: &str) -> Self {
        let bytes = host.bytes().map(u32::from);
        Self {
            median,
            seed: bytes.fold(0, |seed, byte| chance(seed, byte, 0)),
            drawn: 0,
        }
    }

    /// Waits until the answer to a ClientHello arrives. The kernel has completed the TCP handshake
    /// at once, so its round trip is waited for here as well.
    pub(crate) async fn shake_hands(&mut self) {
        wait(self.round_trip()).await;
        self.answer().await;
    }

    /// Waits until the answer to a request arrives.
    pub(crate) async fn answer(&mut self) {
        wait(self.answer_time()).await;
    }

    pub(super) fn answer_time(&mut self) -> Duration {
        let slow = !self.median.is_zero() && self.seed % 1000 < SLOW_IN_1000;
        self.round_trip() + SLOW_BY * u32::from(slow)
    }

    pub(super) fn round_trip(&mut self) -> Duration {
        // A normal variate from two uniform ones (Box and Muller).
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let normal = radius * (TAU * self.uniform()).cos();
        self.median.mul_f64((SIGMA * normal).exp())
    }

    /// A number between 0 and 1, and neither of them.
    fn uniform(&mut self) -> f64 {
        self.drawn += 1;
        let number = (chance(self.seed, 0, self.drawn) >> 32) as u32;
        (f64::from(number) + 0.5) / (f64::from(u32::MAX) + 1.0)
    }
}

async fn wait(time: Duration) {
    // Even a timer of zero takes up to a millisecond.
    if !time.is_zero() {
        sleep(time).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::crowd::Crowd;

    const MEDIAN: Duration = Duration::from_millis(150);
    const SLOW: &str = "moving.lab.test";

    #[test]
    fn round_trips_are_lognormal_and_few_hosts_are_slow() {
        let crowd = Crowd::new(10_000, 1).names();
        let draw = |name: String| Distance::new(MEDIAN, &name).answer_time();
        let mut times: Vec<u128> = crowd.map(|name| draw(name).as_millis()).collect();
        times.sort_unstable();
        let slow = times.iter().filter(|time| **time > 2000).count();
        assert!((250..350).contains(&slow), "{slow}");
        // Of the others: 150 ms times e to the power of 0.55 times -1.645, 0 and 1.645.
        for (part, expect) in [(0.05, 58..64), (0.5, 146..154), (0.95, 356..386)] {
            let at = ((times.len() - slow) as f64 * part) as usize;
            assert!(expect.contains(&times[at]), "{part}: {}", times[at]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_handshake_takes_two_round_trips_and_an_answer_one() {
        let began = Instant::now();
        let mut near = Distance::new(Duration::ZERO, SLOW);
        near.shake_hands().await;
        near.answer().await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        let (mut far, mut drawn) = (Distance::new(MEDIAN, SLOW), Distance::new(MEDIAN, SLOW));
        far.shake_hands().await;
        far.answer().await;
        let expect = drawn.round_trip() + drawn.answer_time() + drawn.answer_time();
        assert!(expect > SLOW_BY * 2);
        // Each of three timers ends at a whole millisecond.
        let late = began.elapsed().checked_sub(expect).unwrap();
        assert!(late < Duration::from_millis(3), "{late:?}");
    }
}
