//! Who is under way, and how many places among the containers they need.
//!
//! In: hosts by class, as their checks begin, are opened and end. Out: the room that is left. Refused: nothing; whoever is taken beyond the room waits for
//! a place.
//!
//! Most hosts of a backlog of the dead have no name, refuse the connection or never answer: they cost a look-up and never need a place. Were each of
//! them counted as one, some dozens that wait for time-outs would keep all others from being opened. So a host that is still being opened counts as
//! the part of a place that hosts of its class have needed lately, and as a whole one once it is opened. A host of the living always counts as a whole
//! one: nearly all of them answer. Rejected: a number of openings of its own beside the places, which half of the dead, those that accept a
//! connection, would turn into a queue that the living stand behind.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use census::class::{Class, PerClass};
use census::share::Room;

/// Parts of a place, in which needs are counted.
const PLACE: u32 = 1024;

/// The least that a host being opened counts as: so many to a place. Were all of them to answer at once, 64 containers would work them off within the
/// time that whoever is opened waits.
pub const OPENINGS_PER_PLACE: u32 = 32;

/// What a class needs moves by this part of the difference with each host that was opened or was not: some thirty tell what a class is like.
const LEARNED_PART: u32 = 32;

/// Hosts under way, by class. Cheap to clone: they are shared.
#[derive(Debug, Clone, Default)]
pub struct UnderWay(Arc<PerClass<Counts>>);

#[derive(Debug)]
struct Counts {
    /// All of them.
    all: AtomicU32,
    /// Of them, those that are being resolved and dialled.
    opening: AtomicU32,
    /// Parts of a place that a host of this class has needed lately.
    needs: AtomicU32,
}

impl Default for Counts {
    /// Nothing is known of a class: each of its hosts may need a place.
    fn default() -> Self {
        Self {
            all: AtomicU32::default(),
            opening: AtomicU32::default(),
            needs: AtomicU32::new(PLACE),
        }
    }
}

/// A host that counts as under way until this is dropped: with its check's task, however that ends.
#[derive(Debug)]
pub struct Counted {
    among: UnderWay,
    class: Class,
    is_opening: bool,
}

/// Whether a host that was to be opened needs a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// It accepted a connection.
    Place,
    /// It has no name, or nobody answers.
    Nothing,
}

impl UnderWay {
    /// Counts one that is being opened.
    pub fn enter(&self, class: Class) -> Counted {
        let counts = self.0.of(class);
        counts.all.fetch_add(1, Ordering::Relaxed);
        counts.opening.fetch_add(1, Ordering::Relaxed);
        Counted {
            among: self.clone(),
            class,
            is_opening: true,
        }
    }

    /// How many there are, by the name of their class.
    pub fn by_name(&self) -> BTreeMap<String, u32> {
        let counts = self.counts();
        let named = |class: Class| (class.as_str().to_owned(), *counts.of(class));
        Class::ALL.into_iter().map(named).collect()
    }

    /// How many there are.
    pub fn counts(&self) -> PerClass<u32> {
        PerClass::each(|class| self.0.of(class).all.load(Ordering::Relaxed))
    }

    /// What is left of `most` places.
    pub fn room(&self, most: u32) -> Room {
        let parts = PerClass::each(|class| self.parts(class));
        let places = parts.sum().checked_div(PLACE).unwrap_or(0);
        Room {
            free: most.saturating_sub(places),
            most,
            under_way: PerClass::each(|class| parts.of(class).checked_div(PLACE).unwrap_or(0)),
        }
    }

    fn parts(&self, class: Class) -> u32 {
        let counts = self.0.of(class);
        let opening = counts.opening.load(Ordering::Relaxed);
        let opened = counts.all.load(Ordering::Relaxed).saturating_sub(opening);
        let needs = match class {
            Class::Living => PLACE,
            Class::New | Class::Retry | Class::Dead => counts
                .needs
                .load(Ordering::Relaxed)
                .max(PLACE / OPENINGS_PER_PLACE),
        };
        opened
            .saturating_mul(PLACE)
            .saturating_add(opening.saturating_mul(needs))
    }
}

impl Counted {
    /// The class that it counts among.
    pub fn class(&self) -> Class {
        self.class
    }

