//! Names of the made-up world, and which of its hosts they stand for.
//!
//! They lie below a public suffix as outside the lab, since the gate and the groups go by that.
//! Nobody is ever asked: there is no network.

use std::net::{IpAddr, Ipv4Addr};

use protocol::{Host, HostError};

/// The registered domain below which a flood's living names lie.
pub(crate) const FARM: &str = "farm-of-names.net";

/// Whom a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Name {
    /// A host of the world, by its number.
    Host(u32),
    /// An invented name that lives, behind a wildcard below [`FARM`].
    Farm(u64),
    /// An invented name that is not there.
    Apart(u64),
}

impl Name {
    /// The name itself.
    ///
    /// # Errors
    /// Never for what this module makes.
    pub(crate) fn host(self) -> Result<Host, HostError> {
        Host::parse(&match self {
            Self::Host(number) => format!("h{number}.net"),
            Self::Farm(number) => format!("n{number}.{FARM}"),
            Self::Apart(number) => format!("invented{number}.net"),
        })
    }

    /// Whom this name stands for; none for a name that is not of this world.
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

    /// Where it leads: each host to a place of its own, the farm to one.
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
