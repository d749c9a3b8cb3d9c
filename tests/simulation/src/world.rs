//! Worlds: their hosts, and as numbers what happens to the hosts and to our network over the years.

pub(crate) mod known;
pub mod network;
pub(crate) mod truth;

use std::time::Duration;

use network::Shows::{self, Partly, Silent, Told};
use protocol::egress::Way::{self, First, Second};

const HOUR: Duration = Duration::from_secs(3600);

/// A world in numbers. `truth` draws from them.
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
    pub farm: Option<Farm>,
    pub outages: Option<Outages>,
    pub has_second_way: bool,
    /// The engine's capacity as a fraction of what the world needs at its start, unless the command
    /// line sets it. Without it twice that, and at least one check a second: a check that waits for
    /// the engine must not look like one that the schedule forgot.
    pub capacity: Option<f64>,
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

/// Names below wildcards, all of which respond. From the second day on, two servers of different
/// domains list all of them once a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Farm {
    pub names: u32,
    /// Registered domains.
    pub domains: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outages {
    /// Time from one to the next, on average.
    pub every: Duration,
    pub lasts: Duration,
    /// How they show, each equally often, and by which way out; `None` is both.
    pub kinds: &'static [(Shows, Option<Way>)],
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
    farm: None,
    outages: None,
    has_second_way: false,
    capacity: None,
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
        capacity: Some(0.5),
        ..DEFAULT
    },
    World {
        name: "farm",
        about: "the default world, and servers that list a farm in one domain for ever",
        farm: Some(Farm {
            names: 2000,
            domains: 1,
        }),
        ..DEFAULT
    },
    World {
        name: "farms",
        about: "the default world, and servers that list a farm in a thousand domains for ever",
        farm: Some(Farm {
            names: 50_000,
            domains: 1000,
        }),
        ..DEFAULT
    },
    World {
        name: "outage",
        about: "the default world, and a network of ours that fails every five days for nine hours",
        outages: Some(Outages {
            every: HOUR.saturating_mul(5 * 24),
            lasts: HOUR.saturating_mul(9),
            kinds: &[(Told, None), (Silent, None)],
        }),
        ..DEFAULT
    },
    World {
        name: "ways",
        about: "the default world, and two ways out, one or both of which fail every three days",
        outages: Some(Outages {
            every: HOUR.saturating_mul(3 * 24),
            lasts: HOUR.saturating_mul(9),
            kinds: &[
                (Told, None),
                (Told, Some(First)),
                (Told, Some(Second)),
                (Silent, None),
                (Silent, Some(First)),
                (Silent, Some(Second)),
                (Partly, Some(First)),
                (Partly, Some(Second)),
            ],
        }),
        has_second_way: true,
        ..DEFAULT
    },
];

impl Life {
    /// Nothing happens.
    #[must_use]
    pub fn still() -> Self {
        Self {
            deaths: 0.0,
            moves: 0.0,
            robots: 0.0,
            words: 0.0,
            flapping: 0.0,
            ..ORDINARY
        }
    }
}

impl World {
    pub fn named(name: &str) -> Option<Self> {
        WORLDS.into_iter().find(|world| world.name == name)
    }

    pub(crate) fn ordinary() -> Self {
        DEFAULT
    }

    /// A world to which nothing happens.
    pub(crate) fn still() -> Self {
        Self {
            life: Life::still(),
            junk_a_year: 0.0,
            ..DEFAULT
        }
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
        let need = self.need(hosts);
        self.capacity
            .map_or((2.0 * need).max(1.0), |share| share * need)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_hosts_need_what_the_specification_says() {
        let default = World::named("default").unwrap().need(1_000_000);
        assert!((2.4..3.2).contains(&default), "{default}");
        let living = World::named("all-living").unwrap().need(1_000_000);
        assert!((9.5..9.7).contains(&living), "{living}");
    }
}