    /// What came of opening it. Not to be told of one that was put off before anything was learned.
    pub fn was_opened(&mut self, needs: Needs) {
        let counts = self.among.0.of(self.class);
        let now = match needs {
            Needs::Place => PLACE,
            Needs::Nothing => 0,
        };
        let learn = |before: u32| {
            // Rounded away from where it is, so that it arrives.
            let step = now.abs_diff(before).div_ceil(LEARNED_PART);
            Some(if now > before {
                before.saturating_add(step)
            } else {
                before.saturating_sub(step)
            })
        };
        counts
            .needs
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, learn)
            .ok();
        if needs == Needs::Place && std::mem::take(&mut self.is_opening) {
            counts.opening.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let counts = self.among.0.of(self.class);
        if self.is_opening {
            counts.opening.fetch_sub(1, Ordering::Relaxed);
        }
        counts.all.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `count` hosts of a class that came to `needs`, one after the other.
    fn learn(under_way: &UnderWay, class: Class, needs: Needs, count: u32) {
        for _ in 0..count {
            under_way.enter(class).was_opened(needs);
        }
    }

    fn enter(under_way: &UnderWay, class: Class, count: u32) -> Vec<Counted> {
        (0..count).map(|_| under_way.enter(class)).collect()
    }

    #[test]
    fn a_host_is_under_way_until_its_task_is_gone() {
        let under_way = UnderWay::default();
        let (mut one, other) = (under_way.enter(Class::Dead), under_way.enter(Class::Dead));
        let _new = under_way.enter(Class::New);
        one.was_opened(Needs::Place);
        drop(one);
        let counts = under_way.counts();
        assert_eq!((counts.dead, counts.new, counts.sum()), (1, 1, 2));
        drop(other);
        assert_eq!(under_way.counts().dead, 0);
        assert_eq!(under_way.room(16).free, 15);
    }

    #[test]
    fn of_whom_nothing_is_known_each_counts_as_a_place() {
        let under_way = UnderWay::default();
        let _dead = enter(&under_way, Class::Dead, 16);
        assert_eq!(under_way.room(16).free, 0);
    }

    #[test]
    fn hundreds_of_dead_hosts_that_are_looked_up_take_no_places_from_the_living() {
        let under_way = UnderWay::default();
        learn(&under_way, Class::Dead, Needs::Nothing, 300);
        let _dead = enter(&under_way, Class::Dead, 31);
        assert_eq!(under_way.room(16).free, 16);
        let _more = enter(&under_way, Class::Dead, 161);
        let room = under_way.room(16);
        assert_eq!((room.free, room.under_way.dead), (10, 6));
        let _living = enter(&under_way, Class::Living, 10);
        assert_eq!(under_way.room(16).free, 0);
    }

    #[test]
    fn the_dead_that_accept_connections_count_as_much_as_they_need() {
        let under_way = UnderWay::default();
        for _ in 0..200 {
            learn(&under_way, Class::Dead, Needs::Nothing, 1);
            learn(&under_way, Class::Dead, Needs::Place, 1);
        }
        let _dead = enter(&under_way, Class::Dead, 16);
        let held = under_way.room(16).under_way.dead;
        assert!((7..=9).contains(&held), "{held}");
        // Of one that is opened it is known.
        let mut opened = enter(&under_way, Class::Retry, 1);
        learn(&under_way, Class::Retry, Needs::Nothing, 300);
        opened[0].was_opened(Needs::Place);
        assert_eq!(under_way.room(16).under_way.retry, 1);
    }

    #[test]
    fn a_living_host_counts_as_a_place_though_all_of_them_failed_lately() {
        let under_way = UnderWay::default();
        learn(&under_way, Class::Living, Needs::Nothing, 300);
        let _living = enter(&under_way, Class::Living, 5);
        assert_eq!(under_way.room(16).free, 11);
    }

    #[test]
    fn a_class_that_comes_to_life_is_known_for_it_within_some_dozens() {
        let under_way = UnderWay::default();
        learn(&under_way, Class::Dead, Needs::Nothing, 1000);
        learn(&under_way, Class::Dead, Needs::Place, 64);
        let _dead = enter(&under_way, Class::Dead, 100);
        assert!(under_way.room(100).under_way.dead >= 80);
    }
}
