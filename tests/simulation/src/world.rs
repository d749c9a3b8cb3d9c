//! Worlds as data: how many live, how they come and go, what floods, what breaks.
//!
//! In: nothing. Out: the named worlds. Refused: nothing; a world is only numbers, and `truth` draws
//! from them.

pub(crate) mod names;
pub(crate) mod network;
pub(crate) mod talk;
pub(crate) mod truth;

use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// A Fediverse to be counted.
#[derive(Debug, Clone, PartialEq)]
pub struct World {
    /// What `--world` calls it.
    pub name: &'static str,
    /// What it is for, in a line.
    pub about: &'static str,
    /// Share of the hosts known at the start that live.
    pub living: f64,
    /// Of those that don't live, the share that accepts TCP and so costs a container; the others cost a look-up.
    pub accepting: f64,
    /// How the living go and come.
    pub life: Life,
    /// Names that never live which come up in a year, as a share of the hosts at the start that don't live.
    pub junk_a_year: f64,
    /// Invented names.
    pub flood: Option<Flood>,
    /// Outages of our own network.
    pub outages: Option<Outages>,
    /// What the engine can do where the command line does not say.
    pub capacity: Capacity,
}

/// How often what happens to a living host, as rates a year unless said otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Life {
    /// It is gone for good; as many others are born, so that the number of the living stays about the same.
    pub deaths: f64,
    /// Of the deaths, the share that says 410.
    pub farewells: f64,
    /// It moves to a new name.
    pub moves: f64,
    /// Its robots.txt asks us to stay away.
    pub robots: f64,
    /// For how long, on average.
    pub robots_for: Duration,
    /// Its owner opts it out by word of mouth.
    pub words: f64,
    /// Share of the hosts that go down now and then.
    pub flapping: f64,
    /// How long those are up between, on average.
    pub up_for: Duration,
    /// How long they are down, on average.
    pub down_for: Duration,
    /// Share of their times down that are long: [`Life::long_for`] on average.
    pub long: f64,
    /// Long enough that they are found dead.
    pub long_for: Duration,
}

/// Servers that list invented names once a day: every other one lists names below one domain, all alive, and those between names that are each a
/// domain of their own, and not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flood {
    /// The first day.
    pub from_day: u32,
    /// For so many days.
    pub days: u32,
    /// How many servers list them.
    pub servers: u32,
    /// Names that each server lists, its own ones.
    pub names: u64,
}

/// Outages of our own network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outages {
    /// From one to the next, on average.
    pub every: Duration,
    /// How long one is, on average.
    pub lasts: Duration,
}

/// What the engine can do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Capacity {
    /// Twice what the world needs, and one check a second at least: one that waits for the engine must not look like one that the schedule forgot.
    Ample,
    /// This share of what the world needs at its start.
    Share(f64),
}

/// What lives at some 30 % turnover a year, a tenth of it flapping.
const ORDINARY: Life = Life {
    deaths: 0.3,
    farewells: 0.1,
    moves: 0.02,
    robots: 0.03,
    robots_for: Duration::from_secs(60 * 24 * 3600),
    words: 0.01,
    flapping: 0.1,
    up_for: Duration::from_secs(10 * 24 * 3600),
    down_for: Duration::from_secs(12 * 3600),
    long: 0.1,
    long_for: Duration::from_secs(15 * 24 * 3600),
};

const DEFAULT: World = World {
    name: "default",
    about: "a quarter living, half of the others accepting TCP",
    living: 0.25,
    accepting: 0.5,
    life: ORDINARY,
    junk_a_year: 0.25,
    flood: None,
    outages: None,
    capacity: Capacity::Ample,
};

/// All named worlds.
pub const WORLDS: [World; 5] = [
    DEFAULT,
    World {
        name: "all-living",
        about: "all of them living",
        living: 1.0,
        ..DEFAULT
    },
    World {
        name: "overload",
        about: "the default world on an engine that can do half of what it needs",
        capacity: Capacity::Share(0.5),
        ..DEFAULT
    },
    World {
        name: "flood",
        about: "the default world, and servers that list invented names for four weeks",
        flood: Some(Flood {
            from_day: 2,
            days: 28,
            servers: 4,
            names: 2000,
        }),
        ..DEFAULT
    },
    World {
        name: "outage",
        about: "the default world, and a network of ours that fails every five days for nine hours",
        outages: Some(Outages {
            every: HOUR.saturating_mul(5 * 24),
            lasts: HOUR.saturating_mul(9),
        }),
        ..DEFAULT
    },
];

impl World {
    /// The world of this name.
    pub fn named(name: &str) -> Option<Self> {
        WORLDS.into_iter().find(|world| world.name == name)
    }

    /// Containers a second that so many hosts need at the start: the living once in 29 hours, the dead that accept TCP twice in four weeks of 167
    /// hours, since a failure is asked again before it counts.
    pub fn need(&self, hosts: u32) -> f64 {
        let hosts = f64::from(hosts);
        let living = hosts * self.living / (29.0 * 3600.0);
        let dead = hosts * (1.0 - self.living) * self.accepting * 2.0 / (4.0 * 167.0 * 3600.0);
        living + dead
    }

    /// Containers a second that the engine can start.
    pub fn capacity(&self, hosts: u32) -> f64 {
        match self.capacity {
            Capacity::Ample => (2.0 * self.need(hosts)).max(1.0),
            Capacity::Share(share) => share * self.need(hosts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_world_is_found_by_its_name_and_by_no_other() {
        for world in WORLDS {
            assert_eq!(World::named(world.name), Some(world));
        }
        assert_eq!(World::named("none"), None);
    }

    #[test]
    fn a_million_hosts_need_what_the_specification_says() {
        let default = World::named("default").unwrap().need(1_000_000);
        assert!((2.4..3.2).contains(&default), "{default}");
        let living = World::named("all-living").unwrap().need(1_000_000);
        assert!((9.5..9.7).contains(&living), "{living}");
    }

    #[test]
    fn overload_is_less_than_is_needed_and_all_else_is_more() {
        for world in WORLDS {
            for hosts in [300, 30_000, 1_000_000] {
                let is_less = world.capacity(hosts) < world.need(hosts);
                assert_eq!(is_less, world.name == "overload", "{} {hosts}", world.name);
            }
        }
    }
}
