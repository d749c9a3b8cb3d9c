//! Our own network, which fails at times.
//!
//! It takes a world, a seed, a way out and the time, and returns whether our network works at that
//! time and how an outage shows.

use std::net::IpAddr;

use census::time::Timestamp;
use protocol::egress::Way;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::world::Outages;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shows {
    Told,
    /// Packets are lost: no host seems to answer.
    Silent,
    /// Packets to half of all blocks are lost.
    Partly,
}

impl Shows {
    /// Whether packets to this address are lost.
    pub(crate) fn hides(self, address: Option<IpAddr>) -> bool {
        match (self, address) {
            (Self::Silent, _) => true,
            (Self::Partly, Some(IpAddr::V4(address))) => address.to_bits() >> 8 & 1 == 0,
            (Self::Told | Self::Partly, _) => false,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Outage {
    began: Timestamp,
    ended: Timestamp,
    shows: Shows,
    by: Option<Way>,
}

/// All outages of a run, drawn at its start.
#[derive(Debug, Default)]
pub(crate) struct Network {
    outages: Vec<Outage>,
}

impl Network {
    /// Draws the outages between two moments.
    pub(crate) fn new(
        outages: Option<Outages>,
        seed: u64,
        from: Timestamp,
        until: Timestamp,
    ) -> Self {
        let Some(shape) = outages else {
            return Self::default();
        };
        let mut chance = StdRng::seed_from_u64(seed);
        let mut drawn = Vec::new();
        let mut at = from;
        loop {
            // Uniform around the average, so that each ends and no two overlap.
            let began = at.plus(shape.every.mul_f64(chance.random_range(0.5..1.5)));
            let ended = began.plus(shape.lasts.mul_f64(chance.random_range(0.2..1.8)));
            let kind = shape.kinds.get(chance.random_range(0..shape.kinds.len()));
            let Some(&(shows, by)) = kind.filter(|_| began < until) else {
                break;
            };
            drawn.push(Outage {
                began,
                ended,
                shows,
                by,
            });
            at = ended;
        }
        Self { outages: drawn }
    }

    pub(crate) fn count(&self) -> usize {
        self.outages.len()
    }

    /// How an outage at this time shows. `None` if the network works.
    pub(crate) fn fails_at(&self, way: Way, at: Timestamp) -> Option<Shows> {
        self.fails_between(way, at, at)
    }

    /// How the first outage between these times shows. `None` if there is none.
    pub(crate) fn fails_between(
        &self,
        way: Way,
        from: Timestamp,
        until: Timestamp,
    ) -> Option<Shows> {
        // Ordered by time: outages that ended before `from` come first.
        let first = self.outages.partition_point(|outage| outage.ended <= from);
        let outage = self.outages.get(first)?;
        let hits = outage.began <= until && outage.by.is_none_or(|by| by == way);
        hits.then_some(outage.shows)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn it_fails_from_the_beginning_of_an_outage_to_its_end() {
        let day = Duration::from_secs(24 * 3600);
        let (every, lasts) = (day * 5, day);
        let until = Timestamp(0).plus(day * 400);
        let network = |shape| Network::new(shape, 1, Timestamp(0), until);
        let way = Way::Second;
        assert_eq!(network(None).fails_between(way, Timestamp(0), until), None);
        let kinds = &[(Shows::Told, None), (Shows::Silent, Some(Way::Second))];
        let network = network(Some(Outages {
            every,
            lasts,
            kinds,
        }));
        assert!((40..100).contains(&network.count()), "{}", network.count());
        for outage in &network.outages {
            let [before, last] = [outage.began, outage.ended].map(|at| Timestamp(at.0 - 1));
            let shows = Some(outage.shows);
            let times = [before, outage.began, last, outage.ended];
            let fails = times.map(|at| network.fails_at(way, at));
            assert_eq!(fails, [None, shows, shows, None]);
            assert_eq!(network.fails_between(way, before, outage.ended), shows);
            let spared = outage.by.is_some();
            assert_eq!(network.fails_at(way.other(), last).is_none(), spared);
        }
        for shows in [Shows::Told, Shows::Silent] {
            assert!(network.outages.iter().any(|outage| outage.shows == shows));
        }
    }
}
