//! Names that had no room, kept until there is some.
//!
//! It takes names that were refused because of a full counter, with the source and the time. It
//! returns which names to try first, and the changes to be stored. It holds at most [`WAITING_MAX`]
//! names, and [`WAITING_PER_DOMAIN_MAX`] per registered domain. If it is full, the name with the
//! fewest sources leaves; among equals, the one that has waited longest. A new name without more
//! sources than that one is not kept, with one exception. If the new name's source has fewer
//! waiting names that only it names than another source has, then one of the other source's names
//! leaves. Thus fifty servers with invented lists can't take all places from hundreds of servers
//! that name one host each.
//!
//! The number of independent sources of a name is approximate: each source has one of 64 bits, by
//! its counter's id. The name's own registered domain does not count.
//!
//! A name that is the only one of its registered domain takes about 500 bytes, so all of them take
//! at most 50 MB.

mod sources;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use self::sources::Sources;
use crate::gate::{Room, SourceId};

/// Most names that wait: two days' admissions at the default limit, so that no name waits behind
/// more than can be admitted soon.
pub const WAITING_MAX: usize = 100_000;

/// Most waiting names of one registered domain: five days' admissions by the default rule. Names
/// behind these would wait in vain.
pub const WAITING_PER_DOMAIN_MAX: usize = 100;

/// A waiting name that no source has named for this long is dropped: 30 days. The census has read
/// every server's list of peers several times in this time.
pub const WAIT_SECONDS_MAX: u64 = 30 * 24 * 60 * 60;

/// Resolution of the time when a name was last named, so that repeated naming costs no writes.
const LAST_NAMED_GRAIN_SECONDS: u64 = 24 * 60 * 60;

/// Most changes that wait for a disk that accepts none. Beyond this number no new name is kept.
const UNWRITTEN_MAX: usize = 10_000;

/// The independent sources that named a name: one bit each, which several sources may share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NamedBy(pub u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiter {
    /// What had no room at the last attempt.
    pub room: Room,
    /// When it was first named during this wait, in seconds.
    pub first_named_s: u64,
    /// When it was last named, in seconds, at a day's resolution.
    pub last_named_s: u64,
    /// The source that last named it.
    pub source: SourceId,
    /// The independent sources that named it.
    pub named_by: NamedBy,
}

#[derive(Debug, Clone, Copy)]
pub struct Naming<'name> {
    /// The name, in canonical form.
    pub name: &'name str,
    pub domain: &'name str,
    pub source: SourceId,
    /// Whether the source is not the name's own registered domain.
    pub is_independent: bool,
}

/// A name's rank among all: the least is tried first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// Number of unset bits: names with the most sources come first.
    unnamed: u32,
    /// Among those, the longest wait comes first.
    first_named_s: u64,
    name: Arc<str>,
}

/// A row to be written or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub name: Arc<str>,
    /// The new row. `None` deletes it.
    pub waiter: Option<Waiter>,
}

#[derive(Debug)]
pub struct Waiting {
    waiters: HashMap<Arc<str>, Slot>,
    order: BTreeSet<Rank>,
    domains: HashMap<Arc<str>, Vec<Rank>>,
    /// The sources of names with only one source, or none.
    sources: Sources,
    /// Names whose stored rows are out of date.
    unwritten: BTreeSet<Arc<str>>,
    names_max: usize,
    per_domain_max: usize,
}

#[derive(Debug)]
struct Slot {
    waiter: Waiter,
    domain: Arc<str>,
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            waiters: HashMap::new(),
            order: BTreeSet::new(),
            domains: HashMap::new(),
            sources: Sources::default(),
            unwritten: BTreeSet::new(),
            names_max: WAITING_MAX,
            per_domain_max: WAITING_PER_DOMAIN_MAX,
        }
    }
}

impl NamedBy {
    /// Number of sources, at least.
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }

    fn with(self, naming: &Naming<'_>) -> Self {
        if naming.is_independent {
            Self(
                self.0 | 1_u64.rotate_left(u32::try_from(naming.source.0 % 64).unwrap_or_default()),
            )
        } else {
            self
        }
    }
}

