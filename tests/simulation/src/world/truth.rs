//! The truth: which hosts respond, are down or have moved, whatever the census knows.
//!
//! It takes a world, a seed and the time. It returns what a check would find, which owners opted
//! out through the operator, and which names appear in peers lists.
//!
//! A single queue, ordered by time, has at most one future event per host. So a year of a million
//! hosts needs memory for a million entries.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use census::time::Timestamp;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::world::World;

const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// How long a new name appears in peers lists, which contain names heard of lately.
const SPOKEN_OF: Duration = Duration::from_secs(30 * 24 * 3600);

/// The first hosts, which never go down: the operator's canaries.
pub(crate) const CANARIES: u32 = 3;

/// An entry of the queue. The number keeps the order of equal times.
type Entry = Reverse<(Timestamp, u64, Ahead)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ahead {
    Host(u32),
    Birth,
    Junk,
}

/// How a host fails that does not respond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// The name does not resolve: costs a look-up.
    NoName,
    /// Nothing accepts a connection: costs a look-up and a dial.
    NoAnswer,
    /// A server accepts TCP and stays silent: costs a container.
    Accepts,
    /// A web server answers 502: costs a container.
    BadGateway,
    /// It answers 429 to every client: costs a container.
    Refuses,
    /// It answers 410: costs a container.
    Farewell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Now {
    Up,
    Down(How),
    Dead(How),
    /// It responds, and its robots.txt forbids checks.
    Robots,
    Moved(u32),
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
    world: World,
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
    /// The world at `start`, in which the census knows all `hosts`. Responding hosts come first.
    pub(crate) fn new(world: World, hosts: u32, seed: u64, start: Timestamp) -> Self {
        let living = (f64::from(hosts) * world.living).round() as u32;
        let dead = hosts.saturating_sub(living);
        let mut truth = Self {
            births: f64::from(living) * world.life.deaths,
            junk: f64::from(dead) * world.junk_a_year,
            world,
            beings: Vec::new(),
            queue: BinaryHeap::new(),
            queued: 0,
            chance: StdRng::seed_from_u64(seed),
            spoken_of: VecDeque::new(),
            living: 0,
        };
        for number in 0..hosts {
            let is_up = number < living;
            let now = if is_up {
                Now::Up
            } else {
                Now::Dead(truth.how_the_dead_fail())
            };
            truth.add(now, start);
        }
        truth.put(truth.births, Ahead::Birth, start);
        truth.put(truth.junk, Ahead::Junk, start);
        truth
    }

    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.beings.len()).unwrap_or(u32::MAX)
    }

    /// A host of the world. `None` if there is no such number.
    pub(crate) fn being(&self, number: u32) -> Option<Being> {
        self.beings.get(usize::try_from(number).ok()?).copied()
    }

    /// Whether it belongs on the list: it responds, may be checked, and its owner has not opted it
    /// out.
    pub(crate) fn belongs(&self, number: u32) -> bool {
        self.being(number)
            .is_some_and(|being| being.now == Now::Up && !being.word)
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
    pub(crate) fn advance(&mut self, now: Timestamp) -> Vec<u32> {
        let mut words = Vec::new();
        while self.next().is_some_and(|at| at <= now)
            && let Some(Reverse((at, _, ahead))) = self.queue.pop()
        {
            match ahead {
                Ahead::Birth => {
                    let number = self.add(Now::Up, at);
                    self.spoken_of.push_back((at, number));
                    self.put(self.births, Ahead::Birth, at);
                }
                Ahead::Junk => {
                    let how = self.how_the_dead_fail();
                    let number = self.add(Now::Dead(how), at);
                    self.spoken_of.push_back((at, number));
                    self.put(self.junk, Ahead::Junk, at);
                }
                Ahead::Host(number) => words.extend(self.happens(number, at)),
            }
        }
        while self
            .spoken_of
            .front()
            .is_some_and(|(at, _)| now.since(*at) > SPOKEN_OF)
        {
            self.spoken_of.pop_front();
        }
        words
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

    fn add(&mut self, now: Now, at: Timestamp) -> u32 {
        let number = self.count();
        let flaps = self.chance.random_bool(self.world.life.flapping);
        self.beings.push(Being {
            now,
            since: at,
            flaps,
            word: false,
        });
        if now == Now::Up {
            self.living += 1;
            self.plan(number, now, at);
        }
        number
    }

    /// Processes a host's next event. Returns the host if its owner opts it out through the
    /// operator.
    fn happens(&mut self, number: u32, at: Timestamp) -> Option<u32> {
        let before = self.being(number)?;
        if before.word {
            return None;
        }
        let (now, word) = match before.now {
            Now::Down(_) | Now::Robots => (Now::Up, false),
            Now::Up => self.what_befalls(before, at),
            Now::Dead(_) | Now::Moved(_) => return None,
        };
        let was_living = self.belongs(number);
        if let Some(being) = self.beings.get_mut(usize::try_from(number).ok()?) {
            being.word = word;
            if being.now != now {
                (being.now, being.since) = (now, at);
            }
        }
        match (was_living, self.belongs(number)) {
            (true, false) => self.living = self.living.saturating_sub(1),
            (false, true) => self.living += 1,
            (true, true) | (false, false) => {}
        }
        if !word {
            self.plan(number, now, at);
        }
        word.then_some(number)
    }

    /// The next state of a responding host, and whether its owner opts it out through the operator.
    fn what_befalls(&mut self, being: Being, at: Timestamp) -> (Now, bool) {
        let life = self.world.life;
        let flap = self.flaps_a_year(being);
        let all = life.deaths + life.moves + life.robots + life.words + flap;
        let mut drawn = self.chance.random::<f64>() * all;
        for (rate, what) in [
            (life.deaths, 0),
            (life.moves, 1),
            (life.robots, 2),
            (life.words, 3),
        ] {
            if drawn < rate {
                return match what {
                    0 => (Now::Dead(self.how_one_dies()), false),
                    1 => {
                        let target = self.add(Now::Up, at);
                        self.spoken_of.push_back((at, target));
                        (Now::Moved(target), false)
                    }
                    2 => (Now::Robots, false),
                    _ => (Now::Up, true),
                };
            }
            drawn -= rate;
        }
        (Now::Down(self.how_one_is_down()), false)
    }

    fn flaps_a_year(&self, being: Being) -> f64 {
        if being.flaps {
            YEAR.as_secs_f64() / self.world.life.up_for.as_secs_f64()
        } else {
            0.0
        }
    }

    /// Queues a host's next event. Dead hosts, moved hosts and canaries have none.
    fn plan(&mut self, number: u32, now: Now, at: Timestamp) {
        let life = self.world.life;
        let year = YEAR.as_secs_f64();
        let rate = match now {
            Now::Dead(_) | Now::Moved(_) => return,
            Now::Up if number < CANARIES => return,
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

    fn how_the_dead_fail(&mut self) -> How {
        if self.chance.random_bool(self.world.accepting) {
            How::Accepts
        } else if self.chance.random() {
            How::NoName
        } else {
            How::NoAnswer
        }
    }

    fn how_one_dies(&mut self) -> How {
        if self.chance.random_bool(self.world.life.farewells) {
            How::Farewell
        } else {
            self.how_the_dead_fail()
        }
    }

    fn how_one_is_down(&mut self) -> How {
        const WAYS: [How; 4] = [How::NoAnswer, How::Accepts, How::BadGateway, How::Refuses];
        let way = self.chance.random_range(0..WAYS.len());
        WAYS.get(way).copied().unwrap_or(How::NoAnswer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(1_800_000_000_000);

    fn truth(hosts: u32, seed: u64) -> Truth {
        Truth::new(World::named("default").unwrap(), hosts, seed, START)
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
            truth.advance(START.plus(YEAR * day / 365));
            assert_eq!(truth.living(), count(&truth), "day {day}");
        }
    }

    #[test]
    fn births_keep_up_with_deaths() {
        let mut truth = truth(20_000, 5);
        truth.advance(START.plus(YEAR));
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
    fn canaries_live_for_ever() {
        let mut truth = truth(400, 7);
        truth.advance(START.plus(YEAR * 20));
        assert!((0..CANARIES).all(|number| truth.belongs(number)));
    }

    #[test]
    fn the_same_seed_gives_the_same_world_and_another_one_another() {
        let life = |seed| {
            let mut truth = truth(500, seed);
            let words = truth.advance(START.plus(YEAR));
            (words, truth.beings)
        };
        assert_eq!(life(1), life(1));
        assert_ne!(life(1).1, life(2).1);
    }

    #[test]
    fn whoever_opted_out_by_word_of_mouth_never_takes_it_back() {
        let mut truth = truth(4000, 11);
        let words = truth.advance(START.plus(YEAR));
        assert!(!words.is_empty());
        truth.advance(START.plus(YEAR * 3));
        for number in words {
            assert!(truth.being(number).unwrap().word && !truth.belongs(number));
        }
    }

    #[test]
    fn only_new_names_are_spoken_of() {
        let mut truth = truth(20_000, 13);
        truth.advance(START.plus(YEAR));
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
