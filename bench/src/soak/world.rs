//! The hosts of a soak's census and their states: a census that has run for a long time.
//!
//! It takes the number of hosts, the world, the time, and a random generator. It returns a record
//! for each host, and the lines of the lab's names file for hosts that don't respond. It rejects a
//! world without living hosts.

use std::time::Duration;

use anyhow::Result;
use census::state::{Before, Record, State};
use census::time::{Calendar, DOUBLINGS_MAX, Jitter, Timestamp};
use clap::ValueEnum;
use lab::crowd::{self, Crowd};
use protocol::{Host, Instance};
use rand::Rng as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;

/// Dead hosts per registered domain, the same number as in the crowd.
const PER_DOMAIN: u32 = 10;

/// One in this many of the other hosts responded until lately: it is checked daily, and still on
/// the list.
const DYING_ONE_IN: u32 = 100;

/// Most failures in a row of such a host: at the seventh it is dead, if a week has passed.
const DYING_FAILURES_MAX: u32 = 6;

/// How long ago hosts became dead: three failures and two doublings of the week.
const DEAD_FOR: Duration = Duration::from_secs(60 * 24 * 3600);

/// Software and version of hosts that no longer respond.
const DIED_WITH: (&str, &str) = ("mastodon", "4.3.0");

/// Days since names were added: long before anything happened to them, and recent enough that none
/// of those that never responded is forgotten at once.
const KNOWN_FOR_DAYS: std::ops::Range<u32> = 100..300;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Which hosts there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// All live: more is due than most engines can do
    Living,
    /// A quarter lives; of the rest, which is asked seldom, half has no name and half hangs up
    Default,
}

/// Hosts by number: living ones first, then the others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct World {
    crowd: Crowd,
    living: u32,
    hosts: u32,
}

/// How a host fails that does not respond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Met {
    /// The name does not exist, so no container starts.
    NoName,
    /// It accepts a connection and closes it, which takes a container to find out.
    HangsUp,
}

impl World {
    /// A world with this many hosts. `crowd` contains its living hosts.
    pub(crate) fn new(crowd: Crowd, living: u32, hosts: u32) -> Self {
        Self {
            crowd,
            living,
            hosts,
        }
    }

    /// The number of living hosts in a world of this kind.
    pub(crate) fn living_of(kind: Kind, hosts: u32) -> u32 {
        match kind {
            Kind::Living => hosts,
            Kind::Default => hosts.div_ceil(4),
        }
    }

    /// All numbers in random order, so that neighbours in the database are unrelated.
    pub(crate) fn shuffled(self, chance: &mut StdRng) -> Vec<u32> {
        let mut numbers: Vec<u32> = (0..self.hosts).collect();
        numbers.shuffle(chance);
        numbers
    }

    /// Patterns for the names file, for hosts that accept a connection and close it.
    pub(crate) fn patterns(self) -> impl Iterator<Item = String> {
        let domains = (self.hosts - self.living).div_ceil(PER_DOMAIN);
        let domains = (0..domains).filter(|domain| met(*domain) == Met::HangsUp);
        domains.map(|domain| format!("*.{}", domain_name(domain)))
    }

    /// The record of a host at `now` in a census whose last checks were `late` ago, at a random
    /// point of its interval.
    pub(crate) fn record(
        self,
        number: u32,
        now: Timestamp,
        late: Duration,
        chance: &mut StdRng,
    ) -> Result<Record> {
        let then = now.minus(late);
        match number.checked_sub(self.living) {
            None => self.living(number + 1, then, chance),
            Some(number) => other(number, then, chance),
        }
    }

    fn living(self, number: u32, then: Timestamp, chance: &mut StdRng) -> Result<Record> {
        let host = Host::parse(&crowd::name(number))?;
        let interval = Calendar::REAL.day(Jitter(chance.random()));
        let (mut record, last_checked) = known(host, interval, then, chance);
        record.state = State::Alive;
        record.alive_count = chance.random_range(1..100);
        lived(&mut record, last_checked, self.crowd.software(number));
        Ok(record)
    }
}

fn other(number: u32, then: Timestamp, chance: &mut StdRng) -> Result<Record> {
    let domain = domain_name(number / PER_DOMAIN);
    let host = Host::parse(&format!("d{number:07}.{domain}"))?;
    let jitter = Jitter(chance.random());
    if number.is_multiple_of(DYING_ONE_IN) {
        let interval = Calendar::REAL.day(jitter);
        let (mut record, last_checked) = known(host, interval, then, chance);
        let count = chance.random_range(1..=DYING_FAILURES_MAX);
        record.since = last_checked.minus(DAY * (count - 1));
        record.state = State::Dying {
            before: Before::Alive,
            count,
            gone: false,
            gone_last: false,
        };
        let last_alive = record.since.minus(DAY);
        lived(&mut record, last_alive, DIED_WITH);
        return Ok(record);
    }
    let interval = Calendar::REAL.weeks(DOUBLINGS_MAX, jitter);
    let (mut record, _) = known(host, interval, then, chance);
    record.state = State::Dead;
    record.doublings = DOUBLINGS_MAX;
    record.since = then.minus(DEAD_FOR);
    if chance.random() {
        lived(&mut record, then.minus(DEAD_FOR + DAY * 9), DIED_WITH);
    }
    Ok(record)
}

