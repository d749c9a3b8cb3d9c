//! Properties of counters over any order of charges, returns, times and restarts, compared with
//! plain counters that remember everything.

use std::collections::HashMap;

use proptest::prelude::*;

use super::slots::Slots;
use super::*;

#[derive(Debug, Clone)]
enum Step {
    /// Charge this item, with this limit, this many seconds after the last step (or before it, if
    /// negative).
    Charge(u8, u8, i64),
    /// Give back one of the admissions still held, chosen by this index.
    GiveBack(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let day = i64::try_from(WINDOW_SECONDS).unwrap();
    let seconds = prop_oneof![
        6 => 0_i64..3,
        2 => 0..day,
        1 => day - 2..day + 2,
        1 => day * 2..day * 40,
        1 => -day * 3..0,
    ];
    prop_oneof![
        4 => (0_u8..4, 0_u8..4, seconds).prop_map(|(item, limit, seconds)| Step::Charge(item, limit, seconds)),
        1 => any::<usize>().prop_map(Step::GiveBack),
    ]
}

fn table(item: u8) -> Table {
    match item {
        0 => Table::Key,
        1 => Table::Domain,
        _ => Table::Public,
    }
}

/// Plain counters of unbounded size: for each window and item a count that may go below zero.
#[derive(Default)]
struct Plain {
    start: Option<u64>,
    counts: HashMap<(u64, u8), i64>,
}

impl Plain {
    fn charge(&mut self, item: u8, limit: u8, now: u64) -> Option<u64> {
        let mut start = self.start.unwrap_or(now);
        while start + WINDOW_SECONDS <= now {
            start += WINDOW_SECONDS;
        }
        self.start = Some(start);
        let count = self.counts.entry((start, item)).or_default();
        (*count < i64::from(limit)).then(|| {
            *count += 1;
            start
        })
    }
}

fn restarted(counters: &Counters) -> Counters {
    let mut again = Counters::resume(counters.hash_key, counters.window_start_s());
    for row in counters.rows() {
        again.put(row).unwrap();
    }
    again
}

proptest! {
    // Each step is a restart, so there are fewer cases than usual.
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Compares one run with plain counters, and with a run that restarts after every step: all
    /// give the same answers.
    #[test] // S67
    fn no_order_of_steps_lets_more_through_than_the_limit(
        steps in proptest::collection::vec(step(), 1..80),
        start in prop_oneof![Just(0_u64), 0..1_u64 << 40],
    ) {
        let mut counters = Counters::new(HashKey([3; 16]));
        let mut other = Counters::new(HashKey([3; 16]));
        let mut plain = Plain::default();
        let mut held: Vec<(Receipt, Receipt, u64, u8)> = Vec::new();
        // Admissions less those given back, and the highest limit used, by window and item.
        let mut through: HashMap<(u64, u8), i64> = HashMap::new();
        let mut limits: HashMap<(u64, u8), i64> = HashMap::new();
        let mut now = start;
        for step in steps {
            match step {
                Step::Charge(item, limit, seconds) => {
                    now = now.saturating_add_signed(seconds);
                    let say = |counters: &mut Counters| counters.charge(table(item), &[item], Limit::new(limit.into()).unwrap(), now);
                    let (one, two, expect) = (say(&mut counters), say(&mut other), plain.charge(item, limit, now));
                    prop_assert_eq!(&one, &two);
                    let window = plain.start.unwrap();
                    let greatest = limits.entry((window, item)).or_default();
                    *greatest = (*greatest).max(limit.into());
                    match (one, two, expect) {
                        (Charge::Admitted { count, receipt }, Charge::Admitted { receipt: same, .. }, Some(window)) => {
                            prop_assert_eq!(i64::from(count) + 1, plain.counts[&(window, item)]);
                            *through.entry((window, item)).or_default() += 1;
                            held.push((receipt, same, window, item));
                        }
                        (Charge::Refused { .. }, Charge::Refused { .. }, None) => {}
                        odd => prop_assert!(false, "{:?}", odd),
                    }
                    prop_assert!(through.get(&(window, item)).copied().unwrap_or(0) <= limits[&(window, item)]);
                }
                Step::GiveBack(which) if !held.is_empty() => {
                    let (receipt, same, window, item) = held.swap_remove(which % held.len());
                    let (one, two) = (counters.give_back(receipt), other.give_back(same));
                    prop_assert_eq!(one, two);
                    let count = plain.counts.get_mut(&(window, item)).unwrap();
                    *count -= 1;
                    *through.get_mut(&(window, item)).unwrap() -= 1;
                    prop_assert!(*count >= 0);
                    let is_current = plain.start == Some(window);
                    prop_assert_eq!(one.map(|row| i64::from(row.count)), is_current.then_some(*count));
                }
                Step::GiveBack(_) => {}
            }
            other = restarted(&other);
            prop_assert_eq!(counters.window_start_s(), other.window_start_s());
            prop_assert_eq!(counters.rows().collect::<Vec<_>>(), other.rows().collect::<Vec<_>>());
            let kept: i64 = counters.rows().map(|row| i64::from(row.count)).sum();
            let current: i64 = plain.counts.iter().filter(|((window, _), _)| Some(*window) == plain.start).map(|(_, count)| count).sum();
            prop_assert_eq!(kept, current);
        }
    }

    #[test]
    fn slots_are_a_map(steps in proptest::collection::vec((0_u64..40, 0_u32..4), 0..300)) {
        let mut slots = Slots::default();
        let mut map = std::collections::BTreeMap::new();
        for (id, count) in steps {
            // Some share a shard, some don't.
            let id = (id % 5) << 33 | id;
            slots.set(id, count);
            map.insert(id, count);
            map.retain(|_, count| *count > 0);
            prop_assert_eq!(slots.len(), map.len());
            prop_assert_eq!(slots.count(id), count);
        }
        prop_assert_eq!(slots.iter().collect::<Vec<_>>(), map.into_iter().collect::<Vec<_>>());
    }
}
