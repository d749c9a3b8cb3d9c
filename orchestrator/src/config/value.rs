//! Parses one setting's text into its type.
//!
//! The text has no white space around it. A value that is malformed or out of bounds is rejected
//! with a message that says what it must be.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use admission::Limit;
use protocol::Host;

/// Port of a resolver that is given without one.
const DNS_PORT: u16 = 53;

pub(super) fn limit(text: &str) -> Result<Limit, String> {
    Limit::parse(text).ok_or_else(|| format!("must be a whole number from 0 to {}", Limit::MAX))
}

pub(super) fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
}

pub(super) fn hosts(text: &str) -> Result<Vec<Host>, String> {
    list(text)
        .map(|item| Host::parse(item).map_err(|error| format!("contains `{item}`: {error}")))
        .collect()
}

pub(super) fn resolvers(text: &str) -> Result<Vec<SocketAddr>, String> {
    list(text)
        .map(|item| {
            let bare = item
                .parse::<IpAddr>()
                .map(|address| SocketAddr::new(address, DNS_PORT));
            bare.or_else(|_not_bare| item.parse()).map_err(|_neither| {
                format!("contains `{item}`, which is not an IP address with or without a port")
            })
        })
        .collect()
}

fn number(text: &str, least: u64, most: u64) -> Result<u64, String> {
    text.parse()
        .ok()
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| format!("must be a whole number from {least} to {most}"))
}

pub(super) fn small(text: &str, least: u32, most: u32) -> Result<u32, String> {
    number(text, least.into(), most.into()).map(|number| u32::try_from(number).unwrap_or(most))
}

pub(super) fn boolean(text: &str) -> Result<bool, String> {
    one_of(text, &[("true", true), ("false", false)])
}

pub(super) fn one_of<T: Copy>(text: &str, choices: &[(&str, T)]) -> Result<T, String> {
    choices
        .iter()
        .find(|(name, _)| *name == text)
        .map(|(_, value)| *value)
        .ok_or_else(|| {
            let names: Vec<_> = choices
                .iter()
                .map(|(name, _)| format!("`{name}`"))
                .collect();
            format!("must be {}", names.join(" or "))
        })
}

pub(super) fn non_empty(text: &str) -> Result<&str, String> {
    if text.is_empty() {
        Err("must not be empty".to_owned())
    } else {
        Ok(text)
    }
}

pub(super) fn path(text: &str) -> Result<PathBuf, String> {
    non_empty(text).map(PathBuf::from)
}

pub(super) fn path_or_none(text: &str) -> Result<Option<PathBuf>, String> {
    Ok(if text.is_empty() {
        None
    } else {
        Some(PathBuf::from(text))
    })
}

/// A path on another machine or in another container, so it can't be relative to a directory here.
pub(super) fn whole_path_or_none(text: &str) -> Result<Option<String>, String> {
    match text {
        "" => Ok(None),
        path if path.starts_with('/') => Ok(Some(path.to_owned())),
        _ => Err("must be an absolute path, which begins with `/`".to_owned()),
    }
}

pub(super) fn label(text: &str) -> Result<String, String> {
    let valid = !text.is_empty()
        && text.len() <= 63
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if valid {
        Ok(text.to_owned())
    } else {
        Err("must be 1 to 63 letters, digits, `-`, `_` or `.`".to_owned())
    }
}

/// The public address of the published files. Commands on the pages contain it, so it has no
/// character that a shell interprets.
pub(super) fn address_or_none(text: &str) -> Result<Option<String>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    address(text).map(|text| Some(text.to_owned())).ok_or_else(|| {
        "must be the address of the published files, such as `https://census.example`: no path, because the pages link to each other from the root"
            .to_owned()
    })
}

/// An HTTP address without a path: scheme, host and an optional port. A final slash is removed.
pub(super) fn address(text: &str) -> Option<&str> {
    let text = text.strip_suffix('/').unwrap_or(text);
    let place = ["https://", "http://"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme))?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    let is_address = !place.is_empty() && text.len() <= 300 && place.bytes().all(is_plain);
    is_address.then_some(text)
}

/// Longest name of a census or of its operator, in characters: it shares the header with the
/// navigation.
const NAME_CHARACTERS_MAX: usize = 60;

/// A name that pages and feeds show.
pub(super) fn name(text: &str) -> Result<String, String> {
    let valid = !text.trim().is_empty()
        && text.chars().count() <= NAME_CHARACTERS_MAX
        && !text.chars().any(dump::text::steers);
    if valid {
        Ok(text.trim().to_owned())
    } else {
        Err(format!(
            "must be one line of 1 to {NAME_CHARACTERS_MAX} visible characters"
        ))
    }
}

/// A name that pages and feeds show, or none.
pub(super) fn name_or_none(text: &str) -> Result<Option<String>, String> {
    (!text.is_empty()).then(|| name(text)).transpose()
}

/// Most bytes of a licence, which pages and the feed show.
const LICENCE_BYTES_MAX: usize = 100;

/// An SPDX licence expression (SPDX 2.3, annex D). `LicenseRef-NAME` is a licence that is not on
/// SPDX's list.
pub(super) fn licence(text: &str) -> Result<String, String> {
    let says = if text.len() > LICENCE_BYTES_MAX {
        format!("it has more than {LICENCE_BYTES_MAX} bytes")
    } else {
        match spdx::Expression::parse(text) {
            Ok(_) => return Ok(text.to_owned()),
            Err(error) => error.reason.to_string(),
        }
    };
    Err(format!(
        "must be an SPDX identifier or expression, such as `CC0-1.0`, or `LicenseRef-NAME`: {says}"
    ))
}

/// A header's value must stay one line of printable ASCII.
pub(super) fn contact(text: &str) -> Result<String, String> {
    let is_line = text.len() <= 200
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'(' && byte != b')');
    let is_url = ["https://", "http://", "mailto:"]
        .iter()
        .any(|scheme| text.starts_with(scheme));
    let is_mail = || {
        text.split_once('@')
            .is_some_and(|(who, host)| !who.is_empty() && host.contains('.'))
    };
    if text.is_empty() || (is_line && (is_url || is_mail())) {
        Ok(text.to_owned())
    } else {
        Err("must be a URL (`https://…`) or a mail address: at most 200 printable ASCII characters, no spaces, no parentheses".to_owned())
    }
}
