//! The gateway's settings, with unit, default and reason.
//!
//! [`Settings::validate`] rejects zeros that would mean "forever" or a division by zero.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use protocol::limits;
use thiserror::Error;

/// The gateway's settings. `Default` suits a census of the real Fediverse.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Path of the control socket. Default `/run/gateway/gateway.sock`: the volume that only the
    /// orchestrator shares.
    pub control_socket: PathBuf,
    /// Path of the intake's socket, which answers only requests for TXT records. Default none. It
    /// can't be used to open a way out.
    pub text_socket: Option<PathBuf>,
    /// The directory that contains one directory per check. Default `/run/egress`: the volume that
    /// the launcher mounts into every check.
    pub egress_root: PathBuf,
    /// Resolvers to query. Default none: those of `/etc/resolv.conf`, read once at start.
    pub resolvers: Vec<SocketAddr>,
    /// Time for a whole look-up of both record types. Default 15 s: a forwarder such as Docker's
    /// waits 4 s for each of its up to three resolvers, and the last one needs time to answer.
    pub dns_timeout: Duration,
    /// Time for connecting to all addresses of both families together. Default 10 s: the check's 60
    /// s begin only after it.
    pub dial_timeout: Duration,
    /// Time for connecting to one address. Default 5 s: two retransmissions of a SYN.
    pub dial_address_timeout: Duration,
    /// What one check may use.
    pub budget: BudgetLimits,
    /// Most open checks. Default 64: a small machine has room for this many containers, and each
    /// costs a few sockets and 64 KiB.
    pub open_max: u32,
    /// Networks that are never dialled, in addition to those that are not globally reachable.
    /// Default none: the operator's own networks belong here.
    pub deny_addresses: Vec<IpNet>,
    /// The least time between visits.
    pub paces: Paces,
    /// Path of the socket at which a second gateway asks for its turns. Default none.
    pub ledger_socket: Option<PathBuf>,
    /// The `ledger_socket` of the gateway that grants this gateway's turns. Default none: it keeps
    /// the paces itself.
    pub other_ledger: Option<PathBuf>,
    /// Lab: divides every pace. Default 1; 0 is rejected. A large value means no pacing at all.
    pub pace_divisor: u32,
    /// Lab: addresses come from this file instead of DNS; see [`crate::net::names_file`]. Default
    /// none.
    pub names_file: Option<PathBuf>,
    /// Lab: private and loopback addresses may be dialled. Default no.
    pub allow_private: bool,
    /// Lab: a PEM file of additional root certificates, copied next to each egress socket. Default
    /// none.
    pub extra_ca: Option<PathBuf>,
}

/// What one check may use. The defaults are the wire's limits, whose reasons are documented there.
#[derive(Debug, Clone, Copy)]
pub struct BudgetLimits {
    /// Bytes to the host. Default [`limits::EGRESS_BYTES_UP_MAX`].
    pub bytes_up_max: u64,
    /// Bytes from the host. Default [`limits::EGRESS_BYTES_DOWN_MAX`].
    pub bytes_down_max: u64,
    /// Connections that the checker opens, including refused ones. Default
    /// [`limits::EGRESS_CONNECTIONS_MAX`].
    pub connections_max: u32,
    /// Time from the checker's first connection to the end of all. Default 75 s: a check's 60 s and
    /// the time that an engine needs to kill.
    pub time_max: Duration,
    /// Time from `ready` to the checker's first connection. Default 300 s: a host may wait this
    /// long for a container slot while all slots are busy with slow hosts, and its wait must not
    /// reduce its own time.
    pub unused_max: Duration,
}

/// The least time between two visits (invariant I8), as docs/visits.md states it for owners.
#[derive(Debug, Clone, Copy)]
pub struct Paces {
    /// Look-ups below one registered domain. Default 10 s: a wildcard farm costs its owner's
    /// servers six look-ups a minute.
    pub group: Duration,
    /// Checks of one address at which no instance has responded yet. Default 10 s: thousands of
    /// names may point at a victim that did not consent.
    pub address: Duration,
    /// Checks of one /24 or /64. Default 2 s: neighbouring addresses often share a machine or a
    /// line.
    pub block: Duration,
    /// All dials. Default 50 ms, 20 a second: harmless for home routers' connection tables and
    /// below the attention of abuse desks.
    pub dial: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            control_socket: PathBuf::from("/run/gateway/gateway.sock"),
            text_socket: None,
            egress_root: PathBuf::from("/run/egress"),
            resolvers: Vec::new(),
            dns_timeout: Duration::from_secs(15),
            dial_timeout: Duration::from_secs(10),
            dial_address_timeout: Duration::from_secs(5),
            budget: BudgetLimits::default(),
            open_max: 64,
            deny_addresses: Vec::new(),
            paces: Paces::default(),
            ledger_socket: None,
            other_ledger: None,
            pace_divisor: 1,
            names_file: None,
            allow_private: false,
            extra_ca: None,
        }
    }
}

