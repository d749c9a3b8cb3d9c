//! Which addresses count as one.

use std::net::{IpAddr, Ipv6Addr};

/// The key of an address: itself, or the /64 of an IPv6 address, because one subscriber has at
/// least a /64.
pub fn address_key(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            format!("{}/64", Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_64_is_one_address() {
        for (address, expect) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            ("::1", "::/64"),
        ] {
            assert_eq!(address_key(address.parse().unwrap()), expect);
        }
    }
}
