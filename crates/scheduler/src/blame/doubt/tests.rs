use super::*;
use kit::{at, labelled};
use proptest::prelude::*;

mod adversary;

const V4: Family = Family::V4;
const V6: Family = Family::V6;

fn dial(families: &[Family]) -> Doubt {
    Doubt {
        families: families.to_vec(),
        dns: Dns::Sound,
    }
}

fn address(family: Family, number: u8) -> IpAddr {
    match family {
        V4 => [192, 0, 2, number].into(),
        V6 => [0x2001, 0xdb8, 0, 0, 0, 0, 0, number.into()].into(),
    }
}

fn name() -> Doubt {
    Doubt {
        families: Vec::new(),
        dns: Dns::Fresh(None),
    }
}

/// A failing check that takes a second.
fn fail(doubts: &mut Doubts<&'static str>, what: &'static str, doubt: Doubt, ended: i64) {
    assert_eq!(
        doubts.fail(labelled(what), what, doubt, at(ended - 1), at(ended)),
        None
    );
}

/// A successful check that takes a second.
fn alive(
    doubts: &mut Doubts<&'static str>,
    family: Family,
    fresh: bool,
    began: i64,
) -> Vec<(&'static str, Ruling)> {
    doubts.alive(
        &labelled("witness"),
        Witness {
            began: at(began),
            lived: at(began + 1),
            address: address(family, 1),
            fresh,
        },
        None,
        at(began + 1),
    )
}

use Ruling::{AskAgain, Counts};

#[test]
fn a_failure_between_the_living_counts() {
    let mut doubts = Doubts::new(at(0), RandomState::new());
    alive(&mut doubts, V4, true, 8);
    fail(&mut doubts, "a", dial(&[V4]), 11);
    assert!(
        alive(&mut doubts, V4, true, 10).is_empty(),
        "it began before the failure ended"
    );
    assert_eq!(alive(&mut doubts, V4, true, 11), [("a", Counts)]);
    assert!(alive(&mut doubts, V4, true, 13).is_empty(), "only once");
}

#[test]
fn the_first_to_live_after_an_outage_confirms_nothing() {
    let mut doubts = Doubts::new(at(0), RandomState::new());
    alive(&mut doubts, V4, true, 8);
    fail(&mut doubts, "early", dial(&[V4]), 11);
    fail(&mut doubts, "middle", name(), 40);
    fail(&mut doubts, "late", dial(&[V4]), 69);
    assert_eq!(
        alive(&mut doubts, V4, true, 70),
        [
            ("early", AskAgain),
            ("middle", AskAgain),
            ("late", AskAgain)
        ]
    );
}

#[test]
fn who_fails_again_after_others_have_lived_counts_and_who_lives_is_forgotten() {
    let mut doubts = Doubts::new(at(0), RandomState::new());
    for what in ["dead", "well"] {
        fail(&mut doubts, what, dial(&[V4]), 100);
    }
    assert_eq!(
        alive(&mut doubts, V4, true, 160),
        [("dead", AskAgain), ("well", AskAgain)]
    );
    doubts.alive(
        &labelled("well"),
        Witness {
            began: at(170),
            lived: at(171),
            address: address(V4, 1),
            fresh: true,
        },
        None,
        at(171),
    );
    for what in ["dead", "well"] {
        fail(&mut doubts, what, dial(&[V4]), 1000);
    }
    assert_eq!(
        alive(&mut doubts, V4, true, 1060),
        [("dead", Counts), ("well", AskAgain)]
    );
}

#[test]
fn what_turned_out_to_be_ours_is_dropped_and_never_held_against_its_host() {
    let mut doubts = Doubts::new(at(0), RandomState::new());
    fail(&mut doubts, "ours", dial(&[]), 10);
    fail(&mut doubts, "theirs", dial(&[V4]), 10);
    assert_eq!(doubts.give_up(|what| *what == "ours"), ["ours"]);
    assert_eq!(alive(&mut doubts, V4, true, 11), [("theirs", AskAgain)]);
    fail(&mut doubts, "ours", dial(&[]), 100);
    assert_eq!(
        alive(&mut doubts, V4, true, 160),
        [("ours", AskAgain)],
        "as if it had never failed"
    );
}

