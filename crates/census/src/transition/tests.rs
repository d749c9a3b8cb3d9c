//! The state transition table, cell by cell.

use std::time::Duration;

use super::*;
use crate::listing::is_listed;
use crate::state::StateName;

mod details;

const NOW: Timestamp = Timestamp(1_790_000_000_000);
const JITTER: Jitter = Jitter(1 << 31);
const REAL: Calendar = Calendar::REAL;

fn days(count: u64) -> Duration {
    Duration::from_secs(count * 86400)
}

fn host(name: &str) -> Host {
    Host::parse(&format!("{name}.example")).unwrap()
}

/// A host that was alive nine days ago, and whose state began eight days ago.
fn lived() -> Record {
    Record {
        since: NOW.minus(days(8)),
        last_alive: Some(NOW.minus(days(9))),
        alive_count: 5,
        last_checked: Some(NOW.minus(days(1))),
        ..Record::discovered(host("a"), NOW.minus(days(400)), NOW)
    }
}

/// As [`lived`], but it has failed or redirected for only six days.
fn lately() -> Record {
    alive_since(NOW.minus(days(6)))
}

fn alive_since(since: Timestamp) -> Record {
    Record { since, ..lived() }
}

fn last_alive(at: Option<Timestamp>) -> Record {
    Record {
        last_alive: at,
        ..lived()
    }
}

/// A host that was never alive.
fn never_lived() -> Record {
    Record {
        last_alive: None,
        alive_count: 0,
        first_seen: NOW.minus(days(10)),
        ..lived()
    }
}

fn alive() -> Verdict {
    Verdict::Alive(Instance {
        software: Some("mastodon".to_owned()),
        version: Some("4.5.0".to_owned()),
        private: Private::No,
        open_registrations: Some(true),
        ..Instance::default()
    })
}

fn dead() -> Verdict {
    Verdict::Dead {
        reason: DeadReason::Tls,
        status: None,
        to: None,
    }
}

fn refused(retry_after_s: Option<u64>) -> Verdict {
    Verdict::Refused {
        status: 403,
        wall: None,
        retry_after_s,
    }
}

fn moved(to: &str) -> Verdict {
    Verdict::Moved { to: host(to) }
}

fn run(record: &Record, verdict: &Verdict) -> Change {
    transition(record, verdict, NOW, JITTER, REAL)
}

/// Formats a record's state as in the tables below: `Dying(alive 3 gone)`, `Moving(alive 2 b)`,
/// `Dead x1` (one doubling).
fn show(record: &Record) -> String {
    let state = match &record.state {
        State::Discovered => "Discovered".to_owned(),
        State::Alive => "Alive".to_owned(),
        State::Dying {
            before,
            count,
            gone,
            gone_last,
        } => {
            let mark = match (gone, gone_last) {
                (true, true) => " gone",
                (true, false) => " was-gone",
                (false, _) => "",
            };
            format!("Dying({} {count}{mark})", before.as_str())
        }
        State::Dead => "Dead".to_owned(),
        State::Moving {
            before,
            count,
            target,
        } => {
            format!("Moving({} {count} {})", before.as_str(), short(target))
        }
        State::Moved { target } => format!("Moved({})", short(target)),
        State::OptedOut { by } => format!("OptedOut({})", by.as_str()),
        State::Parked => "Parked".to_owned(),
    };
    match record.doublings {
        0 => state,
        doublings => format!("{state} x{doublings}"),
    }
}

fn short(host: &Host) -> &str {
    host.as_str().strip_suffix(".example").unwrap()
}

