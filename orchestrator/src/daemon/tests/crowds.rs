//! Crowds of names that lead to one place (invariant I8), told in fake time over the real paces, rules and rows, at the real settings.
//!
//! A window of any length holds at most one visit a pace, and one: that is the same as that no two lie closer together than the pace, which is
//! what is looked at here. Failures are taken for confirmed at once; a doubt costs a further visit, which is paced like any other.

mod fake_time;

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use protocol::Host;

use fake_time::{Census, HOUR, Name, SECOND};

const CROWD: usize = 10_000;

/// Between two first looks at a name, at most: design §6.
const DAY: i64 = 29 * HOUR;

/// Paces of design §8.
const ADDRESS: i64 = 10 * SECOND;
const GROUP: i64 = 10 * SECOND;
const BLOCK: i64 = 2 * SECOND;

const VICTIM: IpAddr = IpAddr::V4(Ipv4Addr::new(8, 8, 8, 8));

/// A name in a registered domain of its own, at an address and in a block of its own, due within a day; dead.
fn name(prefix: &str, number: usize, of: usize) -> Name {
    let text = format!("{prefix}{number}.example");
    let spread = i64::try_from(number).unwrap() * DAY / i64::try_from(of).unwrap();
    let [_, a, b, c] = u32::try_from(number).unwrap().to_be_bytes();
    Name {
        host: Host::parse(&text).unwrap(),
        group: text,
        address: IpAddr::V4(Ipv4Addr::new(20 + a, b, c, 1)),
        lives: false,
        lived: false,
        due: spread,
    }
}

fn crowd(prefix: &str, of: usize, change: impl Fn(usize, &mut Name)) -> Vec<Name> {
    (0..of)
        .map(|number| {
            let mut made = name(prefix, number, of);
            change(number, &mut made);
            made
        })
        .collect()
}

/// Ordinary instances elsewhere, which must not notice any of it.
fn ordinary() -> Vec<Name> {
    crowd("ordinary", 1_000, |number, name| {
        let [.., b, c] = u32::try_from(number).unwrap().to_be_bytes();
        name.address = IpAddr::V4(Ipv4Addr::new(150, b, c, 1));
        (name.lives, name.lived) = (true, true);
    })
}

/// The least time between two of them.
fn closest(visits: &[i64]) -> i64 {
    let mut sorted = visits.to_vec();
    sorted.sort_unstable();
    sorted
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .min()
        .unwrap_or(i64::MAX)
}

/// Runs until each of the first `count` names was visited; gives when the last one was.
fn until_all_were_visited(census: &mut Census, count: usize, within: i64) -> i64 {
    while census.fates[..count]
        .iter()
        .any(|fate| fate.visits.is_empty())
    {
        let missing = census.fates[..count]
            .iter()
            .filter(|fate| fate.visits.is_empty())
            .count();
        assert!(census.now < within, "{missing} were never visited");
        census.run_until(census.now + HOUR);
    }
    let firsts = census.fates[..count].iter().map(|fate| fate.visits[0]);
    firsts.max().unwrap()
}

/// Hardly a turn was left unused: so many visits took little longer than their paces. Names that were visited are due again after a day, three
/// times while they are dead, and take turns like any other.
fn assert_no_turn_was_wasted(visits: &[i64], pace: i64, last: i64) {
    let until_last = visits.iter().filter(|visit| **visit <= last).count();
    let ideal = (pace * i64::try_from(until_last).unwrap()).max(DAY);
    assert!(
        last <= ideal * 13 / 10,
        "{} instead of {}",
        hours(last),
        hours(ideal)
    );
}

/// The longest that one of the names from `first` on had to wait.
fn longest_wait(census: &Census, first: usize) -> i64 {
    let waits = census.fates[first..].iter().map(|fate| fate.wait_max);
    waits.max().unwrap()
}

fn hours(moment: i64) -> String {
    format!("{}.{} h", moment / HOUR, moment % HOUR * 10 / HOUR)
}

/// `target/tables/pace-STORY.md`: a row, for the report that is made of all of them.
fn tell(story: &str, census: &Census, visits: &[i64], last: i64) {
    let deferrals: usize = census.fates.iter().map(|fate| fate.deferrals).sum();
    let most = census.fates.iter().map(|fate| fate.deferrals).max();
    let mut table = String::from(
        "| story | names | visits there | closest two | all visited after | opens | put off in all | one name at most |\n|---|---|---|---|---|---|---|---|\n",
    );
    writeln!(
        table,
        "| {story} | {} | {} | {} ms | {} | {} | {deferrals} | {} |",
        census.names.len(),
        visits.len(),
        closest(visits),
        hours(last),
        census.opens,
        most.unwrap_or_default(),
    )
    .unwrap();
    eprintln!("{table}");
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().nth(3).unwrap().join("tables");
    std::fs::create_dir_all(&folder).unwrap();
    let file = format!("pace-{}.md", story.replace(' ', "-"));
    std::fs::write(folder.join(file), table).unwrap();
}

