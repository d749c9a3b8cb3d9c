//! Crowds of names that lead to one place (invariant I8).
//!
//! A window of any length holds at most one visit per pace, plus one: these stories check that no
//! two visits are closer together than the pace.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use census::time::Timestamp;
use protocol::Host;

use crate::crowd::{Behaviour, Crowd, Elsewhere, Name};

const START: Timestamp = Timestamp(0);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

const CROWD: usize = 10_000;

/// Longest time between two first checks of a name: a daily interval of `census::time`.
const DAY: Duration = HOUR.saturating_mul(29);

/// The gateway's default paces (invariant I8).
const ADDRESS: Duration = SECOND.saturating_mul(10);
const GROUP: Duration = SECOND.saturating_mul(10);
const BLOCK: Duration = SECOND.saturating_mul(2);

const VICTIM: IpAddr = IpAddr::V4(Ipv4Addr::new(8, 8, 8, 8));

/// A dead name in its own registered domain, at an address in its own block, due within a day.
fn name(prefix: &str, number: usize, of: usize) -> Name {
    let text = format!("{prefix}{number}.example");
    let spread = DAY * u32::try_from(number).unwrap() / u32::try_from(of).unwrap();
    let [_, a, b, c] = u32::try_from(number).unwrap().to_be_bytes();
    Name {
        host: Host::parse(&text).unwrap(),
        group: text,
        address: IpAddr::V4(Ipv4Addr::new(20 + a, b, c, 1)),
        behaviour: Behaviour::Silent,
        responded: false,
        due: START.plus(spread),
    }
}

pub(crate) fn crowd(prefix: &str, of: usize, change: impl Fn(usize, &mut Name)) -> Vec<Name> {
    (0..of)
        .map(|number| {
            let mut made = name(prefix, number, of);
            change(number, &mut made);
            made
        })
        .collect()
}

/// Ordinary instances elsewhere, which must not be affected.
fn ordinary() -> Vec<Name> {
    crowd("ordinary", 1_000, |number, name| {
        let [.., b, c] = u32::try_from(number).unwrap().to_be_bytes();
        name.address = IpAddr::V4(Ipv4Addr::new(150, b, c, 1));
        (name.behaviour, name.responded) = (Behaviour::Responds, true);
    })
}

fn census(names: Vec<Name>) -> Crowd {
    Crowd::new(names, Elsewhere::Responds, START)
}

/// The shortest time between two of them.
fn closest(visits: &[Timestamp]) -> Duration {
    let mut sorted = visits.to_vec();
    sorted.sort_unstable();
    sorted
        .windows(2)
        .map(|pair| pair[1].since(pair[0]))
        .min()
        .unwrap_or(Duration::MAX)
}

/// Runs until each of the first `count` names was visited. Returns when the last one was.
fn until_all_were_visited(census: &mut Crowd, count: usize, within: Duration) -> Duration {
    let missing = |census: &Crowd| {
        let fates = census.fates[..count].iter();
        fates.filter(|fate| fate.visits.is_empty()).count()
    };
    while missing(census) > 0 {
        let late = census.now.since(START) >= within;
        assert!(!late, "{} were never visited", missing(census));
        census.run_until(census.now.plus(HOUR));
    }
    let firsts = census.fates[..count].iter().map(|fate| fate.visits[0]);
    firsts.max().unwrap().since(START)
}

/// Asserts that hardly a turn was left unused: the visits took little longer than their paces.
/// Visited names are due again after a day, three times while they are dead, and take turns like
/// any other.
fn assert_no_turn_was_wasted(visits: &[Timestamp], pace: Duration, last: Duration) {
    let until_last = visits.iter().filter(|visit| visit.since(START) <= last);
    let ideal = (pace * u32::try_from(until_last.count()).unwrap()).max(DAY);
    assert!(
        last <= ideal.mul_f64(1.3),
        "{} instead of {}",
        hours(last),
        hours(ideal)
    );
}

/// The longest wait of the names from `first` on.
fn longest_wait(census: &Crowd, first: usize) -> Duration {
    let waits = census.fates[first..].iter().map(|fate| fate.wait_max);
    waits.max().unwrap()
}

fn hours(span: Duration) -> String {
    format!("{:.1} h", span.as_secs_f64() / 3600.0)
}

