//! How the room for checks is shared among the classes of due hosts.
//!
//! In: the room, what is under way, and who waits. Out: how many of each class are taken. Refused: more than there is room for; leaving room unused
//! while anybody waits.
//!
//! Two rules, one after the other. *By what is held*: of those who wait, the classes that hold less than their share of all places go first. A class
//! whose checks take long (dead hosts wait for time-outs) would otherwise come to hold all places, however seldom one of them is started. *By turns*:
//! what is left goes round in the proportion of the weights, by stride scheduling: each class has a moment at which it is next, the earliest is
//! taken, and its moment moves on by a stride that is the shorter the larger its weight is. So the proportion holds also where there is one place.
//! Rejected: a quota a class, which leaves room idle; the oldest due of all, which a backlog of the dead fills for days.

use census::class::{Class, PerClass};

/// Nineteenths of the room that a class has while all of them wait. The living are the list, and a million of them are most of an ordinary day's checks;
/// new names are what the census grows by; one that failed loses little by an hour, and a dead one by a day. Where only the living and the dead wait for an
/// engine that can do half of what both need, the dead have one start in thirteen: with one in seven the living were left less than nine tenths of it.
const WEIGHTS: PerClass<u32> = PerClass {
    living: 12,
    new: 4,
    retry: 2,
    dead: 1,
};

/// Divisible by each of [`WEIGHTS`], so that strides are exact.
const ROUND: u64 = 60;

/// How much room there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Room {
    /// Hosts that may be taken now.
    pub free: u32,
    /// Hosts that may be under way at once.
    pub most: u32,
    /// Hosts that are under way.
    pub in_progress: PerClass<u32>,
}

impl Room {
    /// Of so many places, all of them free.
    pub fn empty(places: u32) -> Self {
        Self {
            free: places,
            most: places,
            in_progress: PerClass::default(),
        }
    }
}

/// Whose turn it is: remembered from one division to the next, so that small rooms add up to fair shares.
///
/// Nobody saves up turns: who did not wait, or could not be served, is as near to its turn as whoever was served last, and no nearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shares {
    /// When each class is next, in strides since the one that is furthest behind.
    next: PerClass<u64>,
}

impl Shares {
    /// How many of each class are taken. All of them together are `room.free`, or all who wait where those are fewer.
    ///
    /// `waiting` may stop counting at `room.free`.
    pub fn divide(&mut self, room: Room, waiting: PerClass<u32>) -> PerClass<u32> {
        let active = weight_of(|class| has_any(&room, &waiting, class));
        let mut granted = PerClass::<u32>::default();
        for _ in 0..room.free {
            let waits = |class: &Class| waiting.of(*class) > granted.of(*class);
            let is_short = |class: &Class| {
                let holds = room
                    .in_progress
                    .of(*class)
                    .saturating_add(*granted.of(*class));
                holds < guaranteed(*class, room.most, active)
            };
            let all = || Class::ALL.into_iter().filter(waits);
            let Some(class) = self
                .first(all().filter(is_short))
                .or_else(|| self.first(all()))
            else {
                break;
            };
            self.serve(class);
            let count = granted.of_mut(class);
            *count = count.saturating_add(1);
        }
        granted
    }

    fn first(&self, classes: impl Iterator<Item = Class>) -> Option<Class> {
        classes.min_by_key(|class| *self.next.of(*class))
    }

    fn serve(&mut self, class: Class) {
        let turn = *self.next.of(class);
        let stride = ROUND
            .checked_div(u64::from(*WEIGHTS.of(class)))
            .unwrap_or(ROUND);
        let next = PerClass::each(|other| {
            if other == class {
                turn.saturating_add(stride)
            } else {
                turn.max(*self.next.of(other))
            }
        });
        let least = Class::ALL.into_iter().map(|class| *next.of(class)).min();
        let least = least.unwrap_or_default();
        self.next = PerClass::each(|class| next.of(class).saturating_sub(least));
    }
}

/// Places that a class is not kept from while it wants them: its weight among the classes that want any. What does not divide evenly goes by turns.
fn guaranteed(class: Class, most: u32, active: u32) -> u32 {
    most.saturating_mul(*WEIGHTS.of(class))
        .checked_div(active)
        .unwrap_or(0)
}

fn has_any(room: &Room, waiting: &PerClass<u32>, class: Class) -> bool {
    *waiting.of(class) > 0 || *room.in_progress.of(class) > 0
}

fn weight_of(is_active: impl Fn(Class) -> bool) -> u32 {
    Class::ALL
        .into_iter()
        .filter(|class| is_active(*class))
        .fold(0, |sum: u32, class| sum.saturating_add(*WEIGHTS.of(class)))
}

#[cfg(test)]
mod tests;
