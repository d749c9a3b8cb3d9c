//! Which address families have a route from this machine.
//!
//! It takes an address, and returns whether the kernel has a route to it. Nothing is sent:
//! connecting a UDP socket only looks up the route. A route does not prove that the network works;
//! the orchestrator's confirmation of failures covers the rest (invariant I5).

use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use crate::settings::Settings;
use crate::wire::control::Family;

/// Access to the routing table. A trait, so that tests can remove a family.
pub trait Routes: Debug + Send + Sync {
    fn reaches(&self, address: IpAddr) -> bool;
}

/// The machine's own routing table.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRoutes;

impl Routes for SystemRoutes {
    fn reaches(&self, address: IpAddr) -> bool {
        let any: IpAddr = match address {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        UdpSocket::bind(SocketAddr::new(any, 0))
            .and_then(|socket| socket.connect(SocketAddr::new(address, ROUTE_PORT)))
            .is_ok()
    }
}

/// Any port is possible. This is the discard service's, in case a packet is sent after all.
const ROUTE_PORT: u16 = 9;

/// Addresses of the root server a.root-servers.net, which represent the Internet in each family.
const FAR_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 41, 0, 4));
const FAR_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0x503, 0xba3e, 0, 0, 0, 2, 0x30));

/// Whether the way out leads to the Internet, or in a lab only to the machine itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Horizon {
    /// A route to the Internet is required.
    Internet,
    Lab,
}

impl Horizon {
    pub fn of(settings: &Settings) -> Self {
        if settings.allow_private {
            Self::Lab
        } else {
            Self::Internet
        }
    }
}

/// The families with a route, IPv6 first.
pub fn families(routes: &dyn Routes, horizon: Horizon) -> Vec<Family> {
    let near = |address: IpAddr| horizon == Horizon::Lab && routes.reaches(address);
    let mut found = Vec::new();
    if routes.reaches(FAR_V6) || near(Ipv6Addr::LOCALHOST.into()) {
        found.push(Family::V6);
    }
    if routes.reaches(FAR_V4) || near(Ipv4Addr::LOCALHOST.into()) {
        found.push(Family::V4);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Only(Vec<IpAddr>);

    impl Routes for Only {
        fn reaches(&self, address: IpAddr) -> bool {
            self.0.contains(&address)
        }
    }

    fn check(reached: &[IpAddr], horizon: Horizon, expect: &[Family]) {
        assert_eq!(families(&Only(reached.to_vec()), horizon), expect);
    }

    #[test]
    fn a_family_is_there_when_its_far_address_has_a_route() {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        check(
            &[FAR_V4, FAR_V6],
            Horizon::Internet,
            &[Family::V6, Family::V4],
        );
        check(&[FAR_V4], Horizon::Internet, &[Family::V4]);
        check(&[loopback], Horizon::Internet, &[]);
        check(&[loopback], Horizon::Lab, &[Family::V4]);
    }

    #[test]
    fn loopback_always_has_a_route_and_class_e_never() {
        assert!(SystemRoutes.reaches(Ipv4Addr::LOCALHOST.into()));
        assert!(!SystemRoutes.reaches(Ipv4Addr::BROADCAST.into()));
    }
}
