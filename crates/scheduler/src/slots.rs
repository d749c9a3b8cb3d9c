//! Slots for containers: as many as the engine sustains, granted in the order of the requests.
//!
//! If the number falls, no holder loses its slot: freed slots are not granted again.

pub mod concurrency;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use census::time::Timestamp;

use crate::event::SlotHolder;
use concurrency::{Bounds, Concurrency, Pressure, Started};

/// Waiters per slot before holders that may be turned away are. It equals the most hosts that are
/// opened per slot. More arrive only if many hosts accept connections whose class rarely did
/// before.
const WAITING_PER_SLOT: u32 = 8;

/// While checks are throttled, the number of slots is divided by this, but at least one remains. If
/// containers have more runnable processes than there are processors, other work gets a tenth of
/// one.
const THROTTLE_PART: u32 = 4;

/// Longest wait for a slot, with the host's connection open: two slow checks in each slot before
/// it. The gateway keeps an unused way open for longer.
pub const SLOT_WAIT_MAX: Duration = Duration::from_secs(120);

/// What happens to a holder while many wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    Waits,
    /// It is turned away, so that others wait less.
    TurnedAway,
}

/// Whether fewer checks run, so that other work of ours gets a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Throttle {
    Off,
    On,
}

#[derive(Debug)]
pub(crate) struct Slots {
    concurrency: Concurrency,
    throttle: Throttle,
    held: HashMap<SlotHolder, Held>,
    /// In the order of their requests.
    waiting: VecDeque<(SlotHolder, Timestamp)>,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    since: Timestamp,
    /// Slots in use at that time, including its own.
    taken: u32,
}