/// A host at a random point of its interval, and its last check.
fn known(
    host: Host,
    interval: Duration,
    then: Timestamp,
    chance: &mut StdRng,
) -> (Record, Timestamp) {
    let first_seen = then.minus(DAY * chance.random_range(KNOWN_FOR_DAYS));
    let last_checked = then.minus(interval.mul_f64(chance.random()));
    let mut record = Record::discovered(host, first_seen, last_checked.plus(interval));
    record.last_checked = Some(last_checked);
    (record, last_checked)
}

fn lived(record: &mut Record, last_alive: Timestamp, (software, version): (&str, &str)) {
    record.last_alive = Some(last_alive);
    record.instance = Instance {
        software: Some(software.to_owned()),
        version: Some(version.to_owned()),
        open_registrations: lab::personas::shapes::open_registrations(software),
        ..Instance::default()
    };
    record.alive_count = record.alive_count.max(1);
}

fn met(domain: u32) -> Met {
    if domain.is_multiple_of(2) {
        Met::NoName
    } else {
        Met::HangsUp
    }
}

fn domain_name(domain: u32) -> String {
    match met(domain) {
        Met::NoName => format!("gone-{domain}.test"),
        Met::HangsUp => format!("open-{domain}.test"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use census::state::StateName;
    use rand::SeedableRng as _;

    use super::*;

    const NOW: Timestamp = Timestamp(1_795_000_000_000);
    const HOUR: Duration = Duration::from_secs(3600);

    fn records(kind: Kind, hosts: u32, late: Duration) -> (World, Vec<Record>) {
        let living = World::living_of(kind, hosts);
        let world = World::new(Crowd::new(living, 1), living, hosts);
        let mut chance = StdRng::seed_from_u64(1);
        let numbers = world.shuffled(&mut chance);
        let record = |number| world.record(number, NOW, late, &mut chance).unwrap();
        (world, numbers.into_iter().map(record).collect())
    }

    #[test]
    fn all_of_a_living_world_comes_due_evenly_within_its_longest_interval() {
        let (_, records) = records(Kind::Living, 4000, Duration::ZERO);
        let within = |hours: u32| {
            let due = records.iter().filter_map(|record| record.due);
            due.filter(|due| *due >= NOW && *due < NOW.plus(HOUR * hours))
                .count()
        };
        assert_eq!(within(31), 4000);
        let (first, fifth) = (within(1), within(5));
        assert!((80..190).contains(&first), "{first}");
        assert!((550..790).contains(&fifth), "{fifth}");
    }

    #[test]
    fn what_was_put_off_is_late_and_no_more() {
        let (_, records) = records(Kind::Living, 4000, HOUR);
        let late = records.iter().filter(|record| record.due < Some(NOW));
        assert!((80..190).contains(&late.count()));
        let last = records.iter().filter_map(|record| record.last_alive).max();
        assert!(last <= Some(NOW.minus(HOUR)));
    }

    #[test]
    fn a_quarter_of_the_default_world_lives_and_few_of_the_others_come_due_on_a_day() {
        let (world, records) = records(Kind::Default, 4000, Duration::ZERO);
        let count = |name| {
            let of = |record: &&Record| record.state.name() == name;
            records.iter().filter(of).count()
        };
        assert_eq!(count(StateName::Alive), 1000);
        assert_eq!(count(StateName::Dying), 30);
        assert_eq!(count(StateName::Dead), 2970);
        let dead = records.iter().filter(|record| record.state == State::Dead);
        let soon = dead.filter(|record| record.due < Some(NOW.plus(DAY)));
        assert!((60..160).contains(&soon.count()));
        let names: BTreeSet<&str> = records.iter().map(|record| record.host.as_str()).collect();
        assert_eq!(names.len(), 4000);
        // Half of the domains of the other hosts lead somewhere.
        assert_eq!(world.patterns().count(), 150);
        let parents: BTreeSet<String> = world.patterns().collect();
        let found = |name: &&&str| {
            let parent = name.split_once('.').map(|(_, parent)| parent);
            parent.is_some_and(|parent| parents.contains(&format!("*.{parent}")))
        };
        assert_eq!(names.iter().filter(found).count(), 1500);
    }
}
