//! A world file: the known Fediverse as a census meets it, one host a line of JSON, in the order
//! in which peers lists hold them.

use std::collections::HashMap;
use std::io::BufRead as _;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use census::state::Verdict;
use protocol::egress::Family;
use protocol::{DeadReason, Host};
use scheduler::blame::doubt::{Dns, Doubt};
use serde::Deserialize;

/// Longest line: a name, its addresses and a dozen numbers.
const LINE_BYTES_MAX: usize = 4096;

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
}

#[derive(Debug, Deserialize)]
struct Line {
    host: Host,
    domain: String,
    group: String,
    addresses: Vec<IpAddr>,
    #[serde(default)]
    ipv6_only: bool,
    outcome: Outcome,
    open_ms: u64,
    hold_ms: u64,
    #[serde(default)]
    knows: usize,
    #[serde(default)]
    seed: bool,
}

#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) host: Host,
    pub(crate) domain: Box<str>,
    /// `alone`, `owner`, `hoster:NAME`, `farm` or `tunnel`.
    pub(crate) group: Box<str>,
    pub(crate) targets: Vec<SocketAddr>,
    pub(crate) ipv6_only: bool,
    pub(crate) outcome: Outcome,
    /// Until the gateway knows whether it can open the host.
    pub(crate) opens_after: Duration,
    /// How long a container is busy with it.
    pub(crate) holds_for: Duration,
    /// Its peers list holds this many names, the first of the world.
    pub(crate) knows: usize,
}

#[derive(Debug)]
pub(crate) struct KnownWorld {
    pub(crate) hosts: Vec<Known>,
    pub(crate) seeds: Vec<Host>,
    ids: HashMap<Host, usize>,
    /// Names below each registered domain.
    domains: HashMap<Box<str>, u32>,
}

impl KnownWorld {
    /// Reads a world file.
    ///
    /// # Errors
    /// It can't be read, or a line is not a host.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let file = std::fs::File::open(path).with_context(|| path.display().to_string())?;
        let mut world = Self {
            hosts: Vec::new(),
            seeds: Vec::new(),
            ids: HashMap::new(),
            domains: HashMap::new(),
        };
        for (number, line) in (1..).zip(std::io::BufReader::new(file).lines()) {
            let line = line?;
            anyhow::ensure!(line.len() <= LINE_BYTES_MAX, "line {number} is too long");
            let line = serde_json::from_str(&line)
                .with_context(|| format!("{}, line {number}", path.display()))?;
            world.add(line);
        }
        anyhow::ensure!(!world.seeds.is_empty(), "the world has no seeds");
        Ok(world)
    }

    fn add(&mut self, line: Line) {
        let id = self.hosts.len();
        if line.seed {
            self.seeds.push(line.host.clone());
        }
        self.ids.insert(line.host.clone(), id);
        let domain = line.domain.into_boxed_str();
        *self.domains.entry(domain.clone()).or_default() += 1;
        let targets = line.addresses.into_iter();
        self.hosts.push(Known {
            host: line.host,
            domain,
            group: line.group.into_boxed_str(),
            targets: targets.map(|ip| SocketAddr::new(ip, 443)).collect(),
            ipv6_only: line.ipv6_only,
            outcome: line.outcome,
            opens_after: Duration::from_millis(line.open_ms),
            holds_for: Duration::from_millis(line.hold_ms),
            knows: line.knows,
        });
    }

    pub(crate) fn id(&self, host: &Host) -> Option<usize> {
        self.ids.get(host).copied()
    }

    pub(crate) fn names_of_domain(&self, domain: &str) -> u32 {
        self.domains.get(domain).copied().unwrap_or(0)
    }

    /// Hosts that respond and can be reached without IPv6, which Docker's default networks lack.
    pub(crate) fn living(&self) -> impl Iterator<Item = &Known> {
        let alive = |known: &&Known| known.outcome == Outcome::Alive && !known.ipv6_only;
        self.hosts.iter().filter(alive)
    }
}

impl Outcome {
    /// Whether a server accepts a connection, so that the check needs a container.
    pub(crate) fn accepts(self) -> bool {
        match self {
            Self::Alive | Self::Tls | Self::NotNodeinfo | Self::SlowSilent => true,
            Self::NoSuchName | Self::NoAnswerDns | Self::RefusedTcp | Self::SilentTcp => false,
        }
    }

    /// What a check of such a host ends with, and what must work before it counts.
    pub(crate) fn found(self, address: Option<IpAddr>) -> (Verdict, Doubt) {
        let (reason, dns) = match self {
            Self::Alive => {
                let families = address.map(Family::of).into_iter().collect();
                let dns = Dns::Sound;
                return (kit::alive(), Doubt { families, dns });
            }
            Self::NoSuchName => (DeadReason::NoSuchName, Dns::Fresh(None)),
            Self::NoAnswerDns => (DeadReason::DnsBroken, Dns::Fresh(None)),
            Self::RefusedTcp | Self::SilentTcp => (DeadReason::Unreachable, Dns::Fresh(None)),
            Self::Tls => (DeadReason::Tls, Dns::Fresh(address)),
            Self::NotNodeinfo => (DeadReason::NotNodeinfo, Dns::Sound),
            Self::SlowSilent => (DeadReason::Timeout, Dns::Fresh(address)),
        };
        let verdict = Verdict::Dead {
            reason,
            status: None,
            to: None,
        };
        let families = address.map(Family::of).into_iter().collect();
        (verdict, Doubt { families, dns })
    }
}
