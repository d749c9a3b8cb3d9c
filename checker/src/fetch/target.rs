//! Where a redirect or a NodeInfo link leads to: this host, another host, or nowhere.
//!
//! Resolves a reference against the address at which it was found, and gives a [`Target`]. Rejects
//! other ports and schemes, IP addresses, and anything that is no URL. `http` is raised to `https`,
//! because port 80 is never used.

use protocol::limits::TEXT_BYTES_MAX;
use protocol::{Host, escaped};
use url::Url;

/// Longest reference that is resolved, and longest address that is requested: escapes make it up to
/// three times as long. Browsers and servers give up at some 2 to 8 KiB.
const REFERENCE_BYTES_MAX: usize = 2048;

/// Bytes of the `…` at the end of a cut text.
const ELLIPSIS_BYTES: usize = 3;

/// Where a reference leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An address of the same host, in canonical form.
    Here(Url),
    /// Port 443 of another host.
    Elsewhere(Host),
    /// Nothing that can be requested. Holds the reference's text, escaped and cut.
    Nowhere(String),
}

/// Resolves `reference` against `base`, an address of `host`.
pub fn resolve(host: &Host, base: &Url, reference: &[u8]) -> Target {
    let nowhere = || {
        Target::Nowhere(escaped(
            reference,
            TEXT_BYTES_MAX.saturating_sub(ELLIPSIS_BYTES),
        ))
    };
    if reference.len() > REFERENCE_BYTES_MAX || reference.trim_ascii().is_empty() {
        return nowhere();
    }
    let Ok(text) = std::str::from_utf8(reference) else {
        return nowhere();
    };
    let Ok(url) = base.join(text) else {
        return nowhere();
    };
    // `port` is `None` for a scheme's default port: 80 is raised together with `http`.
    if !matches!(url.scheme(), "http" | "https") || !matches!(url.port(), None | Some(443)) {
        return nowhere();
    }
    let Some(Ok(other)) = url.domain().map(Host::parse) else {
        return nowhere();
    };
    if other != *host {
        return Target::Elsewhere(other);
    }
    let query = url.query().map(|query| format!("?{query}"));
    let address = format!("https://{host}{}{}", url.path(), query.unwrap_or_default());
    match Url::parse(&address) {
        Ok(url) if url.as_str().len() <= REFERENCE_BYTES_MAX => Target::Here(url),
        Ok(_) | Err(_) => nowhere(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(reference: &[u8]) -> Target {
        let host = Host::parse("a.example").unwrap();
        let base = Url::parse("https://a.example/x/y?q").unwrap();
        resolve(&host, &base, reference)
    }

    fn check(reference: &str, expect: &str) {
        let found = match at(reference.as_bytes()) {
            Target::Here(url) => url.to_string(),
            Target::Elsewhere(host) => format!("elsewhere: {host}"),
            Target::Nowhere(text) => format!("nowhere: {text}"),
        };
        assert_eq!(found, expect, "{reference:?}");
    }

    #[test]
    fn the_same_host_in_another_spelling_is_here() {
        check("z?w=1#f", "https://a.example/x/z?w=1");
        check("/n", "https://a.example/n");
        check("http://A.Example/n", "https://a.example/n");
        check("http://a.example:80/n", "https://a.example/n");
        check("http://a.example:443/n", "https://a.example/n");
        check("https://a.example:443/n", "https://a.example/n");
        check("https://a.example./n", "https://a.example/n");
        check("https://u:p@a.example/n", "https://a.example/n");
        check("//a.example", "https://a.example/");
        check("", "nowhere: ");
        check("\\\\evil.example", "elsewhere: evil.example");
    }

    #[test]
    fn other_hosts_are_told() {
        check("https://b.example/n", "elsewhere: b.example");
        check("//evil.example/x", "elsewhere: evil.example");
        check(
            "http://b\u{fc}cher.example/",
            "elsewhere: xn--bcher-kva.example",
        );
        check("https://a.example@b.example/", "elsewhere: b.example");
    }

    #[test]
    fn other_ports_schemes_and_addresses_lead_nowhere() {
        for reference in [
            "https://a.example:8443/n",
            "https://a.example:80/n",
            "http://b.example:3000/",
            "javascript:alert(1)",
            "ftp://a.example/",
            "https://127.0.0.1/",
            "https://[::1]/",
            "https://0x7f.1/",
            "https://localhost/",
            "https://",
            "http://a b/",
        ] {
            check(reference, &format!("nowhere: {reference}"));
        }
        check("https://\u{1b}[2J/", "nowhere: https://\\x1b[2J/");
    }

    #[test]
    fn text_is_bounded() {
        let Target::Nowhere(text) = at(format!("ftp://{}", "x".repeat(9000)).as_bytes()) else {
            panic!("a long address leads nowhere");
        };
        assert!(text.len() <= TEXT_BYTES_MAX);
    }

    /// A redirect to the very address that was asked for would be refused otherwise.
    #[test]
    fn an_address_that_escapes_make_too_long_leads_nowhere() {
        let escaped = "\u{fc}".repeat(REFERENCE_BYTES_MAX / 2);
        assert!(matches!(at(escaped.as_bytes()), Target::Nowhere(_)));
        let fits = "\u{fc}".repeat(REFERENCE_BYTES_MAX / 7);
        let Target::Here(url) = at(fits.as_bytes()) else {
            panic!("an address within the limit is here");
        };
        assert_eq!(at(url.as_str().as_bytes()), Target::Here(url));
    }

    proptest! {
        #[test]
        fn here_is_always_the_host_itself(reference in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Target::Here(url) = at(&reference) {
                prop_assert_eq!(url.scheme(), "https");
                prop_assert_eq!(url.host_str(), Some("a.example"));
                prop_assert_eq!(url.port(), None);
                prop_assert_eq!(url.username(), "");
            }
        }
    }
}
