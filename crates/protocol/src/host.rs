//! Host names in canonical form.

use std::fmt;
use std::net::Ipv4Addr;

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Longest name in bytes, without the trailing dot (RFC 1035 §2.3.4).
const NAME_BYTES_MAX: usize = 253;

/// Longest label in bytes (RFC 1035 §2.3.4).
const LABEL_BYTES_MAX: usize = 63;

/// Longest text that is parsed: a U-label takes at most four bytes for each byte of its A-label.
pub const TEXT_BYTES_MAX: usize = 4 * NAME_BYTES_MAX;

/// A validated DNS name, the key of the census: A-labels, lower case, at least two labels, no
/// trailing dot, at most 253 bytes.
///
/// Only the form is validated. The `admission` crate decides whether a name may enter the census
/// (public suffixes, special-use names).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Host(Box<str>);

/// Why a text is no host name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HostError {
    #[error("it is empty")]
    Empty,
    #[error("it is longer than 253 bytes")]
    TooLong,
    #[error("it is an IP address, not a name")]
    Address,
    /// The text has a port, a scheme, a path or a user part.
    #[error("it has more than a host name (a scheme, port, path or user part)")]
    MoreThanAHost,
    #[error("it has only one label")]
    SingleLabel,
    #[error(
        "it has an empty or too long label, or a character that no host name has, such as a blank"
    )]
    Idna,
}

impl Host {
    /// Parses a name. Ignores case and one trailing dot, and turns U-labels into A-labels.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        let name = canonical_name(text)?;
        if name.contains('.') {
            Ok(Self(name.into_boxed_str()))
        } else {
            Err(HostError::SingleLabel)
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last label, in lower case.
    pub fn top_level(&self) -> &str {
        self.0.rsplit_once('.').map_or(&self.0, |(_, last)| last)
    }

    /// Whether this name is `domain` or lies below it, at a label boundary. `domain` is a
    /// lower-case name without a leading dot.
    pub fn is_within(&self, domain: &str) -> bool {
        self.0
            .strip_suffix(domain)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }
}

/// The canonical form of a DNS name with one label or more, the same as in [`Host`]: A-labels (IDNA
/// 2008 by UTS 46, non-transitional, STD 3 rules), lower case, no trailing dot.
pub fn canonical_name(text: &str) -> Result<String, HostError> {
    let text = text.strip_suffix('.').unwrap_or(text);
    if text.is_empty() {
        return Err(HostError::Empty);
    }
    if text.len() > TEXT_BYTES_MAX {
        return Err(HostError::TooLong);
    }
    if text.starts_with('[') || text.parse::<std::net::IpAddr>().is_ok() {
        return Err(HostError::Address);
    }
    if text.contains(['/', ':', '@', '?', '#', '\\']) {
        return Err(HostError::MoreThanAHost);
    }
    // Lengths are checked below, because IDNA doesn't report which of its rules is broken.
    let ascii = Uts46::new()
        .to_ascii(
            text.as_bytes(),
            AsciiDenyList::STD3,
            Hyphens::Check,
            DnsLength::Ignore,
        )
        .map_err(|_idna_says_no_more| HostError::Idna)?
        .into_owned();
    if ascii.len() > NAME_BYTES_MAX {
        return Err(HostError::TooLong);
    }
    if ascii
        .split('.')
        .any(|label| label.is_empty() || label.len() > LABEL_BYTES_MAX)
    {
        return Err(HostError::Idna);
    }
    let last_label = ascii
        .rsplit_once('.')
        .map_or(ascii.as_str(), |(_, last)| last);
    // Full-width digits and the like become an address only here. A top-level label of digits is
    // invalid (RFC 3696 §2).
    let is_address = ascii.parse::<Ipv4Addr>().is_ok()
        || last_label.bytes().all(|byte| byte.is_ascii_digit())
        || last_label.starts_with("0x");
    if is_address {
        return Err(HostError::Address);
    }
    Ok(ascii)
}

impl std::str::FromStr for Host {
    type Err = HostError;
    fn from_str(text: &str) -> Result<Self, HostError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Host {
    type Error = HostError;
    fn try_from(text: String) -> Result<Self, HostError> {
        Self::parse(&text)
    }
}

impl From<Host> for String {
    fn from(host: Host) -> Self {
        host.0.into()
    }
}

impl AsRef<str> for Host {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The host in what people paste: a page's address, an account, or the name itself. The site's
/// `name.js` accepts the same.
pub fn pasted(text: &str) -> &str {
    let text = text.trim();
    let rest = match text.split_once("://") {
        Some((scheme, rest)) if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) => rest,
        Some(_) | None => text,
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let place = authority.rsplit('@').next().unwrap_or(authority);
    match place.split_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        Some(_) | None => place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expect: Result<&str, HostError>) {
        assert_eq!(
            Host::parse(text).map(String::from),
            expect.map(str::to_owned),
            "{text:?}"
        );
    }

