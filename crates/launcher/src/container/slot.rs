//! Bounds the number of containers: those that run, and those that are not removed yet.

use tokio::sync::{Semaphore, SemaphorePermit};

/// Containers that are not removed yet, per running check. Without this bound, an engine that
/// starts containers and doesn't remove them would pile them up.
pub(crate) const CONTAINERS_PER_SLOT: usize = 4;

#[derive(Debug)]
pub(crate) struct Slots {
    checks_max: usize,
    /// One permit per running check.
    running: Semaphore,
    /// One permit per container until it is removed.
    containers: Semaphore,
}

/// A check's slot. It is freed when dropped, after the removal of the check's container.
#[derive(Debug)]
pub(crate) struct Slot<'a> {
    running: Option<SemaphorePermit<'a>>,
    _container: SemaphorePermit<'a>,
}

impl Slots {
    /// Slots for this many checks at the same time.
    pub(crate) fn new(checks_max: usize) -> Self {
        Self {
            checks_max,
            running: Semaphore::new(checks_max),
            containers: Semaphore::new(checks_max.saturating_mul(CONTAINERS_PER_SLOT)),
        }
    }

    /// Takes a slot for a check. `None` if all are taken, or if too many containers are not removed
    /// yet.
    pub(crate) fn take(&self) -> Option<Slot<'_>> {
        Some(Slot {
            _container: self.containers.try_acquire().ok()?,
            running: Some(self.running.try_acquire().ok()?),
        })
    }

    pub(crate) fn running(&self) -> usize {
        self.checks_max
            .saturating_sub(self.running.available_permits())
    }

    /// Whether no check runs and no container waits for its removal.
    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        self.running() == 0
            && self.containers.available_permits()
                == self.checks_max.saturating_mul(CONTAINERS_PER_SLOT)
    }
}

impl Slot<'_> {
    /// Frees the running permit, so that the next check may run while this check's container is
    /// removed.
    pub(crate) fn ended(&mut self) {
        self.running = None;
    }
}