#[test]
fn a_clock_set_back_leaves_no_witness_in_the_future() {
    let mut doubts = Doubts::new(at(1_000_000), RandomState::new());
    alive(&mut doubts, V4, true, 1_000_000);
    doubts.clock_was_set(at(100));
    fail(&mut doubts, "a", dial(&[V4]), 150);
    let wanted = doubts.wants_canaries(at(170));
    assert_eq!(wanted.len(), 1, "a canary is not put off");
    alive(&mut doubts, V4, true, 171);
    fail(&mut doubts, "b", dial(&[V4]), 174);
    assert_eq!(
        alive(&mut doubts, V4, true, 175),
        [("b", Counts)],
        "others lived all along, by the new count"
    );
}

#[test]
fn another_family_confirms_nothing() {
    let mut doubts = Doubts::new(at(0), RandomState::new());
    alive(&mut doubts, V4, true, 8);
    alive(&mut doubts, V6, true, 8);
    fail(&mut doubts, "six", dial(&[V6]), 10);
    fail(&mut doubts, "both", dial(&[V4, V6]), 10);
    assert!(alive(&mut doubts, V4, true, 11).is_empty());
    assert_eq!(
        alive(&mut doubts, V6, true, 12),
        [("six", Counts), ("both", Counts)]
    );
}

#[test]
fn what_dns_says_is_confirmed_by_fresh_look_ups_alone() {
    let mut doubts = Doubts::new(at(0), RandomState::new());
    alive(&mut doubts, V4, false, 8);
    fail(&mut doubts, "name", name(), 10);
    assert!(alive(&mut doubts, V4, false, 11).is_empty());
    assert_eq!(
        alive(&mut doubts, V6, true, 12),
        [("name", AskAgain)],
        "before it, nobody was looked up afresh"
    );
}

/// Witnesses that take a second, at the addresses with these numbers, all along from second 0 to
/// 20.
fn all_along(numbers: &[u8]) -> Doubts<&'static str> {
    let mut doubts = Doubts::new(at(0), RandomState::new());
    for second in 0..20 {
        for number in numbers {
            live_at(&mut doubts, *number, true, second);
        }
    }
    doubts
}

fn live_at(
    doubts: &mut Doubts<&'static str>,
    number: u8,
    fresh: bool,
    began: i64,
) -> Vec<(&'static str, Ruling)> {
    let witness = Witness {
        began: at(began),
        lived: at(began + 1),
        address: address(V4, number),
        fresh,
    };
    doubts.alive(&labelled("witness"), witness, None, at(began + 1))
}

fn led_to(number: u8, dns: fn(Option<IpAddr>) -> Dns) -> Doubt {
    Doubt {
        families: vec![V4],
        dns: dns(Some(address(V4, number))),
    }
}

#[test]
fn who_lives_where_the_failing_was_led_to_is_no_witness_for_dns() {
    let mut doubts = all_along(&[1, 2]);
    fail(&mut doubts, "astray", led_to(1, Dns::Fresh), 18);
    fail(&mut doubts, "sound", dial(&[V4]), 18);
    assert_eq!(live_at(&mut doubts, 1, true, 20), [("sound", Counts)]);
    assert!(
        live_at(&mut doubts, 2, false, 20).is_empty(),
        "elsewhere, but DNS was not asked"
    );
    assert_eq!(live_at(&mut doubts, 2, true, 20), [("astray", Counts)]);
}

#[test]
fn a_resolver_that_leads_all_to_one_living_host_counts_against_nobody() {
    let mut doubts = all_along(&[1, 2]);
    // From here on every name leads to the first address, where a host still responds.
    for second in 20..100 {
        live_at(&mut doubts, 1, true, second);
    }
    fail(&mut doubts, "astray", led_to(1, Dns::Fresh), 99);
    assert_eq!(
        live_at(&mut doubts, 2, true, 100),
        [("astray", AskAgain)],
        "nobody lived elsewhere all along"
    );
}

