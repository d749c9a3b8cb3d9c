//! The gateway's settings: what an operator may change, with unit, default and reason.
//!
//! In: values chosen by the caller. Out: values that were checked. Refused: a zero where a zero would mean "for ever" or a division by it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use protocol::limits;
use thiserror::Error;

/// All that can be set. `Default` is right for a census of the real Fediverse.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the control socket is bound. Default `/run/gateway/gateway.sock`: the volume that only the orchestrator shares.
    pub control_socket: PathBuf,
    /// Where texts alone may be asked for: the intake's socket. Default none. Whoever has it can open no way out.
    pub text_socket: Option<PathBuf>,
    /// Below it stands a directory a check. Default `/run/egress`: the volume that the launcher
    /// mounts into every check.
    pub egress_root: PathBuf,
    /// Resolvers to ask. Default none: those of `/etc/resolv.conf`, read once at start.
    pub resolvers: Vec<SocketAddr>,
    /// A whole look-up, both record types, retries included. Default 8 s: two tries of 4 s, a little less than a resolver's own 10 s of patience.
    pub dns_timeout: Duration,
    /// Connecting, all addresses of both families together. Default 10 s: the check's 60 s begin only after it.
    pub dial_timeout: Duration,
    /// Connecting to one address. Default 5 s: two retransmissions of a SYN.
    pub dial_address_timeout: Duration,
    /// What one check may use.
    pub budget: BudgetLimits,
    /// Checks that are open at once. Default 64: as many containers fit a small machine, and each costs some sockets and 64 KiB.
    pub open_max: u32,
    /// Networks that are never dialled, beyond those that nobody can reach. Default none: the operator's own networks go here.
    pub deny_addresses: Vec<IpNet>,
    /// How often whom.
    pub paces: Paces,
    /// Lab: divides every pace. Default 1; 0 is refused. Large means no pacing at all.
    pub pace_divisor: u32,
    /// Lab: addresses come from this file instead of DNS, see [`crate::net::names_file`]. Default
    /// none.
    pub names_file: Option<PathBuf>,
    /// Lab: private and loopback addresses may be dialled. Default no.
    pub allow_private: bool,
    /// Lab: a PEM file of further trust roots, laid beside each egress socket. Default none.
    pub extra_ca: Option<PathBuf>,
}

/// What one check may use. The defaults are the wire's own limits with the reasons given there.
#[derive(Debug, Clone, Copy)]
pub struct BudgetLimits {
    /// Bytes to the host. Default [`limits::EGRESS_BYTES_UP_MAX`].
    pub bytes_up_max: u64,
    /// Bytes from the host. Default [`limits::EGRESS_BYTES_DOWN_MAX`].
    pub bytes_down_max: u64,
    /// Connections that the checker makes, refused ones included. Default [`limits::EGRESS_CONNECTIONS_MAX`].
    pub connections_max: u32,
    /// From the checker's first connection to the end of all. Default 75 s: a check's 60 s and the time that an engine needs to kill.
    pub time_max: Duration,
    /// From `ready` to the checker's first connection. Default 300 s: a host waits that long for a place among the containers when all of them
    /// hang on slow ones, and its wait must never be taken off its own time.
    pub unused_max: Duration,
}

/// The least time between two visits (design §8).
#[derive(Debug, Clone, Copy)]
pub struct Paces {
    /// Look-ups below one registered domain. Default 10 s: a wildcard farm costs its owner's servers six look-ups a minute.
    pub group: Duration,
    /// Checks of one address at which no living instance was proven. Default 10 s: thousands of
    /// names may point at a victim that never asked for it.
    pub address: Duration,
    /// Checks of one /24 or /64. Default 2 s: a neighbourhood mostly shares a machine or a line.
    pub block: Duration,
    /// Dials of all. Default 50 ms, 20 a second: below what home routers' connection tables and abuse desks mind.
    pub dial: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            control_socket: PathBuf::from("/run/gateway/gateway.sock"),
            text_socket: None,
            egress_root: PathBuf::from("/run/egress"),
            resolvers: Vec::new(),
            dns_timeout: Duration::from_secs(8),
            dial_timeout: Duration::from_secs(10),
            dial_address_timeout: Duration::from_secs(5),
            budget: BudgetLimits::default(),
            open_max: 64,
            deny_addresses: Vec::new(),
            paces: Paces::default(),
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
    /// All paces divided by `divisor`; a divisor of 0 leaves them as they are.
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

/// A setting that can't be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// `pace_divisor` is 0.
    #[error("pace_divisor must be at least 1")]
    DivisorZero,
    /// A time-out or a budget is 0, or `open_max` is.
    #[error("time-outs, budgets and open_max must be more than 0")]
    Zero,
    /// The egress socket's path would not fit a socket address.
    #[error("the egress directory's path is longer than {EGRESS_ROOT_BYTES_MAX} bytes")]
    PathTooLong,
}

/// A Unix socket's path holds 107 bytes; the check's id, the socket's name and two slashes take 44 of them.
pub const EGRESS_ROOT_BYTES_MAX: usize = 63;

impl Settings {
    /// Whether something here makes this a lab.
    pub fn is_lab(&self) -> bool {
        self.names_file.is_some()
            || self.allow_private
            || self.extra_ca.is_some()
            || self.pace_divisor != 1
    }

    /// Looks at what a type can't say.
    ///
    /// # Errors
    /// The first setting that can't be used.
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
