//! What a change has in addition to the state: marks, learned names, the entry.

use proptest::prelude::*;

use super::*;

#[test]
fn who_never_lived_for_a_year_is_forgotten_once_dead() {
    let check = |state: &str, first_seen_days: u64, last_alive, verdict: &Verdict, expect| {
        let first_seen = NOW.minus(days(first_seen_days));
        let record = Record {
            first_seen,
            last_alive,
            ..never_lived()
        };
        let forget = run(&read(state, &record), verdict).forget;
        assert_eq!(forget, expect, "{state} {first_seen_days} {verdict:?}");
    };
    check("Dead x2", 366, None, &dead(), true);
    check("Dead x2", 365, None, &dead(), false);
    check("Dead x2", 366, Some(NOW.minus(days(300))), &dead(), false);
    check("Dying(discovered 2)", 366, None, &dead(), false);
    check("OptedOut(robots)", 366, None, &dead(), false);
    check("Parked", 366, None, &dead(), false);
    check("Dead x2", 366, None, &refused(None), false);
}

/// A `first_seen` in the future comes from a wrong clock, and must not count as a sign of life
/// until then.
#[test]
fn a_first_sight_that_lies_ahead_keeps_no_refusing_host_listed() {
    let ahead = Record {
        first_seen: NOW.plus(days(300)),
        last_alive: Some(NOW.minus(days(15))),
        ..lived()
    };
    let change = run(&read("Alive", &ahead), &refused(None));
    assert_eq!(change.record.state, State::Dead);
    let never = Record {
        last_alive: None,
        ..ahead
    };
    let change = run(&read("Discovered", &never), &refused(None));
    assert_eq!(change.record.state, State::Discovered, "it is new to us");
}

/// The census starts with a clock that is 20 days behind, and the clock is corrected before the day
/// is over.
#[test]
fn who_is_met_by_a_clock_that_is_behind_is_not_dead_when_it_is_set_right() {
    let living = Record {
        since: NOW.minus(days(100)),
        last_alive: Some(NOW.minus(days(1))),
        last_checked: Some(NOW.minus(days(1))),
        ..lived()
    };
    let living = read("Alive", &living);
    let behind = NOW.minus(days(20));
    for met in [alive(), refused(None), dead()] {
        let then = transition(&living, &met, behind, JITTER, REAL).record;
        let next = transition(&then, &refused(None), NOW, JITTER, REAL).record;
        assert_ne!(next.state, State::Dead, "{met:?}");
        assert!(is_listed(&next, false, NOW, REAL), "{met:?}");
    }
    // If the clock stays behind, it is trusted.
    let then = transition(&living, &alive(), behind, JITTER, REAL).record;
    let next = behind.plus(days(1));
    let then = transition(&then, &alive(), next, JITTER, REAL).record;
    assert_eq!(then.last_alive, Some(next));
}

#[test]
fn alive_brings_what_it_says_of_itself() {
    let record = run(&read("Dead x2", &lived()), &alive()).record;
    let said = Instance {
        software: Some("mastodon".to_owned()),
        version: Some("4.5.0".to_owned()),
        open_registrations: Some(true),
        ..Instance::default()
    };
    assert_eq!(record.instance, said);
    assert_eq!(record.last_alive, Some(NOW));
    assert_eq!(record.alive_count, 6);
    // It stays known when the host dies.
    let dying = run(&record, &dead()).record;
    assert_eq!(dying.instance, said);
    assert_eq!(dying.last_alive, Some(NOW));
}

#[test]
fn parked_or_opted_out_host_changes_its_check_time_only() {
    for from in ["OptedOut(owner)", "OptedOut(moderator)", "Parked"] {
        let record = read(from, &lived());
        let unchanged = Record {
            last_checked: Some(NOW),
            ..record.clone()
        };
        for verdict in [alive(), dead(), Verdict::Gone, refused(Some(9)), moved("b")] {
            let record = run(&record, &verdict).record;
            assert_eq!(record, unchanged, "{from} {verdict:?}");
        }
    }
}