/// Parses the output of [`show`].
fn read(text: &str, base: &Record) -> Record {
    let (state, doublings) = match text.split_once(" x") {
        Some((state, doublings)) => (state, doublings.parse().unwrap()),
        None => (text, 0),
    };
    let (name, carried) = state.split_once('(').unwrap_or((state, ")"));
    let carried: Vec<&str> = carried.strip_suffix(')').unwrap().split(' ').collect();
    let before = |word| match word {
        "discovered" => Before::Discovered,
        "alive" => Before::Alive,
        "dead" => Before::Dead,
        "moved" => Before::Moved,
        other => panic!("{other}"),
    };
    let opted_out_by = |word| match word {
        "robots" => OptedOutBy::Robots,
        "owner" => OptedOutBy::Owner,
        "moderator" => OptedOutBy::Moderator,
        other => panic!("{other}"),
    };
    let state = match (name, carried.as_slice()) {
        ("Discovered", _) => State::Discovered,
        ("Alive", _) => State::Alive,
        ("Dying", [word, count, mark @ ..]) => State::Dying {
            before: before(*word),
            count: count.parse().unwrap(),
            gone: !mark.is_empty(),
            gone_last: mark == ["gone"],
        },
        ("Dead", _) => State::Dead,
        ("Moving", [word, count, target]) => State::Moving {
            before: before(*word),
            count: count.parse().unwrap(),
            target: host(target),
        },
        ("Moved", [target]) => State::Moved {
            target: host(target),
        },
        ("OptedOut", [by]) => State::OptedOut {
            by: opted_out_by(*by),
        },
        ("Parked", [""]) => State::Parked,
        other => panic!("{other:?}"),
    };
    let due = (!state.is_never_asked()).then_some(NOW);
    Record {
        state,
        doublings,
        due,
        ..base.clone()
    }
}

/// Checks a table with one line per cell: `from | to | since | due`.
#[track_caller]
fn check(base: &Record, verdict: &Verdict, table: &str) -> Vec<StateName> {
    let mut seen = Vec::new();
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let [from, to, since, due] = line.split('|').map(str::trim).collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let record = read(from, base);
        let change = run(&record, verdict);
        let next = &change.record;
        assert_eq!(show(next), to, "{line}");
        let expect_since = match since {
            "kept" => record.since,
            "now" => NOW,
            other => panic!("{other}"),
        };
        assert_eq!(next.since, expect_since, "{line}");
        let expect_due = match due {
            "never" => None,
            "day" => Some(REAL.day(JITTER)),
            "1 week" => Some(REAL.week(JITTER)),
            "2 weeks" => Some(REAL.weeks(1, JITTER)),
            "4 weeks" => Some(REAL.weeks(2, JITTER)),
            other => panic!("{other}"),
        };
        let expect_due = expect_due.map(|interval| NOW.plus(interval));
        assert_eq!(next.due, expect_due, "{line}");
        assert_eq!(next.last_checked, Some(NOW), "{line}");
        assert!(!change.forget, "{line}");
        seen.push(record.state.name());
    }
    seen
}

/// As [`check`], and no state may be missing.
#[track_caller]
fn check_all(base: &Record, verdict: &Verdict, table: &str) {
    let seen = check(base, verdict, table);
    for name in StateName::ALL {
        assert!(seen.contains(&name), "no line for {name:?}");
    }
}

#[test]
fn alive_from_any_state_but_an_opt_out_by_word_of_mouth_is_alive() {
    let table = "
        Discovered             | Alive                | now  | day
        Alive                  | Alive                | kept | day
        Dying(alive 6)         | Alive                | now  | day
        Dying(alive 1 gone)    | Alive                | now  | day
        Dying(dead 9)          | Alive                | now  | day
        Dead                   | Alive                | now  | day
        Dead x2                | Alive                | now  | day
        Moving(alive 3 b)      | Alive                | now  | day
        Moved(b)               | Alive                | now  | day
        OptedOut(robots)       | Alive                | now  | day
        OptedOut(robots) x2    | Alive                | now  | day
        OptedOut(owner)        | OptedOut(owner)      | kept | never
        OptedOut(moderator)    | OptedOut(moderator)  | kept | never
        Parked                 | Parked               | kept | never
    ";
    check_all(&lived(), &alive(), table);
}

