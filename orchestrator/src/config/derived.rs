//! Limits derived from other settings. Only the lab overrides some of them.

use std::path::Path;
use std::time::Duration;

use admission::{Limit, Limits};
use gateway::Paces;
use scheduler::demand::OPENINGS_PER_SLOT;
use scheduler::slots::concurrency::Bounds;

use super::value::{limit, small};
use super::{ConfigError, Values};

/// Where the kernel shows the machine's memory.
const MEMINFO: &str = "/proc/meminfo";

/// Highest setting for containers at once: what an engine on one machine sustains.
const CHECKS_MAX: u32 = 64;

/// Fewest and most containers at once if the operator sets no number. Strangers choose what a check
/// holds of its memory, so a large machine does not get as many as would fit.
const DEFAULT_CHECKS: (u64, u64) = (4, 32);

/// Memory of everything except checks, in MiB: this program's parts, the web server, the engine and
/// the system.
const RESERVED_MIB: u64 = 768;

/// Memory limit of a check in MiB.
const CHECK_MIB: u64 = 64;

/// Two slots: a host that makes us wait for a minute leaves one for the others.
const CHECKS_MIN: u32 = 2;

/// Highest number of hosts opened per container slot: each waits for its slot with an open
/// connection.
const OPENS_PER_CHECK_MAX: u32 = 8;

/// Default number of hosts opened per container slot: some turn out dead, and others end while they
/// wait.
const OPENS_PER_CHECK: u32 = 4;

/// Number of shared suffixes that fit into a day's new names: a full suffix leaves room for the
/// others.
const SHARED_SUFFIXES: u32 = 50;

/// Lowest and highest number of containers at once.
pub(super) fn checks(values: &Values) -> Result<Bounds, ConfigError> {
    let most = values.parse("checks_max", |text| match text {
        "" => Ok(checks_within(memory_mib(Path::new(MEMINFO)))),
        text => small(text, 1, CHECKS_MAX),
    })?;
    let least = values.parse("lab.checks_min", |text| match text {
        "" => Ok(CHECKS_MIN.min(most)),
        text => small(text, 1, most),
    })?;
    Ok(Bounds { least, most })
}

/// Containers at once that fit into this much memory.
fn checks_within(memory_mib: u64) -> u32 {
    let (least, most) = DEFAULT_CHECKS;
    let fit = memory_mib.saturating_sub(RESERVED_MIB) / CHECK_MIB;
    u32::try_from(fit.clamp(least, most)).unwrap_or(CHECKS_MIN)
}

/// The machine's memory, whatever a container's limit is, so that all roles derive the same number.
/// 0 if it can't be read.
fn memory_mib(meminfo: &Path) -> u64 {
    let text = std::fs::read_to_string(meminfo).unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|total| total.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

/// Files with the limit of a container's memory in bytes, on either version of control groups.
const MEMORY_LIMITS: [&str; 2] = [
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
];

/// This process's memory: its container's limit, or the machine's memory.
pub(super) fn memory_bytes() -> u64 {
    let limits = MEMORY_LIMITS.iter().filter_map(|file| {
        let limit = std::fs::read_to_string(file).ok()?;
        limit.trim().parse().ok()
    });
    let machine = memory_mib(Path::new(MEMINFO)).saturating_mul(1024 * 1024);
    limits.chain([machine]).min().unwrap_or(machine)
}

/// Hosts that are checked or wait for a container at once while the limit of containers is at its
/// highest. The scheduler counts a host that is still being opened by its probability to need a
/// container.
pub(super) fn opens_max(values: &Values) -> Result<u32, ConfigError> {
    let checks_max = checks(values)?.most;
    values.parse("lab.opens_max", |text| match text {
        "" => Ok(checks_max.saturating_mul(OPENS_PER_CHECK)),
        text => small(
            text,
            checks_max,
            checks_max.saturating_mul(OPENS_PER_CHECK_MAX),
        ),
    })
}

/// Connections that the gateway must open and keep at once: the case in which hosts that hardly
/// ever need a container occupy all slots.
pub(super) fn gateway_opens_max(values: &Values) -> Result<u32, ConfigError> {
    Ok(opens_max(values)?.saturating_mul(OPENINGS_PER_SLOT))
}

pub(super) fn admission_limits(values: &Values) -> Result<Limits, ConfigError> {
    let total = values.parse("admissions_limit", limit)?;
    Ok(Limits {
        source: values.parse("source_limit", limit)?,
        // Rounded up: a census that admits names admits at least one below each suffix.
        shared_suffix: Limit::new(total.get().div_ceil(SHARED_SUFFIXES)).unwrap_or(total),
        total,
    })
}

/// Only the pace of our own dials is the operator's choice. The others protect strangers, who read
/// them in docs/visits.md.
pub(super) fn paces(values: &Values) -> Result<Paces, ConfigError> {
    Ok(Paces {
        dial: values.parse("dials_per_second", |text| {
            small(text, 1, 1000).map(|dials| Duration::from_secs(1) / dials)
        })?,
        ..Paces::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> Values {
        let flags = |key: &str| {
            let found = pairs.iter().find(|(name, _)| *name == key);
            found.map(|(_, value)| (*value).to_owned())
        };
        Values::gather(flags, |_| None, None).unwrap()
    }

    #[test]
    fn containers_and_opened_hosts_follow_from_checks_max() {
        for (most, expect) in [("1", (1, 1, 4)), ("4", (2, 4, 16)), ("64", (2, 64, 256))] {
            let values = values(&[("checks_max", most)]);
            let bounds = checks(&values).unwrap();
            let found = (bounds.least, bounds.most, opens_max(&values).unwrap());
            assert_eq!(found, expect, "{most}");
        }
    }

    #[test]
    fn without_a_setting_checks_follow_from_the_machines_memory() {
        let machine = tempfile::NamedTempFile::new().unwrap();
        for (total_kib, expect) in [
            ("MemFree: 9 kB\nMemTotal:  1005000 kB\n", 4),
            ("MemTotal: 1964000 kB\n", 17),
            ("MemTotal: 3964000 kB\n", 32),
            ("MemTotal: 65000000 kB\n", 32),
            ("MemTotal: much\n", 4),
        ] {
            std::fs::write(machine.path(), total_kib).unwrap();
            let found = checks_within(memory_mib(machine.path()));
            assert_eq!(found, expect, "{total_kib}");
        }
        assert_eq!(checks_within(memory_mib(Path::new("/no/such/file"))), 4);
        let bounds = checks(&values(&[])).unwrap();
        assert_eq!(bounds.most, checks_within(memory_mib(Path::new(MEMINFO))));
    }

    #[test]
    fn a_shared_suffix_has_a_fiftieth_of_all_admissions_and_one_at_least() {
        for (total, shared) in [("0", 0), ("1", 1), ("50000", 1000), ("50001", 1001)] {
            let limits = admission_limits(&values(&[("admissions_limit", total)])).unwrap();
            assert_eq!(limits.shared_suffix.get(), shared, "{total}");
        }
    }

    #[test]
    fn the_gateways_ordinary_pace_of_dials_is_that_of_the_settings() {
        let found = paces(&values(&[])).unwrap();
        assert_eq!(found.dial, Paces::default().dial);
    }
}