#[test]
fn ten_thousand_names_at_one_address_cost_it_its_pace_and_are_all_visited() {
    let names = crowd("farm", CROWD, |_, name| name.address = VICTIM);
    let mut census = Census::in_a_database(names);
    let last = until_all_were_visited(&mut census, CROWD, 4 * DAY);
    let visits = &census.dials[&VICTIM];
    tell("one address", &census, visits, last);
    assert!(closest(visits) >= ADDRESS, "I8");
    assert!(last <= DAY * 13 / 10, "{}", hours(last));
}

#[test]
fn ten_thousand_names_that_come_at_once_are_served_in_turn() {
    let names = crowd("farm", CROWD, |_, name| {
        (name.address, name.due) = (VICTIM, 0);
    });
    let mut census = Census::in_memory(names);
    let last = until_all_were_visited(&mut census, CROWD, 4 * DAY);
    let visits = &census.dials[&VICTIM];
    tell("one address at once", &census, visits, last);
    assert!(closest(visits) >= ADDRESS, "I8");
    assert_no_turn_was_wasted(visits, ADDRESS, last);
    // The first ones are due again before the last ones had their turn.
    assert!(last <= 2 * DAY, "{}", hours(last));
}

#[test]
fn ten_thousand_names_below_one_domain_cost_its_name_servers_its_pace() {
    let names = crowd("farm", CROWD, |_, name| {
        name.group = "farm.example".to_owned();
    });
    let mut census = Census::in_memory(names);
    let last = until_all_were_visited(&mut census, CROWD, 4 * DAY);
    let asked = &census.look_ups["farm.example"];
    tell("one domain", &census, asked, last);
    assert!(closest(asked) >= GROUP, "I8");
    assert!(last <= DAY * 13 / 10, "{}", hours(last));
}

#[test]
fn more_names_than_fit_a_day_are_all_visited_in_the_end() {
    let many = 2 * CROWD;
    let names = crowd("farm", many, |_, name| name.address = VICTIM);
    let mut census = Census::in_memory(names);
    let last = until_all_were_visited(&mut census, many, 100 * DAY);
    let visits = &census.dials[&VICTIM];
    tell("twenty thousand at one address", &census, visits, last);
    assert!(closest(visits) >= ADDRESS, "I8");
    assert_no_turn_was_wasted(visits, ADDRESS, last);
}

#[test]
fn a_shared_host_is_not_starved_by_strangers_at_its_address() {
    let living = 3_000;
    let mut names = crowd("tenant", living, |_, name| {
        (name.address, name.lives, name.lived) = (VICTIM, true, true);
    });
    names.extend(crowd("farm", CROWD, |_, name| name.address = VICTIM));
    names.extend(ordinary());
    let mut census = Census::in_memory(names);
    census.run_until(4 * DAY);
    let visits = &census.dials[&VICTIM];
    tell("shared host", &census, visits, census.now);
    assert!(closest(visits) >= BLOCK, "I8");
    let waits = census.fates[..living].iter().map(|fate| fate.wait_max);
    let longest = waits.max().unwrap();
    eprintln!("tenants waited {} s at most", longest / SECOND);
    assert!(longest < HOUR, "{}", hours(longest));
    assert!(
        census.fates[..living]
            .iter()
            .all(|fate| fate.visits.len() >= 3)
    );
    let ordinary = longest_wait(&census, living + CROWD);
    assert!(ordinary < 60 * SECOND, "{ordinary} ms");
}

#[test]
fn a_block_has_its_pace_whatever_addresses_of_it_are_named() {
    let v4 = crowd("farm", CROWD, |number, name| {
        let last = u8::try_from(number % 250).unwrap();
        (name.address, name.due) = (IpAddr::V4(Ipv4Addr::new(8, 8, 8, last)), 0);
    });
    let v6 = crowd("farm", CROWD, |number, name| {
        let last = u16::try_from(number).unwrap();
        let address = Ipv6Addr::new(0x2606, 0x4700, 0, 1, 0, 0, 0, last);
        (name.address, name.due) = (IpAddr::V6(address), 0);
    });
    for (story, names) in [("one v4 block", v4), ("one v6 block", v6)] {
        let mut census = Census::in_memory(names);
        let last = until_all_were_visited(&mut census, CROWD, DAY);
        let visits: Vec<_> = census.dials.values().flatten().copied().collect();
        tell(story, &census, &visits, last);
        assert!(closest(&visits) >= BLOCK, "I8");
        for visits in census.dials.values() {
            assert!(closest(visits) >= ADDRESS, "I8");
        }
        let ideal = BLOCK * i64::try_from(CROWD).unwrap();
        assert!(last <= ideal * 13 / 10, "{}", hours(last));
    }
}