#[test]
fn a_world_at_one_address_confirms_itself() {
    let mut doubts = all_along(&[1]);
    fail(&mut doubts, "dead", led_to(1, Dns::Fresh), 18);
    assert_eq!(live_at(&mut doubts, 1, true, 20), [("dead", Counts)]);
}

#[test]
fn a_remembered_address_never_counts_before_it_was_asked_for_anew() {
    let mut doubts = all_along(&[1, 2]);
    fail(&mut doubts, "dead", led_to(3, Dns::Remembered), 18);
    assert!(
        live_at(&mut doubts, 1, false, 20).is_empty(),
        "nobody was looked up afresh"
    );
    assert_eq!(live_at(&mut doubts, 1, true, 21), [("dead", AskAgain)]);
    fail(&mut doubts, "dead", led_to(3, Dns::Remembered), 40);
    assert_eq!(
        live_at(&mut doubts, 1, true, 41),
        [("dead", AskAgain)],
        "nor the second time"
    );
    fail(&mut doubts, "dead", led_to(3, Dns::Fresh), 60);
    assert_eq!(live_at(&mut doubts, 1, true, 61), [("dead", Counts)]);
}

#[test]
fn the_other_family_of_where_the_failing_was_led_to_is_not_elsewhere() {
    let mut doubts = all_along(&[1, 2]);
    // From here on every name leads to one server, which responds over both families.
    for second in 20..100 {
        live_at(&mut doubts, 1, true, second);
        alive(&mut doubts, V6, true, second);
    }
    fail(&mut doubts, "astray", led_to(1, Dns::Fresh), 99);
    assert!(alive(&mut doubts, V6, true, 100).is_empty(), "at once");
    assert!(live_at(&mut doubts, 1, true, 100).is_empty());
    assert_eq!(
        live_at(&mut doubts, 2, true, 101),
        [("astray", AskAgain)],
        "nor all along"
    );
}

#[test]
fn one_server_with_both_families_is_a_world_at_one_address() {
    let mut doubts = all_along(&[1]);
    for second in 0..20 {
        alive(&mut doubts, V6, true, second);
    }
    fail(&mut doubts, "dead", led_to(1, Dns::Fresh), 18);
    assert_eq!(live_at(&mut doubts, 1, true, 20).len(), 1);
}

#[test] // S72
fn host_silent_for_a_fortnight_is_no_longer_awaited() {
    let mut doubts = all_along(&[2, 1]);
    let fortnight = 14 * 24 * 3600;
    for (second, expect) in [
        (1000, vec![]),
        (fortnight - 1000, vec![]),
        (fortnight + 1000, vec![("dead", AskAgain)]),
    ] {
        fail(&mut doubts, "dead", led_to(1, Dns::Fresh), second);
        assert_eq!(live_at(&mut doubts, 1, true, second), expect, "{second}");
        doubts.expire(at(second + 200));
    }
}

#[test]
fn a_clock_set_ahead_keeps_who_lived_elsewhere() {
    let mut doubts = all_along(&[2, 1]);
    let year = 365 * 24 * 3600;
    doubts.clock_was_set(at(year));
    fail(&mut doubts, "astray", led_to(1, Dns::Fresh), year + 10);
    assert!(live_at(&mut doubts, 1, true, year + 10).is_empty());
}

