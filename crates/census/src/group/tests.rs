use proptest::prelude::*;
use protocol::Host;

use super::*;

const NOW: Timestamp = Timestamp(1_790_000_000_000);
const REAL: Calendar = Calendar::REAL;

fn record(state: State, last_alive: Option<Timestamp>) -> Record {
    let host = Host::parse("a.farm.example").unwrap();
    Record {
        state,
        last_alive,
        ..Record::discovered(host, NOW, NOW)
    }
}

fn held(hosts: u64) -> Group {
    Group {
        hosts,
        is_over: true,
        decision: Decision::None,
        asked_since: None,
        asked: 0,
    }
}

#[test]
fn who_had_a_place_before_the_group_grew_keeps_it_and_its_pace() {
    let group = held(1_000_000);
    let old = record(State::Alive, Some(NOW));
    assert!(group.lists(Place::Own));
    assert!(!group.lists(Place::HeldBack));
    let turn = group.turn(&old, Place::Own, NOW, Jitter(0), REAL);
    assert_eq!(turn, Turn::Ordinary);
}

#[test]
fn two_sources_and_two_responses_free_up_to_two_hundred_hosts() {
    for (sources, responses, places, expect) in [
        (2, 2, 0, true),
        (4, 90, 199, true),
        (1, 90, 0, false),
        (4, 1, 0, false),
        (4, 90, 200, false),
        (0, 0, 0, false),
    ] {
        let evidence = Evidence {
            sources,
            responses,
            places,
        };
        assert_eq!(evidence.frees(), expect, "{evidence:?}");
    }
}

#[test]
fn to_live_does_not_free_a_host_that_is_held_back() {
    let group = Group {
        asked_since: Some(NOW),
        asked: HELD_A_DAY,
        ..held(11)
    };
    let alive = record(State::Alive, Some(NOW));
    let turn = group.turn(&alive, Place::HeldBack, NOW, Jitter(7), REAL);
    assert!(matches!(turn, Turn::PutOff { .. }), "{turn:?}");
}

#[test]
fn a_decision_lifts_what_was_held_and_a_group_that_shrank_is_free_by_itself() {
    let allowed = Group {
        decision: Decision::Allow,
        ..held(99)
    };
    let shrunk = Group {
        is_over: false,
        ..held(3)
    };
    for group in [allowed, shrunk] {
        assert!(group.lists(Place::HeldBack), "{group:?}");
        let new = record(State::Discovered, None);
        let turn = group.turn(&new, Place::HeldBack, NOW, Jitter(0), REAL);
        assert_eq!(turn, Turn::Ordinary, "{group:?}");
    }
    let denied = Group {
        decision: Decision::Deny,
        is_over: false,
        ..held(1)
    };
    assert!(!denied.lists(Place::Own));
}

#[test]
fn made_up_names_use_half_of_a_limit_at_most() {
    let group = |asked| Group {
        decision: Decision::Limit { a_day: 5 },
        asked_since: Some(NOW),
        asked,
        ..held(99)
    };
    let new = record(State::Discovered, None);
    let alive = record(State::Alive, Some(NOW));
    let turn = |asked, record| group(asked).turn(record, Place::Own, NOW, Jitter(0), REAL);
    assert!(matches!(turn(2, &new), Turn::Counted { asked: 3, .. }));
    assert!(matches!(turn(3, &new), Turn::PutOff { .. }));
    assert!(matches!(turn(4, &alive), Turn::Counted { asked: 5, .. }));
    assert!(matches!(turn(5, &alive), Turn::PutOff { .. }));
}

#[test]
fn a_clock_that_was_set_back_does_not_stop_a_group() {
    let group = Group {
        asked_since: Some(NOW.plus(REAL.forgotten_after())),
        asked: 9,
        ..held(11)
    };
    let new = record(State::Discovered, None);
    let turn = group.turn(&new, Place::HeldBack, NOW, Jitter(0), REAL);
    let (since, asked) = (NOW, 1);
    assert_eq!(turn, Turn::Counted { since, asked });
}

fn decisions() -> impl Strategy<Value = Decision> {
    prop_oneof![
        Just(Decision::None),
        Just(Decision::Allow),
        Just(Decision::Deny),
        (1_u32..20).prop_map(|a_day| Decision::Limit { a_day }),
    ]
}

proptest! {
    /// In any order of due hosts, no period of 27 hours that begins with a check has more checks
    /// than the group's pace allows.
    #[test]
    fn no_order_of_asks_brings_a_group_more_checks_than_its_pace(
        asks in proptest::collection::vec((0_u64..5 * 3600, any::<bool>(), any::<u32>()), 1..300),
        limit in prop_oneof![Just(None), (1_u32..8).prop_map(Some)],
        hosts in 11_u64..1_000_000,
    ) {
        let mut group = held(hosts);
        if let Some(a_day) = limit {
            group.decision = Decision::Limit { a_day };
        }
        let (mut now, mut spans) = (NOW, Vec::<(Timestamp, u32)>::new());
        for (later_s, lives, jitter) in asks {
            now = now.plus(Duration::from_secs(later_s));
            let state = if lives { State::Alive } else { State::Discovered };
            let record = record(state, lives.then_some(now));
            match group.turn(&record, Place::HeldBack, now, Jitter(jitter), REAL) {
                Turn::Counted { since, asked } => {
                    (group.asked_since, group.asked) = (Some(since), asked);
                    match spans.last_mut() {
                        Some((start, count)) if *start == since => *count += 1,
                        _ => spans.push((since, 1)),
                    }
                }
                Turn::PutOff { until } => prop_assert!(until > now),
                Turn::Ordinary => prop_assert!(false, "a paced group gave an ordinary turn"),
            }
        }
        for pair in spans.windows(2) {
            prop_assert!(pair[1].0.since(pair[0].0) >= REAL.day(Jitter(0)));
        }
        for (_, count) in spans {
            prop_assert!(count <= limit.unwrap_or(HELD_A_DAY));
        }
    }

    /// Not into the past, which would cause a busy loop, and not beyond the longest interval.
    #[test]
    fn who_is_put_off_is_due_again_within_the_longest_interval(
        decision in decisions(),
        hosts in any::<u64>(),
        asked in any::<u32>(),
        ago_ms in -1_000_000_000_i64..1_000_000_000,
        jitter in any::<u32>(),
        held_back in any::<bool>(),
    ) {
        let asked_since = Some(Timestamp(NOW.0 - ago_ms));
        let group = Group { decision, asked_since, asked, ..held(hosts) };
        let place = if held_back { Place::HeldBack } else { Place::Own };
        let new = record(State::Discovered, None);
        if let Turn::PutOff { until } = group.turn(&new, place, NOW, Jitter(jitter), REAL) {
            prop_assert!(until > NOW);
            prop_assert!(until <= NOW.plus(REAL.longest()), "{:?}", until.since(NOW));
        }
    }
}
