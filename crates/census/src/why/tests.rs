use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::transition::properties::any_record;

const NOW: Timestamp = Timestamp(1_790_000_000_000);
const NOTHING: Facts<'_> = Facts {
    target_is_alive: false,
    group: None,
    place: Place::HeldBack,
    last: None,
};

fn days_ago(days: u64) -> Option<Timestamp> {
    Some(NOW.minus(Duration::from_secs(days * 86_400)))
}

fn host(name: &str) -> Host {
    Host::parse(name).unwrap()
}

fn record(state: State, last_alive: Option<Timestamp>) -> Record {
    Record {
        state,
        last_alive,
        ..Record::discovered(host("a.example"), NOW, NOW)
    }
}

fn imported() -> Record {
    Record {
        hidden: true,
        ..record(State::Alive, days_ago(1))
    }
}

fn hidden() -> Record {
    Record {
        alive_count: 1,
        ..imported()
    }
}

fn opted_out(by: OptedOutBy) -> Record {
    record(State::OptedOut { by }, days_ago(1))
}

fn dying(before: Before, gone: bool) -> State {
    State::Dying {
        before,
        count: 2,
        gone,
        gone_last: gone,
    }
}

fn moved() -> State {
    State::Moved {
        target: host("b.example"),
    }
}

fn moving(before: Before) -> State {
    State::Moving {
        before,
        count: 2,
        target: host("b.example"),
    }
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

#[track_caller]
fn check(record: &Record, facts: Facts<'_>, expect: Reason<'_>) {
    let subject = Subject::Known(record, facts);
    let found = reason(subject, Denied::No, NOW, Calendar::REAL);
    assert_eq!(found, expect, "{record:?} {facts:?}");
}

#[test]
fn each_state_has_its_reason() {
    let lately = days_ago(1);
    let long_ago = days_ago(15);
    let target = &host("b.example");
    let never_judged = Reason::NeverJudged { due: Some(NOW) };
    let last_alive = long_ago.unwrap();
    let stale = Reason::Stale { last_alive };
    let again = |before| Reason::NotAliveAgain { before };
    let was = |state, last_alive, expect| check(&record(state, last_alive), NOTHING, expect);
    was(State::Discovered, None, never_judged);
    was(State::Alive, lately, Reason::Alive);
    was(State::Alive, long_ago, stale);
    was(State::Alive, None, Reason::NeverAlive);
    let failing = Reason::Failing { count: 2 };
    was(dying(Before::Alive, false), lately, failing);
    was(dying(Before::Alive, false), long_ago, stale);
    was(dying(Before::Alive, false), None, Reason::NeverAlive);
    was(dying(Before::Alive, true), lately, Reason::Gone);
    let before = Before::Moved;
    was(dying(before, false), lately, again(before));
    was(State::Dead, lately, Reason::Dead { reason: None });
    let to_nobody = Reason::MovingToNobody { target };
    was(moving(Before::Alive), lately, to_nobody);
    was(moving(Before::Alive), long_ago, stale);
    was(moving(Before::Alive), None, Reason::NeverAlive);
    was(moving(Before::Dead), lately, again(Before::Dead));
    was(moved(), lately, Reason::Moved { target });
    for by in [OptedOutBy::Robots, OptedOutBy::Owner, OptedOutBy::Moderator] {
        was(State::OptedOut { by }, lately, Reason::OptedOut { by });
    }
    was(State::Parked, lately, Reason::Parked);
}

#[test]
fn the_marks_of_a_host_and_its_last_check_count() {
    let refusing = |state, last_alive| Record {
        refuses: true,
        ..record(state, last_alive)
    };
    let alive = refusing(State::Alive, days_ago(1));
    check(&alive, NOTHING, Reason::AliveRefusing);
    let last = Some(Found::Gone);
    let gone = Facts { last, ..NOTHING };
    check(&record(State::Dead, days_ago(1)), gone, Reason::Gone);
    let discovered = refusing(State::Discovered, None);
    check(&discovered, NOTHING, Reason::RefusesSoFar);
    check(&imported(), NOTHING, Reason::Imported);
    check(&hidden(), NOTHING, Reason::Hidden);
    let target_is_alive = Facts {
        target_is_alive: true,
        ..NOTHING
    };
    let target = &host("b.example");
    for last_alive in [days_ago(1), days_ago(15), None] {
        let moving = record(moving(Before::Alive), last_alive);
        check(&moving, target_is_alive, Reason::MovedToListed { target });
    }
    let dead = record(State::Dead, None);
    let expired = Facts {
        last: Some(Found::Dead(DeadReason::TlsExpired)),
        ..NOTHING
    };
    let reason = Some(DeadReason::TlsExpired);
    check(&dead, expired, Reason::Dead { reason });
}

#[test]
fn a_held_group_is_the_reason_until_more_is_known_of_a_host() {
    let group = group(Decision::None);
    let held = Facts {
        group: Some(&group),
        ..NOTHING
    };
    let group_held = Reason::GroupHeld { hosts: 40 };
    check(&record(State::Discovered, None), held, group_held);
    check(&record(dying(Before::Alive, false), None), held, group_held);
    check(&record(State::Alive, days_ago(1)), held, group_held);
    check(&imported(), held, group_held);
    check(&hidden(), held, Reason::Hidden);
    let dead = record(State::Dead, None);
    check(&dead, held, Reason::Dead { reason: None });
    let own = Facts {
        place: Place::Own,
        ..held
    };
    check(&record(State::Alive, days_ago(1)), own, Reason::Alive);
}

#[test]
fn a_denied_group_is_the_reason_but_for_a_wish_or_a_decision_about_the_host_itself() {
    let group = group(Decision::Deny);
    let facts = Facts {
        group: Some(&group),
        place: Place::Own,
        ..NOTHING
    };
    let gone = dying(Before::Alive, true);
    // Repairing a host that stays off anyway is useless advice.
    for state in [State::Dead, gone, moved(), State::Alive, State::Discovered] {
        check(&record(state, days_ago(15)), facts, Reason::GroupDenied);
    }
    check(&imported(), facts, Reason::GroupDenied);
    check(&hidden(), facts, Reason::Hidden);
    check(&record(State::Parked, None), facts, Reason::Parked);
    let by = OptedOutBy::Owner;
    check(&opted_out(by), facts, Reason::OptedOut { by });
}

#[test]
fn the_operators_deny_list_goes_before_all_else() {
    let by = OptedOutBy::Owner;
    let owner = opted_out(by);
    let owner = Subject::Known(&owner, NOTHING);
    for (subject, expect) in [
        (owner, Reason::OptedOut { by }),
        (Subject::Waiting, Reason::Waiting),
        (Subject::Forgotten, Reason::Forgotten),
        (Subject::Unknown, Reason::Unknown),
    ] {
        let of = |denied| reason(subject, denied, NOW, Calendar::REAL);
        assert_eq!(of(Denied::No), expect);
        assert_eq!(of(Denied::Yes), Reason::Denied);
        assert!(!expect.is_listed());
    }
}

#[test]
fn verdicts_are_read_as_the_database_keeps_them() {
    let anubis = Found::Refused(Some(Wall::Anubis));
    let status = Found::Dead(DeadReason::Status);
    let wall = "wall anubis, status 200, retry after 9 s";
    let other_wall = "wall of another version, status 403";
    for (verdict, reason, expect) in [
        ("alive", Some("mastodon 4.5.1"), Some(Found::Alive)),
        ("moved", Some("to b.example"), Some(Found::Moved)),
        ("opted_out", None, Some(Found::OptedOut)),
        ("gone", None, Some(Found::Gone)),
        ("refused", Some("status 403"), Some(Found::Refused(None))),
        ("refused", Some(wall), Some(anubis)),
        ("refused", Some(other_wall), Some(Found::Refused(None))),
        ("dead", Some("tls"), Some(Found::Dead(DeadReason::Tls))),
        ("dead", Some("status, status 500"), Some(status)),
        ("dead", Some("no such word"), None),
        ("dead", None, None),
        ("other", None, None),
    ] {
        let found = Found::parse(verdict, reason);
        assert_eq!(found, expect, "{verdict} {reason:?}");
    }
}

fn any_group() -> impl Strategy<Value = Group> {
    let decision = prop_oneof![
        Just(Decision::None),
        Just(Decision::Allow),
        Just(Decision::Deny),
        Just(Decision::Limit { a_day: 5 }),
    ];
    (decision, any::<bool>()).prop_map(|(decision, is_over)| Group {
        is_over,
        ..group(decision)
    })
}

proptest! {
    /// A reason tells an owner to wait or to repair something: a wrong one misleads them.
    #[test]
    fn the_reason_says_listed_exactly_if_the_list_does(
        record in any_record(),
        lived_hours_ago in proptest::option::of(0_u64..20 * 24),
        target_is_alive: bool,
        group in proptest::option::of(any_group()),
        has_own_place: bool,
        is_denied: bool,
    ) {
        let record = Record {
            last_alive: lived_hours_ago.map(|hours| NOW.minus(Duration::from_secs(hours * 3600))),
            ..record
        };
        let place = if has_own_place { Place::Own } else { Place::HeldBack };
        let facts = Facts { target_is_alive, group: group.as_ref(), place, last: None };
        let denied = if is_denied { Denied::Yes } else { Denied::No };
        let found = reason(Subject::Known(&record, facts), denied, NOW, Calendar::REAL);
        let is_on_list = is_listed(&record, target_is_alive, NOW, Calendar::REAL)
            && group.is_none_or(|group| group.lists(place))
            && !is_denied;
        prop_assert_eq!(found.is_listed(), is_on_list, "{:?} {:?} {:?}", found, record, facts);
        prop_assert!(!(found.is_listed() && found.is_withdrawal()));
        if let Reason::Stale { last_alive } = found {
            prop_assert!(last_alive < NOW.minus(Calendar::REAL.unlisted_after()));
        }
    }
}
