//! Limits new users and subscriptions per address: each takes room until it expires.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use axum::http::HeaderMap;

/// The web server in front sets it to the client's address and replaces the client's value.
const ADDRESS_HEADER: &str = "x-real-ip";

/// Most newcomers of one address in [`WINDOW_MS`]: a browser is one, and many may share an address.
/// With the limit on what each may store, one address needs at least four hours to fill a file of
/// ordinary size.
const PER_ADDRESS_MAX: u32 = 250;

const WINDOW_MS: i64 = 60 * 60 * 1000;

/// Most counted addresses, some megabytes. Further addresses are refused: so high a number within
/// an hour does not come from people.
const ADDRESSES_MAX: usize = 100_000;

/// Bytes of an IPv6 address that count: the rest is a customer's own choice (RFC 6177).
const PREFIX_BYTES: usize = 8;

#[derive(Debug, Default)]
pub(in crate::serve) struct Newcomers {
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    since_ms: i64,
    by_address: HashMap<IpAddr, u32>,
}

impl Newcomers {
    /// Counts a newcomer; false if its address has reached the limit. Without an address, which
    /// means without a web server in front, nothing is counted.
    pub(in crate::serve) fn admit(&self, address: Option<IpAddr>, now_ms: i64) -> bool {
        let Some(address) = address else {
            return true;
        };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let age_ms = now_ms.saturating_sub(counts.since_ms);
        // The clock may have been set back.
        if !(0..WINDOW_MS).contains(&age_ms) {
            *counts = Counts {
                since_ms: now_ms,
                ..Counts::default()
            };
        }
        let addresses = counts.by_address.len();
        match counts.by_address.get_mut(&address) {
            Some(count) if *count >= PER_ADDRESS_MAX => false,
            Some(count) => {
                *count = count.saturating_add(1);
                true
            }
            None if addresses >= ADDRESSES_MAX => false,
            None => {
                counts.by_address.insert(address, 1);
                true
            }
        }
    }
}

/// The address of a client, or its customer's network.
pub(in crate::serve) fn address(headers: &HeaderMap) -> Option<IpAddr> {
    let address = headers.get(ADDRESS_HEADER)?.to_str().ok()?.parse().ok()?;
    Some(match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => v4.into(),
            None => {
                let mut octets = v6.octets();
                octets.iter_mut().skip(PREFIX_BYTES).for_each(|o| *o = 0);
                Ipv6Addr::from(octets).into()
            }
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &'static str) -> Option<IpAddr> {
        let mut headers = HeaderMap::new();
        headers.insert(ADDRESS_HEADER, text.parse().unwrap());
        address(&headers)
    }

    #[test]
    fn an_address_makes_so_many_in_an_hour_and_others_their_own() {
        let newcomers = Newcomers::default();
        let (one, other) = (of("192.0.2.1"), of("192.0.2.2"));
        let start_ms = 1_800_000_000_000;
        for _ in 0..PER_ADDRESS_MAX {
            assert!(newcomers.admit(one, start_ms));
        }
        let before_ms = start_ms + WINDOW_MS - 1;
        assert!(!newcomers.admit(one, before_ms));
        assert!(newcomers.admit(other, before_ms));
        assert!(newcomers.admit(None, before_ms), "no web server in front");
        assert!(newcomers.admit(one, start_ms + WINDOW_MS));
        assert!(newcomers.admit(one, start_ms), "the clock was set back");
    }

    #[test]
    fn more_addresses_than_are_counted_are_turned_away() {
        let newcomers = Newcomers::default();
        for number in 0..u32::try_from(ADDRESSES_MAX).unwrap() {
            let address = IpAddr::from(number.to_be_bytes());
            assert!(newcomers.admit(Some(address), 0));
        }
        assert!(!newcomers.admit(of("192.0.2.1"), 0));
        assert!(newcomers.admit(of("0.0.0.1"), 0), "it is counted");
    }

    #[test]
    fn a_customers_network_is_one_address() {
        assert_eq!(of("2001:db8:1:2::3"), of("2001:db8:1:2:ffff::4"));
        assert_ne!(of("2001:db8:1:2::3"), of("2001:db8:1:3::3"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_eq!(of("unix:"), None);
        assert_eq!(address(&HeaderMap::new()), None);
    }
}
