//! Known names in memory: names that peers lists repeat cost neither a look-up nor a transaction.
//!
//! A name is recognised if the database was seen to have it, as a row or as forgotten. The database
//! always decides: new names are inserted by a statement that does nothing for existing ones. Until
//! all names are loaded, a name that is not found here is looked up in the database. So is one in
//! [`SPOT_CHECK_EVERY`] of the names that are found.
//!
//! Possible error: a name is kept as a keyed 64-bit hash, so two names collide with a probability
//! of 2⁻⁶⁴. A new name that collides with a known one would be ignored. Nobody can cause that,
//! since the key is secret, and a later spot check adds the name. Names are never removed: a row is
//! only ever deleted to be forgotten (`forgotten.rs`), and both count as known. A forgotten name
//! that is dropped at the limit of ten million stays recognised until the next start.
//!
//! Loaded in the background at each start, and updated by every answer of the database. At most
//! [`crate::db::tuning::NAMES_MAX`] names, each of 14 bytes or less.

pub(crate) mod filling;
pub(crate) mod forgotten;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use protocol::Host;
use rusqlite::Connection;

use self::forgotten::Key;
use crate::db::error::StoreError;

/// One in this number of recognised names is looked up in the database all the same. This costs a
/// sixty-fourth of looking up all, and a name that was ignored by mistake is added after about a
/// hundred mentions.
const SPOT_CHECK_EVERY: u64 = 64;

/// Parts, each with its lock, that grow separately: no growth takes long, and at most one part
/// exists twice at a time.
const PARTS: usize = 1024;

/// Slots of a part that is not empty.
const SLOTS_MIN: usize = 16;

/// Names read per query when loading: some milliseconds, after which the log can be reset.
const PORTION: u32 = 10_000;

/// Reads only the index of names, in its order.
pub(crate) const NAMES_AFTER: &str =
    "SELECT name FROM hosts WHERE name > ?1 ORDER BY name LIMIT ?2";

pub(crate) const FORGOTTEN_AFTER: &str =
    "SELECT hash FROM forgotten WHERE hash > ?1 ORDER BY hash LIMIT ?2";

/// The known names. All handles to the writer share them.
#[derive(Debug)]
pub(crate) struct KnownNames {
    key: Key,
    parts: Box<[Mutex<Part>]>,
    names: AtomicUsize,
    names_max: usize,
    /// All names that the database had at the start are loaded.
    is_filled: AtomicBool,
    /// Names recognised so far, to select spot checks.
    recognised: AtomicU64,
}

/// A set of hashes with open addressing, at most seven eighths full. 0 is a free slot.
#[derive(Debug, Default)]
struct Part {
    slots: Vec<u64>,
    names: usize,
}

impl KnownNames {
    /// An empty set. `key` is also the key for forgotten names, so that their hashes can be added
    /// without the names.
    pub(crate) fn new(key: Key, names_max: usize) -> Self {
        Self {
            key,
            parts: (0..PARTS).map(|_| Mutex::default()).collect(),
            names: AtomicUsize::new(0),
            names_max,
            is_filled: AtomicBool::new(false),
            recognised: AtomicU64::new(0),
        }
    }

    /// Whether the database need not be queried for this name, because it is known or forgotten.
    pub(crate) fn recognises(&self, host: &Host) -> bool {
        self.has(self.hash(host.as_str())) && !self.is_spot_check()
    }

    /// Whether the database does not have this name, unless it is being added right now.
    pub(crate) fn is_new(&self, host: &Host) -> bool {
        // In this order: a name that was added before the look-up is found by it or did not fit,
        // and in that case the set is full.
        let is_here = self.has(self.hash(host.as_str()));
        !is_here && self.is_filled.load(Ordering::Relaxed) && !self.is_full()
    }

    /// Records that the database has this name, as a committed row or as forgotten.
    pub(crate) fn learn(&self, host: &Host) {
        self.put(self.hash(host.as_str()));
    }

    pub(crate) fn names(&self) -> usize {
        self.names.load(Ordering::Relaxed)
    }

    /// Bytes of memory that they take.
    pub(crate) fn bytes(&self) -> usize {
        let slots: usize = self
            .parts
            .iter()
            .map(|part| lock(part).slots.capacity())
            .sum();
        slots * size_of::<u64>() + size_of_val(&*self.parts)
    }

