use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const DAY: u64 = 24 * 60 * 60;

fn naming<'a>(name: &'a str, domain: &'a str, source: u64) -> Naming<'a> {
    Naming {
        name,
        domain,
        source: SourceId(source),
        is_independent: true,
    }
}

fn small() -> Waiting {
    Waiting {
        names_max: 6,
        per_domain_max: 3,
        ..Waiting::default()
    }
}

fn order(waiting: &Waiting) -> Vec<String> {
    waiting
        .next(None, usize::MAX)
        .iter()
        .map(|(rank, _)| rank.name().to_owned())
        .collect()
}

#[test]
fn the_most_often_named_come_first_then_those_who_wait_for_longest() {
    let mut waiting = Waiting::default();
    waiting.name(&naming("late", "l", 1), Room::Rule, 20);
    waiting.name(&naming("early", "e", 1), Room::Total, 10);
    for source in 1..=3 {
        waiting.name(&naming("known", "k", source), Room::Total, 30);
    }
    // A source with the same bit, or a name's own neighbours, add nothing.
    for source in [1, 65] {
        waiting.name(&naming("late", "l", source), Room::Rule, 40);
    }
    let own = Naming {
        is_independent: false,
        ..naming("late", "l", 9)
    };
    waiting.name(&own, Room::Rule, 50);
    assert_eq!(order(&waiting), ["known", "early", "late"]);
    let (first, waiter) = waiting.next(None, 1).remove(0);
    assert_eq!((waiter.named_by.count(), waiter.source), (3, SourceId(3)));
    let second = waiting.next(Some(&first), 1).remove(0);
    assert_eq!(second.0.name(), "early");
    assert_eq!(second.1.room, Room::Total);
}

#[test]
fn full_domain_keeps_the_names_with_most_sources() {
    let mut waiting = small();
    for (name, at) in [("a", 1), ("b", 2), ("c", 3)] {
        assert!(waiting.name(&naming(name, "farm", 1), Room::Rule, at));
    }
    waiting.name(&naming("b", "farm", 2), Room::Rule, 4);
    let newcomer = naming("d", "farm", 5);
    assert!(!waiting.would_change(&newcomer, 5));
    assert!(!waiting.name(&newcomer, Room::Rule, 5), "no more name it");
    assert!(waiting.name(&naming("e", "other", 5), Room::Rule, 5));
    let mut unnamed = small();
    for (name, at) in [("a", 2), ("b", 1), ("c", 3)] {
        let own = Naming {
            is_independent: false,
            ..naming(name, "farm", 1)
        };
        unnamed.name(&own, Room::Rule, at);
    }
    assert!(unnamed.would_change(&newcomer, 5));
    assert!(unnamed.name(&newcomer, Room::Rule, 5));
    assert_eq!(order(&unnamed), ["d", "a", "c"]);
}

#[test]
fn all_together_are_bounded_as_well() {
    let mut waiting = small();
    for n in 0..6 {
        let name = format!("n{n}");
        let own = Naming {
            is_independent: n != 0,
            ..naming(&name, &name, 1)
        };
        waiting.name(&own, Room::Rule, n);
    }
    assert!(waiting.name(&naming("new", "new", 1), Room::Rule, 9));
    assert_eq!(order(&waiting), ["n1", "n2", "n3", "n4", "n5", "new"]);
    assert!(!waiting.name(&naming("newer", "newer", 1), Room::Rule, 9));
}

/// A source with a long invented list loses its places to sources that name one host each, until
/// all have the same number.
#[test]
fn one_source_cannot_take_the_places_of_all_others() {
    let mut waiting = small();
    for (at, name) in (1..).zip(["a", "b", "c", "d", "e", "f"]) {
        assert!(waiting.name(&naming(name, name, 1), Room::Total, at));
    }
    let more = naming("g", "g", 1);
    assert!(!waiting.would_change(&more, 7), "it has the most itself");
    assert!(!waiting.name(&more, Room::Total, 7));
    for (at, (name, source)) in (8..).zip([("x", 2), ("y", 3), ("z", 2)]) {
        let newcomer = naming(name, name, source);
        assert!(waiting.would_change(&newcomer, at), "{name}");
        assert!(waiting.name(&newcomer, Room::Total, at), "{name}");
    }
    assert_eq!(order(&waiting), ["a", "b", "c", "x", "y", "z"]);
    // Three, two and one: a change would help no source.
    assert!(!waiting.name(&naming("u", "u", 2), Room::Total, 11));
    assert!(waiting.name(&naming("v", "v", 3), Room::Total, 12));
    // Names with more sources are not affected, on either side.
    waiting.name(&naming("a", "a", 9), Room::Total, 13);
    waiting.name(&naming("b", "b", 9), Room::Total, 14);
    assert_eq!(order(&waiting), ["a", "b", "x", "y", "z", "v"]);
    assert!(waiting.name(&naming("w", "w", 1), Room::Total, 15));
    assert_eq!(order(&waiting), ["a", "b", "x", "y", "z", "w"]);
    for name in order(&waiting) {
        waiting.remove(&name);
    }
    assert!(waiting.sources.last_of_the_greatest(SourceId(7)).is_none());
}

