//! The waiting names that only one source names, grouped by that source.
//!
//! The caller adds and removes names. [`Sources::last_of_the_greatest`] returns the name that may
//! leave for one of a smaller source.

use std::collections::{BTreeSet, HashMap};

use super::Rank;
use crate::gate::SourceId;

/// All sources with waiting names.
#[derive(Debug, Default)]
pub(super) struct Sources {
    ranks: HashMap<SourceId, BTreeSet<Rank>>,
    /// The sources by their number of names.
    by_size: BTreeSet<(usize, u64)>,
}

impl Sources {
    pub(super) fn insert(&mut self, source: SourceId, rank: Rank) {
        let ranks = self.ranks.entry(source).or_default();
        let before = ranks.len();
        ranks.insert(rank);
        let after = ranks.len();
        self.resize(source, before, after);
    }

    pub(super) fn remove(&mut self, source: SourceId, rank: &Rank) {
        let Some(ranks) = self.ranks.get_mut(&source) else {
            return;
        };
        let before = ranks.len();
        ranks.remove(rank);
        let after = ranks.len();
        if after == 0 {
            self.ranks.remove(&source);
        }
        self.resize(source, before, after);
    }

    /// The last name of the source with the most names. `None` if `newcomer`, with one more name,
    /// would have as many.
    pub(super) fn last_of_the_greatest(&self, newcomer: SourceId) -> Option<&Rank> {
        let (size, greatest) = self.by_size.last()?;
        let own = self.ranks.get(&newcomer).map_or(0, BTreeSet::len);
        if own.saturating_add(1) >= *size {
            return None;
        }
        self.ranks.get(&SourceId(*greatest))?.last()
    }

    fn resize(&mut self, source: SourceId, before: usize, after: usize) {
        self.by_size.remove(&(before, source.0));
        if after > 0 {
            self.by_size.insert((after, source.0));
        }
    }
}