#[test]
fn who_fails_and_then_hides_keeps_nobody_from_being_found_dead() {
    let mut doubts = Doubts::new(at(0), RandomState::new());
    // More hosts than are remembered, none of which is checked again.
    let mut second = 0;
    for round in 0..=suspects::SUSPECTS_MAX / WAITING_MAX {
        for n in 0..WAITING_MAX {
            let host = labelled(&format!("h{n}.r{round}"));
            doubts.fail(host, "hostile", dial(&[V4]), at(second), at(second));
        }
        second += 20;
        let asked_again = alive(&mut doubts, V4, true, second);
        assert_eq!(asked_again.len(), WAITING_MAX);
    }
    fail(&mut doubts, "dead", dial(&[V4]), 700);
    assert_eq!(alive(&mut doubts, V4, true, 710), [("dead", AskAgain)]);
    fail(&mut doubts, "dead", dial(&[V4]), 730);
    assert_eq!(alive(&mut doubts, V4, true, 740), [("dead", Counts)]);
}

/// Each name of a farm that never responded keeps to its turn, which comes a day later.
#[test]
fn all_names_of_a_farm_are_found_dead_although_each_waits_a_day_for_its_turn() {
    let mut doubts = Doubts::new(at(0), RandomState::new());
    let names = 10_000;
    let day = 29 * 3600;
    for (first, expect) in [(0, AskAgain), (day, Counts)] {
        for n in 0..names {
            let second = first + n * 10;
            let host = labelled(&format!("n{n}.farm"));
            doubts.fail(host, "n", dial(&[V4]), at(second), at(second + 1));
            let decided = alive(&mut doubts, V4, true, second + 7);
            assert_eq!(decided, [("n", expect)], "{n}");
            doubts.expire(at(second + 8));
        }
    }
}

#[test]
fn what_nobody_confirms_is_dropped_after_two_minutes() {
    let mut doubts = Doubts::new(at(0), RandomState::new());
    fail(&mut doubts, "a", dial(&[V4]), 10);
    assert!(doubts.expire(at(129)).is_empty());
    assert_eq!(doubts.expire(at(130)), ["a"]);
    fail(&mut doubts, "b", dial(&[V4]), 5000);
    assert_eq!(doubts.expire(at(10)), ["b"], "the clock was set back");
}

#[test]
fn a_canary_is_asked_once_a_minute_and_only_in_doubt() {
    let mut doubts = Doubts::new(at(0), RandomState::new());
    assert_eq!(doubts.wants_canaries(at(500)), [], "nothing is in doubt");
    fail(&mut doubts, "a", dial(&[V4]), 500);
    assert_eq!(doubts.wants_canaries(at(500)).len(), 1);
    assert_eq!(doubts.wants_canaries(at(530)), []);
    assert_eq!(doubts.wants_canaries(at(560)).len(), 1);
    alive(&mut doubts, V4, true, 562);
    fail(&mut doubts, "b", dial(&[V4]), 564);
    let wanted = doubts.wants_canaries(at(622));
    assert_eq!(wanted, [], "somebody has answered");
    assert_eq!(doubts.wants_canaries(at(623)).len(), 1);
}

fn wish(family: Option<Family>, fresh: bool) -> Wish {
    Wish {
        family,
        fresh,
        ..Wish::default()
    }
}

#[test]
fn canaries_are_asked_for_what_those_who_wait_lack() {
    let living = |failed: &[Doubt]| {
        let mut doubts = Doubts::new(at(0), RandomState::new());
        for second in 0..300 {
            if second == 240 {
                for doubt in failed {
                    fail(&mut doubts, "dead", doubt.clone(), second);
                }
            }
            // A host responds each second, over IPv6 and from the gateway's cache.
            alive(&mut doubts, V6, false, second);
        }
        doubts.wants_canaries(at(299))
    };
    let dns = |families: &[Family], dns| Doubt {
        families: families.to_vec(),
        dns,
    };
    assert_eq!(living(&[dial(&[V6])]), [], "it has its witness");
    assert_eq!(living(&[dial(&[V4])]), [wish(Some(V4), false)]);
    assert_eq!(living(&[name()]), [wish(None, true)], "anybody, fresh");
    let (four, six) = (address(V4, 9), address(V6, 9));
    let led = dns(&[V6], Dns::Fresh(Some(six)));
    assert_eq!(living(&[led]), [wish(Some(V6), true)]);
    let led = dns(&[V4], Dns::Remembered(Some(four)));
    assert_eq!(living(&[led]), [wish(Some(V4), true)]);
    assert_eq!(
        living(&[dial(&[V4]), name()]),
        [wish(Some(V4), true)],
        "one canary does for both"
    );
    let both = dns(&[V4, V6], Dns::Fresh(None));
    let wanted = living(&[both]);
    assert_eq!(wanted, [wish(Some(V4), true)], "IPv6 was shown");
}

