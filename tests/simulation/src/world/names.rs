//! Names of the simulated world, and their hosts.
//!
//! They are below a public suffix, as outside the lab, because the gate and the groups depend on
//! that. No name is ever contacted: there is no network.

use std::net::{IpAddr, Ipv4Addr};

use protocol::{Host, HostError};

/// The registered domain of a flood's responding names.
pub(crate) const FARM: &str = "farm-of-names.net";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Name {
    Host(u32),
    /// An invented name that responds, behind a wildcard below [`FARM`].
    Farm(u64),
    /// An invented name that does not exist.
    Apart(u64),
}

impl Name {
    pub(crate) fn host(self) -> Result<Host, HostError> {
        Host::parse(&match self {
            Self::Host(number) => format!("h{number}.net"),
            Self::Farm(number) => format!("n{number}.{FARM}"),
            Self::Apart(number) => format!("invented{number}.net"),
        })
    }

    /// The meaning of a name. `None` if it does not belong to this world.
    pub(crate) fn of(host: &str) -> Option<Self> {
        let label = host.strip_suffix(".net")?;
        if let Some(label) = host
            .strip_suffix(FARM)
            .and_then(|rest| rest.strip_suffix('.'))
        {
            return label.strip_prefix('n')?.parse().ok().map(Self::Farm);
        }
        if let Some(number) = label.strip_prefix("invented") {
            return number.parse().ok().map(Self::Apart);
        }
        label.strip_prefix('h')?.parse().ok().map(Self::Host)
    }

    /// Its address: each host has its own, and the farm has one.
    pub(crate) fn address(self) -> IpAddr {
        // 10.0.0.0/8 holds more than sixteen million.
        const FIRST: u32 = 0x0A00_0000;
        let place = match self {
            Self::Host(number) => number,
            Self::Farm(_) | Self::Apart(_) => 0x00FF_FFFF,
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
                Name::Farm(u64::from(number)),
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
        assert_eq!(Name::Farm(1).address(), Name::Farm(2).address());
    }
}
