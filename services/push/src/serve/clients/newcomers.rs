//! Limits new users and subscriptions per address: each takes room until it expires.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use axum::http::HeaderMap;

use crate::storage::networks::{customer, network};

/// The web server in front sets it to the client's address and replaces the client's value.
const ADDRESS_HEADER: &str = "x-real-ip";

/// Most newcomers of one address in [`WINDOW_MS`]: a browser is one, and many may share an address.
/// What they store is bounded by their network's share of the file.
const PER_ADDRESS_MAX: u32 = 250;

/// The same for a network: few of its addresses are at their limit.
const PER_NETWORK_MAX: u32 = 16 * PER_ADDRESS_MAX;

const WINDOW_MS: i64 = 60 * 60 * 1000;

/// Most counted addresses. Beyond it, networks are counted for the rest of the hour: so high a
/// number within an hour does not come from people.
const ADDRESSES_MAX: usize = 100_000;

/// Most counters, some megabytes: more than there are IPv4 networks. Further networks are refused.
const COUNTERS_MAX: usize = 2 * ADDRESSES_MAX;

#[derive(Debug, Default)]
pub(in crate::serve) struct Newcomers {
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    since_ms: i64,
    are_networks: bool,
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
        if counts.by_address.len() >= ADDRESSES_MAX && !counts.are_networks {
            counts.are_networks = true;
            for (address, count) in std::mem::take(&mut counts.by_address) {
                let merged = counts.by_address.entry(network(address)).or_default();
                *merged = merged.saturating_add(count);
            }
        }
        let (address, most) = match counts.are_networks {
            true => (network(address), PER_NETWORK_MAX),
            false => (address, PER_ADDRESS_MAX),
        };
        let count = counts.by_address.get(&address).copied().unwrap_or(0);
        let has_room = count < most && (count > 0 || counts.by_address.len() < COUNTERS_MAX);
        if has_room {
            counts.by_address.insert(address, count.saturating_add(1));
        }
        has_room
    }
}

/// The address of a client, or its customer's network.
pub(in crate::serve) fn address(headers: &HeaderMap) -> Option<IpAddr> {
    let address = headers.get(ADDRESS_HEADER)?.to_str().ok()?.parse().ok()?;
    Some(customer(address))
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

    /// Two networks of one provider use up all counters.
    #[test] // S33
    fn a_flood_of_addresses_shuts_out_its_own_networks_only() {
        let newcomers = Newcomers::default();
        for number in 0..u128::try_from(ADDRESSES_MAX).unwrap() {
            let subnet = (0x2001_0db8 << 96) | (number % 2) << 80 | (number / 2) << 64;
            assert!(newcomers.admit(Some(IpAddr::V6(subnet.into())), 0));
        }
        assert!(newcomers.admit(of("192.0.2.1"), 0));
        assert!(newcomers.admit(of("2001:db8:2::1"), 0));
        assert!(!newcomers.admit(of("2001:db8:1::1"), 0));
        assert!(newcomers.admit(of("2001:db8:1::1"), WINDOW_MS));
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
