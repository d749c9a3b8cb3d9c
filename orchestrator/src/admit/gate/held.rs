//! Which known names are held back, as far as memory can tell: only those are looked up when a
//! peers list repeats them.
//!
//! Refreshed with the rounds of waiting names, every ten minutes. Between two refreshes, each name
//! is noted once, for the first source that repeats it: every list repeats nearly all names, and a
//! name needs two sources in a week.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use protocol::Host;
use store::StoreError;

use super::NameGate;

/// Held groups whose names are noted, the oldest first, so that a later flood of groups displaces
/// none: ten thousand take a megabyte.
const GROUPS_MAX: u32 = 10_000;

/// Names noted between two refreshes: two megabytes, and some seconds of the writer's time.
const NAMES_MAX: usize = 100_000;

#[derive(Debug, Default)]
pub(super) struct HeldGroups {
    domains: HashSet<String>,
    /// Hashes of the names that were noted since the refresh.
    noted: Mutex<HashSet<u64>>,
    hasher: RandomState,
}

impl HeldGroups {
    /// Those of the names that must be noted now.
    pub(super) fn to_note(&self, known: &[Host]) -> Vec<Host> {
        if self.domains.is_empty() {
            return Vec::new();
        }
        let noted = self.noted.lock();
        let mut noted = noted.unwrap_or_else(PoisonError::into_inner);
        let held = known.iter().filter(|host| self.is_held(host.as_str()));
        let new = held.filter(|host| {
            noted.len() < NAMES_MAX && noted.insert(self.hasher.hash_one(host.as_str()))
        });
        new.cloned().collect()
    }

    fn is_held(&self, mut name: &str) -> bool {
        while !self.domains.contains(name) {
            match name.split_once('.') {
                Some((_, parent)) => name = parent,
                None => return false,
            }
        }
        true
    }
}

impl NameGate {
    /// Reads again which groups are held.
    pub async fn refresh_held(&self) -> Result<(), StoreError> {
        let domains = self.0.writer.held_domains(GROUPS_MAX).await?;
        let held = HeldGroups {
            domains: domains.into_iter().collect(),
            ..HeldGroups::default()
        };
        let place = self.0.held.write();
        *place.unwrap_or_else(PoisonError::into_inner) = Arc::new(held);
        Ok(())
    }

    pub(super) fn held(&self) -> Arc<HeldGroups> {
        let held = self.0.held.read();
        Arc::clone(&held.unwrap_or_else(PoisonError::into_inner))
    }
}
