//! The settings of the intake.

use ::intake::Settings;
use ::token::{LogKey, TestDomain};

use super::sockets::Sockets;
use super::{ConfigError, TEST_DOMAIN_KEY, Values, boolean};

/// `POST` requests of one client in any hour: an owner sends one or two, a person with several
/// instances a handful, and several people may share an address.
const POSTS_PER_HOUR: usize = 20;

pub(super) fn settings(values: &Values, sockets: &Sockets) -> Result<Settings, ConfigError> {
    Ok(Settings {
        socket: sockets.intake_http(),
        text_socket: sockets.texts(),
        census_socket: sockets.intake(),
        posts_per_hour: POSTS_PER_HOUR,
        log_key: values.parse("intake_log_key", log_key)?,
        test_domain: if values.parse(TEST_DOMAIN_KEY, boolean)? {
            TestDomain::Allow
        } else {
            TestDomain::Refuse
        },
    })
}

fn log_key(text: &str) -> Result<Option<LogKey>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    LogKey::from_hex(text.as_bytes())
        .map(Some)
        .map_err(|error| error.to_string())
}
