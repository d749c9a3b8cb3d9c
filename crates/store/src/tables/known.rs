//! Names that are surely known, in memory: what peers lists name again and again costs neither a look-up nor a transaction.
//!
//! In: names that the database was seen to have, as a row or as forgotten. Out: whether a name is among them. Refused: to have the last word, which is the
//! database's: a new name comes in by a statement that does nothing for one that is there. As long as not all names are here, of one that is not nothing
//! follows, and the database is asked; so is it, by chance, for one in [`SPOT_CHECK_EVERY`] of those that are.
//!
//! Which way it may err: a name is kept as 64 keyed bits, so that one in 2⁶⁴ pairs of names look alike. A new name that looks like a known one would be
//! passed over; nobody can bring that about, since the key is secret, and such a name is asked for at the database once in a while as all are, and
//! comes in then. Nothing has to be taken out again: a row only ever goes to be forgotten (`forgotten.rs`), and both count as known. The few that are no longer
//! kept as forgotten, when there are ten million of those, are recognised until the next start.
//!
//! Filled at each start, in the background, and by every answer of the database. At most [`NAMES_MAX`] names, 14 bytes each or less.

pub(crate) mod filling;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use protocol::Host;
use rusqlite::Connection;

use crate::db::error::StoreError;
use crate::tables::forgotten::{self, Key};

/// Most names: 140 MB, for a census that is ten times as large as what this is made for. Names beyond are looked up.
pub(crate) const NAMES_MAX: usize = 10_000_000;

/// One in so many names that are recognised is asked for at the database all the same: a sixty-fourth of the cost of asking for all, and a name that was
/// passed over by mistake is in after some hundred namings.
const SPOT_CHECK_EVERY: u64 = 64;

/// Parts with a lock of their own, which grow by themselves: none takes long, and no more than one is there twice.
const PARTS: usize = 1024;

/// Slots of a part that holds anything.
const SLOTS_MIN: usize = 16;

/// Names read at once when it is filled: some milliseconds, after which the log may be emptied again.
const PORTION: u32 = 10_000;

/// Uses the index of names alone, in its order.
pub(crate) const NAMES_AFTER: &str =
    "SELECT name FROM hosts WHERE name > ?1 ORDER BY name LIMIT ?2";

pub(crate) const FORGOTTEN_AFTER: &str =
    "SELECT hash FROM forgotten WHERE hash > ?1 ORDER BY hash LIMIT ?2";

/// The names. Shared by all who name any.
#[derive(Debug)]
pub(crate) struct KnownNames {
    key: Key,
    parts: Box<[Mutex<Part>]>,
    names: AtomicUsize,
    names_max: usize,
    /// All that the database had at the start is here.
    is_filled: AtomicBool,
    /// Names recognised so far, for the choice of spot checks.
    recognised: AtomicU64,
}

/// A set of hashes with open addressing, at most seven eighths full. 0 is a free slot.
#[derive(Debug, Default)]
struct Part {
    slots: Vec<u64>,
    names: usize,
}

impl KnownNames {
    /// None yet. `key` is the one that forgotten names are hashed by, so that those can be put in without their names.
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

    /// Whether the database need not be asked for this name: it is known, or forgotten.
    pub(crate) fn recognises(&self, host: &Host) -> bool {
        self.has(self.hash(host.as_str())) && !self.is_spot_check()
    }

    /// Whether the database has no such name, unless it came in at this moment.
    pub(crate) fn is_new(&self, host: &Host) -> bool {
        // In this order: one that came in since it was looked for is here, or there is no room for it, and then it is full.
        let is_here = self.has(self.hash(host.as_str()));
        !is_here && self.is_filled.load(Ordering::Relaxed) && !self.is_full()
    }

    /// The database has this name: as a row that is committed, or as forgotten.
    pub(crate) fn learn(&self, host: &Host) {
        self.put(self.hash(host.as_str()));
    }

    /// How many there are.
    pub(crate) fn names(&self) -> usize {
        self.names.load(Ordering::Relaxed)
    }

    /// The memory that they take.
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

    /// By the upper bits; the place within the part goes by the lower ones.
    fn part(&self, hash: u64) -> Option<MutexGuard<'_, Part>> {
        let place = scaled(hash >> 32, PARTS);
        self.parts.get(place).map(lock)
    }

    fn is_spot_check(&self) -> bool {
        let mut z = self.recognised.fetch_add(1, Ordering::Relaxed) + 1;
        // Mixed (splitmix64), or a list of as many names as that would have the same ones checked each time.
        z = z.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z >> 32).is_multiple_of(SPOT_CHECK_EVERY)
    }

    /// Puts in all that the database has; ends early when it is full or told to.
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

    /// Gives whether it was not there.
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

    /// By half: four sevenths of it are taken then, which is 14 bytes a name.
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

/// Any hash but that of a free slot.
fn taken(hash: u64) -> u64 {
    hash.max(1)
}

/// 32 evenly spread bits, as a place among so many.
fn scaled(bits: u64, places: usize) -> usize {
    let places = u64::try_from(places).unwrap_or(u64::MAX);
    usize::try_from(bits.wrapping_mul(places) >> 32).unwrap_or(0)
}

fn lock(part: &Mutex<Part>) -> MutexGuard<'_, Part> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