#[test]
fn dead_from_any_state_of_a_host_that_lived() {
    let table = "
        Discovered             | Dying(discovered 1)    | now  | day
        Alive                  | Dying(alive 1)         | now  | day
        Dying(alive 1)         | Dying(alive 2)         | kept | day
        Dying(alive 5)         | Dying(alive 6)         | kept | day
        Dying(alive 6)         | Dead                   | now  | 1 week
        Dying(dead 6)          | Dead                   | now  | 1 week
        Dying(alive 1 gone)    | Dying(alive 2 was-gone) | kept | day
        Dying(alive 2 was-gone) | Dying(alive 3 was-gone) | kept | day
        Dying(alive 6 gone)    | Dead                   | now  | 1 week
        Dead                   | Dead x1                | kept | 2 weeks
        Dead x1                | Dead x2                | kept | 4 weeks
        Dead x2                | Dead x2                | kept | 4 weeks
        Moving(alive 3 b)      | Dying(alive 1)         | now  | day
        Moving(dead 3 b)       | Dying(dead 1)          | now  | day
        Moving(moved 3 b)      | Dying(moved 1)         | now  | day
        Moved(b)               | Dying(moved 1)         | now  | day
        OptedOut(robots)       | OptedOut(robots) x1    | kept | 2 weeks
        OptedOut(robots) x1    | OptedOut(robots) x2    | kept | 4 weeks
        OptedOut(robots) x2    | OptedOut(robots) x2    | kept | 4 weeks
        OptedOut(owner)        | OptedOut(owner)        | kept | never
        OptedOut(moderator)    | OptedOut(moderator)    | kept | never
        Parked                 | Parked                 | kept | never
    ";
    check_all(&lived(), &dead(), table);
}

#[test]
fn seventh_failure_within_a_week_stays_dying() {
    let table = "
        Dying(alive 6)         | Dying(alive 7)   | kept | day
        Dying(alive 99)        | Dying(alive 100) | kept | day
    ";
    check(&lately(), &dead(), table);
    let on_the_day = alive_since(NOW.minus(days(7)));
    let stays = "Dying(alive 6) | Dying(alive 7) | kept | day";
    check(&on_the_day, &dead(), stays);
    let just_over = alive_since(Timestamp(NOW.minus(days(7)).0 - 1));
    check(&just_over, &dead(), "Dying(alive 6) | Dead | now | 1 week");
}

#[test]
fn a_host_that_never_lived_is_dead_at_the_third_failure() {
    let table = "
        Discovered             | Dying(discovered 1)  | now  | day
        Dying(discovered 1)    | Dying(discovered 2)  | kept | day
        Dying(discovered 2)    | Dead                 | now  | 1 week
        Dying(discovered 1 gone) | Dying(discovered 2 was-gone) | kept | day
        Alive                  | Dying(alive 1)       | now  | day
        Dead                   | Dead x1              | kept | 2 weeks
        Moving(discovered 3 b) | Dying(discovered 1)  | now  | day
        Moved(b)               | Dying(moved 1)       | now  | day
        OptedOut(robots)       | OptedOut(robots) x1  | kept | 2 weeks
        Parked                 | Parked               | kept | never
    ";
    check_all(&never_lived(), &dead(), table);
    let an_hour_ago = Record {
        since: NOW.minus(days(1) / 24),
        ..never_lived()
    };
    let dies = "Dying(discovered 2) | Dead | now | 1 week";
    check(&an_hour_ago, &dead(), dies);
}

#[test]
fn gone_from_any_state_but_opted_out_is_dying_and_the_second_in_a_row_dead() {
    let table = "
        Discovered              | Dying(discovered 1 gone) | now  | day
        Alive                   | Dying(alive 1 gone)    | now  | day
        Dying(alive 3)          | Dying(alive 4 gone)    | kept | day
        Dying(alive 9)          | Dying(alive 10 gone)   | kept | day
        Dying(alive 1 gone)     | Dead x2                | now  | 4 weeks
        Dead                    | Dying(dead 1 gone)     | now  | day
        Moving(alive 3 b)       | Dying(alive 1 gone)    | now  | day
        Moving(dead 3 b)        | Dying(dead 1 gone)     | now  | day
        Moved(b)                | Dying(moved 1 gone)    | now  | day
        OptedOut(robots)        | OptedOut(robots) x1    | kept | 2 weeks
        OptedOut(robots) x2     | OptedOut(robots) x2    | kept | 4 weeks
        OptedOut(owner)         | OptedOut(owner)        | kept | never
        OptedOut(moderator)     | OptedOut(moderator)    | kept | never
        Parked                  | Parked                 | kept | never
    ";
    check_all(&lived(), &Verdict::Gone, table);
}