#[test]
fn hidden_follows_what_the_instance_asks_for() {
    let check = |base: Record, hidden, private, expect| {
        let record = Record {
            state: State::Alive,
            hidden,
            ..base
        };
        let verdict = Verdict::Alive(Instance {
            private,
            ..Instance::default()
        });
        let found = run(&record, &verdict).record.hidden;
        assert_eq!(found, expect, "{hidden} {private:?}");
    };
    for hidden in [false, true] {
        check(lived(), hidden, Private::Yes, true);
        check(lived(), hidden, Private::No, false);
        check(lived(), hidden, Private::Unknown, hidden);
        check(never_lived(), hidden, Private::Yes, true);
        check(never_lived(), hidden, Private::No, false);
        check(never_lived(), hidden, Private::Unknown, true);
    }
}

#[test]
fn a_name_is_learned_from_where_a_failure_pointed() {
    let check = |reason, to: &str, expect: Option<&str>| {
        let verdict = Verdict::Dead {
            reason,
            status: None,
            to: Some(to.to_owned()),
        };
        let candidate = |from| run(&read(from, &lived()), &verdict).candidate;
        let checked = "Alive, Dying(alive 2), Dying(alive 6), Dead, Moving(alive 1 c)";
        for from in checked.split(", ") {
            assert_eq!(candidate(from), expect.map(host), "{from} {reason:?} {to}");
        }
        for from in ["OptedOut(robots)", "OptedOut(owner)", "Parked"] {
            assert_eq!(candidate(from), None, "{from}");
        }
    };
    check(DeadReason::TemporaryRedirect, "b.example", Some("b"));
    check(DeadReason::NodeinfoElsewhere, "B.Example.", Some("b"));
    check(DeadReason::NodeinfoElsewhere, "a.example", None);
    check(DeadReason::NodeinfoElsewhere, "127.0.0.1", None);
    check(DeadReason::TemporaryRedirect, "b.example/x", None);
    check(DeadReason::BadRedirect, "b.example", None);
}

#[test]
fn an_entry_says_what_was_the_matter() {
    let check = |verdict: &Verdict, word: &str, reason: Option<&str>| {
        let entry = run(&lived(), verdict).entry;
        assert_eq!(entry.verdict, word);
        assert_eq!(entry.reason.as_deref(), reason);
        assert_eq!(entry.at, NOW);
    };
    let check_dead = |reason, status, to: Option<&str>, expect| {
        let to = to.map(str::to_owned);
        check(&Verdict::Dead { reason, status, to }, "dead", Some(expect));
    };
    check(&alive(), "alive", None);
    check(&moved("b"), "moved", Some("moved to b.example"));
    check(&Verdict::OptedOut, "opted_out", None);
    check(&Verdict::Gone, "gone", Some("status 410"));
    check(&refused(None), "refused", Some("status 403"));
    let later = "status 403, retry after 60 s";
    check(&refused(Some(60)), "refused", Some(later));
    check(&dead(), "dead", Some("tls"));
    check_dead(DeadReason::Status, Some(500), None, "status 500");
    let robots = "robots_unavailable (status 503)";
    check_dead(DeadReason::RobotsUnavailable, Some(503), None, robots);
    let elsewhere = "temporary_redirect to b.example";
    check_dead(
        DeadReason::TemporaryRedirect,
        None,
        Some("b.example"),
        elsewhere,
    );
    for (to, expect) in [
        ("\u{1b}[2J\\x\n", "bad_redirect to \\x1b[2J\\\\x\\x0a"),
        (
            "already\\x0aescaped…",
            "bad_redirect to already\\x0aescaped…",
        ),
    ] {
        check_dead(DeadReason::BadRedirect, None, Some(to), expect);
    }
}

proptest! {
    #[test]
    fn a_reason_is_bounded_and_harmless_whatever_a_checker_says(to in "\\PC{0,400}|[\\x00-\\x7f]{0,400}") {
        let verdict = Verdict::Dead {
            reason: DeadReason::RobotsUnavailable,
            status: Some(u16::MAX),
            to: Some(to),
        };
        let reason = run(&lived(), &verdict).entry.reason.unwrap();
        prop_assert!(reason.len() <= REASON_BYTES_MAX, "{}", reason.len());
        prop_assert!(!reason.contains(char::is_control));
    }
}

/// Hosts that were all checked for the first time within hours would all be due at once again.
#[test]
fn a_first_verdict_of_any_kind_is_followed_by_20_to_49_hours() {
    let first = Record {
        last_checked: None,
        ..never_lived()
    };
    for verdict in [alive(), refused(None), dead()] {
        let due = run(&first, &verdict).record.due;
        let expect = NOW.plus(REAL.second_check(JITTER));
        assert_eq!(due, Some(expect), "{verdict:?}");
    }
}
