use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use proptest::prelude::*;

use super::*;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn at(address: &str) -> SocketAddr {
    SocketAddr::new(address.parse().unwrap(), 443)
}

/// One open: its first dial, or the promised time.
fn visit(pace: &mut Pace, candidates: &[SocketAddr], now: Instant) -> Result<Turn, Late> {
    pace.charge_dial(candidates, &mut Charged::default(), now)
        .ok_or_else(|| pace.promise_dial(candidates, 1, now))
}

type Step<'a> = (u64, &'a [&'a str], Result<usize, (Deferral, u64)>);

/// Visits `steps` of (second, candidates) and compares each result: the index, or the pace and the
/// wait in seconds.
fn check(steps: &[Step<'_>]) {
    let start = Instant::now();
    let mut pace = Pace::new(Paces::default(), 1);
    for (second, candidates, expect) in steps {
        let candidates: Vec<_> = candidates.iter().map(|text| at(text)).collect();
        let found = visit(&mut pace, &candidates, start + seconds(*second))
            .map(|turn| turn.index)
            .map_err(|late| (late.why, late.retry_after.as_secs()));
        assert_eq!(found, *expect, "at {second} s: {candidates:?}");
    }
}

#[test]
fn an_address_has_one_check_in_ten_seconds() {
    check(&[
        (0, &["8.8.8.8"], Ok(0)),
        (3, &["8.8.8.8"], Err((Deferral::AddressPace, 7))),
        (10, &["8.8.8.8"], Ok(0)),
    ]);
}

#[test]
fn a_block_has_one_check_in_two_seconds() {
    check(&[
        (0, &["8.8.8.8"], Ok(0)),
        (1, &["8.8.8.9"], Err((Deferral::BlockPace, 1))),
        (1, &["8.8.9.8"], Ok(0)),
        (2, &["8.8.8.9"], Ok(0)),
        (10, &["2606:4700:0:1::1"], Ok(0)),
        (
            11,
            &["2606:4700:0:1:ffff::1"],
            Err((Deferral::BlockPace, 1)),
        ),
        (11, &["2606:4700:0:2::1"], Ok(0)),
    ]);
}

#[test]
fn the_first_candidate_in_turn_is_chosen_else_the_shortest_wait_told() {
    check(&[
        (0, &["8.8.8.8"], Ok(0)),
        (1, &["8.8.8.8", "9.9.9.9"], Ok(1)),
        (2, &["8.8.8.8", "9.9.9.9"], Err((Deferral::AddressPace, 8))),
        (2, &["9.9.9.9"], Err((Deferral::AddressPace, 9))),
    ]);
}

#[test]
fn a_proven_address_has_the_pace_of_its_block() {
    let start = Instant::now();
    let mut pace = Pace::new(Paces::default(), 1);
    let here = [at("8.8.8.8")];
    let visit = |pace: &mut Pace, second| {
        let visited = visit(pace, &here, start + seconds(second));
        visited.map(|_| ()).map_err(|late| late.why)
    };
    assert_eq!(visit(&mut pace, 0), Ok(()));
    assert_eq!(visit(&mut pace, 2), Err(Deferral::AddressPace));
    pace.prove(here[0].ip(), start + seconds(2));
    assert_eq!(visit(&mut pace, 2), Ok(()));
    assert_eq!(visit(&mut pace, 3), Err(Deferral::BlockPace));
    assert_eq!(visit(&mut pace, 4), Ok(()));
    let stale = 2 + PROVEN_FOR.as_secs();
    assert_eq!(visit(&mut pace, stale), Ok(()));
    assert_eq!(visit(&mut pace, stale + 2), Err(Deferral::AddressPace));
}

#[test]
fn promises_made_at_the_slower_pace_end_with_the_proof() {
    let start = Instant::now();
    let mut pace = Pace::new(Paces::default(), 1);
    let here = [at("8.8.8.8")];
    visit(&mut pace, &here, start).unwrap();
    for _ in 0..100 {
        visit(&mut pace, &here, start).unwrap_err();
    }
    pace.prove(here[0].ip(), start);
    let late = visit(&mut pace, &here, start).unwrap_err();
    assert!(late.retry_after <= seconds(2), "{late:?}");
}

#[test]
fn a_group_is_looked_up_once_in_ten_seconds() {
    let start = Instant::now();
    let mut pace = Pace::new(Paces::default(), 1);
    assert_eq!(pace.charge_group("a.example", start), Ok(()));
    assert_eq!(
        pace.charge_group("a.example", start + seconds(4)),
        Err(Late {
            why: Deferral::GroupPace,
            retry_after: seconds(6)
        })
    );
    assert_eq!(pace.charge_group("b.example", start + seconds(4)), Ok(()));
    assert_eq!(pace.charge_group("a.example", start + seconds(10)), Ok(()));
}

#[test]
fn dials_beyond_a_second_of_waiting_are_deferred() {
    let start = Instant::now();
    let mut pace = Pace::new(Paces::default(), 1);
    let mut waits = Vec::new();
    let late = loop {
        let index = u8::try_from(waits.len()).unwrap();
        match visit(&mut pace, &[at(&format!("8.8.{index}.8"))], start) {
            Ok(turn) => waits.push(turn.wait),
            Err(late) => break late,
        }
    };
    assert_eq!(waits.len(), 21);
    assert_eq!(waits[1] - waits[0], Duration::from_millis(50));
    assert_eq!(late.why, Deferral::DialPace);
    assert_eq!(late.retry_after, Duration::from_millis(1050));
}

#[test]
fn what_one_open_charged_does_not_delay_itself() {
    let start = Instant::now();
    let mut pace = Pace::new(Paces::default(), 1);
    let targets = ["2606:4700:0:1::1", "2606:4700:0:1::2"].map(at);
    let mut mine = Charged::default();
    for target in targets {
        assert!(pace.charge_dial(&[target], &mut mine, start).is_some());
    }
    let late = visit(&mut pace, &[at("2606:4700:0:1::3")], start).unwrap_err();
    assert_eq!(
        (late.why, late.retry_after),
        (Deferral::BlockPace, seconds(2))
    );
}

/// I9: waiters cost nothing, however often they ask.
#[test]
fn promises_need_no_room() {
    let start = Instant::now();
    let mut pace = Pace::new(Paces::default(), 2);
    let mut longest = Duration::ZERO;
    pace.charge_group("a.example", start).unwrap();
    for _ in 0..20_000 {
        let late = pace.charge_group("a.example", start).unwrap_err();
        assert!(late.retry_after >= longest);
        longest = late.retry_after;
    }
    assert_eq!(longest, PROMISED_WITHIN / 2);
    assert_eq!(pace.groups.len(), 1);
    // An unused promise delays no visit.
    assert_eq!(pace.charge_group("a.example", start + seconds(5)), Ok(()));
}

/// I9: a hundred thousand registered domains, one after the other, each with waiters, take no more
/// room than the table has, and the last visited ones are still paced.
#[test]
fn more_groups_than_the_table_holds_take_no_more_room() {
    let start = Instant::now();
    let mut pace = Pace::new(Paces::default(), 1);
    let group = |number: usize| format!("farm{number}.example");
    for number in 0..100_000 {
        // All within the pace, so that no entry can simply be forgotten.
        let now = start + Duration::from_micros(u64::try_from(number).unwrap() * 50);
        pace.charge_group(&group(number), now).unwrap();
        pace.charge_group(&group(number), now).unwrap_err();
        assert!(pace.groups.len() <= PACED_MAX);
    }
    let end = start + seconds(5);
    for number in 100_000 - PACED_MAX * 9 / 10..100_000 {
        assert!(pace.charge_group(&group(number), end).is_err(), "{number}");
    }
}

/// How a crowd was served whose members return at the promised times.
#[derive(Debug)]
struct Served {
    last: Duration,
    deferrals: usize,
    deferrals_of_one_max: usize,
}

/// `count` names that all arrive within a second. `ask` is called for the n-th name, `back` adds to
/// a promised wait.
fn crowd(
    count: usize,
    mut ask: impl FnMut(usize, Instant) -> Result<(), Late>,
    mut back: impl FnMut(Duration) -> Duration,
) -> (Served, Vec<Instant>) {
    let start = Instant::now();
    let mut waiting: BinaryHeap<_> = (0..count)
        .map(|name| Reverse((start + back(Duration::ZERO).min(seconds(1)), name)))
        .collect();
    let mut deferrals = vec![0; count];
    let mut visits = Vec::new();
    while let Some(Reverse((now, name))) = waiting.pop() {
        match ask(name, now) {
            Ok(()) => visits.push(now),
            Err(late) => {
                deferrals[name] += 1;
                assert!(deferrals[name] < count + 10, "{name} starves");
                waiting.push(Reverse((now + back(late.retry_after), name)));
            }
        }
    }
    let served = Served {
        last: *visits.last().unwrap() - start,
        deferrals: deferrals.iter().sum(),
        deferrals_of_one_max: deferrals.iter().copied().max().unwrap(),
    };
    (served, visits)
}

/// All are served in about the time needed, one per pace, and none asks often.
fn check_crowd(count: usize, every: Duration, (served, visits): &(Served, Vec<Instant>)) {
    let time = every * u32::try_from(count).unwrap();
    assert_eq!(visits.len(), count);
    assert!(visits.is_sorted());
    assert!(
        visits.windows(2).all(|pair| pair[1] - pair[0] >= every),
        "I8"
    );
    assert!(served.last <= time * 3 / 2, "{count}: {served:?}");
    assert!(served.deferrals <= count * 3, "{count}: {served:?}");
    assert!(served.deferrals_of_one_max <= 20, "{count}: {served:?}");
}

#[test]
fn a_wildcard_farm_is_no_busy_loop_even_when_its_names_come_back_at_leisure() {
    // Like the orchestrator: the promised wait, and up to as much again.
    let mut chance = 1_u64;
    let back = |told: Duration| {
        chance = chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        told + told.max(seconds(10)) * u32::try_from(chance >> 48).unwrap() / 65_536
    };
    let mut pace = Pace::new(Paces::default(), 1);
    let (served, visits) = crowd(5_000, |_, now| pace.charge_group("farm.example", now), back);
    assert!(
        visits
            .windows(2)
            .all(|pair| pair[1] - pair[0] >= seconds(10)),
        "I8"
    );
    assert!(served.last < seconds(10) * 5_000 * 4, "{served:?}");
    assert!(served.deferrals < 5_000 * 3, "{served:?}");
    assert!(served.deferrals_of_one_max <= 20, "{served:?}");
}

proptest! {
    /// I8: for any arrival times and delays, two admitted visits of an address are at least its
    /// pace apart, and a promised wait is exact.
    #[test]
    fn visits_are_never_closer_than_the_pace(
        gaps in proptest::collection::vec((0_u64..15_000, 0_u8..3, 0_u64..2000), 1..60),
    ) {
        let mut now = Instant::now();
        let mut pace = Pace::new(Paces::default(), 1);
        let mut last: HashMap<u8, Instant> = HashMap::new();
        for (gap, who, delay) in gaps {
            now += Duration::from_millis(gap);
            let candidate = [at(&format!("8.8.{who}.8"))];
            let mut charged = Charged::new(Vec::new(), seconds(2));
            let turn = pace.charge_dial(&candidate, &mut charged, now);
            match turn.ok_or_else(|| pace.promise_dial(&candidate, 1, now)) {
                Ok(turn) => {
                    let when = now + turn.wait + Duration::from_millis(delay);
                    if let Some(before) = last.insert(who, when) {
                        prop_assert!(when - before >= seconds(10));
                    }
                }
                Err(late) => {
                    prop_assert!(!late.retry_after.is_zero());
                    now += late.retry_after;
                    let turn = visit(&mut pace, &candidate, now);
                    prop_assert!(turn.is_ok());
                    last.insert(who, now + turn.unwrap().wait);
                }
            }
        }
    }

    #[test]
    fn a_crowd_of_one_group_is_served_one_a_pace(
        count in 2_usize..1500,
        lateness in proptest::collection::vec(0_u64..2000, 1..50),
    ) {
        let mut pace = Pace::new(Paces::default(), 1);
        let mut lateness = lateness.into_iter().cycle();
        let back = |told: Duration| told + Duration::from_millis(lateness.next().unwrap_or(0));
        let served = crowd(count, |_, now| pace.charge_group("farm.example", now), back);
        check_crowd(count, seconds(10), &served);
    }

    #[test]
    fn a_crowd_at_one_address_or_in_one_block_is_served_one_a_pace(
        count in 2_usize..250,
        lateness in proptest::collection::vec(0_u64..400, 1..50),
    ) {
        for (every, addresses) in [(10, 1), (2, 250)] {
            let mut pace = Pace::new(Paces::default(), 1);
            let mut lateness = lateness.iter().cycle();
            let back = |told: Duration| told + Duration::from_millis(*lateness.next().unwrap_or(&0));
            let ask = |name: usize, now| {
                let candidate = [at(&format!("8.8.8.{}", name % addresses))];
                visit(&mut pace, &candidate, now).map(|_| ())
            };
            let served = crowd(count, ask, back);
            check_crowd(count, seconds(every), &served);
        }
    }
}

#[test]
fn text_look_ups_are_paced_and_delay_no_check() {
    let start = Instant::now();
    let mut pace = Pace::new(Paces::default(), 1);
    let own = "_fedicensus";
    assert_eq!(
        pace.charge_text(own, "a.example", start),
        Ok(Duration::ZERO)
    );
    let late = pace.charge_text(own, "a.example", start + seconds(1));
    let expect = Late {
        why: Deferral::GroupPace,
        retry_after: seconds(9),
    };
    assert_eq!(late, Err(expect));
    assert!(
        pace.charge_text("_sigsum_v0", "a.example", start + seconds(1))
            .is_ok()
    );
    assert!(
        pace.charge_text(own, "b.example", start + seconds(1))
            .is_ok()
    );
    assert!(
        pace.charge_text(own, "a.example", start + seconds(10))
            .is_ok()
    );
    assert!(pace.charge_group("a.example", start).is_ok());
}

#[test]
fn texts_of_many_domains_are_spaced_and_those_who_would_wait_long_are_sent_away() {
    let now = Instant::now();
    let mut pace = Pace::new(Paces::default(), 1);
    let mut charge =
        |number: u32| pace.charge_text("_fedicensus", &format!("n{number}.example"), now);
    for number in 0..=10 {
        assert_eq!(charge(number), Ok(TEXT_PACE * number), "{number}");
    }
    let expect = Late {
        why: Deferral::Full,
        retry_after: TEXT_PACE * 11,
    };
    assert_eq!(charge(11), Err(expect));
    assert_eq!(charge(11), Err(expect), "nothing is charged");
}
