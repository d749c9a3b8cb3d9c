//! The settings of the push service.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ::push::process::Settings;
use ::push::serve::Bounds;
use ::push::session::{Acks, Direct, Rules};
use ::push::storage::sqlite::Limits;

use super::derived::memory_bytes;
use super::sockets::Sockets;
use super::value::{address, hosts, list, one_of, small};
use super::{ConfigError, Values};

/// The push service's database, in its own data directory.
const DATABASE_FILE: &str = "push.db";

/// How delivery differs from autopush's.
#[derive(Debug, Clone, Copy)]
enum Difference {
    AckEach,
    Batch,
    OneAtATime,
    StoreFirst,
}

/// The push service's settings. Its origin is empty if none is configured.
pub(super) fn settings(
    values: &Values,
    sockets: &Sockets,
    data_dir: &Path,
    public_dir: &Path,
) -> Result<Settings, ConfigError> {
    Ok(Settings {
        socket: sockets.push_http(),
        endpoint_socket: sockets.push_endpoint_http(),
        nodes: sockets.push_nodes(),
        database: database(data_dir),
        origin: values.parse("push_address", origin)?,
        rules: values.parse("push_delivery", rules)?,
        bounds: Bounds::within(memory_bytes()),
        contact: values.parse("contact", |text| Ok(contact_url(text)))?,
        changes: ::publish::current(public_dir).join(dump::CHANGES_FOLDER),
        services: values.parse("push_services", hosts)?.into(),
        daemon: sockets.push(),
    })
}

pub(super) fn database(data_dir: &Path) -> PathBuf {
    data_dir.join(DATABASE_FILE)
}

fn origin(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Ok(String::new());
    }
    // Browsers and senders write an origin in lower case.
    address(text).map(str::to_ascii_lowercase).ok_or_else(|| {
        "must be the address of the push service, such as `https://push.example`: no path, since endpoints begin with it"
            .to_owned()
    })
}

fn rules(text: &str) -> Result<Rules, String> {
    let names = [
        ("ack-each", Difference::AckEach),
        ("batch", Difference::Batch),
        ("one-at-a-time", Difference::OneAtATime),
        ("store-first", Difference::StoreFirst),
    ];
    let mut rules = Rules::ORDINARY;
    for item in list(text) {
        if let Some((name, number)) = item.split_once('=') {
            limit(&mut rules, item, name, number)?;
            continue;
        }
        let difference =
            one_of(item, &names).map_err(|choices| format!("contains `{item}`; each {choices}"))?;
        let direct = match difference {
            // The default.
            Difference::AckEach => continue,
            Difference::Batch => {
                rules.acks = Acks::Batch;
                continue;
            }
            Difference::OneAtATime => Direct::WhenDrained,
            Difference::StoreFirst => Direct::OnlyUnstorable,
        };
        if ![Direct::Always, direct].contains(&rules.direct) {
            return Err("contains both `one-at-a-time` and `store-first`: choose one".to_owned());
        }
        rules.direct = direct;
    }
    Ok(rules)
}

/// Longest time between two pings, in seconds: web servers in front wait little longer.
const PING_SECONDS_MAX: u32 = 300;

/// Most messages that wait for a user in the storage.
const WAITING_MAX: u32 = Limits::ORDINARY.messages;

fn limit(rules: &mut Rules, item: &str, name: &str, number: &str) -> Result<(), String> {
    let wrong = || {
        format!(
            "contains `{item}`; each limit must be `hello=`, `ping=` or `pong=` with 1 to {PING_SECONDS_MAX} seconds, or `waiting=` with 1 to {WAITING_MAX} messages"
        )
    };
    let most = match name {
        "waiting" => WAITING_MAX,
        _ => PING_SECONDS_MAX,
    };
    let number = small(number, 1, most).map_err(|_why| wrong())?;
    let time = Duration::from_secs(number.into());
    match name {
        "hello" => rules.hello_within = time,
        "ping" => rules.ping_every = time,
        "pong" => rules.pong_within = time,
        "waiting" => rules.stored_messages_max = number,
        _ => return Err(wrong()),
    }
    Ok(())
}

/// The contact as a URL: the operator of another push service who wants us to stop sends mail or
/// opens a page (RFC 8292, section 2.1).
fn contact_url(text: &str) -> String {
    match text.contains("://") || text.starts_with("mailto:") {
        true => text.to_owned(),
        false => format!("mailto:{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_from_autopush_are_named_and_do_not_contradict_each_other() {
        assert_eq!(rules(""), Ok(Rules::ORDINARY));
        assert_eq!(rules("ack-each"), rules(""));
        let both = rules("batch, store-first").unwrap();
        assert_eq!(
            (both.acks, both.direct),
            (Acks::Batch, Direct::OnlyUnstorable)
        );
        assert_eq!(rules("one-at-a-time").unwrap().direct, Direct::WhenDrained);
        assert!(rules("one-at-a-time,store-first").is_err());
        assert_eq!(
            rules("each").unwrap_err(),
            "contains `each`; each must be `ack-each` or `batch` or `one-at-a-time` or `store-first`"
        );
    }

    #[test]
    fn limits_are_named_and_bounded() {
        let set = rules("hello=1, ping=60, batch, pong=10, waiting=20").unwrap();
        let times = [set.hello_within, set.ping_every, set.pong_within];
        assert_eq!(times.map(|time| time.as_secs()), [1, 60, 10]);
        assert_eq!((set.stored_messages_max, set.acks), (20, Acks::Batch));
        for bad in ["ping", "ping=0", "ping=301", "waiting=1001", "acks=1"] {
            assert!(rules(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_origin_is_what_senders_sign() {
        assert_eq!(
            origin("https://Push.example/").as_deref(),
            Ok("https://push.example")
        );
        assert_eq!(origin("").as_deref(), Ok(""));
        for bad in [
            "push.example",
            "https://push.example/push",
            "ws://push.example",
        ] {
            assert!(origin(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_contact_is_a_url() {
        for (contact, url) in [
            ("ops@a.example", "mailto:ops@a.example"),
            ("mailto:ops@a.example", "mailto:ops@a.example"),
            ("https://a.example/about", "https://a.example/about"),
        ] {
            assert_eq!(contact_url(contact), url);
        }
    }
}
