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
    /// Invariant I5: in one outage of more than twice [`CLOSE`], with living hosts before and after it, no failure of a sound host counts.
    #[test]
    fn one_outage_never_counts_against_anybody(began in 10i64..40, lasts in 12i64..110, fails_at in prop::collection::vec(0i64..110, 1..20), pause in 1i64..4) {
        let mut confirm = Confirm::new(at(0));
        let over = began + lasts;
        let mut fails: Vec<_> = fails_at.into_iter().map(|second| began + 1 + second % (lasts - 1)).collect();
        fails.sort_unstable();
        let mut counted = 0;
        let mut second = 0;
        let mut next = 0;
        while second < over + 60 {
            while next < fails.len() && fails[next] <= second {
                confirm.fail(host(&format!("h{next}")), next, name(), at(fails[next] - 1), at(fails[next]));
                next += 1;
            }
            // A check of a second that began in the sound times.
            if second % pause == 0 && (second < began || second >= over) {
                let witness = Witness { began: at(second), family: V4, fresh: true };
                counted += confirm.alive(&host("w"), witness, at(second + 1)).iter().filter(|(_, outcome)| *outcome == Counts).count();
            }
            second += 1;
        }
        prop_assert_eq!(counted, 0);
    }
}
