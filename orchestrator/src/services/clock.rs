//! Time and chance: the only place that reads a clock or draws at random. Everything below is handed the result.

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

/// What time it is.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Now.
    fn now(&self) -> Timestamp;

    /// What is wrong with it, if something seems to be.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// The census was at this moment already, in a former life.
    fn was_at(&self, _known: Timestamp) {}
}

/// The machine's clock.
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

/// The seed of a new key, straight from the operating system.
///
/// # Errors
/// The system has no chance to give.
pub fn key_seed() -> Result<Zeroizing<[u8; 32]>, OsError> {
    let mut seed = Zeroizing::new([0; 32]);
    OsRng.try_fill_bytes(seed.as_mut())?;
    Ok(seed)
}

/// Where jitter and check ids come from: a generator seeded by the operating system, or by a test.
#[derive(Debug)]
pub struct Random(Mutex<StdRng>);

impl Random {
    /// Seeded by the operating system.
    pub fn from_os() -> Self {
        Self(Mutex::new(StdRng::from_os_rng()))
    }

    /// Seeded by hand: the same throws each time.
    pub fn seeded(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }

    /// A fraction of one.
    pub fn jitter(&self) -> Jitter {
        Jitter(self.draw())
    }

    /// Several fractions of one.
    pub fn jitters(&self, count: u32) -> Vec<Jitter> {
        (0..count).map(|_| self.jitter()).collect()
    }

    /// An id that nobody can guess: `StdRng` is a cryptographic generator.
    pub fn check_id(&self) -> CheckId {
        CheckId::from_random(self.draw())
    }

    /// A salt that nobody can guess, for one publication.
    pub fn salt(&self) -> Salt {
        Salt::from_random(self.draw())
    }

    /// A seed for others.
    pub fn seed(&self) -> u64 {
        self.draw()
    }

    fn draw<T>(&self) -> T
    where
        rand::distr::StandardUniform: rand::distr::Distribution<T>,
    {
        // A poisoned generator is as good as before: nothing in it can be half-written that matters.
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .random()
    }
}
