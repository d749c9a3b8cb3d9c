//! What a walk reads next: a to-do list and a record of what was seen, without I/O.
//!
//! Takes a seed and the contents of the answers. Gives the next step, and in the end the hosts. The
//! walk ends when nothing is left to do, or when the last [`BARREN_MAX`] answers brought neither a
//! new post nor a new host.

use std::collections::BTreeSet;

use protocol::Host;

use super::id::Id;
use super::reading::{Account, Post, Reading};

/// Consecutive answers without anything new that end a walk. Cyclic threads and repeating timelines
/// lead to them.
const BARREN_MAX: u32 = 8;

/// Steps that wait. A walk takes fewer than 40 steps, so more choice than this does not improve it.
const TO_DO_MAX: usize = 1000;

/// A request for one thing to read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Feed,
    Thread(Id),
    /// The accounts that favoured a post.
    Favourites(Id),
    /// The newest posts of an account that is local to the server.
    Account(Id),
}

/// Whether two steps request the same kind of thing.
fn is_same_kind(one: &Step, other: &Step) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

#[derive(Debug)]
pub(super) struct Plan {
    random: Random,
    to_do: Vec<Step>,
    /// Steps that were planned once, done or not.
    planned: BTreeSet<Step>,
    closed: Vec<Step>,
    posts: BTreeSet<Id>,
    hosts: BTreeSet<Host>,
    barren: u32,
}

impl Plan {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: Random(seed),
            to_do: vec![Step::Feed],
            planned: BTreeSet::new(),
            closed: Vec::new(),
            posts: BTreeSet::new(),
            hosts: BTreeSet::new(),
            barren: 0,
        }
    }

    /// The next step; `None` when the walk is over.
    pub(super) fn next(&mut self) -> Option<Step> {
        if self.barren >= BARREN_MAX || self.to_do.is_empty() {
            return None;
        }
        let index = self.random.below(self.to_do.len());
        Some(self.to_do.swap_remove(index))
    }

    /// Adds the contents of the answer to a step.
    pub(super) fn learn(&mut self, step: &Step, reading: Reading) {
        let before = (self.posts.len(), self.hosts.len());
        let is_thread = matches!(step, Step::Thread(_));
        for post in reading.posts {
            // All its posts belong to this same thread.
            if is_thread {
                let around = Step::Thread(post.id.clone());
                self.to_do.retain(|waiting| *waiting != around);
                self.planned.insert(around);
            }
            self.see(post);
        }
        for account in reading.accounts {
            self.meet(account);
        }
        if (self.posts.len(), self.hosts.len()) == before {
            self.barren = self.barren.saturating_add(1);
        } else {
            self.barren = 0;
        }
    }

    /// The server shows neither what this step requests nor anything else of its kind.
    pub(super) fn close(&mut self, step: &Step) {
        self.to_do.retain(|waiting| !is_same_kind(waiting, step));
        self.closed.push(step.clone());
    }

    /// The named hosts, perhaps with the server itself among them, sorted by name. The order in
    /// which they were met is private.
    pub(super) fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter()
    }

    pub(super) fn posts(&self) -> u32 {
        u32::try_from(self.posts.len()).unwrap_or(u32::MAX)
    }

    fn see(&mut self, post: Post) {
        self.hosts.extend(post.origin);
        self.meet(post.author);
        if let Some(boosted) = post.boosted {
            self.see(*boosted);
        } else {
            if post.has_thread {
                self.plan(Step::Thread(post.id.clone()));
            }
            if post.is_favoured {
                self.plan(Step::Favourites(post.id.clone()));
            }
        }
        self.posts.insert(post.id);
    }

    fn meet(&mut self, account: Account) {
        match account.host {
            Some(host) => {
                self.hosts.insert(host);
            }
            None => self.plan(Step::Account(account.id)),
        }
    }

    fn plan(&mut self, step: Step) {
        let is_closed = self.closed.iter().any(|closed| is_same_kind(closed, &step));
        if !is_closed && self.to_do.len() < TO_DO_MAX && self.planned.insert(step.clone()) {
            self.to_do.push(step);
        }
    }
}

/// The generator `SplitMix64`: for choices, not for secrets.
#[derive(Debug)]
struct Random(u64);

impl Random {
    /// A number below `bound`, which is not 0.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(bits.checked_rem(bound).unwrap_or(0)).unwrap_or(0)
    }
}
