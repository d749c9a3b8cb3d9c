use super::*;
use proptest::prelude::*;

const V4: Family = Family::V4;
const V6: Family = Family::V6;

fn at(second: i64) -> Timestamp {
    Timestamp(second * 1000)
}

fn host(name: &str) -> Host {
    Host::parse(&format!("{name}.example")).unwrap()
}

fn dial(families: &[Family]) -> Doubt {
    Doubt {
        families: families.to_vec(),
        dns: false,
    }
}

fn name() -> Doubt {
    Doubt {
        families: Vec::new(),
        dns: true,
    }
}

/// A failing check of a second.
fn fail(confirm: &mut Confirm<&'static str>, what: &'static str, doubt: Doubt, ended: i64) {
    assert_eq!(
        confirm.fail(host(what), what, doubt, at(ended - 1), at(ended)),
        None
    );
}

/// A living check of a second.
fn alive(
    confirm: &mut Confirm<&'static str>,
    family: Family,
    fresh: bool,
    began: i64,
) -> Vec<(&'static str, Outcome)> {
    confirm.alive(
        &host("witness"),
        Witness {
            began: at(began),
            lived: at(began + 1),
            family,
            fresh,
        },
        at(began + 1),
    )
}

use Outcome::{AskAgain, Counts};

#[test]
fn a_failure_between_the_living_counts() {
    let mut confirm = Confirm::new(at(0));
    alive(&mut confirm, V4, true, 8);
    fail(&mut confirm, "a", dial(&[V4]), 11);
    assert!(
        alive(&mut confirm, V4, true, 10).is_empty(),
        "it began before the failure ended"
    );
    assert_eq!(alive(&mut confirm, V4, true, 11), [("a", Counts)]);
    assert!(alive(&mut confirm, V4, true, 13).is_empty(), "only once");
}

#[test]
fn the_first_to_live_after_an_outage_confirms_nothing() {
    let mut confirm = Confirm::new(at(0));
    alive(&mut confirm, V4, true, 8);
    fail(&mut confirm, "early", dial(&[V4]), 11);
    fail(&mut confirm, "middle", name(), 40);
    fail(&mut confirm, "late", dial(&[V4]), 69);
    assert_eq!(
        alive(&mut confirm, V4, true, 70),
        [
            ("early", AskAgain),
            ("middle", AskAgain),
            ("late", AskAgain)
        ]
    );
}

#[test]
fn who_fails_again_after_others_have_lived_counts_and_who_lives_is_forgotten() {
    let mut confirm = Confirm::new(at(0));
    for what in ["dead", "well"] {
        fail(&mut confirm, what, dial(&[V4]), 100);
    }
    assert_eq!(
        alive(&mut confirm, V4, true, 160),
        [("dead", AskAgain), ("well", AskAgain)]
    );
    confirm.alive(
        &host("well"),
        Witness {
            began: at(170),
            lived: at(171),
            family: V4,
            fresh: true,
        },
        at(171),
    );
    for what in ["dead", "well"] {
        fail(&mut confirm, what, dial(&[V4]), 1000);
    }
    assert_eq!(
        alive(&mut confirm, V4, true, 1060),
        [("dead", Counts), ("well", AskAgain)]
    );
}

#[test]
fn another_family_confirms_nothing() {
    let mut confirm = Confirm::new(at(0));
    alive(&mut confirm, V4, true, 8);
    alive(&mut confirm, V6, true, 8);
    fail(&mut confirm, "six", dial(&[V6]), 10);
    fail(&mut confirm, "both", dial(&[V4, V6]), 10);
    assert!(alive(&mut confirm, V4, true, 11).is_empty());
    assert_eq!(
        alive(&mut confirm, V6, true, 12),
        [("six", Counts), ("both", Counts)]
    );
}

#[test]
fn what_dns_says_is_confirmed_by_fresh_look_ups_alone() {
    let mut confirm = Confirm::new(at(0));
    alive(&mut confirm, V4, false, 8);
    fail(&mut confirm, "name", name(), 10);
    assert!(alive(&mut confirm, V4, false, 11).is_empty());
    assert_eq!(
        alive(&mut confirm, V6, true, 12),
        [("name", AskAgain)],
        "before it, nobody was looked up afresh"
    );
}

#[test]
fn what_nobody_confirms_is_dropped_after_two_minutes() {
    let mut confirm = Confirm::new(at(0));
    fail(&mut confirm, "a", dial(&[V4]), 10);
    assert!(confirm.expire(at(129)).is_empty());
    assert_eq!(confirm.expire(at(130)), ["a"]);
    fail(&mut confirm, "b", dial(&[V4]), 5000);
    assert_eq!(confirm.expire(at(10)), ["b"], "the clock was set back");
}

#[test]
fn a_canary_is_asked_once_a_minute_and_only_in_doubt() {
    let mut confirm = Confirm::new(at(0));
    assert!(!confirm.wants_canary(at(500)), "nothing is in doubt");
    fail(&mut confirm, "a", dial(&[V4]), 500);
    assert!(confirm.wants_canary(at(500)));
    assert!(!confirm.wants_canary(at(530)));
    assert!(confirm.wants_canary(at(560)));
    alive(&mut confirm, V4, true, 499);
    fail(&mut confirm, "b", dial(&[V4]), 501);
    assert!(!confirm.wants_canary(at(559)), "somebody has answered");
}

#[test]
fn the_number_that_waits_is_bounded() {
    let mut confirm = Confirm::new(at(0));
    for n in 0..WAITING_MAX {
        assert_eq!(confirm.fail(host("a"), n, dial(&[V4]), at(0), at(1)), None);
    }
    assert_eq!(
        confirm.fail(host("a"), WAITING_MAX, dial(&[V4]), at(0), at(1)),
        Some(0)
    );
    assert_eq!(confirm.waiting(), WAITING_MAX);
}

proptest! {
    /// Invariant I5: in one outage of more than [`CLOSE`] and a second, with living hosts before and after it, no failure of a sound host
    /// counts, however long the failing checks take and however late a living one ends.
    #[test]
    fn one_outage_never_counts_against_anybody(
        began in 70i64..100,
        lasts in 7i64..110,
        checks in prop::collection::vec((0i64..110, 1i64..55), 1..20),
        pause in 1i64..4,
        ends_late_by in 0i64..40,
    ) {
        let mut confirm = Confirm::new(at(0));
        let over = began + lasts;
        // A failing check overlaps the outage: it fails in it, or had begun before and was cut off by it.
        let fails: Vec<_> = checks.into_iter().map(|(offset, takes)| { let ended = began + 1 + offset % (lasts - 1); (ended - takes, ended) }).collect();
        let mut events: Vec<_> = fails.into_iter().map(|(from, to)| (to, Ok((from, to)))).collect();
        for second in (0..over + 60).filter(|second| second % pause == 0) {
            // Checks of a second that lived; every fifth reads peers for a while and ends later.
            if second < began || second >= over {
                let late = if second % 5 == 0 { ends_late_by } else { 0 };
                events.push((second + 1 + late, Err(second)));
            }
        }
        events.sort_unstable();
        let mut counted = 0;
        for (n, (now, event)) in events.into_iter().enumerate() {
            match event {
                Ok((from, to)) => { confirm.fail(host(&format!("h{n}")), n, name(), at(from), at(to)); }
                Err(second) => {
                    let witness = Witness { began: at(second), lived: at(second + 1), family: V4, fresh: true };
                    counted += confirm.alive(&host("w"), witness, at(now)).iter().filter(|(_, outcome)| *outcome == Counts).count();
                }
            }
        }
        prop_assert_eq!(counted, 0);
    }
}
