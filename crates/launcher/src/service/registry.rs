//! Which checks are there, and the way to end one.
//!
//! Invariant: a check stands in the registry from before its container is created until after it
//! was removed, so the reaper never takes what somebody still sees to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use protocol::CheckId;
use tokio_util::sync::CancellationToken;

/// The checks that are there.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    checks: Arc<Mutex<HashMap<CheckId, CancellationToken>>>,
}

/// A check's entry in the registry; leaves with its drop.
#[derive(Debug)]
pub(crate) struct Entry {
    check: CheckId,
    /// Cancelled when a `kill` request asks for the check's end.
    pub(crate) asked: CancellationToken,
    checks: Arc<Mutex<HashMap<CheckId, CancellationToken>>>,
}

impl Registry {
    /// - `Some(entry)` if the check is now in the registry
    /// - `None` if it was there before
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

    /// Asks for a check's end, and says whether there is one.
    pub(crate) fn kill(&self, check: &CheckId) -> bool {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        checks.get(check).inspect(|asked| asked.cancel()).is_some()
    }

    /// Whether the check whose id a label names is there.
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
