//! Cancels a dump in progress: writing a million rows takes longer than a container engine waits
//! for a process to stop.
//!
//! One thread calls [`Cancel::cancel`]. Every writer calls [`Cancel::check`] for each row and each
//! chunk of a file; once cancelled, it returns [`TreeError::Cancelled`], and the tree is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::TreeError;

/// Whether dumps are cancelled, as the number of checks that still pass. Clones share one state.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<AtomicU64>);

impl Cancel {
    /// Cancels after this many checks. Lets a test cancel in the middle of a dump.
    pub fn after(checks: u64) -> Self {
        Self(Arc::new(AtomicU64::new(checks)))
    }

    /// Cancels all dumps that check this or a clone.
    pub fn cancel(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Called for each row and each chunk of a file.
    pub fn check(&self) -> Result<(), TreeError> {
        match self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            }) {
            Ok(_left) => Ok(()),
            Err(_none) => Err(TreeError::Cancelled),
        }
    }
}

impl Default for Cancel {
    /// Not cancelled: more checks pass than any census makes.
    fn default() -> Self {
        Self::after(u64::MAX)
    }
}
