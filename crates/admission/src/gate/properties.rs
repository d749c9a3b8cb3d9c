//! Properties of the gate over any order of names, sources, times, returns and restarts.

use std::collections::HashMap;

use proptest::prelude::*;

use super::tests::{counters, limits, terms};
use super::*;
use crate::counters::{HashKey, WINDOW_SECONDS};
use crate::suffixes::Suffixes;

const PER_DOMAIN: u32 = 3;
const PER_SOURCE: u32 = 5;
const PER_SUFFIX: u32 = 4;
const IN_TOTAL: u32 = 8;

#[derive(Debug, Clone)]
enum Step {
    /// This name arrives from this source, this many seconds after the last step (or before it, if
    /// negative).
    Ask(usize, u64, i64),
    /// One of the admissions still held, chosen by this index, is given back.
    TakeBack(usize),
}

const NAMES: [&str; 6] = [
    "a.one.net",
    "b.one.net",
    "two.org",
    "me.github.io",
    "you.github.io",
    "x.you.github.io",
];

fn step() -> impl Strategy<Value = Step> {
    let day = i64::try_from(WINDOW_SECONDS).unwrap();
    let seconds = prop_oneof![8 => 0_i64..3, 1 => day - 2..day + 2, 1 => -day..0];
    prop_oneof![
        5 => (0..NAMES.len(), 0_u64..3, seconds).prop_map(|(name, source, seconds)| Step::Ask(name, source, seconds)),
        1 => any::<usize>().prop_map(Step::TakeBack),
    ]
}

fn restarted(counters: &Counters) -> Counters {
    let mut again = Counters::resume(HashKey([1; 16]), counters.window_start_s());
    counters.rows().for_each(|row| again.put(row).unwrap());
    again
}

/// The counted items of an admission, with their limits.
fn counted(name: &DomainName, shared: Option<&str>, source: u64) -> Vec<(String, u32)> {
    let registered = Suffixes::compiled();
    let domain = registered.registered_domain(name).unwrap();
    let mut counted = vec![
        (format!("domain {domain}"), PER_DOMAIN),
        (format!("source {source}"), PER_SOURCE),
        ("total".to_owned(), IN_TOTAL),
    ];
    counted.extend(shared.map(|suffix| (format!("suffix {suffix}"), PER_SUFFIX)));
    counted
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_order_lets_more_through_than_each_limit_and_all_or_none_is_charged(
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let rules = format!("public default {PER_DOMAIN}");
        let terms = terms(&rules, limits(PER_SOURCE, PER_SUFFIX, IN_TOTAL));
        let suffixes = Suffixes::compiled();
        let (mut counters, mut other) = (counters(), counters());
        let mut through: HashMap<(u64, String), i64> = HashMap::new();
        let mut held = Vec::new();
        let mut now = 1_u64 << 30;
        for step in steps {
            match step {
                Step::Ask(name, source, seconds) => {
                    now = now.saturating_add_signed(seconds);
                    let name = DomainName::parse(NAMES[name]).unwrap();
                    let candidate = Candidate { name: &name, shared_suffix: suffixes.shared_suffix(&name) };
                    let subject = Subject::Source(SourceId(source));
                    let one = terms.decide(&mut counters, candidate, subject, now);
                    let two = terms.decide(&mut other, candidate, subject, now);
                    prop_assert_eq!(&one, &two);
                    let window = counters.window_start_s().unwrap();
                    let counted = counted(&name, candidate.shared_suffix, source);
                    let has_room = counted.iter().all(|(what, limit)| {
                        through.get(&(window, what.clone())).copied().unwrap_or(0) < i64::from(*limit)
                    });
                    prop_assert_eq!(one.is_ok(), has_room);
                    if let (Ok(one), Ok(two)) = (one, two) {
                        for (what, limit) in &counted {
                            let count = through.entry((window, what.clone())).or_default();
                            *count += 1;
                            prop_assert!(*count <= i64::from(*limit), "{} {}", what, count);
                        }
                        held.push((one, two, window, counted));
                    }
                }
                Step::TakeBack(which) if !held.is_empty() => {
                    let (one, two, window, counted) = held.swap_remove(which % held.len());
                    prop_assert_eq!(counters.take_back(one), other.take_back(two));
                    for (what, _) in counted {
                        let count = through.get_mut(&(window, what)).unwrap();
                        *count -= 1;
                        prop_assert!(*count >= 0);
                    }
                }
                Step::TakeBack(_) => {}
            }
            other = restarted(&other);
            prop_assert_eq!(counters.rows().collect::<Vec<_>>(), other.rows().collect::<Vec<_>>());
            // No admission incremented only some of its counters.
            let current: i64 = through.iter().filter(|((window, _), _)| Some(*window) == counters.window_start_s()).map(|(_, count)| count).sum();
            prop_assert_eq!(counters.rows().map(|row| i64::from(row.count)).sum::<i64>(), current);
        }
    }
}
