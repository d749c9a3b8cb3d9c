//! Moments, and all intervals of the census in one place (design §6).

use std::time::Duration;

/// Milliseconds since 1970 in UTC. Arithmetic saturates: clocks jump, and a record must survive that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This moment and `duration` more.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }

    /// This moment less `duration`.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(millis(duration)))
    }

    /// How long ago `earlier` was; nothing when it lies ahead.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A throw of the dice: a fraction of one, `0` to `u32::MAX`, uniform. Handed in, so that the rules stay pure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jitter(pub u32);
