//! Which hosts are listed (invariant I11). The store has the same rule as SQL; a test there
//! compares the two.

use protocol::Private;

use crate::state::{Before, Record, State, Verdict};
use crate::time::{Calendar, Timestamp};

/// Whether the host is on the list.
///
/// Listed hosts are Alive; or Dying, were Alive before and are not marked gone; or Moving, were
/// Alive before and have a target that is not Alive. `target_is_alive` is the state of the target's
/// row. Hidden hosts are never listed.
///
/// Invariant I11: a host that was last alive over 14 days ago is not listed, whatever it answered
/// since.
pub fn is_listed(
    record: &Record,
    target_is_alive: bool,
    now: Timestamp,
    calendar: Calendar,
) -> bool {
    let lived_lately = record
        .last_alive
        .is_some_and(|last_alive| last_alive >= now.minus(calendar.unlisted_after()));
    if record.hidden || !lived_lately {
        return false;
    }
    match &record.state {
        State::Alive => true,
        State::Dying { before, gone, .. } => *before == Before::Alive && !gone,
        State::Moving { before, .. } => *before == Before::Alive && !target_is_alive,
        State::Discovered
        | State::Dead
        | State::Moved { .. }
        | State::OptedOut { .. }
        | State::Parked => false,
    }
}

/// Whether the list made at `made` may name the host: it would be listed, or it died or moved since
/// then. Also `true` for a host that was first alive after `made`.
pub fn may_be_on_list(record: &Record, made: Timestamp, calendar: Calendar) -> bool {
    let has_ended = matches!(record.state, State::Dead | State::Moved { .. });
    let mut then = record.clone();
    if has_ended && record.since >= made {
        then.state = State::Alive;
    }
    is_listed(&then, false, made, calendar)
}

/// Whether this verdict removes a host from the list because its owner wants that (invariant I7).
pub fn withdraws(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::OptedOut | Verdict::Gone => true,
        Verdict::Alive(instance) => instance.private == Private::Yes,
        Verdict::Moved { .. } | Verdict::Refused { .. } | Verdict::Dead { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use protocol::Host;

    use super::*;
    use crate::state::OptedOutBy;

    const NOW: Timestamp = Timestamp(1_700_000_000_000);

    fn record(state: State) -> Record {
        let host = Host::parse("a.example").unwrap();
        Record {
            state,
            last_alive: Some(NOW.minus(Duration::from_secs(13 * 86400))),
            ..Record::discovered(host, NOW, NOW)
        }
    }

    fn check(record: &Record, expect: bool) {
        let listed = is_listed(record, false, NOW, Calendar::REAL);
        assert_eq!(listed, expect, "{record:?}");
    }

    fn dying(before: Before, gone: bool) -> State {
        State::Dying {
            before,
            count: 2,
            gone,
            gone_last: gone,
        }
    }

    fn moving(before: Before) -> State {
        let target = Host::parse("b.example").unwrap();
        State::Moving {
            before,
            count: 2,
            target,
        }
    }

    #[test]
    fn the_living_are_listed_and_those_who_may_come_back() {
        check(&record(State::Alive), true);
        check(&record(dying(Before::Alive, false)), true);
        check(&record(moving(Before::Alive)), true);
    }

    #[test]
    fn nobody_else_is_listed() {
        for state in [
            State::Discovered,
            State::Dead,
            State::Moved {
                target: Host::parse("b.example").unwrap(),
            },
            State::OptedOut {
                by: OptedOutBy::Robots,
            },
            State::OptedOut {
                by: OptedOutBy::Owner,
            },
            State::OptedOut {
                by: OptedOutBy::Moderator,
            },
            State::Parked,
        ] {
            check(&record(state), false);
        }
        for before in [Before::Discovered, Before::Dead, Before::Moved] {
            check(&record(dying(before, false)), false);
            check(&record(moving(before)), false);
        }
    }

    #[test]
    fn a_410_takes_a_dying_host_off_the_list() {
        check(&record(dying(Before::Alive, true)), false);
    }

    #[test]
    fn a_moving_host_gives_way_to_its_target_once_that_lives() {
        let record = record(moving(Before::Alive));
        assert!(!is_listed(&record, true, NOW, Calendar::REAL));
        // No other host's listing depends on a target.
        let dying = Record {
            state: dying(Before::Alive, false),
            ..record
        };
        assert!(is_listed(&dying, true, NOW, Calendar::REAL));
    }

    #[test]
    fn hidden_hosts_are_never_listed() {
        check(
            &Record {
                hidden: true,
                ..record(State::Alive)
            },
            false,
        );
    }

    #[test]
    fn nothing_is_listed_whose_last_alive_is_older_than_14_days() {
        let fortnight = Duration::from_secs(14 * 86400);
        let last_alive = NOW.minus(fortnight);
        let on_the_day = Record {
            last_alive: Some(last_alive),
            ..record(State::Alive)
        };
        check(&on_the_day, true);
        let later = Record {
            last_alive: Some(Timestamp(last_alive.0 - 1)),
            ..on_the_day
        };
        check(&later, false);
        check(
            &Record {
                last_alive: None,
                ..later
            },
            false,
        );
    }
}
