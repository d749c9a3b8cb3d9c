//! Names that nobody can own on the public Internet.
//!
//! [`reserved_domain`] returns the reserved domain that contains a host. Such names are refused
//! before the public suffix list is used, because that list contains some of them (`onion`, `arpa`)
//! as if names below them could be registered and resolved.

use protocol::Host;

/// Reserved domains. Each one and all names below it are refused.
///
/// The first part is IANA's registry of special-use domain names, with the whole of `arpa` in place
/// of its many entries there. Then follow names that the registry lacks and that nobody can own
/// either.
const RESERVED: &[&str] = &[
    // RFC 6761 §6.2 to §6.5.
    "test",
    "localhost",
    "invalid",
    "example",
    "example.com",
    "example.net",
    "example.org",
    // RFC 6762 §3: multicast DNS.
    "local",
    // RFC 7686: Tor.
    "onion",
    // RFC 9476: names outside the DNS.
    "alt",
    // RFC 8375 (`home.arpa`), RFC 8880, RFC 9031 and more. RFC 3172 §2.1: the whole domain is
    // infrastructure, and not for hosts.
    "arpa",
    // ICANN Board resolution 2024.07.29.06: permanently reserved for private use.
    "internal",
    // ICANN Board resolution 2018.02.04.12: never delegated, because private networks use them.
    "home",
    "corp",
    "mail",
    // RFC 6762 appendix G: used in private networks.
    "intranet",
    "private",
    "lan",
    // What resolvers and routers append to single labels.
    "localdomain",
    // draft-grothoff-iesg-special-use-p2p-names: overlay networks with their own name systems.
    "i2p",
    "gnu",
    "zkey",
    "bit",
    "exit",
];

/// The reserved domains that serve as real ones in the lab.
const LAB: &[&str] = &["test", "example"];

/// The reserved domain that `host` is or lies in. `None` if there is none.
pub fn reserved_domain(host: &Host) -> Option<&'static str> {
    RESERVED
        .iter()
        .copied()
        .find(|domain| host.is_within(domain))
}

/// Whether the lab admits `domain`, which [`reserved_domain`] returned.
pub fn is_lab_domain(domain: &str) -> bool {
    LAB.contains(&domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Option<&str>) {
        assert_eq!(
            reserved_domain(&Host::parse(text).unwrap()),
            expect,
            "{text}"
        );
    }

    #[test]
    fn reserved_names_are_found_at_any_depth() {
        check("a.test", Some("test"));
        check("a.b.c.onion", Some("onion"));
        check("example.com", Some("example.com"));
        check("www.example.org", Some("example.org"));
        check("router.home.arpa", Some("arpa"));
        check("1.0.0.127.in-addr.arpa", Some("arpa"));
        check("nas.internal", Some("internal"));
    }

    #[test]
    fn names_that_only_look_like_them_are_free() {
        check("test.com", None);
        check("myexample.com", None);
        check("onion.social", None);
        check("local.social", None);
        check("a.attest", None);
    }

    #[test]
    fn each_reserved_domain_is_in_canonical_form() {
        for domain in RESERVED {
            assert_eq!(
                Host::parse(&format!("a.{domain}")).unwrap().as_str(),
                format!("a.{domain}")
            );
        }
        assert!(LAB.iter().all(|domain| RESERVED.contains(domain)));
    }
}
