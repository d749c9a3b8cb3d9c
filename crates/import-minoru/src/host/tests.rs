use std::time::Duration;

use census::listing::is_listed;
use proptest::prelude::*;

use super::*;

const NOW_S: i64 = 1_800_000_000;
const NOW: Timestamp = Timestamp(NOW_S * 1000);
const DAY_S: i64 = 86_400;

fn host(name: &str) -> Host {
    Host::parse(name).unwrap()
}

fn known(state: MinoruState) -> MinoruHost {
    MinoruHost {
        state,
        since_s: Some(NOW_S - 3 * DAY_S),
        count: Some(2),
        state_before: None,
        target: None,
        first_seen_s: None,
        last_checked_s: Some(NOW_S - DAY_S),
        next_check_s: Some(NOW_S),
    }
}

fn record_of(known: &MinoruHost, target: Option<&str>) -> Record {
    imported(
        host("a.example"),
        known,
        target.map(host),
        NOW,
        Jitter(u32::MAX / 2),
        Calendar::REAL,
    )
}

#[test]
fn an_imported_host_that_was_alive_is_not_listed() {
    let record = record_of(&known(MinoruState::Alive), None);
    assert_eq!(record.state, State::Alive);
    assert_eq!(record.last_alive, record.last_checked);
    assert_eq!(record.last_alive, Some(Timestamp((NOW_S - DAY_S) * 1000)));
    assert!(record.hidden);
    assert!(!is_listed(&record, false, NOW, Calendar::REAL));
}

#[test]
fn without_the_last_check_who_lives_lived_a_day_before_the_next_one() {
    let unchecked = MinoruHost {
        last_checked_s: None,
        ..known(MinoruState::Alive)
    };
    let record = record_of(&unchecked, None);
    assert_eq!(record.state, State::Alive);
    assert_eq!(record.last_checked, None);
    assert_eq!(
        record.last_alive,
        Some(NOW.minus(Duration::from_secs(31 * 3600)))
    );
    let timeless = MinoruHost {
        next_check_s: None,
        ..unchecked
    };
    assert_eq!(record_of(&timeless, None).state, State::Discovered);
}

#[test]
fn who_is_not_said_to_have_lived_before_it_was_dying_has_not() {
    let dying = |before| State::Dying {
        before,
        count: 2,
        gone: false,
        gone_last: false,
    };
    let record = record_of(&known(MinoruState::Dying), None);
    assert_eq!(record.state, dying(Before::Discovered));
    assert_eq!(record.since, Timestamp((NOW_S - 3 * DAY_S) * 1000));
    assert_eq!(record.last_alive, None);
    let lived = MinoruHost {
        state_before: Some(MinoruState::Alive),
        ..known(MinoruState::Dying)
    };
    let record = record_of(&lived, None);
    assert_eq!(record.state, dying(Before::Alive));
    assert!(record.last_alive < Some(record.since) && record.hidden);
}

#[test]
fn a_move_without_another_host_as_its_target_is_not_believed() {
    for state in [MinoruState::Moving, MinoruState::Moved] {
        let target = host("b.example");
        let found = record_of(&known(state), Some("b.example")).state;
        let expected = if state == MinoruState::Moving {
            State::Moving {
                before: Before::Discovered,
                count: 2,
                target,
            }
        } else {
            State::Moved { target }
        };
        assert_eq!(found, expected);
        for target in [None, Some("a.example")] {
            assert_eq!(
                record_of(&known(state), target).state,
                State::Discovered,
                "{target:?}"
            );
        }
    }
}

#[test]
fn moments_ahead_count_as_now_and_ancient_ones_as_unknown() {
    let checked = |last_checked_s| {
        record_of(
            &MinoruHost {
                last_checked_s: Some(last_checked_s),
                since_s: None,
                ..known(MinoruState::Dead)
            },
            None,
        )
    };
    assert_eq!(checked(NOW_S + 1).last_checked, Some(NOW));
    assert_eq!(checked(i64::MAX).since, NOW);
    for ancient in [i64::MIN, -1, 0, EARLIEST_S - 1] {
        let record = checked(ancient);
        assert_eq!(record.last_checked, None);
        assert_eq!((record.since, record.first_seen), (NOW, NOW));
    }
}

fn states() -> impl Strategy<Value = MinoruState> {
    prop::sample::select(vec![
        MinoruState::Discovered,
        MinoruState::Alive,
        MinoruState::Dying,
        MinoruState::Dead,
        MinoruState::Moving,
        MinoruState::Moved,
    ])
}

fn seconds() -> impl Strategy<Value = Option<i64>> {
    prop::option::of(prop_oneof![
        any::<i64>(),
        EARLIEST_S - 10..EARLIEST_S + 200_000,
        NOW_S - 40 * DAY_S..NOW_S + 40 * DAY_S
    ])
}

prop_compose! {
    fn hosts()(
        state in states(), since_s in seconds(), count in prop::option::of(any::<i64>()), state_before in prop::option::of(states()),
        first_seen_s in seconds(), last_checked_s in seconds(), next_check_s in seconds(),
    ) -> MinoruHost {
        MinoruHost { state, since_s, count, state_before, target: None, first_seen_s, last_checked_s, next_check_s }
    }
}

proptest! {
    #[test]
    fn whatever_is_said_nobody_is_listed_and_no_moment_lies_where_it_can_not(
        known in hosts(),
        target in prop::option::of(prop::sample::select(vec!["a.example", "b.example"])),
        jitter in any::<u32>(),
    ) {
        let record = imported(host("a.example"), &known, target.map(host), NOW, Jitter(jitter), Calendar::REAL);
        prop_assert!(!is_listed(&record, false, NOW, Calendar::REAL));
        let earliest = Timestamp(EARLIEST_S * 1000).minus(Duration::from_secs(31 * 3600));
        let moments = [Some(record.since), Some(record.first_seen), record.last_alive, record.last_checked];
        for at in moments.into_iter().flatten() {
            prop_assert!(earliest <= at && at <= NOW && record.first_seen <= at, "{at:?} of {record:?}");
        }
        let due = record.due.unwrap();
        let is_weekly = matches!(record.state, State::Dead | State::Moved { .. });
        let latest = NOW.plus(Duration::from_secs(if is_weekly { 167 } else { 29 } * 3600));
        prop_assert!(NOW <= due && due <= latest);
        prop_assert!(record.alive_count == 0 && record.last_alive.is_some() == record.hidden);
        match record.state {
            State::Alive => prop_assert!(record.last_alive.is_some()),
            State::Dying { before, count, .. } | State::Moving { before, count, .. } => {
                prop_assert!((1..=COUNT_MAX).contains(&count));
                prop_assert_eq!(before == Before::Alive, record.last_alive.is_some());
            }
            State::Discovered | State::Dead | State::Moved { .. } => prop_assert!(record.last_alive.is_none()),
            State::OptedOut { .. } | State::Parked => prop_assert!(false),
        }
    }
}