#[test]
fn a_410_after_another_failure_is_not_the_second_in_a_row() {
    let table = "
        Dying(alive 2 was-gone) | Dying(alive 3 gone)    | kept | day
    ";
    check(&lived(), &Verdict::Gone, table);
    // A refusal in between also ends the row.
    let table = "
        Dying(alive 1 gone)     | Dying(alive 1 was-gone) | kept | day
    ";
    check(&lived(), &refused(None), table);
}

#[test]
fn a_host_marked_gone_stays_off_the_list_through_other_failures_until_it_lives() {
    let mut record = Record {
        state: State::Alive,
        last_alive: Some(NOW.minus(days(1))),
        ..lived()
    };
    for (verdict, listed) in [
        (Verdict::Gone, false),
        (dead(), false),
        (refused(None), false),
        (dead(), false),
        (alive(), true),
        (dead(), true),
    ] {
        record = run(&record, &verdict).record;
        assert_eq!(is_listed(&record, false, NOW, REAL), listed, "{record:?}");
    }
}

#[test]
fn a_refusal_changes_nothing_but_marks() {
    let table = "
        Discovered             | Discovered           | kept | day
        Alive                  | Alive                | kept | day
        Dying(alive 3)         | Dying(alive 3)       | kept | day
        Dead                   | Dead                 | kept | 1 week
        Dead x2                | Dead x2              | kept | 4 weeks
        Moving(alive 3 b)      | Moving(alive 3 b)    | kept | day
        Moved(b)               | Moved(b)             | kept | 1 week
        OptedOut(robots)       | OptedOut(robots) x1  | kept | 2 weeks
        OptedOut(robots) x1    | OptedOut(robots) x2  | kept | 4 weeks
        OptedOut(owner)        | OptedOut(owner)      | kept | never
        OptedOut(moderator)    | OptedOut(moderator)  | kept | never
        Parked                 | Parked               | kept | never
    ";
    check_all(&lived(), &refused(None), table);
    let marked = run(&read("Alive", &lived()), &refused(None)).record;
    assert!(marked.refuses);
    let others = [
        alive(),
        dead(),
        Verdict::Gone,
        moved("b"),
        Verdict::OptedOut,
    ];
    for verdict in others {
        assert!(!run(&marked, &verdict).record.refuses, "{verdict:?}");
    }
}

#[test]
fn who_refuses_for_14_days_without_having_lived_is_dead() {
    let table = "
        Discovered             | Dead                 | now  | 1 week
        Alive                  | Dead                 | now  | 1 week
        Dying(alive 3)         | Dead                 | now  | 1 week
        Dead                   | Dead                 | kept | 1 week
        Dead x2                | Dead x2              | kept | 4 weeks
        Moving(alive 3 b)      | Dead                 | now  | 1 week
        Moved(b)               | Dead                 | now  | 1 week
        OptedOut(robots)       | OptedOut(robots) x1  | kept | 2 weeks
        OptedOut(owner)        | OptedOut(owner)      | kept | never
        Parked                 | Parked               | kept | never
    ";
    let long_ago = Some(Timestamp(NOW.minus(days(14)).0 - 1));
    check_all(&last_alive(long_ago), &refused(None), table);
    check_all(&last_alive(None), &refused(None), table);
    // On the day itself, and for a newly added name, it is too early.
    let on_the_day = last_alive(Some(NOW.minus(days(14))));
    check(&on_the_day, &refused(None), "Alive | Alive | kept | day");
    let stays = "Discovered | Discovered | kept | day";
    check(&never_lived(), &refused(None), stays);
}

