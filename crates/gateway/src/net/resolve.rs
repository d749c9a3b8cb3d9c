//! Resolves names to addresses, with DNS or in a lab with the names file.
//!
//! It takes a host and returns a [`Resolution`]. Addresses are as DNS returned them;
//! [`crate::net::address`] checks them. NXDOMAIN and no data count against the host. SERVFAIL and
//! silence count against a name only at the third time in a row, and only if other names were
//! answered in between, because a failing resolver of ours looks the same. REFUSED, FORMERR and
//! NOTIMP never count: they are about our resolver. Addresses per answer, names in the cache, names
//! in the table of failures, and time are bounded.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ProtocolConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::system_conf::read_system_conf;
use protocol::Host;
use thiserror::Error;

use crate::net::names_file::{Entry, NamesFile};
use crate::settings::Settings;
use crate::wire::control::Family;

mod doubt;
pub mod text;
mod udp;

type Dns = hickory_resolver::Resolver<udp::Connections>;

/// Most names in the cache. With a daily rhythm of checks, the cache serves retries, not the next
/// day's check.
pub const CACHE_NAMES_MAX: usize = 65_536;

/// Most names remembered because their look-ups failed lately.
pub const FAILING_NAMES_MAX: usize = 16_384;

/// Most addresses kept per answer: four are dialled, and the rest gives the pace a choice.
pub const ADDRESSES_MAX: usize = 16;

/// Shortest time for which an answer is kept. Otherwise a name with a TTL of 0 would be looked up
/// at each retry.
pub const TTL_MIN: Duration = Duration::from_secs(10);

/// Longest time for which an answer is kept, so that a moved host is found.
pub const TTL_MAX: Duration = Duration::from_hours(1);

/// Longest time for which "no such name" is kept: a new name's first check may come early.
pub const NEGATIVE_TTL_MAX: Duration = Duration::from_mins(15);

/// Failures in a row after which a name's DNS counts as broken (invariant I5).
pub const FAILURES_MAX: u32 = 3;

/// HTTPS's port: the only one that is dialled outside a lab.
pub const HTTPS_PORT: u16 = 443;

/// Most requests in progress on one connection to a resolver: more than two per open check, so that
/// none is rejected as "busy".
const ACTIVE_REQUESTS_MAX: usize = 1024;

/// Resolvers that are asked at once: as many as the C library takes from `/etc/resolv.conf`. Nobody
/// waits for one that does not answer while another does.
const RESOLVERS_AT_ONCE: usize = 3;

/// How long AAAA may take longer than A. Some routers and zones never answer AAAA.
const AAAA_PATIENCE: Duration = Duration::from_secs(1);

/// The address of the resolver that Docker gives its containers.
const DOCKERS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 11));

/// The result of resolving a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// At least one address; at most [`ADDRESSES_MAX`].
    Found {
        /// The addresses with their port: [`HTTPS_PORT`], or the names file's.
        targets: Vec<SocketAddr>,
        /// Whether DNS was queried now, instead of the cache.
        fresh: bool,
    },
    /// NXDOMAIN: the name does not exist.
    NoSuchName {
        /// Whether DNS was queried now, instead of the cache.
        fresh: bool,
    },
    /// The name exists, but has no address.
    NoAddress {
        /// Whether DNS was queried now, instead of the cache.
        fresh: bool,
    },
    /// There is no usable answer, which does not count against the name yet.
    Failing { detail: String },
    /// There is no usable answer for at least the third time in a row, although other names are
    /// answered.
    Broken { detail: String },
    /// There is no route to the resolver.
    Offline,
}

