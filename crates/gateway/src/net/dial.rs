//! Connects to a host: IPv6 and IPv4 alternately, within the paces, and without blaming a host for
//! our own network.
//!
//! It takes admitted targets and returns a [`Dialled`]. It is a light form of RFC 8305: a second
//! attempt begins when the first has failed or is slow, with at most [`DIALS_MAX`] in total. Every
//! attempt is charged to the pace before it is made.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use socket2::SockRef;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::net::family::Routes;
use crate::net::ledger::{LedgerRequest, NO_TURN, PaceLedger};
use crate::net::pace::{DIAL_WAIT_MAX, Late};
use crate::settings::Settings;
use crate::wire::control::Family;

/// Most addresses dialled per open. Two of each family distinguish an unreachable host from an
/// unlucky one.
pub const DIALS_MAX: usize = 4;

/// How long a single attempt has before the next one joins it (RFC 8305 §5).
pub const STAGGER: Duration = Duration::from_millis(250);

/// Largest segment that a host may send: IPv6's smallest MTU of 1280 bytes, less 40 for IP and 20
/// for TCP. The path may carry less than this machine's interface (engines give their networks
/// 1500), and where a firewall drops ICMP, a host never learns that its segments are too large.
pub const SEGMENT_BYTES_MAX: u32 = 1220;

#[derive(Debug)]
pub enum Dialled {
    Up(TcpStream, SocketAddr),
    /// Every address failed on its own side.
    Failed {
        /// The families over which an attempt failed.
        families: Vec<Family>,
        /// What went wrong, for people.
        detail: String,
    },
    Late(Late),
    /// Undecided: the route disappeared in the meantime.
    NoRoute,
    /// Undecided: this machine could not create a socket, or may not use the address.
    Ours(io::Error),
    /// Undecided: nobody granted a turn.
    NoLedger(String),
}

/// The state for dialling, shared by all opens.
#[derive(Debug)]
pub struct Dialler<'a> {
    pub paces: &'a PaceLedger,
    /// Queried again when an attempt failed because of a missing route.
    pub routes: &'a dyn Routes,
    pub settings: &'a Settings,
    pub dials_total: &'a AtomicU64,
}

/// Alternates the families, IPv6 first, each in the order of DNS.
pub fn interleaved(targets: &[SocketAddr]) -> Vec<SocketAddr> {
    let mut v6 = targets.iter().filter(|target| target.is_ipv6());
    let mut v4 = targets.iter().filter(|target| target.is_ipv4());
    let mut order = Vec::with_capacity(targets.len());
    loop {
        let pair = [v6.next(), v4.next()];
        if pair.iter().all(Option::is_none) {
            return order;
        }
        order.extend(pair.into_iter().flatten());
    }
}

struct Attempts {
    waiting: Vec<SocketAddr>,
    running: JoinSet<(SocketAddr, io::Result<TcpStream>)>,
    tried: Vec<SocketAddr>,
    failures: Vec<(SocketAddr, io::Error)>,
    /// Whether the last attempt that should begin was before its turn.
    late: bool,
    /// Why that attempt got no answer whether it was.
    no_ledger: Option<String>,
}

impl Attempts {
    /// The time is over: attempts still in progress have failed because they are slow.
    fn give_up(&mut self) {
        for target in &self.tried {
            if !self.failures.iter().any(|(failed, _)| failed == target) {
                let slow = io::ErrorKind::TimedOut.into();
                self.failures.push((*target, slow));
            }
        }
    }
}