fn tell(story: &str, census: &Crowd, visits: &[Timestamp], last: Duration) {
    let deferrals: usize = census.fates.iter().map(|fate| fate.deferrals).sum();
    let most = census.fates.iter().map(|fate| fate.deferrals).max();
    eprintln!(
        "{story}: {} names, {} visits there, the closest two {:?} apart, all visited after {}, {} opens, {deferrals} deferred, one name {} times at most",
        census.names.len(),
        visits.len(),
        closest(visits),
        hours(last),
        census.opens,
        most.unwrap_or_default(),
    );
}

#[test] // S51
fn ten_thousand_names_at_one_address_cost_it_its_pace() {
    let names = crowd("farm", CROWD, |_, name| name.address = VICTIM);
    let mut census = census(names);
    let last = until_all_were_visited(&mut census, CROWD, DAY * 4);
    let visits = &census.dials[&VICTIM];
    tell("one address", &census, visits, last);
    assert!(closest(visits) >= ADDRESS, "I8");
    assert!(last <= DAY.mul_f64(1.3), "{}", hours(last));
}

#[test]
fn ten_thousand_names_that_come_at_once_are_served_in_turn() {
    let names = crowd("farm", CROWD, |_, name| {
        (name.address, name.due) = (VICTIM, START);
    });
    let mut census = census(names);
    let last = until_all_were_visited(&mut census, CROWD, DAY * 4);
    let visits = &census.dials[&VICTIM];
    tell("one address at once", &census, visits, last);
    assert!(closest(visits) >= ADDRESS, "I8");
    assert_no_turn_was_wasted(visits, ADDRESS, last);
    // The first ones are due again before the last ones had their turn. A check may start a portion
    // (50 ms) after its turn; then the next name misses its turn and gets another one.
    assert!(last <= DAY * 5 / 2, "{}", hours(last));
}

#[test] // S51
fn ten_thousand_names_of_a_domain_cost_its_servers_its_pace() {
    let names = crowd("farm", CROWD, |_, name| {
        name.group = "farm.example".to_owned();
    });
    let mut census = census(names);
    let last = until_all_were_visited(&mut census, CROWD, DAY * 4);
    let asked = &census.look_ups["farm.example"];
    tell("one domain", &census, asked, last);
    assert!(closest(asked) >= GROUP, "I8");
    assert!(last <= DAY.mul_f64(1.3), "{}", hours(last));
}

#[test]
fn a_shared_host_is_not_starved_by_strangers_at_its_address() {
    let living = 3_000;
    let mut names = crowd("tenant", living, |_, name| {
        (name.address, name.behaviour, name.responded) = (VICTIM, Behaviour::Responds, true);
    });
    names.extend(crowd("farm", CROWD, |_, name| name.address = VICTIM));
    names.extend(ordinary());
    let mut census = census(names);
    census.run_until(START.plus(DAY * 4));
    let visits = &census.dials[&VICTIM];
    tell("shared host", &census, visits, census.now.since(START));
    assert!(closest(visits) >= BLOCK, "I8");
    let waits = census.fates[..living].iter().map(|fate| fate.wait_max);
    let longest = waits.max().unwrap();
    eprintln!("tenants waited {longest:?} at most");
    assert!(longest < HOUR, "{}", hours(longest));
    assert!(
        census.fates[..living]
            .iter()
            .all(|fate| fate.visits.len() >= 3)
    );
    let ordinary = longest_wait(&census, living + CROWD);
    assert!(ordinary < SECOND * 60, "{ordinary:?}");
}

#[test]
fn a_block_has_its_pace_whatever_addresses_of_it_are_named() {
    let v4 = crowd("farm", CROWD, |number, name| {
        let last = u8::try_from(number % 250).unwrap();
        (name.address, name.due) = (IpAddr::V4(Ipv4Addr::new(8, 8, 8, last)), START);
    });
    let v6 = crowd("farm", CROWD, |number, name| {
        let last = u16::try_from(number).unwrap();
        let address = Ipv6Addr::new(0x2606, 0x4700, 0, 1, 0, 0, 0, last);
        (name.address, name.due) = (IpAddr::V6(address), START);
    });
    for (story, names) in [("one v4 block", v4), ("one v6 block", v6)] {
        let mut census = census(names);
        let last = until_all_were_visited(&mut census, CROWD, DAY);
        let visits: Vec<_> = census.dials.values().flatten().copied().collect();
        tell(story, &census, &visits, last);
        assert!(closest(&visits) >= BLOCK, "I8");
        for visits in census.dials.values() {
            assert!(closest(visits) >= ADDRESS, "I8");
        }
        let ideal = BLOCK * u32::try_from(CROWD).unwrap();
        assert!(last <= ideal.mul_f64(1.3), "{}", hours(last));
    }
}