impl Waiting {
    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// The data of a waiting name. `None` if it does not wait.
    pub fn waiter(&self, name: &str) -> Option<&Waiter> {
        self.waiters.get(name).map(|slot| &slot.waiter)
    }

    /// Restores a row that an earlier process wrote. Ignores it if there is no place.
    pub fn put(&mut self, name: &str, domain: &str, waiter: Waiter) {
        let has_place = self.waiters.len() < self.names_max
            && self.of_domain(domain).len() < self.per_domain_max;
        if has_place && !self.waiters.contains_key(name) {
            self.insert(name.into(), domain, waiter);
        } else {
            self.unwritten.insert(name.into());
        }
    }

    /// Whether [`Waiting::name`] would change anything.
    pub fn would_change(&self, naming: &Naming<'_>, now_s: u64) -> bool {
        match self.waiters.get(naming.name) {
            Some(slot) => renewed(&slot.waiter, naming, slot.waiter.room, now_s).is_some(),
            None => self.place(naming).is_some(),
        }
    }

    /// Keeps a name that had no room, or updates one that waits already. Returns whether it waits
    /// now.
    pub fn name(&mut self, naming: &Naming<'_>, room: Room, now_s: u64) -> bool {
        if let Some((name, slot)) = self.waiters.get_key_value(naming.name) {
            if let Some(waiter) = renewed(&slot.waiter, naming, room, now_s) {
                let (name, domain) = (Arc::clone(name), Arc::clone(&slot.domain));
                self.take(&name);
                self.insert(Arc::clone(&name), &domain, waiter);
                self.unwritten.insert(name);
            }
            return true;
        }
        let Some(leaving) = self.place(naming) else {
            return false;
        };
        if let Some(leaving) = leaving {
            self.remove(&leaving.name);
        }
        let waiter = Waiter {
            room,
            first_named_s: now_s,
            last_named_s: now_s,
            source: naming.source,
            named_by: NamedBy::default().with(naming),
        };
        let name: Arc<str> = naming.name.into();
        self.insert(Arc::clone(&name), naming.domain, waiter);
        self.unwritten.insert(name);
        true
    }

    pub fn remove(&mut self, name: &str) {
        if let Some(name) = self.take(name) {
            self.unwritten.insert(name);
        }
    }

    /// Drops up to `most` names that no source has named for [`WAIT_SECONDS_MAX`]. Returns their
    /// number.
    pub fn drop_old(&mut self, most: usize, now_s: u64) -> usize {
        let since = now_s.saturating_sub(WAIT_SECONDS_MAX);
        let old: Vec<_> = self
            .waiters
            .iter()
            .filter(|(_, slot)| slot.waiter.last_named_s < since)
            .map(|(name, _)| Arc::clone(name))
            .take(most)
            .collect();
        old.iter().for_each(|name| self.remove(name));
        old.len()
    }

    /// The next names after `after`, in the order of attempts, at most `most`, with their ranks.
    pub fn next(&self, after: Option<&Rank>, most: usize) -> Vec<(Rank, Waiter)> {
        let from = after.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        self.order
            .range((from, std::ops::Bound::Unbounded))
            .take(most)
            .filter_map(|rank| Some((rank.clone(), *self.waiter(&rank.name)?)))
            .collect()
    }

    /// Takes up to `most` changes that are not written yet.
    pub fn changes(&mut self, most: usize) -> Vec<Change> {
        let mut changes = Vec::new();
        while changes.len() < most
            && let Some(name) = self.unwritten.pop_first()
        {
            let waiter = self.waiter(&name).copied();
            changes.push(Change { name, waiter });
        }
        changes
    }

    /// Queues changes again after a failed write.
    pub fn not_written(&mut self, changes: Vec<Change>) {
        self.unwritten
            .extend(changes.into_iter().map(|change| change.name));
    }

