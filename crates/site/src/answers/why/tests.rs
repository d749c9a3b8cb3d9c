use census::group::{Decision, Group, Place as GroupPlace};
use census::state::{Before, OptedOutBy, Record, State};
use census::time::Calendar;
use census::why::{Denied, Facts, Subject, reason};
use kit::NOW;

use super::*;

fn record(state: State) -> Record {
    Record {
        last_alive: Some(NOW),
        ..kit::record(state)
    }
}

#[track_caller]
fn check(record: &Record, group: Option<&Group>, denied: Denied, expect: Why) {
    let facts = Facts {
        target_is_alive: false,
        group,
        place: GroupPlace::HeldBack,
        last: None,
    };
    let reason = reason(Subject::Known(record, facts), denied, NOW, Calendar::REAL);
    assert_eq!(Why::of(&reason), Some(expect), "{record:?} {reason:?}");
    assert_eq!(reason.is_listed(), expect.is_listed(), "{reason:?}");
}

fn group(decision: Decision) -> Group {
    Group {
        hosts: 40,
        is_over: true,
        decision,
        asked_since: None,
        asked: 0,
    }
}

/// Different codes would reveal who asked to be left out.
#[test]
fn all_that_is_withheld_has_one_word() {
    let hidden = Record {
        hidden: true,
        alive_count: 1,
        ..record(State::Alive)
    };
    for by in [OptedOutBy::Robots, OptedOutBy::Owner, OptedOutBy::Moderator] {
        let opted_out = record(State::OptedOut { by });
        check(&opted_out, None, Denied::No, Why::Withheld);
    }
    check(&hidden, None, Denied::No, Why::Withheld);
    check(&record(State::Parked), None, Denied::No, Why::Withheld);
    let alive = record(State::Alive);
    check(&alive, None, Denied::Yes, Why::Withheld);
    let denied = group(Decision::Deny);
    check(&alive, Some(&denied), Denied::No, Why::Withheld);
}

/// A separate code would reveal that an owner withdrew an opt-out.
#[test]
fn a_host_that_came_back_and_fails_has_the_word_of_one_that_fails_for_long() {
    let dying = |before| State::Dying {
        before,
        count: 1,
        gone: false,
        gone_last: false,
    };
    let came_back = record(dying(Before::Discovered));
    check(&came_back, None, Denied::No, Why::Stale);
    let long_ago = Record {
        last_alive: Some(NOW.minus(std::time::Duration::from_secs(20 * 86_400))),
        ..record(dying(Before::Alive))
    };
    check(&long_ago, None, Denied::No, Why::Stale);
}

#[test]
fn what_is_not_withheld_keeps_its_reason() {
    let alive = record(State::Alive);
    check(&alive, None, Denied::No, Why::Lives);
    let held = group(Decision::None);
    check(&alive, Some(&held), Denied::No, Why::GroupHeld);
    let imported = Record {
        hidden: true,
        ..alive
    };
    check(&imported, None, Denied::No, Why::TakenOver);
    check(&record(State::Dead), None, Denied::No, Why::Dead);
}

#[test]
fn a_name_that_never_came_in_has_no_entry() {
    for reason in [Reason::Forgotten, Reason::Unknown] {
        assert_eq!(Why::of(&reason), None);
    }
    assert_eq!(Why::of(&Reason::Waiting), Some(Why::Waiting));
}
