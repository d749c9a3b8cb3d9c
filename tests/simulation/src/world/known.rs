//! The hosts of a world, as a census meets them. A world file has one a line of JSON, in the order
//! in which peers lists hold them; other worlds are made from numbers.
//!
//! Invented names are below a public suffix, as outside the lab, because the gate and the groups
//! depend on that. No name is ever contacted: there is no network.

use std::collections::HashMap;
use std::io::BufRead as _;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use census::state::Verdict;
use protocol::egress::Family;
use protocol::{DeadReason, Host, HostError};
use rand::Rng as _;
use rand::rngs::StdRng;
use scheduler::blame::doubt::{Dns, Doubt};
use serde::Deserialize;

/// Longest line: a name, its addresses and a dozen numbers.
const LINE_BYTES_MAX: usize = 4096;

/// The first hosts of a world made from numbers, which never go down: the operator's canaries.
const SEEDS: u32 = 3;

/// Longest time that a responding host of such a world takes.
const ANSWER_SECONDS_MAX: u64 = 3;

/// The first registered domain of a farm.
pub(crate) const FARM: &str = "farm0-of-names.net";

/// Addresses of a farm.
const FARM_ADDRESSES: u32 = 256;

/// What a check of a host finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Alive,
    NoSuchName,
    NoAnswerDns,
    RefusedTcp,
    SilentTcp,
    Tls,
    NotNodeinfo,
    SlowSilent,
    /// A web server answers 502.
    BadGateway,
    /// It answers 429 to every client.
    Refused,
    /// It answers 410.
    Gone,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Known {
    pub(crate) host: Host,
    /// Its registered domain.
    pub(crate) domain: Box<str>,
    /// `alone`, `owner`, `hoster:NAME`, `farm` or `tunnel`.
    group: Box<str>,
    pub(crate) addresses: Vec<IpAddr>,
    #[serde(default)]
    pub(crate) ipv6_only: bool,
    pub(crate) outcome: Outcome,
    /// Until the gateway knows whether it can open the host.
    open_ms: u64,
    /// How long a container is busy with it.
    hold_ms: u64,
    /// Its peers list holds this many names, the first of the world.
    #[serde(default)]
    pub(crate) knows: usize,
    /// Whether the operator names it.
    #[serde(default)]
    seed: bool,
}

#[derive(Debug, Default)]
pub(crate) struct KnownWorld {
    pub(crate) hosts: Vec<Known>,
    /// Hosts that the operator names, which always respond.
    pub(crate) seeds: Vec<Host>,
    ids: HashMap<Box<str>, u32>,
}

impl KnownWorld {
    /// Reads a world file.
    ///
    /// # Errors
    /// It can't be read, or a line is not a host.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let file = std::fs::File::open(path).with_context(|| path.display().to_string())?;
        let mut world = Self::default();
        for (number, line) in (1..).zip(std::io::BufReader::new(file).lines()) {
            let line = line?;
            anyhow::ensure!(line.len() <= LINE_BYTES_MAX, "line {number} is too long");
            let known = serde_json::from_str(&line)
                .with_context(|| format!("{}, line {number}", path.display()))?;
            world.push(known);
        }
        anyhow::ensure!(!world.seeds.is_empty(), "the world has no seeds");
        Ok(world)
    }

    /// Makes this number of hosts. A share of them responds, and these come first. Of the others, a
    /// share accepts TCP.
    pub(crate) fn made(
        hosts: u32,
        living: f64,
        accepting: f64,
        chance: &mut StdRng,
    ) -> Result<Self, HostError> {
        let living = (f64::from(hosts) * living).round() as u32;
        let mut world = Self::default();
        for number in 0..hosts {
            let outcome = if number < living {
                Outcome::Alive
            } else {
                Outcome::of_the_dead(accepting, chance)
            };
            world.invent(outcome, chance)?;
        }
        Ok(world)
    }

    /// Adds a host with its own domain and address. Returns its id.
    pub(crate) fn invent(
        &mut self,
        outcome: Outcome,
        chance: &mut StdRng,
    ) -> Result<u32, HostError> {
        let id = self.count();
        let name = format!("h{id}.net");
        let mut known = Known::invented(&name, &name, id)?;
        known.outcome = outcome;
        (known.open_ms, known.hold_ms) = (outcome.open_ms(), outcome.hold_ms());
        if outcome == Outcome::Alive {
            known.hold_ms = 1000 * chance.random_range(1..=ANSWER_SECONDS_MAX);
            known.seed = id < SEEDS;
        }
        Ok(self.push(known))
    }

    /// Adds names that respond, behind wildcards below a farm's registered domains.
    pub(crate) fn add_farm(&mut self, names: u32, domains: u32) -> Result<(), HostError> {
        for number in 0..names {
            let domain = format!("farm{}-of-names.net", number % domains.max(1));
            let address = u32::MAX - number % FARM_ADDRESSES;
            let name = format!("n{number}.{domain}");
            let mut known = Known::invented(&name, &domain, address)?;
            known.group = "farm".into();
            self.push(known);
        }
        Ok(())
    }

    fn push(&mut self, known: Known) -> u32 {
        let id = self.count();
        if known.seed {
            self.seeds.push(known.host.clone());
        }
        self.ids.insert(known.host.as_str().into(), id);
        self.hosts.push(known);
        id
    }

    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.hosts.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn id(&self, host: &str) -> Option<u32> {
        self.ids.get(host).copied()
    }

    pub(crate) fn host(&self, id: u32) -> Option<&Known> {
        self.hosts.get(usize::try_from(id).ok()?)
    }

    /// Hosts that respond and can be reached without IPv6, which Docker's default networks lack.
    pub(crate) fn living(&self) -> impl Iterator<Item = &Known> {
        let alive = |known: &&Known| known.outcome == Outcome::Alive && !known.ipv6_only;
        self.hosts.iter().filter(alive)
    }
}

