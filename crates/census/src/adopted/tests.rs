use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::listing::is_listed;

const NOW_S: i64 = 1_800_000_000;
const NOW: Timestamp = Timestamp(NOW_S * 1000);
const DAY_S: i64 = 86_400;

fn host(name: &str) -> Host {
    Host::parse(name).unwrap()
}

fn word(standing: Standing) -> Word {
    Word {
        standing,
        since_s: Some(NOW_S - 3 * DAY_S),
        count: Some(2),
        before: None,
        target: None,
        first_seen_s: None,
        last_checked_s: Some(NOW_S - DAY_S),
        next_check_s: Some(NOW_S),
    }
}

fn become_of(word: &Word, target: Option<&str>) -> Record {
    adopted(
        host("a.example"),
        word,
        target.map(host),
        NOW,
        Jitter(u32::MAX / 2),
        Calendar::REAL,
    )
}

#[test]
fn the_living_are_taken_over_and_not_listed_on_anothers_word() {
    let record = become_of(&word(Standing::Alive), None);
    assert_eq!(record.state, State::Alive);
    assert_eq!(record.last_alive, record.last_checked);
    assert_eq!(record.last_alive, Some(Timestamp((NOW_S - DAY_S) * 1000)));
    assert!(record.hidden);
    assert!(!is_listed(&record, false, NOW, Calendar::REAL));
}

#[test]
fn without_the_last_check_who_lives_lived_a_day_before_the_next_one() {
    let unchecked = Word {
        last_checked_s: None,
        ..word(Standing::Alive)
    };
    let record = become_of(&unchecked, None);
    assert_eq!(record.state, State::Alive);
    assert_eq!(record.last_checked, None);
    assert_eq!(
        record.last_alive,
        Some(NOW.minus(Duration::from_secs(31 * 3600)))
    );
    let timeless = Word {
        next_check_s: None,
        ..unchecked
    };
    assert_eq!(become_of(&timeless, None).state, State::Discovered);
}

#[test]
fn who_is_not_said_to_have_lived_before_it_was_dying_has_not() {
    let dying = |before| State::Dying {
        before,
        count: 2,
        gone: false,
        gone_last: false,
    };
    let record = become_of(&word(Standing::Dying), None);
    assert_eq!(record.state, dying(Before::Discovered));
    assert_eq!(record.since, Timestamp((NOW_S - 3 * DAY_S) * 1000));
    assert_eq!(record.last_alive, None);
    let lived = Word {
        before: Some(Standing::Alive),
        ..word(Standing::Dying)
    };
    let record = become_of(&lived, None);
    assert_eq!(record.state, dying(Before::Alive));
    assert!(record.last_alive < Some(record.since) && record.hidden);
}

#[test]
fn a_move_without_another_host_as_its_target_is_not_believed() {
    for standing in [Standing::Moving, Standing::Moved] {
        let target = host("b.example");
        let state = become_of(&word(standing), Some("b.example")).state;
        let expected = if standing == Standing::Moving {
            State::Moving {
                before: Before::Discovered,
                count: 2,
                target,
            }
        } else {
            State::Moved { target }
        };
        assert_eq!(state, expected);
        for target in [None, Some("a.example")] {
            assert_eq!(
                become_of(&word(standing), target).state,
                State::Discovered,
                "{target:?}"
            );
        }
    }
}

#[test]
fn moments_ahead_count_as_now_and_ancient_ones_as_unknown() {
    let checked = |last_checked_s| {
        become_of(
            &Word {
                last_checked_s: Some(last_checked_s),
                since_s: None,
                ..word(Standing::Dead)
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

fn standing() -> impl Strategy<Value = Standing> {
    prop::sample::select(vec![
        Standing::Discovered,
        Standing::Alive,
        Standing::Dying,
        Standing::Dead,
        Standing::Moving,
        Standing::Moved,
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
    fn words()(
        standing in standing(), since_s in seconds(), count in prop::option::of(any::<i64>()), before in prop::option::of(standing()),
        first_seen_s in seconds(), last_checked_s in seconds(), next_check_s in seconds(),
    ) -> Word {
        Word { standing, since_s, count, before, target: None, first_seen_s, last_checked_s, next_check_s }
    }
}

proptest! {
    #[test]
    fn whatever_is_said_nobody_is_listed_and_no_moment_lies_where_it_can_not(
        word in words(),
        target in prop::option::of(prop::sample::select(vec!["a.example", "b.example"])),
        jitter in any::<u32>(),
    ) {
        let record = adopted(host("a.example"), &word, target.map(host), NOW, Jitter(jitter), Calendar::REAL);
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