    fn hash(&self, name: &str) -> u64 {
        forgotten::hash_by(&self.key, name).cast_unsigned()
    }

    fn is_full(&self) -> bool {
        self.names() >= self.names_max
    }

    fn has(&self, hash: u64) -> bool {
        self.part(hash).is_some_and(|part| part.has(taken(hash)))
    }

    fn put(&self, hash: u64) {
        if !self.is_full()
            && let Some(mut part) = self.part(hash)
            && part.put(taken(hash))
        {
            self.names.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The upper bits select the part, the lower bits the slot within it.
    fn part(&self, hash: u64) -> Option<MutexGuard<'_, Part>> {
        let place = scaled(hash >> 32, PARTS);
        self.parts.get(place).map(lock)
    }

    fn is_spot_check(&self) -> bool {
        let mut z = self.recognised.fetch_add(1, Ordering::Relaxed) + 1;
        // Mixed (splitmix64): otherwise a list with a multiple of that many names would always
        // check the same ones.
        z = z.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z >> 32).is_multiple_of(SPOT_CHECK_EVERY)
    }

    /// Loads all names from the database. Stops early when the set is full or `stop` is set.
    fn fill(&self, connection: &Connection, stop: &AtomicBool) -> Result<(), StoreError> {
        let is_over = || self.is_full() || stop.load(Ordering::Relaxed);
        let mut last = Some(String::new());
        while let Some(after) = last.take()
            && !is_over()
        {
            let mut statement = connection.prepare_cached(NAMES_AFTER)?;
            let mut rows = statement.query(rusqlite::params![after, PORTION])?;
            while let Some(row) = rows.next()? {
                let name = row.get_ref(0)?.as_str().unwrap_or_default();
                self.put(self.hash(name));
                let last = last.get_or_insert_default();
                last.clear();
                last.push_str(name);
            }
        }
        let mut last = Some(i64::MIN);
        while let Some(after) = last.take()
            && !is_over()
        {
            let mut statement = connection.prepare_cached(FORGOTTEN_AFTER)?;
            let mut rows = statement.query(rusqlite::params![after, PORTION])?;
            while let Some(row) = rows.next()? {
                let hash: i64 = row.get(0)?;
                self.put(hash.cast_unsigned());
                last = Some(hash);
            }
        }
        if !is_over() {
            self.is_filled.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Part {
    fn has(&self, hash: u64) -> bool {
        let (before, from) = self.slots.split_at(self.place(hash));
        from.iter()
            .chain(before)
            .take_while(|slot| **slot != 0)
            .any(|slot| *slot == hash)
    }

    /// Returns whether the hash was new.
    fn put(&mut self, hash: u64) -> bool {
        if (self.names + 1) * 8 > self.slots.len() * 7 {
            self.grow();
        }
        let place = self.place(hash);
        let (before, from) = self.slots.split_at_mut(place);
        for slot in from.iter_mut().chain(before) {
            if *slot == hash {
                return false;
            }
            if *slot == 0 {
                *slot = hash;
                self.names += 1;
                return true;
            }
        }
        false
    }

    /// Grows by half: then four sevenths of the slots are taken, which is 14 bytes per name.
    fn grow(&mut self) {
        let slots = (self.slots.len() + self.slots.len() / 2).max(SLOTS_MIN);
        let former = std::mem::replace(&mut self.slots, vec![0; slots]);
        self.names = 0;
        for hash in former.into_iter().filter(|slot| *slot != 0) {
            self.put(hash);
        }
    }

    fn place(&self, hash: u64) -> usize {
        scaled(hash & u64::from(u32::MAX), self.slots.len())
    }
}

/// Maps 0, the mark of a free slot, to another hash.
fn taken(hash: u64) -> u64 {
    hash.max(1)
}

/// Scales 32 evenly distributed bits to a number below `places`.
fn scaled(bits: u64, places: usize) -> usize {
    let places = u64::try_from(places).unwrap_or(u64::MAX);
    usize::try_from(bits.wrapping_mul(places) >> 32).unwrap_or(0)
}

fn lock(part: &Mutex<Part>) -> MutexGuard<'_, Part> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