    /// The place for a new name: `None` if there is none, `Some(None)` if one is free, and
    /// `Some(Some(rank))` if that name has to leave for it.
    #[expect(
        clippy::option_option,
        reason = "no place, a free one, and a taken one are three things, and nobody else sees them"
    )]
    fn place(&self, naming: &Naming<'_>) -> Option<Option<Rank>> {
        if self.unwritten.len() >= UNWRITTEN_MAX {
            return None;
        }
        let siblings = self.of_domain(naming.domain);
        let least = if siblings.len() >= self.per_domain_max {
            siblings.iter().max_by_key(|rank| leaving_order(rank))
        } else if self.waiters.len() >= self.names_max {
            self.least_of_all()
        } else {
            return Some(None);
        };
        let least = least?;
        let newcomer = u64::BITS.saturating_sub(NamedBy::default().with(naming).count());
        if newcomer < least.unnamed {
            return Some(Some(least.clone()));
        }
        if siblings.len() >= self.per_domain_max || newcomer > least.unnamed {
            return None;
        }
        self.sources
            .last_of_the_greatest(naming.source)
            .map(|crowded| Some(crowded.clone()))
    }

    /// Among the names with the fewest sources, the one that has waited longest.
    fn least_of_all(&self) -> Option<&Rank> {
        let last = self.order.last()?;
        let first_of_its_kind = Rank {
            unnamed: last.unnamed,
            first_named_s: 0,
            name: "".into(),
        };
        self.order.range(first_of_its_kind..).next()
    }

    fn of_domain(&self, domain: &str) -> &[Rank] {
        self.domains.get(domain).map_or(&[], Vec::as_slice)
    }

    fn insert(&mut self, name: Arc<str>, domain: &str, waiter: Waiter) {
        let rank = Rank::of(&name, &waiter);
        let domain = match self.domains.get_key_value(domain) {
            Some((domain, _)) => Arc::clone(domain),
            None => domain.into(),
        };
        let siblings = self.domains.entry(Arc::clone(&domain)).or_default();
        // Most domains have one name.
        siblings.reserve_exact(1);
        siblings.push(rank.clone());
        if rank.has_one_source() {
            self.sources.insert(waiter.source, rank.clone());
        }
        self.order.insert(rank);
        self.waiters.insert(name, Slot { waiter, domain });
    }

    fn take(&mut self, name: &str) -> Option<Arc<str>> {
        let (name, slot) = self.waiters.remove_entry(name)?;
        let rank = Rank::of(&name, &slot.waiter);
        self.order.remove(&rank);
        self.sources.remove(slot.waiter.source, &rank);
        if let Some(siblings) = self.domains.get_mut(&slot.domain) {
            siblings.retain(|sibling| *sibling != rank);
            if siblings.is_empty() {
                self.domains.remove(&slot.domain);
            }
        }
        Some(name)
    }
}

impl Rank {
    fn has_one_source(&self) -> bool {
        u64::BITS.saturating_sub(self.unnamed) <= 1
    }

    fn of(name: &Arc<str>, waiter: &Waiter) -> Self {
        Self {
            unnamed: u64::BITS.saturating_sub(waiter.named_by.count()),
            first_named_s: waiter.first_named_s,
            name: Arc::clone(name),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The name with the greatest value leaves first.
fn leaving_order(rank: &Rank) -> (u32, std::cmp::Reverse<u64>) {
    (rank.unnamed, std::cmp::Reverse(rank.first_named_s))
}

/// The updated waiter. `None` if no change is worth writing.
fn renewed(waiter: &Waiter, naming: &Naming<'_>, room: Room, now_s: u64) -> Option<Waiter> {
    let named_by = waiter.named_by.with(naming);
    let is_old = now_s.saturating_sub(waiter.last_named_s) >= LAST_NAMED_GRAIN_SECONDS;
    (is_old || named_by != waiter.named_by).then(|| Waiter {
        room,
        last_named_s: now_s.max(waiter.last_named_s),
        source: naming.source,
        named_by,
        ..*waiter
    })
}

#[cfg(test)]
mod tests;