impl Slots {
    pub(crate) fn new(bounds: Bounds, now: Timestamp) -> Self {
        Self {
            concurrency: Concurrency::new(bounds, now),
            throttle: Throttle::Off,
            held: HashMap::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Requests a slot.
    ///
    /// - `true` if the holder waits; [`Slots::grant`] returns it when its turn comes
    /// - `false` if it is turned away, because many wait
    pub(crate) fn ask(&mut self, holder: SlotHolder, patience: Patience, now: Timestamp) -> bool {
        // Not reduced by the throttle, which is short.
        let most = self.concurrency.allowed().saturating_mul(WAITING_PER_SLOT);
        if patience == Patience::TurnedAway && count(self.waiting.len()) >= most {
            return false;
        }
        self.waiting.push_back((holder, now));
        true
    }

    /// Grants free slots. Returns their holders.
    pub(crate) fn grant(&mut self, now: Timestamp) -> Vec<SlotHolder> {
        let mut granted = Vec::new();
        while count(self.held.len()) < self.allowed()
            && let Some((holder, _)) = self.waiting.pop_front()
        {
            let taken = count(self.held.len()).saturating_add(1);
            self.held.insert(holder, Held { since: now, taken });
            granted.push(holder);
        }
        granted
    }

    /// Removes waiters that have waited too long, and returns them.
    pub(crate) fn expire(&mut self, now: Timestamp) -> Vec<SlotHolder> {
        let (late, still) = self
            .waiting
            .drain(..)
            .partition(|(_, since)| now.since(*since) >= SLOT_WAIT_MAX);
        self.waiting = still;
        let late: VecDeque<_> = late;
        late.into_iter().map(|(holder, _)| holder).collect()
    }

    /// Frees the holder's slot, or its place in the queue.
    pub(crate) fn give_back(&mut self, holder: SlotHolder) {
        if self.held.remove(&holder).is_none() {
            self.waiting.retain(|(other, _)| *other != holder);
        }
    }

    /// The container in the holder's slot gave its first output.
    pub(crate) fn started(&mut self, holder: SlotHolder, now: Timestamp) {
        if let Some(held) = self.held.get(&holder) {
            let started = Started {
                took: now.since(held.since),
                in_progress: held.taken,
                asked: held.since,
            };
            self.concurrency.started(started, now);
        }
    }

    /// The engine failed to run the container in the holder's slot.
    pub(crate) fn engine_failed(&mut self, holder: SlotHolder, now: Timestamp) {
        if let Some(held) = self.held.get(&holder) {
            self.concurrency.failed(held.since, now);
        }
    }

    /// The machine's pressure was measured.
    pub(crate) fn pressure(&mut self, pressure: Pressure, now: Timestamp) {
        self.concurrency.pressure(pressure, now);
    }

    pub(crate) fn throttle(&mut self, throttle: Throttle) {
        self.throttle = throttle;
    }

    /// The clock was set: waits can't be compared across that.
    pub(crate) fn clock_was_set(&mut self, now: Timestamp) {
        self.concurrency.clock_was_set(now);
        self.waiting.iter_mut().for_each(|(_, since)| *since = now);
        self.held.values_mut().for_each(|held| held.since = now);
    }

    /// Containers that may run at once now.
    pub(crate) fn allowed(&self) -> u32 {
        let allowed = self.concurrency.allowed();
        match self.throttle {
            Throttle::Off => allowed,
            Throttle::On => (allowed / THROTTLE_PART).max(1),
        }
    }

    pub(crate) fn bounds(&self) -> Bounds {
        self.concurrency.bounds()
    }

    /// Containers that run, or are about to.
    pub(crate) fn taken(&self) -> u32 {
        count(self.held.len())
    }

    pub(crate) fn are_waited_for(&self) -> bool {
        !self.waiting.is_empty()
    }
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_700_000_000_000);

    fn slots(least: u32, most: u32) -> Slots {
        Slots::new(Bounds { least, most }, NOW)
    }

    fn reading(number: u64) -> SlotHolder {
        SlotHolder::Reading(number)
    }

    /// Requests slots for these numbers. Returns the holders that get one.
    fn ask(slots: &mut Slots, numbers: std::ops::Range<u64>) -> Vec<SlotHolder> {
        for number in numbers {
            assert!(slots.ask(reading(number), Patience::Waits, NOW));
        }
        slots.grant(NOW)
    }

    /// Makes successful starts until this number is allowed.
    fn grown(least: u32, most: u32) -> Slots {
        let (mut slots, mut now) = (slots(least, most), NOW);
        for round in 0..1000 {
            if slots.allowed() == most {
                return slots;
            }
            let holder = |number: u32| reading(u64::from(round * 100 + number));
            let all: Vec<_> = (0..slots.allowed()).map(holder).collect();
            for holder in &all {
                slots.ask(*holder, Patience::Waits, now);
            }
            slots.grant(now);
            now = now.plus(Duration::from_millis(100));
            all.iter().for_each(|holder| slots.started(*holder, now));
            all.iter().for_each(|holder| slots.give_back(*holder));
        }
        panic!("{slots:?}");
    }

    #[test]
    fn there_are_as_many_slots_as_are_allowed_in_the_order_of_asking() {
        let mut slots = slots(2, 8);
        assert_eq!(ask(&mut slots, 0..4), [reading(0), reading(1)]);
        slots.give_back(reading(2));
        slots.give_back(reading(0));
        assert_eq!(slots.grant(NOW), [reading(3)]);
        assert_eq!(ask(&mut grown(2, 8), 0..20).len(), 8);
    }

    #[test]
    fn a_waiter_gets_a_slot_that_comes_in_addition() {
        let mut slots = slots(1, 2);
        ask(&mut slots, 0..2);
        for _ in 0..20 {
            slots.started(reading(0), NOW);
        }
        assert_eq!(slots.grant(NOW), [reading(1)]);
    }

    #[test]
    fn when_fewer_are_allowed_no_holder_loses_its_slot() {
        let mut slots = grown(1, 8);
        let later = NOW.plus(Duration::from_secs(3600));
        (0..9).for_each(|number| assert!(slots.ask(reading(number), Patience::Waits, later)));
        assert_eq!(slots.grant(later).len(), 8);
        slots.engine_failed(reading(0), later);
        slots.engine_failed(reading(0), later);
        assert_eq!((slots.allowed(), slots.held.len()), (6, 8));
        (0..2).for_each(|number| slots.give_back(reading(number)));
        assert_eq!(slots.grant(later), []);
        slots.give_back(reading(2));
        assert_eq!(slots.grant(later), [reading(8)]);
    }

    #[test]
    fn a_quarter_of_the_slots_is_left_while_throttled_and_one_at_least() {
        let mut slots = grown(1, 8);
        slots.throttle(Throttle::On);
        assert_eq!(slots.allowed(), 2);
        assert_eq!(ask(&mut slots, 0..8).len(), 2);
        slots.throttle(Throttle::Off);
        assert_eq!(slots.grant(NOW).len(), 6);
        let mut few = self::slots(2, 2);
        few.throttle(Throttle::On);
        assert_eq!(few.allowed(), 1, "the census never stands still");
    }

    #[test]
    fn many_waiters_turn_others_away_but_not_responding_instances() {
        let mut slots = slots(1, 1);
        ask(&mut slots, 0..1);
        slots.throttle(Throttle::On);
        for number in 1..=u64::from(WAITING_PER_SLOT) {
            assert!(slots.ask(reading(number), Patience::TurnedAway, NOW));
        }
        assert!(!slots.ask(reading(100), Patience::TurnedAway, NOW));
        assert!(slots.ask(reading(101), Patience::Waits, NOW));
        slots.give_back(reading(1));
        slots.give_back(reading(2));
        assert!(slots.ask(reading(102), Patience::TurnedAway, NOW));
    }

    #[test]
    fn a_wait_ends_after_its_time() {
        let mut slots = slots(1, 1);
        ask(&mut slots, 0..2);
        let almost = NOW.plus(SLOT_WAIT_MAX - Duration::from_millis(1));
        assert_eq!(slots.expire(almost), []);
        assert_eq!(slots.expire(NOW.plus(SLOT_WAIT_MAX)), [reading(1)]);
        assert!(!slots.are_waited_for());
    }

    #[test]
    fn a_fixed_number_stays() {
        let mut slots = slots(3, 3);
        ask(&mut slots, 0..3);
        for _ in 0..9 {
            slots.engine_failed(reading(0), NOW);
            slots.pressure(Pressure::Overloaded, NOW);
        }
        assert_eq!(slots.allowed(), 3);
    }
}
