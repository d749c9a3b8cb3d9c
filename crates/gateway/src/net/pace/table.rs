//! A pacing table: when each key was last visited, and which slots were promised to early visitors.
//!
//! It takes a key, its pace and a time, and returns that the key is in turn, or the slot for the
//! next waiter. Memory is bounded: a full table forgets entries that no longer delay any visit, or
//! otherwise its oldest visit.
//!
//! Invariant: a promise delays no other visit. A visit is allowed as soon as the pace has passed
//! since the last one, regardless of promises, so a waiter that never returns wastes only its own
//! slot.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// A full table in which every entry still counts forgets the oldest sixteenth.
const FORGOTTEN_SHIFT: u32 = 4;

#[derive(Debug, Clone, Copy)]
struct Visits {
    last: Instant,
    promised: Option<Instant>,
}

/// When each key was last visited. Entries older than `memory` and without a promise are forgotten.
#[derive(Debug)]
pub(super) struct Table<K> {
    visits: HashMap<K, Visits>,
    entries_max: usize,
    memory: Duration,
}

impl<K: Hash + Eq + Clone> Table<K> {
    pub(super) fn new(entries_max: usize, memory: Duration) -> Self {
        Self {
            visits: HashMap::new(),
            entries_max,
            memory,
        }
    }

    /// Time until `pace` has passed since the last visit.
    pub(super) fn wait<Q>(&self, key: &Q, pace: Duration, now: Instant) -> Duration
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.visits
            .get(key)
            .and_then(|visits| visits.last.checked_add(pace))
            .map_or(Duration::ZERO, |next| next.saturating_duration_since(now))
    }

    /// The slot for the next waiter, at most `within` from now. `None` if `key` is in turn.
    pub(super) fn slot<Q>(
        &self,
        key: &Q,
        pace: Duration,
        within: Duration,
        now: Instant,
    ) -> Option<Instant>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let visits = self.visits.get(key)?;
        let next = visits.last.checked_add(pace)?;
        if next <= now {
            return None;
        }
        let Some(promised) = visits.promised else {
            return Some(next);
        };
        let behind = promised.checked_add(spacing(pace));
        let latest = now.checked_add(within);
        let slot = [behind, latest].into_iter().flatten().min();
        Some(slot.map_or(next, |slot| slot.max(next)))
    }

    /// Promises `slot`. The next slot comes after it.
    pub(super) fn promise<Q>(&mut self, key: &Q, slot: Instant)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        if let Some(visits) = self.visits.get_mut(key) {
            visits.promised = visits.promised.max(Some(slot));
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.visits.len()
    }

    /// Records a visit at `now`.
    pub(super) fn note(&mut self, key: K, now: Instant) {
        if self.visits.len() >= self.entries_max && !self.visits.contains_key(&key) {
            self.make_room(now);
        }
        self.visits
            .entry(key)
            .and_modify(|visits| visits.last = now)
            .or_insert(Visits {
                last: now,
                promised: None,
            });
    }

    fn make_room(&mut self, now: Instant) {
        let memory = self.memory;
        self.visits.retain(|_, visits| {
            now.saturating_duration_since(visits.last) < memory || visits.promised > Some(now)
        });
        if self.visits.len() < self.entries_max {
            return;
        }
        // Many at once, so that a flood of keys needs this search only once in thousands of visits.
        let mut ages: Vec<_> = self.visits.values().map(|visits| visits.last).collect();
        let count = (self.entries_max >> FORGOTTEN_SHIFT).min(ages.len().saturating_sub(1));
        let (_, youngest_forgotten, _) = ages.select_nth_unstable(count);
        let youngest_forgotten = *youngest_forgotten;
        let mut forgets = count.saturating_add(1);
        self.visits.retain(|_, visits| {
            let forgotten = forgets > 0 && visits.last <= youngest_forgotten;
            forgets = forgets.saturating_sub(usize::from(forgotten));
            !forgotten
        });
    }
}

/// Distance between promised slots: a quarter more than the pace. Waiters don't return to the
/// millisecond; with slots exactly one pace apart, one slightly late waiter would delay all those
/// behind it.
fn spacing(pace: Duration) -> Duration {
    pace.saturating_add(pace.checked_div(4).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn a_full_table_forgets_the_oldest_alone() {
        let start = Instant::now();
        let mut table = Table::new(3, seconds(10));
        for (key, second) in [("a", 0), ("b", 1), ("c", 2), ("d", 3)] {
            table.note(key, start + seconds(second));
        }
        let mut kept: Vec<_> = table.visits.keys().copied().collect();
        kept.sort_unstable();
        assert_eq!(kept, ["b", "c", "d"]);
        table.note("e", start + seconds(12));
        assert_eq!(table.visits.len(), 2);
    }

    #[test]
    fn what_was_promised_is_remembered_longer_but_not_beyond_the_bound() {
        let start = Instant::now();
        let mut table = Table::new(2, seconds(10));
        table.note("a", start);
        table.promise("a", start + seconds(60));
        table.note("b", start);
        table.note("c", start + seconds(20));
        assert!(table.visits.contains_key("a") && !table.visits.contains_key("b"));
        table.promise("c", start + seconds(60));
        table.note("d", start + seconds(21));
        assert_eq!(table.visits.len(), 2);
        assert!(!table.visits.contains_key("a"), "the oldest goes");
    }

    #[test]
    fn promises_grow_up_to_the_bound_and_delay_nobody() {
        let start = Instant::now();
        let (pace, within) = (seconds(10), seconds(40));
        let mut table = Table::new(3, pace);
        table.note("a", start);
        let mut told = Vec::new();
        for _ in 0..5 {
            let slot = table.slot("a", pace, within, start).unwrap();
            table.promise("a", slot);
            told.push((slot - start).as_millis());
        }
        assert_eq!(told, [10_000, 22_500, 35_000, 40_000, 40_000]);
        assert!(table.wait("a", pace, start + pace).is_zero());
        assert_eq!(table.slot("a", pace, within, start + pace), None);
    }
}
