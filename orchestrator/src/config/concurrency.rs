//! How many hosts are opened and checked at once.

use scheduler::demand::OPENINGS_PER_SLOT;
use scheduler::slots::concurrency::Bounds;

use super::value::small;
use super::{ConfigError, Values};

/// Containers at once that can be asked for: what an engine on one machine bears.
const CHECKS_MAX: u32 = 64;

/// Two places: a host that makes us wait for a minute leaves one for the others.
const CHECKS_MIN_ORDINARY: u32 = 2;

/// Hosts opened for each place among the containers: whoever is opened waits for a place with a connection open.
const OPENS_PER_CHECK_MAX: u32 = 8;

/// Of these as many as are ordinary: hosts that are opened end while they wait, and some turn out dead.
const OPENS_PER_CHECK_ORDINARY: u32 = 4;

/// Containers at once.
pub(super) fn checks(values: &Values) -> Result<Bounds, ConfigError> {
    let most = values.parse("checks_max", |text| small(text, 1, CHECKS_MAX))?;
    let least = values.parse("checks_min", |text| match text {
        "" => Ok(CHECKS_MIN_ORDINARY.min(most)),
        text => small(text, 1, most),
    })?;
    Ok(Bounds { least, most })
}

/// Hosts that wait for a container or are checked at once, while as many containers are allowed as can be, and those being opened as far as they are
/// likely to.
pub(super) fn opens_max(values: &Values) -> Result<u32, ConfigError> {
    let checks_max = checks(values)?.most;
    values.parse("opens_max", |text| match text {
        "" => Ok(checks_max.saturating_mul(OPENS_PER_CHECK_ORDINARY)),
        text => small(
            text,
            checks_max,
            checks_max.saturating_mul(OPENS_PER_CHECK_MAX),
        ),
    })
}

/// Ways that the gateway has to hold and make at once: all of the places taken by hosts that hardly ever need one.
pub(super) fn gateway_opens_max(values: &Values) -> Result<u32, ConfigError> {
    Ok(opens_max(values)?.saturating_mul(OPENINGS_PER_SLOT))
}