#[test]
fn retry_after_is_kept_to_for_a_day_more_than_the_interval() {
    let check = |state: &str, retry_after_s, expect: Duration| {
        let change = run(&read(state, &lived()), &refused(retry_after_s));
        let due = change.record.due;
        assert_eq!(due, Some(NOW.plus(expect)), "{state} {retry_after_s:?}");
    };
    let day = REAL.day(JITTER);
    let week = REAL.week(JITTER);
    check("Alive", None, day);
    check("Alive", Some(0), day);
    check("Alive", Some(3600), day);
    check("Alive", Some(day.as_secs() + 3600), day + days(1) / 24);
    check("Alive", Some(7 * 86400), day + days(1));
    check("Alive", Some(u64::MAX), day + days(1));
    check("Moved(b)", Some(86400), week);
    let weeks = |doublings| REAL.weeks(doublings, JITTER) + days(1);
    check("Dead x2", Some(u64::MAX), weeks(2));
    check("OptedOut(robots)", Some(u64::MAX), weeks(1));
}

#[test]
fn moved_from_any_state() {
    let table = "
        Discovered             | Moving(discovered 1 b) | now  | day
        Alive                  | Moving(alive 1 b)    | now  | day
        Dying(alive 6)         | Moving(alive 1 b)    | now  | day
        Dying(dead 2 gone)     | Moving(dead 1 b)     | now  | day
        Dead                   | Moving(dead 1 b)     | now  | day
        Moving(alive 1 b)      | Moving(alive 2 b)    | kept | day
        Moving(alive 5 b)      | Moving(alive 6 b)    | kept | day
        Moving(alive 6 b)      | Moved(b)             | now  | 1 week
        Moving(alive 6 c)      | Moving(alive 1 b)    | now  | day
        Moving(moved 6 c)      | Moving(moved 1 b)    | now  | day
        Moved(b)               | Moved(b)             | kept | 1 week
        Moved(c)               | Moving(moved 1 b)    | now  | day
        OptedOut(robots)       | OptedOut(robots) x1  | kept | 2 weeks
        OptedOut(owner)        | OptedOut(owner)      | kept | never
        OptedOut(moderator)    | OptedOut(moderator)  | kept | never
        Parked                 | Parked               | kept | never
    ";
    check_all(&lived(), &moved("b"), table);
    let table = "
        Moving(alive 6 b)      | Moving(alive 7 b)    | kept | day
        Moving(alive 99 b)     | Moving(alive 100 b)  | kept | day
    ";
    check(&lately(), &moved("b"), table);
}

#[test]
fn a_target_becomes_a_candidate_when_it_is_new_to_the_host() {
    let check = |from: &str, expect: Option<&str>| {
        let change = run(&read(from, &lived()), &moved("b"));
        assert_eq!(change.candidate, expect.map(host), "{from}");
    };
    let new = "Discovered, Alive, Dying(alive 6), Dead, Moving(alive 6 c), Moved(c)";
    for from in new.split(", ") {
        check(from, Some("b"));
    }
    let known = "Moving(alive 2 b), Moved(b), OptedOut(robots), OptedOut(owner), Parked";
    for from in known.split(", ") {
        check(from, None);
    }
}

#[test]
fn a_move_to_itself_counts_as_dead() {
    let change = run(&read("Alive", &lived()), &moved("a"));
    assert_eq!(show(&change.record), "Dying(alive 1)");
    assert_eq!(change.candidate, None);
    assert_eq!(change.entry.verdict, "dead");
    assert_eq!(change.entry.reason.as_deref(), Some("redirect_to_self"));
}

#[test]
fn opted_out_from_any_state() {
    let table = "
        Discovered             | OptedOut(robots)     | now  | 1 week
        Alive                  | OptedOut(robots)     | now  | 1 week
        Dying(alive 3)         | OptedOut(robots)     | now  | 1 week
        Dead x2                | OptedOut(robots)     | now  | 1 week
        Moving(alive 3 b)      | OptedOut(robots)     | now  | 1 week
        Moved(b)               | OptedOut(robots)     | now  | 1 week
        OptedOut(robots)       | OptedOut(robots)     | kept | 1 week
        OptedOut(robots) x2    | OptedOut(robots)     | kept | 1 week
        OptedOut(owner)        | OptedOut(owner)      | kept | never
        OptedOut(moderator)    | OptedOut(moderator)  | kept | never
        Parked                 | OptedOut(robots)     | now  | 1 week
    ";
    check_all(&lived(), &Verdict::OptedOut, table);
}
