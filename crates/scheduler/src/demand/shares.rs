//! Divides the room for checks among the classes of due hosts.
//!
//! It takes the room, the checks in progress and the waiting hosts, and returns how many of each
//! class to take. It never takes more than there is room for, and leaves no room unused while hosts
//! wait.
//!
//! Two rules apply, one after the other. *By holding*: waiting classes that hold less than their
//! share of all slots go first. Otherwise a class whose checks take long (dead hosts wait for
//! timeouts) would end up with all slots, however rarely one of its checks starts. *By turns*: the
//! rest is divided in proportion to the weights, by stride scheduling. Each class has a time of its
//! next turn; the earliest goes first, and its time moves on by a stride that is shorter for a
//! larger weight. So the proportion holds even for a single slot. Rejected: a quota per class,
//! which leaves room idle; the longest due first, which a backlog of dead hosts fills for days.

use census::class::{Class, PerClass};

/// Nineteenths of the room per class while all of them wait. Living hosts form the list, and a
/// million of them are most of an ordinary day's checks. New names make the census grow. A failed
/// host loses little by an hour's delay, and a dead one by a day's. If only living and dead hosts
/// wait for an engine that can do half of what both need, dead hosts get one start in thirteen.
/// With one in seven, living hosts got less than nine tenths of what the engine can do.
const WEIGHTS: PerClass<u32> = PerClass {
    living: 12,
    new: 4,
    retry: 2,
    dead: 1,
};

/// Divisible by each of [`WEIGHTS`], so that strides are exact.
const ROUND: u64 = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Room {
    /// Hosts that may be taken now.
    pub free: u32,
    /// Most checks in progress at once.
    pub most: u32,
    pub in_progress: PerClass<u32>,
}

impl Room {
    /// Room for this number of checks, none in progress.
    pub fn empty(places: u32) -> Self {
        Self {
            free: places,
            most: places,
            in_progress: PerClass::default(),
        }
    }
}

/// Each class's next turn, remembered from one division to the next, so that small rooms add up to
/// fair shares.
///
/// Turns can't be saved up: a class that did not wait, or could not be served, is as near to its
/// turn as the class that was served last, and no nearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shares {
    /// Each class's next turn, in strides since the class that is furthest behind.
    next: PerClass<u64>,
}

impl Shares {
    /// How many of each class to take: `room.free` in total, or all waiting hosts if they are
    /// fewer.
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

/// Slots that a class can claim while it wants them: its weight among the classes that want any.
/// The remainder of the division is given out in turn.
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