#[test]
fn who_is_not_named_for_thirty_days_is_dropped() {
    let mut waiting = Waiting::default();
    waiting.name(&naming("a", "a", 1), Room::Rule, 0);
    waiting.name(&naming("b", "b", 1), Room::Rule, 0);
    waiting.changes(9);
    // Within a day it costs no write.
    waiting.name(&naming("b", "b", 1), Room::Rule, DAY - 1);
    assert_eq!(waiting.changes(9), []);
    waiting.name(&naming("b", "b", 1), Room::Rule, DAY);
    assert_eq!(waiting.changes(9).len(), 1);
    assert_eq!(waiting.drop_old(9, 30 * DAY), 0);
    assert_eq!(waiting.drop_old(9, 30 * DAY + 1), 1);
    assert_eq!(order(&waiting), ["b"]);
    assert_eq!(waiting.changes(9)[0].waiter, None);
    assert_eq!(waiting.drop_old(9, 31 * DAY + 1), 1);
}

#[test]
fn what_a_disk_does_not_take_is_bounded_too() {
    let mut waiting = Waiting::default();
    let mut kept = 0;
    for n in 0..UNWRITTEN_MAX + 5 {
        let name = format!("n{n}");
        kept += usize::from(waiting.name(&naming(&name, &name, 1), Room::Rule, 1));
    }
    assert_eq!(kept, UNWRITTEN_MAX);
}

proptest! {
    /// Whatever happens, the rows on disk match the names in memory, the bounds hold, and a restart
    /// from the rows changes nothing.
    #[test]
    fn bounds_hold_and_rows_are_what_is_kept(
        steps in proptest::collection::vec((0_u8..12, 0_u64..5, any::<bool>(), 0_u8..10), 1..120),
    ) {
        let mut waiting = small();
        let mut rows: BTreeMap<String, Waiter> = BTreeMap::new();
        let mut now = 0;
        for (name, source, is_independent, what) in steps {
            now += u64::from(what) * 3 * DAY / 9;
            let (name, domain) = (format!("n{name}"), format!("d{}", name % 3));
            match what {
                0 => waiting.remove(&name),
                1 => drop(waiting.drop_old(2, now)),
                _ => {
                    let naming = Naming { is_independent, ..naming(&name, &domain, source) };
                    let would_change = waiting.would_change(&naming, now);
                    let before = waiting.waiter(&name).copied();
                    let waits = waiting.name(&naming, Room::Rule, now);
                    prop_assert_eq!(waits, waiting.waiter(&name).is_some());
                    prop_assert_eq!(would_change, before != waiting.waiter(&name).copied());
                }
            }
            let changes = waiting.changes(usize::MAX);
            if what == 2 {
                waiting.not_written(changes);
                continue;
            }
            for change in changes {
                match change.waiter {
                    Some(waiter) => drop(rows.insert(change.name.to_string(), waiter)),
                    None => drop(rows.remove(&*change.name)),
                }
            }
            let kept: BTreeMap<_, _> = waiting.waiters.iter().map(|(name, slot)| (name.to_string(), slot.waiter)).collect();
            prop_assert_eq!(&kept, &rows);
            prop_assert!(waiting.len() <= 6 && waiting.order.len() == waiting.len());
            prop_assert!(waiting.domains.values().all(|ranks| !ranks.is_empty() && ranks.len() <= 3));
            prop_assert_eq!(waiting.domains.values().map(Vec::len).sum::<usize>(), waiting.len());
            let mut again = small();
            for (name, waiter) in &rows {
                let number: u8 = name.trim_start_matches('n').parse().unwrap();
                again.put(name, &format!("d{}", number % 3), *waiter);
            }
            prop_assert_eq!(order(&again), order(&waiting));
        }
    }
}