impl Dialler<'_> {
    /// Dials `targets`, all of which have a route, within the configured timeout.
    pub async fn dial(&self, targets: &[SocketAddr]) -> Dialled {
        let mut attempts = Attempts {
            waiting: interleaved(targets),
            running: JoinSet::new(),
            tried: Vec::new(),
            failures: Vec::new(),
            late: false,
            no_ledger: None,
        };
        let whole = self.settings.dial_timeout;
        match tokio::time::timeout(whole, self.race(&mut attempts)).await {
            Ok(Some((stream, target))) => return Dialled::Up(stream, target),
            Ok(None) => (),
            Err(_elapsed) => attempts.give_up(),
        }
        self.conclude(attempts, targets).await
    }

    /// Like [`Self::dial`], with the `wished` family first. The other family follows if that fails:
    /// our wish to test a family must not affect the host's verdict.
    pub async fn dial_first(&self, wished: Option<Family>, targets: &[SocketAddr]) -> Dialled {
        let (first, rest): (Vec<_>, Vec<_>) = targets
            .iter()
            .copied()
            .partition(|target| wished == Some(Family::of(target.ip())));
        if first.is_empty() || rest.is_empty() {
            return self.dial(targets).await;
        }
        let tried = self.dial(&first).await;
        let Dialled::Failed { families, detail } = tried else {
            return tried;
        };
        let tried = self.dial(&rest).await;
        let Dialled::Failed {
            families: others,
            detail: also,
        } = tried
        else {
            return tried;
        };
        Dialled::Failed {
            families: [families, others].concat(),
            detail: format!("{detail}; {also}"),
        }
    }

    /// Dials one pinned target again, for a later connection of the same check. It is not paced,
    /// because the check as a whole was charged.
    pub async fn dial_again(&self, target: SocketAddr) -> io::Result<TcpStream> {
        self.dials_total.fetch_add(1, Ordering::Relaxed);
        connect(target, Duration::ZERO, self.settings.dial_address_timeout).await
    }

    async fn race(&self, attempts: &mut Attempts) -> Option<(TcpStream, SocketAddr)> {
        loop {
            let may_start = attempts.tried.len() < DIALS_MAX;
            let starts = may_start && self.start_next(attempts).await;
            if !starts && attempts.running.is_empty() {
                return None;
            }
            // Without further attempts to start there is no staggering; the timeout per address
            // ends the wait.
            let patience = if starts {
                STAGGER
            } else {
                self.settings.dial_timeout
            };
            match tokio::time::timeout(patience, attempts.running.join_next()).await {
                Ok(Some(Ok((target, Ok(stream))))) => return Some((stream, target)),
                Ok(Some(Ok((target, Err(error))))) => attempts.failures.push((target, error)),
                Ok(Some(Err(_)) | None) | Err(_) => (),
            }
        }
    }

    /// Charges and starts one more attempt. Returns whether there was one to start. An attempt
    /// before its turn may be in turn after another has failed.
    async fn start_next(&self, attempts: &mut Attempts) -> bool {
        if attempts.waiting.is_empty() {
            return false;
        }
        // Also if the time is over before the answer comes.
        attempts.late = true;
        let request = LedgerRequest::Dial {
            targets: attempts.waiting.clone(),
            charged: attempts.tried.iter().map(SocketAddr::ip).collect(),
        };
        let granted = self.paces.ask(request).await;
        attempts.no_ledger = granted.as_ref().err().cloned();
        let Ok(Ok(turn)) = granted else {
            return false;
        };
        if turn.index >= attempts.waiting.len() || turn.wait > DIAL_WAIT_MAX {
            return false;
        }
        attempts.late = false;
        let target = attempts.waiting.remove(turn.index);
        let timeout = self.settings.dial_address_timeout;
        self.dials_total.fetch_add(1, Ordering::Relaxed);
        attempts.tried.push(target);
        attempts
            .running
            .spawn(async move { (target, connect(target, turn.wait, timeout).await) });
        true
    }

    /// Invariant I5: an address that was not tried, or that failed on our side, leaves the host
    /// undecided.
    async fn conclude(&self, attempts: Attempts, targets: &[SocketAddr]) -> Dialled {
        let mut families: Vec<Family> = Vec::new();
        let mut detail = String::new();
        let mut lost_route = false;
        for (target, error) in attempts.failures {
            if is_ours(&error) {
                return Dialled::Ours(error);
            }
            if !self.routes.reaches(target.ip()) {
                lost_route = true;
                continue;
            }
            let family = Family::of(target.ip());
            if !families.contains(&family) {
                families.push(family);
            }
            if !detail.is_empty() {
                detail.push_str("; ");
            }
            detail.push_str(&format!("{}: {}", target.ip(), short(&error)));
        }
        if let Some(error) = attempts.no_ledger {
            return Dialled::NoLedger(error);
        }
        if attempts.late {
            return self.promise(&attempts.tried, targets).await;
        }
        if lost_route {
            return Dialled::NoRoute;
        }
        if families.is_empty() {
            return Dialled::Late(NO_TURN);
        }
        Dialled::Failed { families, detail }
    }

    /// When to retry. For a host that was tried in part, this is when all dials of one open are in
    /// turn. With the earliest time, the untried addresses would be in turn and the tried ones not,
    /// again and again, and the host would never get a verdict.
    async fn promise(&self, tried: &[SocketAddr], targets: &[SocketAddr]) -> Dialled {
        let request = LedgerRequest::Promise {
            targets: targets.to_vec(),
            at_once: if tried.is_empty() { 1 } else { DIALS_MAX },
        };
        match self.paces.ask(request).await {
            Ok(promise) => Dialled::Late(promise.err().unwrap_or(NO_TURN)),
            Err(error) => Dialled::NoLedger(error),
        }
    }
}

async fn connect(target: SocketAddr, wait: Duration, timeout: Duration) -> io::Result<TcpStream> {
    tokio::time::sleep(wait).await;
    let socket = match target {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    // Invariant I5: a system that refuses this is no reason to judge the host.
    SockRef::from(&socket).set_tcp_mss(SEGMENT_BYTES_MAX).ok();
    match tokio::time::timeout(timeout, socket.connect(target)).await {
        Ok(connected) => connected,
        Err(_elapsed) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Failures that the host did not cause: no descriptors, no memory, no ports, a firewall rule on
/// this machine.
///
/// `EACCES` is not among them: a remote firewall can cause it with an ICMP "administratively
/// prohibited", and could hide its host that way.
fn is_ours(error: &io::Error) -> bool {
    const OURS: [Errno; 8] = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOBUFS,
        Errno::NOMEM,
        Errno::PERM,
        Errno::ADDRNOTAVAIL,
        Errno::ADDRINUSE,
        Errno::NETDOWN,
    ];
    Errno::from_io_error(error).is_some_and(|errno| OURS.contains(&errno))
}

fn short(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::TimedOut {
        "timed out".to_owned()
    } else if error.kind() == io::ErrorKind::ConnectionRefused {
        "refused".to_owned()
    } else {
        error.to_string()
    }
}

#[cfg(test)]
mod tests;
