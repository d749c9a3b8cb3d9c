//! Names that day files may keep, remembered in fixed memory.
//!
//! A set of host names that were inserted lately. When it is full, a new name replaces an older
//! one, which is then looked up again.

use std::hash::{BuildHasher as _, RandomState};

/// Names that share a place: half a cache line of the processor.
const SHARING: usize = 4;

/// With [`SHARING`] marks of 8 bytes each, these places take 16 MiB. Of a million names, one in
/// forty is lost and looked up again.
const PLACES: usize = 1 << 19;

const FREE: u64 = 0;

#[derive(Debug)]
pub(super) struct RecentNames {
    /// New for each dump, so that nobody can search for two names that collide. A chance collision
    /// does not recur in the next dump.
    key: RandomState,
    places: Vec<[u64; SHARING]>,
}

impl Default for RecentNames {
    fn default() -> Self {
        Self::with_places(PLACES)
    }
}

impl RecentNames {
    fn with_places(places: usize) -> Self {
        Self {
            key: RandomState::new(),
            places: vec![[FREE; SHARING]; places],
        }
    }

    pub(super) fn insert(&mut self, host: &str) {
        let (place, mark) = self.find(host);
        let Some(marks) = self.places.get_mut(place) else {
            return;
        };
        if marks.contains(&mark) {
            return;
        }
        // Newest first, and the oldest is dropped, so that memory keeps the names of recent days
        // instead of the earliest ones.
        marks.rotate_right(1);
        if let Some(first) = marks.first_mut() {
            *first = mark;
        }
    }

    pub(super) fn contains(&self, host: &str) -> bool {
        let (place, mark) = self.find(host);
        self.places
            .get(place)
            .is_some_and(|marks| marks.contains(&mark))
    }

    fn find(&self, host: &str) -> (usize, u64) {
        let mark = self.key.hash_one(host).max(FREE + 1);
        let places = u64::try_from(self.places.len()).unwrap_or(u64::MAX);
        let place = mark.checked_rem(places).unwrap_or_default();
        (usize::try_from(place).unwrap_or_default(), mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(many: u32) -> impl Iterator<Item = String> {
        (0..many).map(|number| format!("h{number}.example"))
    }

    #[test]
    fn who_was_told_is_known_while_there_is_room_and_nobody_else_ever_is() {
        let mut recent = RecentNames::with_places(1 << 10);
        names(1000).for_each(|name| recent.insert(&name));
        let known = names(1000).filter(|name| recent.contains(name)).count();
        assert!(known > 980, "{known}");
        assert!(!names(50_000).skip(1000).any(|name| recent.contains(&name)));
    }

    #[test]
    fn where_it_is_full_the_last_ones_are_known() {
        let mut recent = RecentNames::with_places(1);
        names(9).for_each(|name| recent.insert(&name));
        let known: Vec<String> = names(9).filter(|name| recent.contains(name)).collect();
        assert_eq!(known, names(9).skip(9 - SHARING).collect::<Vec<_>>());
    }
}
