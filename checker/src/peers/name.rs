//! Turns an element of a peers list into a host name.
//!
//! Takes what servers write instead of a plain name: addresses, accounts, ports, other spellings.
//! Gives the canonical name and rejects everything else.

use protocol::Host;

/// Longest element that is read: a name of 253 bytes as U-labels, with an account and an address
/// around it.
const ELEMENT_BYTES_MAX: usize = 2048;

/// The host that an element names. Ignores `http://` or `https://`, a path, an account (`user@`,
/// `@`), port 443 and the spelling.
pub fn peer_name(element: &str) -> Option<Host> {
    if element.len() > ELEMENT_BYTES_MAX {
        return None;
    }
    let element = element.trim();
    let after_scheme = match element.split_once("://") {
        Some((scheme, rest))
            if scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http") =>
        {
            rest
        }
        Some(_) => return None,
        None => element,
    };
    let authority = after_scheme.split(['/', '?', '#']).next()?;
    let host_and_port = authority.rsplit('@').next()?;
    let host = host_and_port.strip_suffix(":443").unwrap_or(host_and_port);
    Host::parse(host).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(element: &str, expect: Option<&str>) {
        let found = peer_name(element);
        assert_eq!(found.as_ref().map(Host::as_str), expect, "{element:?}");
    }

    #[test]
    fn names_are_found_in_what_servers_write() {
        for element in [
            "a.example",
            "A.Example.",
            " a.example\n",
            "https://a.example",
            "HTTP://a.example/users/x?y#z",
            "user@a.example",
            "@user@a.example",
            "@a.example",
            "https://user@a.example/",
            "a.example:443",
            "a.example/path",
        ] {
            check(element, Some("a.example"));
        }
        check("b\u{fc}cher.example", Some("xn--bcher-kva.example"));
    }

    #[test]
    fn what_is_no_name_is_dropped() {
        for element in [
            "",
            "localhost",
            "127.0.0.1",
            "[::1]",
            "a.example:8080",
            "o*g.*u**",
            "ftp://a.example",
            "-flag.example",
            "\"; DROP TABLE hosts",
            "a\n{\"State\":1}.example",
            "<script>alert(1)</script>.example",
            "../../etc/passwd",
            "a b.example",
        ] {
            check(element, None);
        }
        check(&format!("{}a.example", "x@".repeat(2000)), None);
    }

    proptest! {
        #[test]
        fn no_element_makes_it_panic(element in "\\PC{0,60}") {
            peer_name(&element);
        }

        #[test]
        fn what_comes_out_stays_itself(element in "[a-z@:/.]{0,30}") {
            if let Some(host) = peer_name(&element) {
                prop_assert_eq!(peer_name(host.as_str()), Some(host));
            }
        }
    }
}