impl Known {
    fn invented(name: &str, domain: &str, address: u32) -> Result<Self, HostError> {
        // An odd factor: each number has its own address, and neighbours have different blocks.
        let ip = Ipv4Addr::from_bits(address.wrapping_mul(0x9E37_79B1));
        Ok(Self {
            host: Host::parse(name)?,
            domain: domain.into(),
            group: "alone".into(),
            addresses: vec![ip.into()],
            ipv6_only: false,
            outcome: Outcome::Alive,
            open_ms: 0,
            hold_ms: Outcome::Alive.hold_ms(),
            knows: 0,
            seed: false,
        })
    }

    pub(crate) fn is_of_hoster(&self) -> bool {
        self.group.starts_with("hoster:")
    }

    /// Until the gateway knows whether it can open the host, which now responds like this.
    pub(crate) fn opens_after(&self, now: Outcome) -> Duration {
        let is_usual = now == self.outcome;
        Duration::from_millis(if is_usual {
            self.open_ms
        } else {
            now.open_ms()
        })
    }

    /// How long a container is busy with the host, which now responds like this.
    pub(crate) fn holds_for(&self, now: Outcome) -> Duration {
        let is_usual = now == self.outcome;
        Duration::from_millis(if is_usual {
            self.hold_ms
        } else {
            now.hold_ms()
        })
    }
}

impl Outcome {
    /// How a host fails that does not respond.
    pub(crate) fn of_the_dead(accepting: f64, chance: &mut StdRng) -> Self {
        if chance.random_bool(accepting) {
            Self::SlowSilent
        } else if chance.random() {
            Self::NoSuchName
        } else {
            Self::SilentTcp
        }
    }

    /// Whether a server accepts a connection, so that the check needs a container.
    pub(crate) fn accepts(self) -> bool {
        match self {
            Self::Alive
            | Self::Tls
            | Self::NotNodeinfo
            | Self::SlowSilent
            | Self::BadGateway
            | Self::Refused
            | Self::Gone => true,
            Self::NoSuchName | Self::NoAnswerDns | Self::RefusedTcp | Self::SilentTcp => false,
        }
    }

    /// The gateway's timeouts, of hosts for which the world has no figure.
    fn open_ms(self) -> u64 {
        match self {
            Self::NoSuchName => 1000,
            Self::NoAnswerDns => 8000,
            Self::SilentTcp => 5000,
            _ => 0,
        }
    }

    fn hold_ms(self) -> u64 {
        match self {
            Self::SlowSilent => 10_000,
            _ => 2000,
        }
    }

    /// What a check of such a host ends with, and what must work before it counts.
    pub(crate) fn found(self, address: Option<IpAddr>) -> (Verdict, Doubt) {
        let dead = |reason, status| Verdict::Dead {
            reason,
            status,
            to: None,
        };
        let (verdict, dns) = match self {
            Self::Alive => (kit::alive(), Dns::Sound),
            Self::NoSuchName => (dead(DeadReason::NoSuchName, None), Dns::Fresh(None)),
            Self::NoAnswerDns => (dead(DeadReason::DnsBroken, None), Dns::Fresh(None)),
            Self::RefusedTcp | Self::SilentTcp => {
                (dead(DeadReason::Unreachable, None), Dns::Fresh(None))
            }
            Self::Tls => (dead(DeadReason::Tls, None), Dns::Fresh(address)),
            Self::NotNodeinfo => (dead(DeadReason::NotNodeinfo, None), Dns::Sound),
            Self::SlowSilent => (dead(DeadReason::Timeout, None), Dns::Fresh(address)),
            Self::BadGateway => (dead(DeadReason::Status, Some(502)), Dns::Sound),
            Self::Refused => {
                let refused = Verdict::Refused {
                    status: 429,
                    wall: None,
                    retry_after_s: None,
                };
                (refused, Dns::Sound)
            }
            Self::Gone => (Verdict::Gone, Dns::Sound),
        };
        let families = address.map(Family::of).into_iter().collect();
        (verdict, Doubt { families, dns })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rand::SeedableRng as _;

    use super::*;

    #[test]
    fn hosts_have_their_own_addresses_and_farms_share_some() {
        let mut world = KnownWorld::made(5000, 0.25, 0.5, &mut StdRng::seed_from_u64(1)).unwrap();
        let places: HashSet<_> = world.hosts.iter().map(|known| &known.addresses).collect();
        assert_eq!((places.len(), world.living().count()), (5000, 1250));
        world.add_farm(2000, 7).unwrap();
        let farm = &world.hosts[5000..];
        let places: HashSet<_> = farm.iter().map(|known| &known.addresses).collect();
        let domains: HashSet<_> = farm.iter().map(|known| &known.domain).collect();
        assert_eq!((places.len(), domains.len()), (256, 7));
        assert!(domains.contains(&Box::from(FARM)));
        for (id, known) in (0..).zip(&world.hosts) {
            assert_eq!(world.id(known.host.as_str()), Some(id));
        }
    }

    #[test]
    fn all_failures_but_a_refusal_wait_for_a_witness() {
        for outcome in [
            Outcome::NoSuchName,
            Outcome::SilentTcp,
            Outcome::SlowSilent,
            Outcome::BadGateway,
            Outcome::Gone,
        ] {
            assert!(outcome.found(None).0.is_failing(), "{outcome:?}");
        }
        for outcome in [Outcome::Alive, Outcome::Refused] {
            assert!(!outcome.found(None).0.is_failing(), "{outcome:?}");
        }
    }
}