#[test]
fn a_canary_is_asked_although_somebody_lives_where_he_is_no_witness() {
    let mut doubts = all_along(&[1, 2]);
    fail(&mut doubts, "astray", led_to(1, Dns::Fresh), 20);
    for second in 20..79 {
        assert!(live_at(&mut doubts, 1, true, second).is_empty());
        assert_eq!(doubts.wants_canaries(at(second)), []);
    }
    assert_eq!(doubts.wants_canaries(at(80)), [wish(Some(V4), true)]);
}

#[test]
fn whoever_failed_before_is_looked_up_anew() {
    let mut doubts = Doubts::new(at(0), RandomState::new());
    assert!(!doubts.is_suspect(&labelled("dead")));
    fail(&mut doubts, "dead", led_to(3, Dns::Remembered), 10);
    assert_eq!(alive(&mut doubts, V4, true, 11), [("dead", AskAgain)]);
    assert!(doubts.is_suspect(&labelled("dead")));
}

#[test]
fn the_number_that_waits_is_bounded() {
    let mut doubts = Doubts::new(at(0), RandomState::new());
    for n in 0..WAITING_MAX {
        assert_eq!(
            doubts.fail(labelled("a"), n, dial(&[V4]), at(0), at(1)),
            None
        );
    }
    assert_eq!(
        doubts.fail(labelled("a"), WAITING_MAX, dial(&[V4]), at(0), at(1)),
        Some(0)
    );
    assert_eq!(doubts.waiting(), WAITING_MAX);
}

proptest! {
    /// Invariant I5: during one outage of more than [`CLOSE`] and a second, with responding hosts
    /// before and after it, no failure of a sound host counts. This holds however long the failing
    /// checks take and however late a successful one ends.
    #[test]
    fn one_outage_never_counts_against_anybody(
        began in 70i64..100,
        lasts in 7i64..110,
        checks in prop::collection::vec((0i64..110, 1i64..55), 1..20),
        pause in 1i64..4,
        ends_late_by in 0i64..40,
    ) {
        let mut doubts = Doubts::new(at(0), RandomState::new());
        let over = began + lasts;
        // A failing check overlaps the outage: it fails during it, or began before and was cut off
        // by it.
        let fails: Vec<_> = checks.into_iter().map(|(offset, takes)| { let ended = began + 1 + offset % (lasts - 1); (ended - takes, ended) }).collect();
        let mut events: Vec<_> = fails.into_iter().map(|(from, to)| (to, Ok((from, to)))).collect();
        for second in (0..over + 60).filter(|second| second % pause == 0) {
            // Successful checks of a second. Every fifth reads peers for a while and ends later.
            if second < began || second >= over {
                let late = if second % 5 == 0 { ends_late_by } else { 0 };
                events.push((second + 1 + late, Err(second)));
            }
        }
        events.sort_unstable();
        let mut counted = 0;
        for (n, (now, event)) in events.into_iter().enumerate() {
            match event {
                Ok((from, to)) => { doubts.fail(labelled(&format!("h{n}")), n, name(), at(from), at(to)); }
                Err(second) => {
                    let witness = Witness { began: at(second), lived: at(second + 1), address: address(V4, 1), fresh: true };
                    counted += doubts.alive(&labelled("w"), witness, None, at(now)).iter().filter(|(_, outcome)| *outcome == Counts).count();
                }
            }
        }
        prop_assert_eq!(counted, 0);
    }
}
