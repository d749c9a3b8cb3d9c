//! Whether a body arrives fast enough.
//!
//! A host that drips would otherwise hold a container slot until the check's deadline. Only time
//! spent waiting for the host counts, so a slow reader on our side is never the host's fault.

use std::time::Duration;

/// How much of the current window has arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    window: Duration,
    bytes_min: u64,
    waited: Duration,
    bytes: u64,
}

impl Progress {
    /// Requires `bytes_min` bytes of the body in each `window`.
    pub(super) fn new(window: Duration, bytes_min: u64) -> Self {
        Self {
            window,
            bytes_min,
            waited: Duration::ZERO,
            bytes: 0,
        }
    }

    /// How long the next bytes may take.
    pub(super) fn patience(&self) -> Duration {
        self.window.saturating_sub(self.waited)
    }

    /// Counts bytes that arrived after a wait. A new window begins once this one is full.
    pub(super) fn advance(&mut self, waited: Duration, bytes: usize) {
        self.waited = self.waited.saturating_add(waited);
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes >= self.bytes_min {
            (self.waited, self.bytes) = (Duration::ZERO, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WINDOW: Duration = Duration::from_secs(10);
    const BYTES_MIN: u64 = 10_240;

    proptest! {
        /// In any order of arrivals, a body is given up only after a whole window with too few
        /// bytes, and never waited for longer than one window.
        #[test]
        fn a_body_is_given_up_after_a_window_with_too_few_bytes_and_never_before(
            pieces in proptest::collection::vec((0u64..12_000, 0usize..12_000), 1..200),
        ) {
            let mut progress = Progress::new(WINDOW, BYTES_MIN);
            let (mut waited, mut bytes) = (Duration::ZERO, 0u64);
            for (millis, piece) in pieces {
                let wait = Duration::from_millis(millis);
                prop_assert_eq!(progress.patience(), WINDOW.saturating_sub(waited));
                if wait > progress.patience() {
                    prop_assert!(bytes < BYTES_MIN);
                    break;
                }
                progress.advance(wait, piece);
                waited = waited.saturating_add(wait);
                bytes = bytes.saturating_add(u64::try_from(piece).unwrap());
                if bytes >= BYTES_MIN {
                    (waited, bytes) = (Duration::ZERO, 0);
                }
            }
        }
    }

    #[test]
    fn a_line_of_twenty_kilobytes_a_second_is_waited_for() {
        let mut progress = Progress::new(WINDOW, BYTES_MIN);
        for _ in 0..1000 {
            assert!(progress.patience() > Duration::from_secs(9));
            progress.advance(Duration::from_millis(50), 1000);
        }
    }

    #[test]
    fn a_drip_is_not_waited_for_longer_than_a_window() {
        let mut progress = Progress::new(WINDOW, BYTES_MIN);
        for _ in 0..9 {
            progress.advance(Duration::from_secs(1), 100);
        }
        assert_eq!(progress.patience(), Duration::from_secs(1));
        progress.advance(Duration::from_secs(1), 100);
        assert_eq!(progress.patience(), Duration::ZERO);
    }
}
