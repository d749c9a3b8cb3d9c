//! Checks in progress by class, and the slots for containers that they need.
//!
//! Most hosts in a backlog of class `dead` have no name, refuse the connection or never answer.
//! They cost a look-up and never need a slot. If each counted as one slot, a few dozen that wait
//! for timeouts would block all others. So a host that is still being opened counts as a fraction
//! of a slot, which its class has needed lately, and as a whole slot once it is opened. A host of
//! class `living` always counts as a whole slot: nearly all of them answer. Rejected: a separate
//! number of openings next to the slots. Half of all dead hosts accept a connection, and these
//! would form a queue in front of responding instances.

use census::class::{Class, PerClass};

use super::shares::Room;

/// Parts of a slot: the unit in which needs are counted.
const SLOT: u32 = 1024;

/// Most hosts being opened per slot. If all of them answered at once, 64 containers would finish
/// them within the time that a check waits for a slot.
pub const OPENINGS_PER_SLOT: u32 = 32;

/// After each host, a class's need moves by the difference divided by this. About thirty hosts show
/// what a class needs.
const LEARNED_PART: u32 = 32;

/// Whether a host needs a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotDemand {
    One,
    /// It has no name, or does not answer.
    None,
}

#[derive(Debug, Default)]
pub(crate) struct InProgress(PerClass<Counts>);

#[derive(Debug, Clone, Copy)]
struct Counts {
    all: u32,
    /// Those whose host is being resolved and dialled.
    opening: u32,
    /// Parts of a slot that a host of this class has needed lately.
    needs: u32,
}

impl Default for Counts {
    /// As long as a class is unknown, each of its hosts may need a slot.
    fn default() -> Self {
        Self {
            all: 0,
            opening: 0,
            needs: SLOT,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its host is being resolved and dialled.
    Opening,
    /// Its host accepted a connection.
    Opened,
}

impl InProgress {
    /// Records that a host is being opened.
    pub(crate) fn enter(&mut self, class: Class) {
        let counts = self.0.of_mut(class);
        counts.all = counts.all.saturating_add(1);
        counts.opening = counts.opening.saturating_add(1);
    }

    /// Records whether the host needs a slot. Returns the check's next stage.
    pub(crate) fn opened(&mut self, class: Class, demand: SlotDemand) -> Stage {
        let counts = self.0.of_mut(class);
        let (now, stage) = match demand {
            SlotDemand::One => (SLOT, Stage::Opened),
            SlotDemand::None => (0, Stage::Opening),
        };
        // Rounded up, so that it reaches its target.
        let step = now.abs_diff(counts.needs).div_ceil(LEARNED_PART);
        counts.needs = if now > counts.needs {
            counts.needs.saturating_add(step)
        } else {
            counts.needs.saturating_sub(step)
        };
        if stage == Stage::Opened {
            counts.opening = counts.opening.saturating_sub(1);
        }
        stage
    }

    /// Records that a check ended.
    pub(crate) fn leave(&mut self, class: Class, stage: Stage) {
        let counts = self.0.of_mut(class);
        counts.all = counts.all.saturating_sub(1);
        if stage == Stage::Opening {
            counts.opening = counts.opening.saturating_sub(1);
        }
    }

    /// Number of checks by class.
    pub(crate) fn counts(&self) -> PerClass<u32> {
        PerClass::each(|class| self.0.of(class).all)
    }

    /// What is left of `most` slots.
    pub(crate) fn room(&self, most: u32) -> Room {
        let parts = PerClass::each(|class| self.parts(class));
        let slots = parts.sum().checked_div(SLOT).unwrap_or(0);
        Room {
            free: most.saturating_sub(slots),
            most,
            in_progress: PerClass::each(|class| parts.of(class).checked_div(SLOT).unwrap_or(0)),
        }
    }

    fn parts(&self, class: Class) -> u32 {
        let counts = self.0.of(class);
        let opened = counts.all.saturating_sub(counts.opening);
        let needs = match class {
            Class::Living => SLOT,
            Class::New | Class::Retry | Class::Dead => counts.needs.max(SLOT / OPENINGS_PER_SLOT),
        };
        opened
            .saturating_mul(SLOT)
            .saturating_add(counts.opening.saturating_mul(needs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records `count` hosts of a class with this demand, one after the other.
    fn learn(checks: &mut InProgress, class: Class, demand: SlotDemand, count: u32) {
        for _ in 0..count {
            checks.enter(class);
            let stage = checks.opened(class, demand);
            checks.leave(class, stage);
        }
    }

    fn enter(checks: &mut InProgress, class: Class, count: u32) {
        (0..count).for_each(|_| checks.enter(class));
    }

    #[test]
    fn a_check_is_in_progress_until_it_ends() {
        let mut checks = InProgress::default();
        enter(&mut checks, Class::Dead, 2);
        checks.enter(Class::New);
        let stage = checks.opened(Class::Dead, SlotDemand::One);
        checks.leave(Class::Dead, stage);
        let counts = checks.counts();
        assert_eq!((counts.dead, counts.new, counts.sum()), (1, 1, 2));
        checks.leave(Class::Dead, Stage::Opening);
        assert_eq!(checks.counts().dead, 0);
        assert_eq!(checks.room(16).free, 15);
    }

    #[test]
    fn of_a_class_that_is_not_known_each_host_counts_as_a_slot() {
        let mut checks = InProgress::default();
        enter(&mut checks, Class::Dead, 16);
        assert_eq!(checks.room(16).free, 0);
    }

    #[test]
    fn hundreds_of_dead_hosts_that_are_looked_up_take_no_slots_from_the_living() {
        let mut checks = InProgress::default();
        learn(&mut checks, Class::Dead, SlotDemand::None, 300);
        enter(&mut checks, Class::Dead, 31);
        assert_eq!(checks.room(16).free, 16);
        enter(&mut checks, Class::Dead, 161);
        let room = checks.room(16);
        assert_eq!((room.free, room.in_progress.dead), (10, 6));
        enter(&mut checks, Class::Living, 10);
        assert_eq!(checks.room(16).free, 0);
    }

    #[test]
    fn dead_hosts_that_accept_connections_count_as_much_as_they_need() {
        let mut checks = InProgress::default();
        for _ in 0..200 {
            learn(&mut checks, Class::Dead, SlotDemand::None, 1);
            learn(&mut checks, Class::Dead, SlotDemand::One, 1);
        }
        enter(&mut checks, Class::Dead, 16);
        let held = checks.room(16).in_progress.dead;
        assert!((7..=9).contains(&held), "{held}");
        // An opened host needs a slot for certain.
        learn(&mut checks, Class::Retry, SlotDemand::None, 300);
        checks.enter(Class::Retry);
        checks.opened(Class::Retry, SlotDemand::One);
        assert_eq!(checks.room(16).in_progress.retry, 1);
    }

    #[test]
    fn a_host_of_class_living_counts_as_a_slot_though_all_of_them_failed_lately() {
        let mut checks = InProgress::default();
        learn(&mut checks, Class::Living, SlotDemand::None, 300);
        enter(&mut checks, Class::Living, 5);
        assert_eq!(checks.room(16).free, 11);
    }

    #[test]
    fn a_class_that_begins_to_answer_is_known_for_it_within_some_dozens() {
        let mut checks = InProgress::default();
        learn(&mut checks, Class::Dead, SlotDemand::None, 1000);
        learn(&mut checks, Class::Dead, SlotDemand::One, 64);
        enter(&mut checks, Class::Dead, 100);
        assert!(checks.room(100).in_progress.dead >= 80);
    }
}
