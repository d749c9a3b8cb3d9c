//! The registry of running checks, which can also end a check.
//!
//! Invariant: a check is in the registry from before its container is created until after it was
//! removed. The reaper therefore never removes a container that a launch still owns.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use protocol::CheckId;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Default)]
pub(crate) struct Registry {
    checks: Arc<Mutex<HashMap<CheckId, CancellationToken>>>,
}

/// A check's entry in the registry. Dropping it removes the check.
#[derive(Debug)]
pub(crate) struct Entry {
    check: CheckId,
    /// Cancelled when a `kill` request names the check.
    pub(crate) asked: CancellationToken,
    checks: Arc<Mutex<HashMap<CheckId, CancellationToken>>>,
}

impl Registry {
    /// - `Some(entry)` if the check was added
    /// - `None` if it was already there
    pub(crate) fn enter(&self, check: &CheckId) -> Option<Entry> {
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        if checks.contains_key(check) {
            return None;
        }
        let asked = CancellationToken::new();
        checks.insert(check.clone(), asked.clone());
        Some(Entry {
            check: check.clone(),
            asked,
            checks: Arc::clone(&self.checks),
        })
    }

    /// Requests a check's end. Returns whether the check is in the registry.
    pub(crate) fn kill(&self, check: &CheckId) -> bool {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        checks.get(check).inspect(|asked| asked.cancel()).is_some()
    }

    /// Whether the check with the id in this label is in the registry.
    pub(crate) fn holds(&self, label: &str) -> bool {
        CheckId::parse(label).is_ok_and(|check| {
            self.checks
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .contains_key(&check)
        })
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.checks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.check);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_there_once_and_until_its_entry_goes() {
        let registry = Registry::default();
        let check = CheckId::from_random(1);
        let entry = registry.enter(&check).unwrap();
        assert!(registry.enter(&check).is_none());
        assert!(registry.holds(check.as_str()));
        assert!(!entry.asked.is_cancelled());
        assert!(registry.kill(&check));
        assert!(entry.asked.is_cancelled());
        drop(entry);
        assert!(!registry.holds(check.as_str()));
        assert!(!registry.kill(&check));
        assert!(registry.enter(&check).is_some());
    }
}
