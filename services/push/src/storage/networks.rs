//! Networks of addresses: someone with one address of a network may have all of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Clients from one address, and none from another, after which this is reported: behind a TLS
/// proxy that the web server does not know, all have the proxy's address.
const FROM_ONE_MAX: u32 = 100;

/// The customer that has an address: all of an IPv4 address, and 64 bits of IPv6, since the rest is
/// the customer's own choice (RFC 6177).
pub(crate) fn customer(address: IpAddr) -> IpAddr {
    masked(address, (0, 64))
}

/// The network of an address, of which one customer may have much: 16 bits of IPv4, 48 of IPv6.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    masked(address, (16, 80))
}

fn masked(address: IpAddr, (zeros_v4, zeros_v6): (u32, u32)) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits() >> zeros_v4 << zeros_v4).into(),
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> zeros_v6 << zeros_v6).into(),
    }
}

/// The addresses of all clients so far. While there is only one, it is probably a TLS proxy's, and
/// no network has a share of anything.
#[derive(Debug, Default)]
pub(crate) enum Addresses {
    #[default]
    None,
    /// The only one, and the number of clients that had it.
    One(IpAddr, u32),
    Several,
}

impl Addresses {
    /// Notes a client's address. Returns whether to warn the operator that there is only one.
    pub(crate) fn note(&mut self, address: IpAddr) -> bool {
        *self = match self {
            Self::None => Self::One(address, 1),
            Self::One(one, count) if *one == address => Self::One(*one, count.saturating_add(1)),
            Self::One(..) | Self::Several => Self::Several,
        };
        matches!(self, Self::One(_, FROM_ONE_MAX))
    }

    pub(crate) fn are_several(&self) -> bool {
        matches!(self, Self::Several)
    }
}