/// Twice as many new names as the pace allows, day after day, each in its own registered domain.
#[test]
fn a_farm_of_ever_new_domains_at_one_address_holds_nobody_up() {
    let mut census = census(ordinary());
    let others = census.names.len();
    for hour in 0..60 {
        let more = (0..720).map(|number| {
            let mut made = name("farm", hour * 720 + number, 1);
            made.address = VICTIM;
            made.due = census.now.plus(SECOND * 5 * u32::try_from(number).unwrap());
            made
        });
        let more = more.collect();
        census.learn(more);
        census.run_until(census.now.plus(HOUR));
    }
    let visits = &census.dials[&VICTIM];
    tell("ever new domains", &census, visits, census.now.since(START));
    assert!(closest(visits) >= ADDRESS, "I8");
    let waited = census.fates[..others].iter().map(|fate| fate.wait_max);
    let longest = waited.max().unwrap();
    assert!(longest < SECOND * 60, "{longest:?}");
    assert!(
        census.fates[..others]
            .iter()
            .all(|fate| fate.visits.len() >= 2)
    );
}

/// What the gateway forgets when it restarts: at most one visit comes too early, and no name is
/// lost.
#[test] // S52
fn a_restart_of_the_gateway_costs_a_victim_one_visit() {
    // In pairs, the second of which is too early by seven seconds. Only the gateway remembers that.
    let names = crowd("farm", CROWD, |number, name| {
        name.address = VICTIM;
        if number % 2 == 1 {
            name.due = name.due.minus(SECOND * 7);
        }
    });
    let mut census = census(names);
    let restarts = 50;
    for _ in 0..restarts {
        census.run_until(census.now.plus(HOUR / 3 + SECOND * 7));
        census.restart_gateway();
    }
    let last = until_all_were_visited(&mut census, CROWD, DAY * 4);
    let visits = &census.dials[&VICTIM];
    tell("fifty restarts", &census, visits, last);
    let early = visits
        .windows(2)
        .filter(|pair| pair[1].since(pair[0]) < ADDRESS);
    let early = early.count();
    assert!(early > 0, "this story shows nothing");
    assert!(early <= restarts, "{early} in {restarts} restarts");
    assert_no_turn_was_wasted(visits, ADDRESS, last);
}

/// Responding names ask again before their promised turn. If each asked once a minute, twenty
/// thousand of them would ask hundreds of times a second as long as they are too many.
#[test]
fn far_too_many_living_names_below_one_domain_hold_nobody_else_up() {
    let many = 2 * CROWD;
    let mut names = crowd("farm", many, |_, name| {
        name.group = "farm.example".to_owned();
        (name.behaviour, name.responded, name.due) = (Behaviour::Responds, true, START);
    });
    let mut others = ordinary();
    for (number, other) in others.iter_mut().enumerate() {
        other.due = START.plus(SECOND * 20 * u32::try_from(number).unwrap());
    }
    names.extend(others);
    let mut census = census(names);
    let hours = 3;
    census.run_until(START.plus(HOUR * hours));
    let asked = &census.look_ups["farm.example"];
    tell(
        "too many living names",
        &census,
        asked,
        census.now.since(START),
    );
    assert!(closest(asked) >= GROUP, "I8");
    let slots = usize::try_from(HOUR.as_secs() * u64::from(hours) / GROUP.as_secs()).unwrap();
    assert!(
        asked.len() * 100 >= slots * 95,
        "{} of {slots} turns were used",
        asked.len()
    );
    let longest = longest_wait(&census, many);
    assert!(longest < SECOND * 60, "{longest:?}");
    let a_second = census.opens / usize::try_from(HOUR.as_secs() * u64::from(hours)).unwrap();
    assert!(a_second <= 100, "{a_second} opens a second");
}
