//! The containers that keep a network namespace for each slot.
//!
//! Creating a network namespace is half of Docker's work for a container, so a check may join an
//! existing one. A holder keeps it: a container of the checker's image, under a check's limits,
//! that only waits. There are as many holders as checks have run at the same time.
//!
//! Invariant: a holder has one guest at a time. [`Holders::take`] hands it out, and it comes back
//! only after the engine has reported the end of its guest's process.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::container::spec::Network;
use crate::engine::ContainerId;
use crate::service::registry::Entry;

/// Guests of a holder before it is replaced. This bounds whatever the kernel might keep of each
/// guest. A replacement costs as much as a check, so it adds a thousandth of the work.
const GUESTS_MAX: u32 = 1000;

/// The holders without a guest.
///
/// All are given up whenever the engine is probed. That happens once an hour and bounds their age.
#[derive(Debug, Default)]
pub(crate) struct Holders {
    free: Mutex<Free>,
}

#[derive(Debug, Default)]
struct Free {
    holders: Vec<Holder>,
    /// How often all holders were given up. A holder of an earlier generation is not taken back.
    generation: u64,
}

/// A container whose network namespace checks join, one after the other.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) container: ContainerId,
    generation: u64,
    guests: u32,
    /// While it is registered, no sweep removes its container.
    _entry: Entry,
}

impl Holder {
    /// A holder that was just started, with the generation from before its start.
    pub(crate) fn new(container: ContainerId, generation: u64, entry: Entry) -> Self {
        Self {
            container,
            generation,
            guests: 0,
            _entry: entry,
        }
    }

    pub(crate) fn network(&self) -> Network {
        Network::Slot(self.container.clone())
    }
}

impl Holders {
    /// Takes a holder without a guest, if there is one.
    pub(crate) fn take(&self) -> Option<Holder> {
        self.free().holders.pop()
    }

    /// The generation of a holder that is created from now on.
    pub(crate) fn generation(&self) -> u64 {
        self.free().generation
    }

    /// Takes back a holder whose guest has ended.
    ///
    /// - `None` if the holder waits for its next guest
    /// - `Some(holder)` if the caller has to remove it
    pub(crate) fn give_back(&self, mut holder: Holder) -> Option<Holder> {
        holder.guests = holder.guests.saturating_add(1);
        if holder.guests >= GUESTS_MAX {
            return Some(holder);
        }
        self.put(holder)
    }

    /// Adds a holder that has had no guest yet. Returns the same as [`Self::give_back`].
    pub(crate) fn put(&self, holder: Holder) -> Option<Holder> {
        let mut free = self.free();
        if holder.generation != free.generation {
            return Some(holder);
        }
        free.holders.push(holder);
        None
    }

    /// Gives all holders up. The next sweep removes those without a guest; the others are not taken
    /// back. A restarted engine has already ended them, and the launcher keeps none on an engine
    /// that it leaves.
    pub(crate) fn give_up(&self) {
        let mut free = self.free();
        free.generation = free.generation.saturating_add(1);
        free.holders.clear();
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::registry::Registry;
    use protocol::CheckId;

    fn made(holders: &Holders, registry: &Registry, number: u128) -> Holder {
        let entry = registry.enter(&CheckId::from_random(number)).unwrap();
        let container = ContainerId(format!("h{number}"));
        Holder::new(container, holders.generation(), entry)
    }

    #[test]
    fn no_holder_has_two_guests() {
        let (holders, registry) = (Holders::default(), Registry::default());
        assert!(holders.take().is_none());
        assert!(holders.give_back(made(&holders, &registry, 1)).is_none());
        let holder = holders.take().unwrap();
        assert_eq!(
            holder.network(),
            Network::Slot(ContainerId("h1".to_owned()))
        );
        assert!(holders.take().is_none(), "it has a guest");
    }

    #[test]
    fn a_holder_that_was_given_up_is_not_taken_back() {
        let (holders, registry) = (Holders::default(), Registry::default());
        let (free, used) = (made(&holders, &registry, 1), made(&holders, &registry, 2));
        assert!(holders.give_back(free).is_none());
        holders.give_up();
        assert!(holders.take().is_none());
        let label = CheckId::from_random(1);
        assert!(!registry.holds(label.as_str()), "a sweep may remove it");
        assert!(holders.give_back(used).is_some());
        assert!(holders.take().is_none());
    }

    #[test]
    fn a_holder_is_replaced_after_its_last_guest() {
        let (holders, registry) = (Holders::default(), Registry::default());
        let mut holder = made(&holders, &registry, 1);
        for _ in 1..GUESTS_MAX {
            assert!(holders.give_back(holder).is_none());
            holder = holders.take().unwrap();
        }
        assert!(holders.give_back(holder).is_some());
        assert!(holders.take().is_none());
    }
}
