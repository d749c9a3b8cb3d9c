//! Ending a dump under way, as when the process ends: a dump of a million takes longer than whoever stops a container waits.
//!
//! In: a word from another thread. Out: [`DumpError::Stopped`] from whatever is being made, which then takes itself away. Refused: to leave files half put in
//! their places: once that has begun it goes on to its end, which is near.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::DumpError;

/// Whether dumps are to end: how many looks are left until it is said. Clones are of one.
#[derive(Debug, Clone)]
pub struct Stop(Arc<AtomicU64>);

impl Stop {
    /// One that is said by itself after so many looks: how a test gives the word in the middle of whatever looks.
    pub fn after(looks: u64) -> Self {
        Self(Arc::new(AtomicU64::new(looks)))
    }

    /// Has them end.
    pub fn say(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// For each row and each piece of a file.
    ///
    /// # Errors
    /// [`DumpError::Stopped`] once it was said.
    pub fn check(&self) -> Result<(), DumpError> {
        match self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            }) {
            Ok(_left) => Ok(()),
            Err(_none) => Err(DumpError::Stopped),
        }
    }
}

impl Default for Stop {
    /// One that is not said yet, after more looks than any census takes.
    fn default() -> Self {
        Self::after(u64::MAX)
    }
}