/// Why the resolver can't be set up.
#[derive(Debug, Error)]
pub enum ResolverError {
    #[error("no resolver: /etc/resolv.conf can't be used")]
    SystemConfig(#[source] Box<NetError>),
    #[error("the resolver can't be set up")]
    Build(#[source] Box<NetError>),
}

/// Resolves names, and remembers answers and failures.
#[derive(Debug)]
pub struct Resolver {
    source: Source,
    timeout: Duration,
    memory: Mutex<Memory>,
    texts: Mutex<text::Memory>,
    /// Held while the resolver is tested again.
    testing: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
enum Source {
    /// With the resolvers' addresses, for people.
    Dns(Box<Dns>, String),
    File(Mutex<NamesFile>),
}

/// The outcome of one look-up, before earlier look-ups are considered.
enum Answer {
    Known(Known, Duration),
    /// A failure of the name's servers or ours.
    Failure(String),
    /// Certainly our failure: nothing is counted.
    OwnFailure(String),
    NoRoute,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Known {
    Found(Vec<SocketAddr>),
    NoSuchName,
    NoAddress,
}

impl Known {
    fn into_resolution(self, fresh: bool) -> Resolution {
        match self {
            Self::Found(targets) => Resolution::Found { targets, fresh },
            Self::NoSuchName => Resolution::NoSuchName { fresh },
            Self::NoAddress => Resolution::NoAddress { fresh },
        }
    }
}

impl Resolver {
    /// Sets up the source in `settings`: the names file, the resolvers, or `/etc/resolv.conf`.
    pub fn new(settings: &Settings) -> Result<Self, ResolverError> {
        let source = match &settings.names_file {
            Some(path) => Source::File(Mutex::new(NamesFile::new(path.clone()))),
            None => dns(settings)?,
        };
        Ok(Self {
            source,
            timeout: settings.dns_timeout,
            memory: Mutex::new(Memory {
                fruitless: doubt::FRUITLESS_MAX,
                ..Memory::default()
            }),
            texts: Mutex::default(),
            testing: tokio::sync::Mutex::default(),
        })
    }

    /// Looks `host` up within the configured timeout. `families` are those that this machine has.
    pub async fn resolve(&self, host: &Host, families: &[Family]) -> Resolution {
        let answer = match &self.source {
            Source::File(file) => self.ask_file(file, host).await,
            Source::Dns(resolver, _) => {
                let remembered = self.memory().remembered(host, now());
                if let Some(known) = remembered {
                    return known.into_resolution(false);
                }
                ask_dns(resolver, host, families, self.timeout).await
            }
        };
        match answer {
            Answer::Known(known, ttl) => {
                let mut memory = self.memory();
                memory.answered(host, now());
                if matches!(self.source, Source::Dns(..)) {
                    memory.remember(host, known.clone(), ttl, now());
                }
                known.into_resolution(true)
            }
            Answer::Failure(detail) => match self.memory().failed(host, now()) {
                Verdict::Wait => Resolution::Failing { detail },
                Verdict::Broken => Resolution::Broken { detail },
            },
            Answer::OwnFailure(detail) => Resolution::Failing { detail },
            Answer::NoRoute => Resolution::Offline,
        }
    }

    /// Removes `host` from the cache because its address did not work, so that the next look-up
    /// queries DNS. Invariant I5: otherwise an answer from an outage of our resolver would count
    /// against hosts as long as it is cached.
    pub fn forget(&self, host: &Host) {
        self.memory().cache.remove(host);
    }

    async fn ask_file(&self, file: &Mutex<NamesFile>, host: &Host) -> Answer {
        let found = file
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .look_up(host);
        let entry = match found {
            Ok(entry) => entry,
            Err(error) => {
                tracing::error!(%host, error = error_text(&error), "names file");
                return Answer::OwnFailure(error_text(&error));
            }
        };
        // The file itself always answers, so a simulated failure is the name's own.
        self.memory().resolver_works(now());
        match entry {
            Some(Entry::At(target)) => Answer::Known(Known::Found(vec![target]), TTL_MIN),
            Some(Entry::NoSuchName) | None => Answer::Known(Known::NoSuchName, TTL_MIN),
            Some(Entry::NoAddress) => Answer::Known(Known::NoAddress, TTL_MIN),
            Some(Entry::ServerFailure) => Answer::Failure("SERVFAIL".to_owned()),
            Some(Entry::Silence) => {
                tokio::time::sleep(self.timeout).await;
                self.memory().resolver_works(now());
                Answer::Failure(SILENCE.to_owned())
            }
        }
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.memory
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

const SILENCE: &str = "no answer in time";

/// Tokio's clock, which tests can stop.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

fn error_text(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

fn dns(settings: &Settings) -> Result<Source, ResolverError> {
    let config = if settings.resolvers.is_empty() {
        let failed = |error| ResolverError::SystemConfig(Box::new(error));
        read_system_conf().map_err(failed)?.0
    } else {
        let servers = settings.resolvers.iter().map(name_server).collect();
        ResolverConfig::from_name_servers(servers)
    };
    let servers = config.name_servers().iter();
    let servers: Vec<_> = servers
        .map(|server| {
            let dockers = if server.ip == DOCKERS {
                " (Docker's own, which asks this machine's)"
            } else {
                ""
            };
            format!("{}{dockers}", server.ip)
        })
        .collect();
    let mut builder = Dns::builder_with_config(config, udp::Connections::default());
    *builder.options_mut() = options(settings.dns_timeout);
    let built = builder.build();
    let resolver = built.map_err(|error| ResolverError::Build(Box::new(error)))?;
    Ok(Source::Dns(Box::new(resolver), servers.join(" and ")))
}

fn name_server(address: &SocketAddr) -> NameServerConfig {
    let mut connection = ConnectionConfig::new(ProtocolConfig::Udp);
    connection.port = address.port();
    NameServerConfig::new(address.ip(), true, vec![connection])
}

/// Options from resolv.conf are not used: names are fully qualified (no search list, no `ndots`),
/// and the timeout is the setting's.
fn options(timeout: Duration) -> ResolverOpts {
    let mut options = ResolverOpts::default();
    options.ndots = 0;
    // Only a failure that came at once is asked a second time: a question that can still be
    // answered keeps its socket for the whole timeout.
    options.attempts = 1;
    options.timeout = timeout;
    options.num_concurrent_reqs = RESOLVERS_AT_ONCE;
    options.use_hosts_file = ResolveHosts::Never;
    options.edns0 = true;
    options.max_active_requests = ACTIVE_REQUESTS_MAX;
    // The library's cache can't tell whether an answer is fresh, so ours replaces it. Whatever the
    // library still caches expires before ours does.
    options.cache_size = 0;
    options.positive_max_ttl = Some(TTL_MAX);
    options.negative_max_ttl = Some(NEGATIVE_TTL_MAX);
    options
}

async fn ask(resolver: &Dns, name: &str, kind: RecordType) -> Result<Lookup, NetError> {
    let mut name = Name::from_ascii(name)?;
    name.set_fqdn(true);
    resolver.lookup(name, kind).await
}

/// Asks for A and AAAA. Each answer counts as it comes: with A in hand, AAAA has [`AAAA_PATIENCE`]
/// more. Without IPv6, AAAA is asked only for a name without A: invariant I5 needs to know that the
/// host is of a family that we don't have.
async fn ask_dns(resolver: &Dns, host: &Host, families: &[Family], timeout: Duration) -> Answer {
    let now = tokio::time::Instant::now();
    let deadline = now.checked_add(timeout).unwrap_or(now);
    let ask = async |kind| {
        let answer = tokio::time::timeout_at(deadline, ask(resolver, host.as_str(), kind));
        half(answer.await.unwrap_or(Err(NetError::Timeout)))
    };
    let mut v6 = Box::pin(ask(RecordType::AAAA));
    let mut v4 = Box::pin(ask(RecordType::A));
    let v4 = tokio::select! {
        v6 = &mut v6, if families.contains(&Family::V6) => return combine(vec![v6, v4.await]),
        v4 = &mut v4 => v4,
    };
    let patience = match (&v4, families) {
        (Half::Found(..), [Family::V4]) => return combine(vec![v4]),
        (Half::Found(..), [_, _]) => AAAA_PATIENCE,
        (Half::Found(..) | Half::None { .. } | Half::Failed(_), _) => timeout,
    };
    let v6 = tokio::time::timeout(patience, v6).await;
    combine(vec![v6.unwrap_or(Half::Failed(NetError::Timeout)), v4])
}

/// The answer for one record type.
enum Half {
    Found(Vec<IpAddr>, Duration),
    None { exists: bool, ttl: Duration },
    Failed(NetError),
}

fn half(answer: Result<Lookup, NetError>) -> Half {
    match answer {
        Ok(lookup) => {
            let ttl = lookup
                .valid_until()
                .saturating_duration_since(Instant::now());
            let addresses: Vec<_> = lookup
                .answers()
                .iter()
                .filter_map(|record| record.data.ip_addr())
                .take(ADDRESSES_MAX / 2)
                .collect();
            if addresses.is_empty() {
                Half::None { exists: true, ttl }
            } else {
                Half::Found(addresses, ttl)
            }
        }
        Err(NetError::Dns(DnsError::NoRecordsFound(none))) => {
            let ttl = Duration::from_secs(none.negative_ttl.unwrap_or(0).into());
            if none.response_code == ResponseCode::NXDomain {
                Half::None { exists: false, ttl }
            } else if none.response_code == ResponseCode::NoError {
                Half::None { exists: true, ttl }
            } else {
                Half::Failed(NetError::Dns(DnsError::NoRecordsFound(none)))
            }
        }
        Err(error) => Half::Failed(error),
    }
}

/// Addresses of one type are enough, whatever the other's result. "There is none" needs both
/// answers.
fn combine(halves: Vec<Half>) -> Answer {
    let mut found = Vec::new();
    let mut exists = true;
    let mut ttl = TTL_MAX;
    let mut negative_ttl = NEGATIVE_TTL_MAX;
    let mut failure = None;
    for half in halves {
        match half {
            Half::Found(addresses, lasts) => {
                found.extend(
                    addresses
                        .into_iter()
                        .map(|ip| SocketAddr::new(ip, HTTPS_PORT)),
                );
                ttl = ttl.min(lasts);
            }
            Half::None {
                exists: there,
                ttl: lasts,
            } => {
                exists = exists && there;
                negative_ttl = negative_ttl.min(lasts);
            }
            // A failure of ours explains the other one.
            Half::Failed(error) => match failure {
                None | Some(Answer::Failure(_)) => failure = Some(judge(&error)),
                Some(_) => {}
            },
        }
    }
    match failure {
        // Kept for the shortest time, because the missing half may return.
        Some(_) if !found.is_empty() => Answer::Known(Known::Found(found), TTL_MIN),
        Some(failure) => failure,
        None if !found.is_empty() => Answer::Known(Known::Found(found), ttl.max(TTL_MIN)),
        None if exists => Answer::Known(Known::NoAddress, negative_ttl.max(TTL_MIN)),
        None => Answer::Known(Known::NoSuchName, negative_ttl.max(TTL_MIN)),
    }
}

/// Decides whose failure an error is. Only an error code or silence may be the name's; all other
/// errors happened between us and the resolver, and so did the codes with which it rejects us.
fn judge(error: &NetError) -> Answer {
    let text = protocol::escaped(error.to_string().as_bytes(), 120);
    if let NetError::Io(io_error) = error {
        let no_route = matches!(
            io_error.kind(),
            io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkDown
        );
        return if no_route {
            Answer::NoRoute
        } else {
            Answer::OwnFailure(text)
        };
    }
    if matches!(error, NetError::Timeout) {
        return Answer::Failure(SILENCE.to_owned());
    }
    if matches!(error, NetError::Busy | NetError::NoConnections) {
        return Answer::OwnFailure(text);
    }
    Answer::Failure(text)
}

/// What is remembered about names.
#[derive(Debug, Default)]
struct Memory {
    cache: HashMap<Host, (Known, Instant)>,
    failing: HashMap<Host, Streak>,
    /// When a valid answer for any name last arrived.
    last_answer: Option<Instant>,
    /// Opens in a row that led to no instance, since the resolver's last test.
    fruitless: u32,
    trouble: Option<doubt::Trouble>,
}

/// A name's failures in a row.
#[derive(Debug, Clone, Copy)]
struct Streak {
    failures: u32,
    counted_at: Instant,
}

enum Verdict {
    Wait,
    Broken,
}

impl Memory {
    fn remembered(&mut self, host: &Host, now: Instant) -> Option<Known> {
        let (known, until) = self.cache.get(host)?;
        if *until > now {
            return Some(known.clone());
        }
        self.cache.remove(host);
        None
    }

    fn remember(&mut self, host: &Host, known: Known, ttl: Duration, now: Instant) {
        if self.cache.len() >= CACHE_NAMES_MAX {
            self.cache.retain(|_, (_, until)| *until > now);
        }
        if self.cache.len() >= CACHE_NAMES_MAX {
            // All entries are still valid: the one that expires first is worth least.
            let next = self.cache.iter().min_by_key(|(_, (_, until))| *until);
            if let Some(host) = next.map(|(host, _)| host.clone()) {
                self.cache.remove(&host);
            }
        }
        let until = now.checked_add(ttl).unwrap_or(now);
        self.cache.insert(host.clone(), (known, until));
    }

    fn resolver_works(&mut self, now: Instant) {
        self.last_answer = Some(now);
    }

    fn answered(&mut self, host: &Host, now: Instant) {
        self.resolver_works(now);
        self.failing.remove(host);
    }

    /// Invariant I5: a failure counts only if some name was answered since the one before. While
    /// our resolver is down, none is.
    fn failed(&mut self, host: &Host, now: Instant) -> Verdict {
        if let Some(streak) = self.failing.get_mut(host) {
            let others_answered = self
                .last_answer
                .is_some_and(|last| last >= streak.counted_at);
            if others_answered {
                streak.failures = streak.failures.saturating_add(1);
                streak.counted_at = now;
                if streak.failures >= FAILURES_MAX {
                    return Verdict::Broken;
                }
            }
            return Verdict::Wait;
        }
        if self.failing.len() >= FAILING_NAMES_MAX {
            let oldest = self
                .failing
                .iter()
                .min_by_key(|(_, streak)| streak.counted_at);
            if let Some(host) = oldest.map(|(host, _)| host.clone()) {
                self.failing.remove(&host);
            }
        }
        let streak = Streak {
            failures: 1,
            counted_at: now,
        };
        self.failing.insert(host.clone(), streak);
        Verdict::Wait
    }
}

#[cfg(test)]
mod tests;
