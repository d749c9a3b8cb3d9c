use std::time::Duration;

use census::state::{Before, OptedOutBy};
use protocol::Host;

use super::*;

const NOW: Timestamp = Timestamp(1_700_000_000_000);
const NOBODY: Others = Others {
    target_is_alive: false,
    group: GroupSays::Lists,
    denied: Denied::No,
};

fn days_ago(days: u64) -> Option<Timestamp> {
    Some(NOW.minus(Duration::from_secs(days * 86_400)))
}

fn record(state: State, last_alive: Option<Timestamp>) -> Record {
    Record {
        state,
        last_alive,
        ..Record::discovered(Host::parse("a.example").unwrap(), NOW, NOW)
    }
}

fn dying(gone: bool) -> State {
    State::Dying {
        before: Before::Alive,
        count: 2,
        gone,
        gone_last: gone,
    }
}

fn target() -> Host {
    Host::parse("b.example").unwrap()
}

fn moving() -> State {
    State::Moving {
        before: Before::Alive,
        count: 2,
        target: target(),
    }
}

#[track_caller]
fn check(record: &Record, others: Others, expect: Why) {
    let why = Why::of(record, others, NOW, Calendar::REAL);
    assert_eq!(why, expect, "{record:?} {others:?}");
    let listed = is_listed(record, others.target_is_alive, NOW, Calendar::REAL)
        && others.group == GroupSays::Lists
        && others.denied == Denied::No;
    assert_eq!(why.is_listed(), listed, "{record:?} {others:?}");
}

#[test]
fn each_state_has_its_reason_and_it_agrees_with_the_list() {
    let lately = days_ago(1);
    let opted_out = |by| record(State::OptedOut { by }, lately);
    let moved = State::Moved { target: target() };
    for (record, expect) in [
        (record(State::Alive, lately), Why::Lives),
        (record(dying(false), lately), Why::Failing),
        (record(moving(), lately), Why::MovingToNobody),
        (opted_out(OptedOutBy::Robots), Why::Withheld),
        (opted_out(OptedOutBy::Owner), Why::Withheld),
        (opted_out(OptedOutBy::Moderator), Why::Withheld),
        (record(State::Parked, lately), Why::Withheld),
        (record(State::Discovered, None), Why::NeverJudged),
        (record(dying(true), lately), Why::Gone),
        (record(State::Dead, lately), Why::Dead),
        (record(moved, lately), Why::Moved),
        (record(dying(false), None), Why::NeverAlive),
        (record(State::Alive, days_ago(15)), Why::Stale),
        (record(dying(false), days_ago(15)), Why::Stale),
    ] {
        check(&record, NOBODY, expect);
    }
}

#[test]
fn what_is_said_besides_counts_in_its_order() {
    let refusing = |state, last_alive| Record {
        refuses: true,
        ..record(state, last_alive)
    };
    check(
        &refusing(State::Alive, days_ago(1)),
        NOBODY,
        Why::LivesRefusing,
    );
    check(
        &refusing(State::Discovered, None),
        NOBODY,
        Why::RefusesSoFar,
    );
    let taken_over = Record {
        hidden: true,
        ..record(State::Alive, days_ago(1))
    };
    let hidden = Record {
        alive_count: 1,
        ..taken_over.clone()
    };
    check(&hidden, NOBODY, Why::Withheld);
    // It never lived here, whatever another crawler says (`census::adopted`).
    check(&taken_over, NOBODY, Why::TakenOver);
    let target_lives = Others {
        target_is_alive: true,
        ..NOBODY
    };
    check(
        &record(moving(), days_ago(1)),
        target_lives,
        Why::MovedToListed,
    );
}

#[test]
fn a_group_is_the_reason_where_nothing_goes_before_it() {
    let taken_over = Record {
        hidden: true,
        ..record(State::Alive, days_ago(1))
    };
    let hidden = Record {
        alive_count: 1,
        ..taken_over.clone()
    };
    let held = Others {
        group: GroupSays::Holds,
        ..NOBODY
    };
    check(&record(State::Discovered, None), held, Why::GroupHeld);
    check(&record(State::Alive, days_ago(1)), held, Why::GroupHeld);
    check(&record(State::Dead, None), held, Why::Dead);
    check(&taken_over, held, Why::GroupHeld);
    check(&hidden, held, Why::Withheld);
    let denied_group = Others {
        group: GroupSays::Denies,
        ..NOBODY
    };
    check(
        &record(State::Alive, days_ago(1)),
        denied_group,
        Why::Withheld,
    );
    // Nothing that could be mended is told of who stays off all the same.
    let moved = State::Moved { target: target() };
    for state in [State::Dead, dying(true), moved, State::Alive] {
        check(&record(state, days_ago(15)), denied_group, Why::Withheld);
    }
    check(&taken_over, denied_group, Why::Withheld);
    check(&hidden, denied_group, Why::Withheld);
    let parked = record(State::Parked, None);
    check(&parked, denied_group, Why::Withheld);
    // An owner's wish is told before what others decided.
    let owner = record(
        State::OptedOut {
            by: OptedOutBy::Owner,
        },
        days_ago(1),
    );
    check(&owner, denied_group, Why::Withheld);
    let denied = Others {
        denied: Denied::Yes,
        ..NOBODY
    };
    check(&owner, denied, Why::Withheld);
}
