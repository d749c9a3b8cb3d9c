//! The settings of the intake.

use ::intake::{ClientFrom, Listen, Settings};
use ::token::{LogKey, TestDomain};

use super::{Config, ConfigError, TEST_DOMAIN_KEY, Values, boolean, number};

/// What the intake is told besides its two sockets.
#[derive(Debug, Clone)]
pub struct IntakeConfig {
    /// Where requests come in.
    pub listen: Listen,
    client: ClientFrom,
    posts_per_hour: usize,
    log_key: Option<LogKey>,
    test_domain: TestDomain,
}

impl IntakeConfig {
    pub(super) fn new(values: &Values) -> Result<Self, ConfigError> {
        let most = u64::try_from(::intake::clients::LIMIT_MAX).unwrap_or(u64::MAX);
        let posts_per_hour = values.parse("intake_posts", |text| number(text, 1, most))?;
        Ok(Self {
            listen: values.parse("intake_listen", listen)?,
            client: values.parse("intake_client_header", client)?,
            posts_per_hour: usize::try_from(posts_per_hour).unwrap_or(usize::MAX),
            log_key: values.parse("intake_log_key", log_key)?,
            test_domain: if values.parse(TEST_DOMAIN_KEY, boolean)? {
                TestDomain::Allow
            } else {
                TestDomain::Refuse
            },
        })
    }
}

impl Config {
    /// The intake's settings.
    ///
    /// # Errors
    /// When one of its sockets is not named: it is off then.
    pub fn intake_settings(&self) -> Result<Settings, ConfigError> {
        let IntakeConfig {
            listen,
            client,
            posts_per_hour,
            log_key,
            test_domain,
        } = self.intake.clone();
        let needed = |key, path: &Option<_>| path.clone().ok_or(ConfigError::IntakeOff { key });
        Ok(Settings {
            listen,
            client,
            text_socket: needed("text_socket", &self.text_socket)?,
            census_socket: needed("intake_socket", &self.intake_socket)?,
            posts_per_hour,
            log_key,
            test_domain,
        })
    }
}

fn listen(text: &str) -> Result<Listen, String> {
    if text.starts_with('/') {
        return Ok(Listen::Unix(text.into()));
    }
    text.parse().map(Listen::Tcp).map_err(|_neither| {
        "must be the whole path of a Unix socket, which begins with `/`, or IP:port".to_owned()
    })
}

fn client(text: &str) -> Result<ClientFrom, String> {
    if text.is_empty() {
        return Ok(ClientFrom::Peer);
    }
    text.parse()
        .map(ClientFrom::Header)
        .map_err(|_no_name| "must be a header's name, such as `X-Real-IP`".to_owned())
}

fn log_key(text: &str) -> Result<Option<LogKey>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    LogKey::from_hex(text.as_bytes())
        .map(Some)
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_intake_listens_is_a_whole_path_or_an_address_with_a_port() {
        assert_eq!(
            listen("/run/x.sock"),
            Ok(Listen::Unix("/run/x.sock".into()))
        );
        assert_eq!(
            listen("127.0.0.1:8081"),
            Ok(Listen::Tcp("127.0.0.1:8081".parse().unwrap()))
        );
        for bad in ["", "8081", "run/x.sock", "localhost:8081", "127.0.0.1"] {
            assert!(listen(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_header_is_believed_only_when_it_is_named() {
        assert_eq!(client(""), Ok(ClientFrom::Peer));
        let ClientFrom::Header(name) = client("X-Real-IP").unwrap() else {
            panic!("a header");
        };
        assert_eq!(name.as_str(), "x-real-ip");
        assert!(client("X Real").is_err());
    }
}