impl Default for BudgetLimits {
    fn default() -> Self {
        Self {
            bytes_up_max: limits::EGRESS_BYTES_UP_MAX,
            bytes_down_max: limits::EGRESS_BYTES_DOWN_MAX,
            connections_max: limits::EGRESS_CONNECTIONS_MAX,
            time_max: Duration::from_secs(75),
            unused_max: Duration::from_secs(300),
        }
    }
}

impl Default for Paces {
    fn default() -> Self {
        Self {
            group: Duration::from_secs(10),
            address: Duration::from_secs(10),
            block: Duration::from_secs(2),
            dial: Duration::from_millis(50),
        }
    }
}

impl Paces {
    /// All paces divided by `divisor`; a divisor of 0 leaves them unchanged.
    #[must_use]
    pub fn divided(self, divisor: u32) -> Self {
        let by = |pace: Duration| pace.checked_div(divisor).unwrap_or(pace);
        Self {
            group: by(self.group),
            address: by(self.address),
            block: by(self.block),
            dial: by(self.dial),
        }
    }
}

/// Why a setting can't be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SettingsError {
    #[error("pace_divisor must be at least 1")]
    DivisorZero,
    #[error("time-outs, budgets and open_max must be more than 0")]
    Zero,
    #[error("the egress directory's path is longer than {EGRESS_ROOT_BYTES_MAX} bytes")]
    PathTooLong,
}

/// Longest egress root, in bytes. A Unix socket's path holds 107 bytes; the check's id, the
/// socket's name and two slashes take 44 of them.
pub const EGRESS_ROOT_BYTES_MAX: usize = 63;

impl Settings {
    /// Whether any lab setting is in use.
    pub fn is_lab(&self) -> bool {
        self.names_file.is_some()
            || self.allow_private
            || self.extra_ca.is_some()
            || self.pace_divisor != 1
    }

    /// Checks what the types don't enforce.
    pub fn validate(&self) -> Result<(), SettingsError> {
        if self.pace_divisor == 0 {
            return Err(SettingsError::DivisorZero);
        }
        let times = [
            self.dns_timeout,
            self.dial_timeout,
            self.dial_address_timeout,
            self.budget.time_max,
            self.budget.unused_max,
        ];
        let counts_missing = self.open_max == 0
            || self.budget.connections_max == 0
            || self.budget.bytes_up_max == 0
            || self.budget.bytes_down_max == 0;
        if counts_missing || times.iter().any(Duration::is_zero) {
            return Err(SettingsError::Zero);
        }
        if self.egress_root.as_os_str().len() > EGRESS_ROOT_BYTES_MAX {
            return Err(SettingsError::PathTooLong);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: impl FnOnce(&mut Settings), expect: Result<(), SettingsError>) {
        let mut settings = Settings::default();
        change(&mut settings);
        assert_eq!(settings.validate(), expect);
    }

    #[test]
    fn zeros_that_would_mean_for_ever_are_refused() {
        check(|_| {}, Ok(()));
        check(|s| s.pace_divisor = 0, Err(SettingsError::DivisorZero));
        check(|s| s.open_max = 0, Err(SettingsError::Zero));
        check(|s| s.dns_timeout = Duration::ZERO, Err(SettingsError::Zero));
        check(|s| s.budget.connections_max = 0, Err(SettingsError::Zero));
        check(
            |s| s.egress_root = PathBuf::from("x".repeat(64)),
            Err(SettingsError::PathTooLong),
        );
    }

    #[test]
    fn the_defaults_are_no_lab() {
        assert!(!Settings::default().is_lab());
        assert_eq!(Paces::default().divided(10).group, Duration::from_secs(1));
    }
}
