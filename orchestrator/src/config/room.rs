//! How many hosts are opened and checked at once.

use super::value::small;
use super::{ConfigError, Values};
use crate::level::Bounds;

/// Containers at once that can be asked for: what an engine on one machine bears.
const CHECKS_MAX: u32 = 64;

/// Two places: a host that makes us wait for a minute leaves one for the others.
const CHECKS_MIN_ORDINARY: u32 = 2;

/// Hosts opened for each place among the containers: whoever is opened waits for a place with a connection open.
const OPENS_PER_CHECK_MAX: u32 = 8;

/// Of these as many as are ordinary: a dead host waits for time-outs and needs no container.
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

/// Hosts being opened or checked at once, while as many containers are allowed as can be.
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
