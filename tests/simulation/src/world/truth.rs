//! The truth: which hosts respond, are down or have moved, whatever the census knows.
//!
//! It takes a world, a seed and the time. It returns what a check would find, which owners opted
//! out through the operator, and which names appear in peers lists.
//!
//! A single queue, ordered by time, has at most one future event per host. So a year of a million
//! hosts needs memory for a million entries.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::IpAddr;
use std::ops::Range;
use std::time::Duration;

use census::state::Verdict;
use census::time::Timestamp;
use protocol::HostError;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use scheduler::blame::doubt::Doubt;

use crate::world::World;
use crate::world::known::{Known, KnownWorld, Outcome};

const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// How long a new name appears in peers lists, which contain names heard of lately.
const SPOKEN_OF: Duration = Duration::from_secs(30 * 24 * 3600);

/// How a responding host is down for a while.
const DOWN: [Outcome; 4] = [
    Outcome::SilentTcp,
    Outcome::SlowSilent,
    Outcome::BadGateway,
    Outcome::Refused,
];

/// An entry of the queue. The number keeps the order of equal times.
type Entry = Reverse<(Timestamp, u64, Ahead)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ahead {
    Host(u32),
    Birth,
    Junk,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Now {
    Up,
    Down(Outcome),
    Dead(Outcome),
    /// It responds, and its robots.txt forbids checks.
    Robots,
    Moved(u32),
}

impl Now {
    pub(crate) fn outcome(self) -> Outcome {
        match self {
            Self::Up | Self::Robots | Self::Moved(_) => Outcome::Alive,
            Self::Down(outcome) | Self::Dead(outcome) => outcome,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Being {
    pub(crate) now: Now,
    pub(crate) since: Timestamp,
    /// Whether it goes down now and then.
    flaps: bool,
    /// Whether its owner opted it out through the operator.
    pub(crate) word: bool,
}

/// The world at the current time.
#[derive(Debug)]
pub(crate) struct Truth {
    pub(crate) hosts: KnownWorld,
    world: World,
    farm: Range<u32>,
    beings: Vec<Being>,
    queue: BinaryHeap<Entry>,
    queued: u64,
    chance: StdRng,
    /// New names with the time at which they appeared, the oldest first.
    spoken_of: VecDeque<(Timestamp, u32)>,
    living: u32,
    /// New hosts and junk names per year.
    births: f64,
    junk: f64,
}

impl Truth {
    /// The world at `start`.
    pub(crate) fn new(
        hosts: KnownWorld,
        world: World,
        seed: u64,
        start: Timestamp,
    ) -> Result<Self, HostError> {
        let mut truth = Self {
            births: 0.0,
            junk: 0.0,
            hosts,
            world,
            farm: 0..0,
            beings: Vec::new(),
            queue: BinaryHeap::new(),
            queued: 0,
            chance: StdRng::seed_from_u64(seed),
            spoken_of: VecDeque::new(),
            living: 0,
        };
        for id in 0..truth.hosts.count() {
            let known = truth.hosts.host(id);
            truth.begin(
                known.map_or(Outcome::NoSuchName, |known| known.outcome),
                start,
            );
        }
        truth.births = f64::from(truth.living) * truth.world.life.deaths;
        let dead = truth.count().saturating_sub(truth.living);
        truth.junk = f64::from(dead) * truth.world.junk_a_year;
        truth.put(truth.births, Ahead::Birth, start);
        truth.put(truth.junk, Ahead::Junk, start);
        if let Some(farm) = truth.world.farm {
            let first = truth.count();
            truth.hosts.add_farm(farm.names, farm.domains)?;
            truth.farm = first..truth.hosts.count();
            for _ in truth.farm.clone() {
                truth.begin(Outcome::Alive, start);
            }
        }
        Ok(truth)
    }

    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.beings.len()).unwrap_or(u32::MAX)
    }

    /// A host of the world. `None` if there is no such number.
    pub(crate) fn being(&self, number: u32) -> Option<Being> {
        self.beings.get(usize::try_from(number).ok()?).copied()
    }

    /// A host as the world has it, if it is one of the world.
    pub(crate) fn known(&self, id: Option<u32>) -> Option<&Known> {
        self.hosts.host(id?)
    }

    /// How a host responds now. A name that is not of the world does not exist.
    pub(crate) fn now(&self, id: Option<u32>) -> Now {
        let being = id.and_then(|id| self.being(id));
        being.map_or(Now::Dead(Outcome::NoSuchName), |being| being.now)
    }

    /// What a check of a host that is as `now` finds, and what must work before it counts.
    pub(crate) fn found(&self, now: Now, address: Option<IpAddr>) -> (Verdict, Doubt) {
        let (verdict, doubt) = now.outcome().found(address);
        let verdict = match now {
            Now::Robots => Verdict::OptedOut,
            Now::Moved(to) => match self.hosts.host(to) {
                Some(known) => Verdict::Moved {
                    to: known.host.clone(),
                },
                None => verdict,
            },
            Now::Up | Now::Down(_) | Now::Dead(_) => verdict,
        };
        (verdict, doubt)
    }

    /// The names of the farm.
    pub(crate) fn farm(&self) -> Range<u32> {
        self.farm.clone()
    }

    /// Whether it is a seed, which never goes down.
    pub(crate) fn is_seed(&self, number: u32) -> bool {
        let known = self.hosts.host(number);
        known.is_some_and(|known| self.hosts.seeds.contains(&known.host))
    }

    /// Whether it belongs on the list: it responds, may be checked, and its owner has not opted it
    /// out.
    pub(crate) fn belongs(&self, number: u32) -> bool {
        let is_up = |being: Being| being.now == Now::Up && !being.word;
        self.being(number).is_some_and(is_up)
            && !self.farm.contains(&number)
            && self
                .hosts
                .host(number)
                .is_some_and(|known| !known.ipv6_only)
    }

    /// Number of hosts that belong on the list.
    pub(crate) fn living(&self) -> u32 {
        self.living
    }

    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.queue.peek().map(|Reverse((at, ..))| *at)
    }

    /// Processes all events until `now`. Returns the hosts whose owners opted out through the
    /// operator.
    pub(crate) fn advance(&mut self, now: Timestamp) -> Result<Vec<u32>, HostError> {
        let mut words = Vec::new();
        while self.next().is_some_and(|at| at <= now)
            && let Some(Reverse((at, _, ahead))) = self.queue.pop()
        {
            match ahead {
                Ahead::Birth => {
                    self.add(Outcome::Alive, at)?;
                    self.put(self.births, Ahead::Birth, at);
                }
                Ahead::Junk => {
                    let how = Outcome::of_the_dead(self.world.accepting, &mut self.chance);
                    self.add(how, at)?;
                    self.put(self.junk, Ahead::Junk, at);
                }
                Ahead::Host(number) => words.extend(self.happens(number, at)?),
            }
        }
        while self
            .spoken_of
            .front()
            .is_some_and(|(at, _)| now.since(*at) > SPOKEN_OF)
        {
            self.spoken_of.pop_front();
        }
        Ok(words)
    }

    /// New names in a responding host's peers list, at most `most`.
    pub(crate) fn speaks_of(&self, most: usize, chance: &mut StdRng) -> Vec<u32> {
        let new = self.spoken_of.len();
        let names = (0..most.min(new)).map(|_| chance.random_range(0..new));
        names
            .filter_map(|place| self.spoken_of.get(place))
            .map(|(_, number)| *number)
            .collect()
    }

    /// Adds a new host, which appears in peers lists from now on.
    fn add(&mut self, outcome: Outcome, at: Timestamp) -> Result<u32, HostError> {
        let number = self.hosts.invent(outcome, &mut self.chance)?;
        self.begin(outcome, at);
        self.spoken_of.push_back((at, number));
        Ok(number)
    }

    fn begin(&mut self, outcome: Outcome, at: Timestamp) {
        let now = match outcome {
            Outcome::Alive => Now::Up,
            dead => Now::Dead(dead),
        };
        let number = self.count();
        let flaps = self.chance.random_bool(self.world.life.flapping);
        self.beings.push(Being {
            now,
            since: at,
            flaps,
            word: false,
        });
        self.living += u32::from(self.belongs(number));
        if now == Now::Up && !self.farm.contains(&number) {
            self.plan(number, now, at);
        }
    }

    /// Processes a host's next event. Returns the host if its owner opts it out through the
    /// operator.
    fn happens(&mut self, number: u32, at: Timestamp) -> Result<Option<u32>, HostError> {
        let Some(before) = self.being(number).filter(|being| !being.word) else {
            return Ok(None);
        };
        let (now, word) = match before.now {
            Now::Down(_) | Now::Robots => (Now::Up, false),
            Now::Up => self.what_befalls(before, at)?,
            Now::Dead(_) | Now::Moved(_) => return Ok(None),
        };
        let was_living = self.belongs(number);
        if let Some(being) = self.beings.get_mut(number as usize) {
            being.word = word;
            if being.now != now {
                (being.now, being.since) = (now, at);
            }
        }
        self.living += u32::from(self.belongs(number));
        self.living -= u32::from(was_living);
        if !word {
            self.plan(number, now, at);
        }
        Ok(word.then_some(number))
    }

    /// The next state of a responding host, and whether its owner opts it out through the operator.
    fn what_befalls(&mut self, being: Being, at: Timestamp) -> Result<(Now, bool), HostError> {
        let life = self.world.life;
        let flap = self.flaps_a_year(being);
        let all = life.deaths + life.moves + life.robots + life.words + flap;
        let mut drawn = self.chance.random::<f64>() * all;
        let mut is_drawn = |rate: f64| {
            drawn -= rate;
            drawn < 0.0
        };
        let accepting = self.world.accepting;
        Ok(if is_drawn(life.deaths) {
            let is_farewell = self.chance.random_bool(life.farewells);
            let how = Outcome::of_the_dead(accepting, &mut self.chance);
            (
                Now::Dead(if is_farewell { Outcome::Gone } else { how }),
                false,
            )
        } else if is_drawn(life.moves) {
            (Now::Moved(self.add(Outcome::Alive, at)?), false)
        } else if is_drawn(life.robots) {
            (Now::Robots, false)
        } else if is_drawn(life.words) {
            (Now::Up, true)
        } else {
            let way = self.chance.random_range(0..DOWN.len());
            let how = DOWN.get(way).copied().unwrap_or(Outcome::SilentTcp);
            (Now::Down(how), false)
        })
    }

    fn flaps_a_year(&self, being: Being) -> f64 {
        if being.flaps {
            YEAR.as_secs_f64() / self.world.life.up_for.as_secs_f64()
        } else {
            0.0
        }
    }

    /// Queues a host's next event. Dead hosts, moved hosts and seeds have none.
    fn plan(&mut self, number: u32, now: Now, at: Timestamp) {
        let life = self.world.life;
        let year = YEAR.as_secs_f64();
        let rate = match now {
            Now::Dead(_) | Now::Moved(_) => return,
            Now::Up if self.is_seed(number) => return,
            Now::Up => {
                let flap = self
                    .being(number)
                    .map_or(0.0, |being| self.flaps_a_year(being));
                life.deaths + life.moves + life.robots + life.words + flap
            }
            Now::Robots => year / life.robots_for.as_secs_f64(),
            Now::Down(_) if self.chance.random_bool(life.long) => {
                year / life.long_for.as_secs_f64()
            }
            Now::Down(_) => year / life.down_for.as_secs_f64(),
        };
        self.put(rate, Ahead::Host(number), at);
    }

    /// Queues an event that happens this often a year on average, at any time with equal
    /// probability.
    fn put(&mut self, a_year: f64, ahead: Ahead, at: Timestamp) {
        if a_year <= 0.0 {
            return;
        }
        let drawn: f64 = self.chance.random();
        let years = -(1.0 - drawn).ln() / a_year;
        // No simulation lasts longer than a century, and a duration can't hold every float.
        let wait = YEAR.mul_f64(years.min(100.0));
        self.queued += 1;
        self.queue
            .push(Reverse((at.plus(wait), self.queued, ahead)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(1_800_000_000_000);

    fn truth(hosts: u32, seed: u64) -> Truth {
        let (world, mut chance) = (
            World::named("default").unwrap(),
            StdRng::seed_from_u64(seed),
        );
        let hosts = KnownWorld::made(hosts, world.living, world.accepting, &mut chance).unwrap();
        Truth::new(hosts, world, seed, START).unwrap()
    }

    fn count(truth: &Truth) -> u32 {
        (0..truth.count())
            .map(|number| u32::from(truth.belongs(number)))
            .sum()
    }

    #[test]
    fn the_number_of_the_living_is_that_of_those_who_live_at_any_time() {
        let mut truth = truth(2000, 3);
        for day in 0..200 {
            truth.advance(START.plus(YEAR * day / 365)).unwrap();
            assert_eq!(truth.living(), count(&truth), "day {day}");
        }
    }

    #[test]
    fn births_keep_up_with_deaths() {
        let mut truth = truth(20_000, 5);
        truth.advance(START.plus(YEAR)).unwrap();
        let living = f64::from(truth.living());
        // Births balance deaths; opt-outs, robots.txt and flapping affect a fraction that hardly
        // grows within a year.
        assert!((4300.0..5300.0).contains(&living), "{living}");
        let moved = (0..truth.count()).filter(
            |number| matches!(truth.being(*number), Some(being) if matches!(being.now, Now::Moved(_))),
        );
        assert!(moved.count() > 40);
    }

    #[test]
    fn seeds_always_respond() {
        let mut truth = truth(400, 7);
        truth.advance(START.plus(YEAR * 20)).unwrap();
        assert!((0..3).all(|number| truth.belongs(number)));
    }

    #[test]
    fn opt_outs_are_never_taken_back() {
        let mut truth = truth(4000, 11);
        let words = truth.advance(START.plus(YEAR)).unwrap();
        assert!(!words.is_empty());
        truth.advance(START.plus(YEAR * 3)).unwrap();
        for number in words {
            assert!(truth.being(number).unwrap().word && !truth.belongs(number));
        }
    }

    #[test]
    fn only_new_names_are_spoken_of() {
        let mut truth = truth(20_000, 13);
        truth.advance(START.plus(YEAR)).unwrap();
        let mut chance = StdRng::seed_from_u64(1);
        let names = truth.speaks_of(50, &mut chance);
        assert_eq!(names.len(), 50);
        let month_ago = START.plus(YEAR).minus(SPOKEN_OF);
        for number in names {
            assert!(number >= 20_000);
            // A host that is down now went down after it was born.
            assert!(truth.being(number).unwrap().since >= month_ago);
        }
    }
}
