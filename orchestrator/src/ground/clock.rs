//! Time and random numbers: the only module that reads a clock or draws at random. Everything else
//! gets the result.

mod steady;

use std::sync::Mutex;
use std::time::SystemTime;

use census::time::{Jitter, Timestamp};
use protocol::CheckId;
use rand::rand_core::OsError;
use rand::rngs::{OsRng, StdRng};
use rand::{Rng, SeedableRng, TryRngCore};
use site::Salt;
use zeroize::Zeroizing;

pub use steady::SteadyClock;

pub trait Clock: Send + Sync + std::fmt::Debug {
    fn now(&self) -> Timestamp;

    /// What seems wrong with the clock, if anything.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// Reports a moment that the census had already reached in an earlier process.
    fn was_at(&self, _known: Timestamp) {}
}

#[derive(Debug, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the role's clock")]
    fn now(&self) -> Timestamp {
        let since_1970 = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp(i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX))
    }
}

/// The seed of a new key, directly from the operating system.
pub fn key_seed() -> Result<Zeroizing<[u8; 32]>, OsError> {
    let mut seed = Zeroizing::new([0; 32]);
    OsRng.try_fill_bytes(seed.as_mut())?;
    Ok(seed)
}

/// Source of jitter and check ids: a generator seeded by the operating system, or by a test.
#[derive(Debug)]
pub struct Random(Mutex<StdRng>);

impl Random {
    /// Seeded by the operating system.
    pub fn from_os() -> Self {
        Self(Mutex::new(StdRng::from_os_rng()))
    }

    /// Seeded by hand: the same numbers each time.
    pub fn seeded(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }

    /// A random fraction of one.
    pub fn jitter(&self) -> Jitter {
        Jitter(self.draw())
    }

    /// Several random fractions of one.
    pub fn jitters(&self, count: u32) -> Vec<Jitter> {
        (0..count).map(|_| self.jitter()).collect()
    }

    /// An unpredictable id: `StdRng` is a cryptographic generator.
    pub fn check_id(&self) -> CheckId {
        CheckId::from_random(self.draw())
    }

    /// An unpredictable salt for one publication.
    pub fn salt(&self) -> Salt {
        Salt::from_random(self.draw())
    }

    /// A seed for another generator.
    pub fn seed(&self) -> u64 {
        self.draw()
    }

    fn draw<T>(&self) -> T
    where
        rand::distr::StandardUniform: rand::distr::Distribution<T>,
    {
        // A poisoned generator is still good: nothing that matters can be half-written.
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .random()
    }
}
