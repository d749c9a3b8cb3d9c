//! Cancelling a dump in progress: a dump of a million rows takes longer than an engine waits for a
//! process to end.
//!
//! One thread calls [`Cancel::cancel`]. Every writer calls [`Cancel::check`] for each row and each
//! piece of a file, returns [`DumpError::Cancelled`] and removes its unpublished files. A
//! publication that has begun to rename files goes on to its end, which is near.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::DumpError;

/// Whether dumps are cancelled: how many checks still pass. Clones share one state.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<AtomicU64>);

impl Cancel {
    /// Cancels itself after this many checks: how a test cancels in the middle of a dump.
    pub fn after(checks: u64) -> Self {
        Self(Arc::new(AtomicU64::new(checks)))
    }

    /// Cancels all dumps that check this or a clone.
    pub fn cancel(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// For each row and each piece of a file.
    ///
    /// # Errors
    /// [`DumpError::Cancelled`] once [`Self::cancel`] was called.
    pub fn check(&self) -> Result<(), DumpError> {
        match self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            }) {
            Ok(_left) => Ok(()),
            Err(_none) => Err(DumpError::Cancelled),
        }
    }
}

impl Default for Cancel {
    /// Not cancelled, for more checks than any census makes.
    fn default() -> Self {
        Self::after(u64::MAX)
    }
}
