//! Ending a dump under way, as when the process ends: a dump of a million takes longer than whoever stops a container waits.
//!
//! In: a word from another thread. Out: [`DumpError::Stopped`] from whatever is being made, which then takes itself away. Refused: to leave files half put in
//! their places: once that has begun it goes on to its end, which is near.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::DumpError;

/// Whether dumps are to end. Clones are of one.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Has them end.
    pub fn say(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// For each row and each piece of a file.
    ///
    /// # Errors
    /// [`DumpError::Stopped`] once it was said.
    pub fn check(&self) -> Result<(), DumpError> {
        if self.0.load(Ordering::Relaxed) {
            Err(DumpError::Stopped)
        } else {
            Ok(())
        }
    }
}
