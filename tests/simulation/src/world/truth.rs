//! What really is: who lives, who is down, who has moved, whatever the census believes.
//!
//! In: a world, a seed, the time. Out: what a check would find, who has opted out by word of mouth, which names people speak of. Refused: nothing.
//!
//! Each host has at most one thing ahead of it, in one queue by time: so a year of a million hosts takes memory for a million entries.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use census::time::Timestamp;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::world::World;

/// Days of a year, for rates.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// People speak of a new name for so long: peers lists have those that were heard of lately.
const SPOKEN_OF: Duration = Duration::from_secs(30 * 24 * 3600);

/// Hosts that never go down, the first ones: the canaries of whoever runs the census.
pub(crate) const CANARIES: u32 = 3;

/// Moments of the queue, so that equal ones keep their order.
type Entry = Reverse<(Timestamp, u64, Ahead)>;

/// What lies ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ahead {
    Host(u32),
    Birth,
    Junk,
}

/// How a host that does not live fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// The name does not resolve: a look-up.
    NoName,
    /// Nothing accepts a connection: a look-up and a dial.
    NoAnswer,
    /// Something accepts TCP and says nothing: a container.
    Accepts,
    /// A web server answers 502: a container.
    BadGateway,
    /// It answers 429, to everybody: a container.
    Refuses,
    /// It answers 410: a container.
    Farewell,
}

/// What a host is at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Now {
    /// It lives and may be asked.
    Up,
    /// It will be back.
    Down(How),
    /// It won't be back.
    Dead(How),
    /// It lives, and its robots.txt asks us to stay away.
    Robots,
    /// It redirects to another host for good.
    Moved(u32),
}

/// A host of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Being {
    /// What it is.
    pub(crate) now: Now,
    /// Since when.
    pub(crate) since: Timestamp,
    /// It goes down now and then.
    flaps: bool,
    /// Its owner opted it out by word of mouth.
    pub(crate) word: bool,
}

/// The world as it is.
#[derive(Debug)]
pub(crate) struct Truth {
    world: World,
    beings: Vec<Being>,
    queue: BinaryHeap<Entry>,
    queued: u64,
    chance: StdRng,
    /// New names with when they came up, the oldest first.
    spoken_of: VecDeque<(Timestamp, u32)>,
    living: u32,
    /// A year's births and junk names.
    births: f64,
    junk: f64,
}

impl Truth {
    /// The world at `start`, of which the census knows all `hosts`: the living come first.
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

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.beings.len()).unwrap_or(u32::MAX)
    }

    /// A host of the world; none for a number that nobody has.
    pub(crate) fn being(&self, number: u32) -> Option<Being> {
        self.beings.get(usize::try_from(number).ok()?).copied()
    }

    /// Whether it lives, may be asked and has not been opted out by its owner: whether it belongs on the list.
    pub(crate) fn belongs(&self, number: u32) -> bool {
        self.being(number)
            .is_some_and(|being| being.now == Now::Up && !being.word)
    }

    /// How many belong on the list.
    pub(crate) fn living(&self) -> u32 {
        self.living
    }

    /// When something happens next.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.queue.peek().map(|Reverse((at, ..))| *at)
    }

    /// Lets happen what happens until `now`. Gives who was opted out by word of mouth.
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

    /// Names that a living host's list of peers has of those that are new, at most `most`.
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

    /// The one thing that lay ahead of a host happens. Gives it when its owner opts it out by word of mouth.
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

    /// What befalls a living host; whether it is opted out by word of mouth.
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

    /// Puts what lies ahead of a host into the queue. Nothing lies ahead of the dead, the moved, and the canaries.
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

    /// Puts something into the queue that happens so often a year on average, and at no time that is more likely than another.
    fn put(&mut self, a_year: f64, ahead: Ahead, at: Timestamp) {
        if a_year <= 0.0 {
            return;
        }
        let drawn: f64 = self.chance.random();
        let years = -(1.0 - drawn).ln() / a_year;
        // Beyond a century nobody simulates, and a duration can't hold all that a float can.
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
        // Births stand against deaths; words, robots and flapping take a part that does not grow much within a year.
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
            // One that has gone down since began that later than it was born.
            assert!(truth.being(number).unwrap().since >= month_ago);
        }
    }
}
