//! Hosts that failed once while others had not responded all along. The next failure counts.
//!
//! Bounded: at most [`SUSPECTS_MAX`] entries, each of the same size whatever its name, and for
//! [`SUSPECT_FOR`].

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use census::time::Timestamp;
use protocol::Host;
use protocol::egress::PROMISED_WITHIN;

/// How long a host that failed once is remembered. It is checked again within that time. At an
/// address that thousands of hosts share, it may need two promised turns.
pub(super) const SUSPECT_FOR: Duration = PROMISED_WITHIN.saturating_mul(2);

/// Most remembered hosts: the names of six farms at one address each, all waiting for their turn.
/// About 60 bytes each, 4 MB.
pub(super) const SUSPECTS_MAX: usize = 65_536;

/// Hosts that failed once, with the time. Names are kept as keyed hashes, so that long names cost
/// no more than short ones. Two names share a hash with a chance of 1 in 2⁶⁴, and nobody can choose
/// such a pair.
#[derive(Debug)]
pub(super) struct Suspects {
    key: RandomState,
    since: HashMap<u64, Timestamp>,
    by_age: BTreeSet<(Timestamp, u64)>,
}

impl Suspects {
    /// An empty set. `key` hashes the names.
    pub(super) fn new(key: RandomState) -> Self {
        Self {
            key,
            since: HashMap::new(),
            by_age: BTreeSet::new(),
        }
    }

    /// Adds a host. If the set is full, the oldest entry is removed: an attacker with many failing
    /// hosts must not prevent the detection of other unreachable hosts, which are checked again
    /// within seconds.
    pub(super) fn add(&mut self, host: &Host, now: Timestamp) {
        self.remove(host);
        if self.by_age.len() >= SUSPECTS_MAX
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.since.remove(&oldest);
        }
        let name = self.key.hash_one(host);
        self.since.insert(name, now);
        self.by_age.insert((now, name));
    }

    /// Removes a host. Returns whether it was in the set.
    pub(super) fn remove(&mut self, host: &Host) -> bool {
        let name = self.key.hash_one(host);
        let since = self.since.remove(&name);
        since.is_some_and(|since| self.by_age.remove(&(since, name)))
    }

    pub(super) fn contains(&self, host: &Host) -> bool {
        self.since.contains_key(&self.key.hash_one(host))
    }

    /// Removes entries that are too old. If the clock jumped back, this includes entries whose time
    /// is now in the future.
    pub(super) fn expire(&mut self, now: Timestamp) {
        while let Some((since, _)) = self.by_age.first()
            && now.since(*since) >= SUSPECT_FOR
            && let Some((_, name)) = self.by_age.pop_first()
        {
            self.since.remove(&name);
        }
        while let Some((since, _)) = self.by_age.last()
            && *since > now.plus(SUSPECT_FOR)
            && let Some((_, name)) = self.by_age.pop_last()
        {
            self.since.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kit::numbered;

    #[test]
    fn they_are_bounded_and_the_oldest_makes_room() {
        let mut suspects = Suspects::new(RandomState::new());
        for number in 0..=SUSPECTS_MAX {
            suspects.add(&numbered(number), Timestamp(i64::try_from(number).unwrap()));
            suspects.add(&numbered(number), Timestamp(i64::try_from(number).unwrap()));
        }
        assert_eq!(suspects.since.len(), SUSPECTS_MAX);
        assert_eq!(suspects.by_age.len(), SUSPECTS_MAX);
        assert!(!suspects.contains(&numbered(0)));
        assert!(suspects.remove(&numbered(1)));
        assert!(!suspects.remove(&numbered(1)), "only once");
        assert_eq!(suspects.since.len(), suspects.by_age.len());
    }

    #[test]
    fn they_are_forgotten_in_time_and_when_the_clock_was_set_back() {
        let mut suspects = Suspects::new(RandomState::new());
        let late = Timestamp(0).plus(SUSPECT_FOR);
        suspects.add(&numbered(1), Timestamp(0));
        suspects.add(&numbered(2), Timestamp(1));
        suspects.expire(late);
        assert!(!suspects.contains(&numbered(1)));
        assert!(suspects.contains(&numbered(2)));
        suspects.add(&numbered(3), late.plus(SUSPECT_FOR));
        suspects.expire(Timestamp(1));
        assert!(suspects.contains(&numbered(2)));
        assert!(!suspects.contains(&numbered(3)), "of the future");
        assert_eq!(suspects.since.len(), suspects.by_age.len());
    }
}
