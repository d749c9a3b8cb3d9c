//! Names of the simulated world, and their hosts.
//!
//! They are below a public suffix, as outside the lab, because the gate and the groups depend on
//! that. No name is ever contacted: there is no network.

use std::net::{IpAddr, Ipv4Addr};

use protocol::{Host, HostError};

/// The first registered domain of a flood's responding names.
pub(crate) const FARM: &str = "farm0-of-names.net";

/// Addresses of a farm.
const FARM_ADDRESSES: u64 = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Name {
    Host(u32),
    /// An invented name that responds, behind a wildcard below one of a farm's registered domains.
    Farm(u64, u32),
    /// An invented name that does not exist.
    Apart(u64),
}

/// A farm's registered domain by its number.
pub(crate) fn farm(domain: u32) -> String {
    format!("farm{domain}-of-names.net")
}

impl Name {
    pub(crate) fn host(self) -> Result<Host, HostError> {
        Host::parse(&match self {
            Self::Host(number) => format!("h{number}.net"),
            Self::Farm(number, domain) => format!("n{number}.{}", farm(domain)),
            Self::Apart(number) => format!("invented{number}.net"),
        })
    }

    /// The meaning of a name. `None` if it does not belong to this world.
    pub(crate) fn of(host: &str) -> Option<Self> {
        let label = host.strip_suffix(".net")?;
        if let Some(label) = label.strip_suffix("-of-names") {
            let (number, domain) = label.split_once(".farm")?;
            let number = number.strip_prefix('n')?.parse().ok()?;
            return Some(Self::Farm(number, domain.parse().ok()?));
        }
        if let Some(number) = label.strip_prefix("invented") {
            return number.parse().ok().map(Self::Apart);
        }
        label.strip_prefix('h')?.parse().ok().map(Self::Host)
    }

    /// Its address: each host has its own, and a farm has some.
    pub(crate) fn address(self) -> IpAddr {
        // 10.0.0.0/8 holds more than sixteen million.
        const FIRST: u32 = 0x0A00_0000;
        let place = match self {
            Self::Host(number) => number,
            Self::Farm(number, _) => {
                let place = u32::try_from(number % FARM_ADDRESSES).unwrap_or(0);
                0x00FF_0000 | place
            }
            Self::Apart(_) => 0x00FF_FFFF,
        };
        IpAddr::V4(Ipv4Addr::from_bits(FIRST.wrapping_add(place)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_name_stands_for_whom_it_was_made_for() {
        for number in [0, 7, 4_000_000] {
            for name in [
                Name::Host(number),
                Name::Farm(u64::from(number), number % 7),
                Name::Apart(u64::from(number)),
            ] {
                assert_eq!(Name::of(name.host().unwrap().as_str()), Some(name));
            }
        }
        for other in ["example.net", "h1.example", "hx.net", FARM, "net"] {
            assert_eq!(Name::of(other), None, "{other}");
        }
    }

    #[test]
    fn no_two_hosts_live_at_one_address() {
        let places: HashSet<_> = (0..5000).map(|n| Name::Host(n).address()).collect();
        assert_eq!(places.len(), 5000);
        assert_eq!(Name::Farm(1, 0).address(), Name::Farm(257, 3).address());
        assert_eq!(farm(0), FARM);
    }
}