    #[test]
    fn names_become_canonical() {
        check("Mastodon.Example.", Ok("mastodon.example"));
        check("bücher.example", Ok("xn--bcher-kva.example"));
        check("XN--BCHER-KVA.example", Ok("xn--bcher-kva.example"));
        check("a.xn--p1ai", Ok("a.xn--p1ai"));
    }

    #[test]
    fn what_is_no_name_is_refused() {
        check("", Err(HostError::Empty));
        check(".", Err(HostError::Empty));
        check("a..b", Err(HostError::Idna));
        check("a.example..", Err(HostError::Idna));
        check("localhost", Err(HostError::SingleLabel));
        check("127.0.0.1", Err(HostError::Address));
        check("127.1", Err(HostError::Address));
        check("1.2.3.0x7f", Err(HostError::Address));
        check("１２７.０.０.１", Err(HostError::Address));
        check("[::1]", Err(HostError::Address));
        check("::1", Err(HostError::Address));
        check("a.example:443", Err(HostError::MoreThanAHost));
        check("https://a.example", Err(HostError::MoreThanAHost));
        check("user@a.example", Err(HostError::MoreThanAHost));
        check("a.example/../x", Err(HostError::MoreThanAHost));
        check("o*g.example", Err(HostError::Idna));
        check("a b.example", Err(HostError::Idna));
        check("a\n.example", Err(HostError::Idna));
        check("-flag.example", Err(HostError::Idna));
        check("\"; DROP TABLE hosts; --.example", Err(HostError::Idna));
        check("<script>.example", Err(HostError::Idna));
        check(&format!("{}.example", "a".repeat(64)), Err(HostError::Idna));
        check(&"a".repeat(5000), Err(HostError::TooLong));
        let longest = format!("{}a", "a.".repeat(126));
        check(&longest, Ok(&longest));
        check(&format!("{longest}a"), Err(HostError::TooLong));
        check(&"ä.".repeat(40), Err(HostError::TooLong));
    }

    #[test]
    fn containment_ends_at_labels() {
        let host = Host::parse("notgab.best").unwrap();
        assert!(!host.is_within("gab.best"));
        assert!(host.is_within("best"));
        assert!(host.is_within("notgab.best"));
    }

    #[test]
    fn what_people_paste_is_a_host() {
        for text in [
            "a.example",
            " a.example\n",
            "https://a.example",
            "https://a.example/@x",
            "http://a.example:8080/about?x=y#z",
            "https://user@a.example/",
            "@x@a.example",
            "x@a.example",
            "a.example/@x@b.example",
        ] {
            assert_eq!(pasted(text), "a.example", "{text}");
        }
        // Neither is a host, and both are refused later.
        assert_eq!(pasted("[::1]"), "[::1]");
        assert_eq!(pasted("a.example:x"), "a.example:x");
    }

    proptest! {
        #[test]
        fn parsing_twice_changes_nothing(text in "\\PC{0,80}") {
            if let Ok(host) = Host::parse(&text) {
                prop_assert_eq!(Host::parse(host.as_str()), Ok(host.clone()));
                prop_assert!(host.as_str().bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.')));
                prop_assert!(host.as_str().len() <= NAME_BYTES_MAX);
            }
        }
    }
}
