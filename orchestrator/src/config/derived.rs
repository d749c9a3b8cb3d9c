//! Limits that follow from others. Only the lab sets some of them itself.

use std::time::Duration;

use admission::{Limit, Limits};
use gateway::Paces;
use scheduler::demand::OPENINGS_PER_SLOT;
use scheduler::slots::concurrency::Bounds;

use super::value::{limit, number, small};
use super::{ConfigError, Values};

/// Containers at once that can be asked for: what an engine on one machine sustains.
const CHECKS_MAX: u32 = 64;

/// Two slots: a host that makes us wait for a minute leaves one for the others.
const CHECKS_MIN: u32 = 2;

/// Hosts opened for each container slot at most: each waits for its slot with a connection open.
const OPENS_PER_CHECK_MAX: u32 = 8;

/// Hosts opened for each container slot: some turn out dead, and others end while they wait.
const OPENS_PER_CHECK: u32 = 4;

/// Shared suffixes that all new names of a day have room for: one that is filled leaves room for
/// the others.
const SHARED_SUFFIXES: u32 = 50;

/// Longest pace, in ms: an hour.
const PACE_MS_MAX: u64 = 3_600_000;

/// Containers at once.
pub(super) fn checks(values: &Values) -> Result<Bounds, ConfigError> {
    let most = values.parse("checks_max", |text| small(text, 1, CHECKS_MAX))?;
    let least = values.parse("lab.checks_min", |text| match text {
        "" => Ok(CHECKS_MIN.min(most)),
        text => small(text, 1, most),
    })?;
    Ok(Bounds { least, most })
}

/// Hosts that are checked or wait for a container at once while the limit of containers is at its
/// highest. The scheduler counts a host that is still being opened by its chance to need a
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

/// Ways that the gateway has to hold and make at once: all of the slots taken by hosts that hardly
/// ever need one.
pub(super) fn gateway_opens_max(values: &Values) -> Result<u32, ConfigError> {
    Ok(opens_max(values)?.saturating_mul(OPENINGS_PER_SLOT))
}

/// New names a day.
pub(super) fn admission_limits(values: &Values) -> Result<Limits, ConfigError> {
    let total = values.parse("admissions_limit", limit)?;
    Ok(Limits {
        source: values.parse("source_limit", limit)?,
        // Rounded up: a census that admits anybody admits somebody below each suffix.
        shared_suffix: Limit::new(total.get().div_ceil(SHARED_SUFFIXES)).unwrap_or(total),
        total,
    })
}

/// The gateway's paces.
pub(super) fn paces(values: &Values) -> Result<Paces, ConfigError> {
    let pace = |key| {
        values.parse(key, |text| {
            number(text, 0, PACE_MS_MAX).map(Duration::from_millis)
        })
    };
    Ok(Paces {
        group: pace("group_pace_ms")?,
        address: pace("address_pace_ms")?,
        // The same for every census: a neighbourhood mostly shares a machine or a line.
        block: Paces::default().block,
        dial: values.parse("dials_per_second", |text| {
            small(text, 1, 1000).map(|dials| Duration::from_secs(1) / dials)
        })?,
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
    fn a_shared_suffix_has_a_fiftieth_of_all_admissions_and_one_at_least() {
        for (total, shared) in [("0", 0), ("1", 1), ("50000", 1000), ("50001", 1001)] {
            let limits = admission_limits(&values(&[("admissions_limit", total)])).unwrap();
            assert_eq!(limits.shared_suffix.get(), shared, "{total}");
        }
    }

    #[test]
    fn the_gateways_ordinary_paces_are_those_of_the_settings() {
        let ordinary = Paces::default();
        let found = paces(&values(&[])).unwrap();
        let all = |paces: Paces| [paces.group, paces.address, paces.block, paces.dial];
        assert_eq!(all(found), all(ordinary));
    }
}
