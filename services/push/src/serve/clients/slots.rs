//! Who may connect when slots are few: a client holds one for days, and a stranger may want all.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::storage::networks::{self, Addresses};

/// A network has at most one of so many parts of all slots: ten addresses of one network had them
/// all.
const SHARES: usize = 16;

/// Age of a user's record from which the user may have one of the last slots.
const OLD_MS: i64 = 24 * 60 * 60 * 1000;

#[derive(Debug)]
pub(in crate::serve) struct Slots {
    max: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_network: HashMap<IpAddr, usize>,
    addresses: Addresses,
}

/// A client's slot, until it is dropped.
#[derive(Debug)]
pub(in crate::serve) struct Slot {
    slots: Arc<Slots>,
    network: Option<IpAddr>,
}

/// The first nine tenths of slots, which are for everybody.
fn ordinary(slots: usize) -> usize {
    slots.saturating_mul(9).div_euclid(10)
}

impl Slots {
    pub(in crate::serve) fn new(max: usize) -> Arc<Self> {
        let taken = Mutex::default();
        Arc::new(Self { max, taken })
    }

    /// A slot for a client at an address; `None` if all are taken, or all of its network's share.
    /// Without an address, which means without a web server in front, there are no shares.
    pub(in crate::serve) fn take(self: &Arc<Self>, address: Option<IpAddr>) -> Option<Slot> {
        let mut taken = self.taken();
        if address.is_some_and(|address| taken.addresses.note(address)) {
            tracing::warn!(
                "all clients so far came from one address: if it is a TLS proxy's, name the proxy in clients.conf, as docs/push.md describes; until then no network has a share of places and storage"
            );
        }
        let network = address.map(networks::network);
        if taken.all >= self.max || taken.of(network) >= self.share(&taken) {
            return None;
        }
        taken.all = taken.all.saturating_add(1);
        if let Some(network) = network {
            let count = taken.by_network.entry(network).or_default();
            *count = count.saturating_add(1);
        }
        let slots = Arc::clone(self);
        Some(Slot { slots, network })
    }

    /// Most slots of one network.
    fn share(&self, taken: &Taken) -> usize {
        match taken.addresses.are_several() {
            true => self.max.div_euclid(SHARES),
            false => self.max,
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn of(&self, network: Option<IpAddr>) -> usize {
        let count = network.and_then(|network| self.by_network.get(&network));
        count.copied().unwrap_or(0)
    }
}

impl Slot {
    /// Whether it is none of the last, of all or of its network's.
    fn is_ordinary(&self) -> bool {
        let taken = self.slots.taken();
        let share = self.slots.share(&taken);
        taken.all <= ordinary(self.slots.max) && taken.of(self.network) <= ordinary(share)
    }

    /// Whether a client may keep it whose record was made at this time, in milliseconds since 1970:
    /// the last ones are for users with an old record.
    pub(in crate::serve) fn is_for(&self, made_ms: Option<i64>, now_ms: i64) -> bool {
        self.is_ordinary() || made_ms.is_some_and(|made| made <= now_ms.saturating_sub(OLD_MS))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.taken();
        taken.all = taken.all.saturating_sub(1);
        let Some(network) = self.network else {
            return;
        };
        if let Some(count) = taken.by_network.get_mut(&network) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                taken.by_network.remove(&network);
            }
        }
    }
}