/// Ever other /64s are ever other neighbours: what bounds them is the pace of all dials together.
#[test]
fn rotating_through_blocks_costs_no_more_than_the_pace_of_all_dials() {
    let names = crowd("farm", CROWD, |number, name| {
        let block = u16::try_from(number).unwrap();
        let address = Ipv6Addr::new(0x2606, 0x4700, 0, block, 0, 0, 0, 1);
        (name.address, name.due) = (IpAddr::V6(address), 0);
    });
    let mut census = Census::in_memory(names);
    let last = until_all_were_visited(&mut census, CROWD, DAY);
    let visits: Vec<_> = census.dials.values().flatten().copied().collect();
    tell("rotating blocks", &census, &visits, last);
    assert!(closest(&visits) >= SECOND / 20, "I8");
}

/// Twice as many new names as the pace allows, day after day, each in a registered domain of its own.
#[test]
fn a_farm_of_ever_new_domains_at_one_address_holds_nobody_up() {
    let mut census = Census::in_memory(ordinary());
    let others = census.names.len();
    for hour in 0..60 {
        let more = (0..720).map(|number| {
            let mut made = name("farm", hour * 720 + number, 1);
            made.address = VICTIM;
            made.due = census.now + i64::try_from(number).unwrap() * 5 * SECOND;
            made
        });
        let more = more.collect();
        census.learn(more);
        census.run_until(census.now + HOUR);
    }
    let visits = &census.dials[&VICTIM];
    tell("ever new domains", &census, visits, census.now);
    assert!(closest(visits) >= ADDRESS, "I8");
    let waited = census.fates[..others].iter().map(|fate| fate.wait_max);
    let longest = waited.max().unwrap();
    assert!(longest < 60 * SECOND, "{longest} ms");
    assert!(
        census.fates[..others]
            .iter()
            .all(|fate| fate.visits.len() >= 2)
    );
}

/// What the gateway forgets when it is started anew: at most one visit comes too early, and no name is lost.
#[test]
fn a_restart_of_the_gateway_costs_a_victim_one_visit() {
    // By twos, the second of which is too early by seven seconds and remembered as such by the gateway alone.
    let names = crowd("farm", CROWD, |number, name| {
        name.address = VICTIM;
        name.due -= i64::try_from(number % 2).unwrap() * 7 * SECOND;
    });
    let mut census = Census::in_memory(names);
    let restarts = 50;
    for _ in 0..restarts {
        census.run_until(census.now + HOUR / 3 + 7 * SECOND);
        census.restart_gateway();
    }
    let last = until_all_were_visited(&mut census, CROWD, 4 * DAY);
    let visits = &census.dials[&VICTIM];
    tell("fifty restarts", &census, visits, last);
    let early = visits.windows(2).filter(|pair| pair[1] - pair[0] < ADDRESS);
    let early = early.count();
    assert!(early > 0, "this story shows nothing");
    assert!(early <= restarts, "{early} in {restarts} restarts");
    assert_no_turn_was_wasted(visits, ADDRESS, last);
}

/// Living names ask again before the turn that they were promised. Were it each minute, twenty thousand of them would ask hundreds of times a
/// second for as long as they are too many.
#[test]
fn far_too_many_living_names_below_one_domain_hold_nobody_else_up() {
    let many = 2 * CROWD;
    let mut names = crowd("farm", many, |_, name| {
        name.group = "farm.example".to_owned();
        (name.lives, name.lived, name.due) = (true, true, 0);
    });
    let mut others = ordinary();
    for (number, other) in others.iter_mut().enumerate() {
        other.due = i64::try_from(number).unwrap() * 20 * SECOND;
    }
    names.extend(others);
    let mut census = Census::in_memory(names);
    let hours = 3;
    census.run_until(hours * HOUR);
    let asked = &census.look_ups["farm.example"];
    tell("too many living names", &census, asked, census.now);
    assert!(closest(asked) >= GROUP, "I8");
    let slots = usize::try_from(hours * HOUR / GROUP).unwrap();
    assert!(
        asked.len() * 100 >= slots * 95,
        "{} of {slots} turns were used",
        asked.len()
    );
    let longest = longest_wait(&census, many);
    assert!(longest < 60 * SECOND, "{longest} ms");
    let a_second = census.opens / usize::try_from(hours * HOUR / SECOND).unwrap();
    assert!(a_second <= 100, "{a_second} opens a second");
}
