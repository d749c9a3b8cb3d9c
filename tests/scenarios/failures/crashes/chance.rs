//! Reproducible random numbers: the seed is printed, and taken from the environment if it is set
//! there.

use std::time::Duration;

const SEED: &str = "FEDICENSUS_CRASH_SEED";

/// splitmix64: its seed determines all numbers.
#[derive(Debug)]
pub(crate) struct Chance {
    pub(crate) seed: u64,
    state: u64,
}

impl Chance {
    /// Uses the environment's seed, or another one each time. Either is printed.
    pub(crate) fn new() -> Self {
        let seed = std::env::var_os(SEED)
            .and_then(|text| text.to_str()?.parse().ok())
            .unwrap_or_else(|| {
                use std::hash::{BuildHasher as _, RandomState};
                RandomState::new().hash_one(SEED)
            });
        eprintln!("the kills are drawn with {SEED}={seed}");
        Self { seed, state: seed }
    }

    /// Another one, whose throws are not this one's.
    pub(crate) fn branch(&mut self) -> Self {
        Self {
            seed: self.seed,
            state: self.next(),
        }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// One of `0..below`.
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        self.next() % below.max(1)
    }

    /// `true` with probability 1/`many`.
    pub(crate) fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    /// Less than `most`.
    pub(crate) fn moment(&mut self, most: Duration) -> Duration {
        Duration::from_micros(self.below(u64::try_from(most.as_micros()).unwrap_or(u64::MAX)))
    }
}
