//! Worlds as data: how many hosts respond, how they appear and disappear, what floods, what breaks.
//!
//! A world is only numbers; `truth` draws from them.

pub(crate) mod names;
pub(crate) mod network;
pub(crate) mod truth;

use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

#[derive(Debug, Clone, PartialEq)]
pub struct World {
    pub name: &'static str,
    pub about: &'static str,
    /// Fraction of the initially known hosts that respond.
    pub living: f64,
    /// Fraction of dead hosts that accepts TCP and so needs a container; the others need only a
    /// look-up.
    pub accepting: f64,
    /// How responding hosts appear and disappear.
    pub life: Life,
    /// New names per year that never respond, as a fraction of the initial dead hosts.
    pub junk_a_year: f64,
    pub flood: Option<Flood>,
    pub outages: Option<Outages>,
    /// The engine's capacity, unless the command line sets it.
    pub capacity: Capacity,
}

/// How often events happen to a responding host, as rates per year unless documented otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Life {
    /// It disappears permanently. As many others appear, so that the number of responding hosts
    /// stays about the same.
    pub deaths: f64,
    /// Of those, the fraction that answers 410.
    pub farewells: f64,
    pub moves: f64,
    pub robots: f64,
    pub robots_for: Duration,
    /// Its owner opts it out through the operator.
    pub words: f64,
    /// Fraction of the hosts that go down now and then.
    pub flapping: f64,
    /// How long these are up in between, on average.
    pub up_for: Duration,
    pub down_for: Duration,
    /// Fraction of their down times that are long: [`Life::long_for`] on average.
    pub long: f64,
    /// Average of those long times: long enough that the hosts are found dead.
    pub long_for: Duration,
}

/// Servers that list invented names once a day. Every other server lists names below the farm's
/// domains, the same as the other such servers; all of them respond. The rest list nonexistent
/// names, each in its own domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flood {
    pub from_day: u32,
    pub days: u32,
    pub servers: u32,
    pub names: u64,
    /// Registered domains of the farm.
    pub domains: u32,
    /// Whether no server lists names that don't exist.
    pub farm_only: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outages {
    /// Time from one to the next, on average.
    pub every: Duration,
    pub lasts: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Capacity {
    /// Twice what the world needs, and at least one check a second: a check that waits for the
    /// engine must not look like one that the schedule forgot.
    Ample,
    /// This fraction of what the world needs at its start.
    Share(f64),
}

/// A turnover of about 30 % a year, with a tenth of the hosts flapping.
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

/// Two servers of different domains name all hosts of one farm from the second day on.
const FARM: Flood = Flood {
    from_day: 2,
    days: u32::MAX,
    servers: 3,
    names: 2000,
    domains: 1,
    farm_only: true,
};

pub const WORLDS: [World; 7] = [
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
            domains: 1,
            farm_only: false,
        }),
        ..DEFAULT
    },
    World {
        name: "farm",
        about: "the default world, and servers that list a farm in one domain for ever",
        flood: Some(FARM),
        ..DEFAULT
    },
    World {
        name: "farms",
        about: "the default world, and servers that list a farm in a thousand domains for ever",
        flood: Some(Flood {
            names: 50_000,
            domains: 1000,
            ..FARM
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
    pub fn named(name: &str) -> Option<Self> {
        WORLDS.into_iter().find(|world| world.name == name)
    }

    /// Containers per second for this number of hosts at the start: responding hosts once in 29
    /// hours, dead hosts that accept TCP twice in four weeks of 167 hours, because a failure is
    /// checked again before it counts.
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
