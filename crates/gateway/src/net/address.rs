//! Which addresses may be dialled (invariant I2).
//!
//! [`admit`] takes an address from DNS. It returns the address in the form for dialling, or the
//! reason for refusing it. Only addresses that IANA's special-purpose registries call globally
//! reachable pass. The standard library's `is_global` is not stable, so this module contains the
//! registries as tables. If several entries contain an address, the longest prefix decides, as the
//! registries specify.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use thiserror::Error;

/// Why an address is not dialled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum AddressRefusal {
    /// In an entry of a registry that is not globally reachable, with this name.
    #[error("{0}")]
    Special(&'static str),
    /// An IPv6 address outside `2000::/3`, which IANA has not assigned.
    #[error("not global unicast")]
    Unassigned,
    #[error("denied by the operator")]
    Denied,
}

/// Whether private and loopback addresses may be dialled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrivateAddresses {
    Refuse,
    /// In the lab only: they are admitted. All other special addresses stay refused.
    Allow,
}

/// Checks `address`. A mapped address (`::ffff:0:0/96`) becomes its IPv4 address.
pub fn admit(
    address: IpAddr,
    private: PrivateAddresses,
    deny: &[IpNet],
) -> Result<IpAddr, AddressRefusal> {
    let address = address.to_canonical();
    let embedded = match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(v6) => translated(v6).map(IpAddr::V4),
    };
    for judged in std::iter::once(address).chain(embedded) {
        if deny.iter().any(|net| net.contains(&judged)) {
            return Err(AddressRefusal::Denied);
        }
        judge(judged, private)?;
    }
    Ok(address)
}

/// All networks in [`admit`]'s tables: the special-purpose registries and IPv6's global unicast.
/// The firewall behind the gateway has the same networks; a test compares the two.
pub fn networks() -> impl Iterator<Item = IpNet> {
    let v4 = REGISTRY_V4.iter().map(|entry| IpNet::V4(entry.net));
    let v6 = REGISTRY_V6.iter().map(|entry| IpNet::V6(entry.net));
    v4.chain(v6)
        .chain([IpNet::V6(GLOBAL_UNICAST_V6), IpNet::V6(TRANSLATED)])
}

/// How an entry of a registry affects dials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Global,
    /// Not globally reachable, but useful in a lab.
    Local,
    /// Not globally reachable, or "N/A".
    Never,
}

struct Entry<N> {
    net: N,
    name: &'static str,
    reach: Reach,
}

const fn v4(octets: [u8; 4], bits: u8, reach: Reach, name: &'static str) -> Entry<Ipv4Net> {
    let [a, b, c, d] = octets;
    Entry {
        net: Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits),
        name,
        reach,
    }
}

const fn v6(start: [u16; 4], bits: u8, reach: Reach, name: &'static str) -> Entry<Ipv6Net> {
    let [a, b, c, d] = start;
    v6_full([a, b, c, d, 0, 0, 0, 0], bits, reach, name)
}

const fn v6_full(segments: [u16; 8], bits: u8, reach: Reach, name: &'static str) -> Entry<Ipv6Net> {
    let [a, b, c, d, e, f, g, h] = segments;
    Entry {
        net: Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), bits),
        name,
        reach,
    }
}

use Reach::{Global, Local, Never};

/// IANA IPv4 Special-Purpose Address Registry, and multicast (RFC 5771), which has its own
/// registry.
#[rustfmt::skip]
static REGISTRY_V4: [Entry<Ipv4Net>; 24] = [
    v4([0, 0, 0, 0], 8, Never, "\"This network\" (RFC 791 §3.2)"),
    v4([10, 0, 0, 0], 8, Local, "Private-Use (RFC 1918)"),
    v4([100, 64, 0, 0], 10, Never, "Shared Address Space (RFC 6598)"),
    v4([127, 0, 0, 0], 8, Local, "Loopback (RFC 1122 §3.2.1.3)"),
    v4([169, 254, 0, 0], 16, Never, "Link Local (RFC 3927)"),
    v4([172, 16, 0, 0], 12, Local, "Private-Use (RFC 1918)"),
    v4([192, 0, 0, 0], 24, Never, "IETF Protocol Assignments (RFC 6890 §2.1)"),
    v4([192, 0, 0, 9], 32, Global, "Port Control Protocol Anycast (RFC 7723)"),
    v4([192, 0, 0, 10], 32, Global, "Traversal Using Relays around NAT Anycast (RFC 8155)"),
    v4([192, 0, 2, 0], 24, Never, "Documentation (TEST-NET-1) (RFC 5737)"),
    v4([192, 31, 196, 0], 24, Global, "AS112-v4 (RFC 7535)"),
    v4([192, 52, 193, 0], 24, Global, "AMT (RFC 7450)"),
    v4([192, 88, 99, 0], 24, Never, "Deprecated 6to4 Relay Anycast (RFC 7526)"),
    v4([192, 88, 99, 2], 32, Never, "6a44-relay anycast address (RFC 6751)"),
    v4([192, 168, 0, 0], 16, Local, "Private-Use (RFC 1918)"),
    v4([192, 175, 48, 0], 24, Global, "Direct Delegation AS112 Service (RFC 7534)"),
    v4([198, 18, 0, 0], 15, Never, "Benchmarking (RFC 2544)"),
    v4([198, 51, 100, 0], 24, Never, "Documentation (TEST-NET-2) (RFC 5737)"),
    v4([203, 0, 113, 0], 24, Never, "Documentation (TEST-NET-3) (RFC 5737)"),
    v4([224, 0, 0, 0], 4, Never, "Multicast (RFC 5771)"),
    v4([240, 0, 0, 0], 4, Never, "Reserved (RFC 1112 §4)"),
    v4([255, 255, 255, 255], 32, Never, "Limited Broadcast (RFC 8190)"),
    v4([192, 0, 0, 170], 32, Never, "NAT64/DNS64 Discovery (RFC 8880)"),
    v4([192, 0, 0, 171], 32, Never, "NAT64/DNS64 Discovery (RFC 8880)"),
];

/// IANA IPv6 Special-Purpose Address Registry, and multicast (RFC 4291 §2.7). Tunnels whose
/// reachability is "N/A" are never dialled.
#[rustfmt::skip]
static REGISTRY_V6: [Entry<Ipv6Net>; 27] = [
    v6_full([0, 0, 0, 0, 0, 0, 0, 1], 128, Local, "Loopback Address (RFC 4291)"),
    v6_full([0, 0, 0, 0, 0, 0, 0, 0], 128, Never, "Unspecified Address (RFC 4291)"),
    v6_full([0, 0, 0, 0, 0, 0xffff, 0, 0], 96, Never, "IPv4-mapped Address (RFC 4291)"),
    v6([0x64, 0xff9b, 0, 0], 96, Global, "IPv4-IPv6 Translat. (RFC 6052)"),
    v6([0x64, 0xff9b, 1, 0], 48, Never, "IPv4-IPv6 Translat. (RFC 8215)"),
    v6([0x100, 0, 0, 0], 64, Never, "Discard-Only Address Block (RFC 6666)"),
    v6([0x100, 0, 0, 1], 64, Never, "Dummy IPv6 Prefix (RFC 9780)"),
    v6([0x2001, 0, 0, 0], 23, Never, "IETF Protocol Assignments (RFC 2928)"),
    v6([0x2001, 0, 0, 0], 32, Never, "TEREDO (RFC 4380)"),
    v6_full([0x2001, 1, 0, 0, 0, 0, 0, 1], 128, Global, "Port Control Protocol Anycast (RFC 7723)"),
    v6_full([0x2001, 1, 0, 0, 0, 0, 0, 2], 128, Global, "Traversal Using Relays around NAT Anycast (RFC 8155)"),
    v6_full([0x2001, 1, 0, 0, 0, 0, 0, 3], 128, Global, "DNS-SD Service Registration Protocol Anycast (RFC 9665)"),
    v6([0x2001, 2, 0, 0], 48, Never, "Benchmarking (RFC 5180)"),
    v6([0x2001, 3, 0, 0], 32, Global, "AMT (RFC 7450)"),
    v6([0x2001, 4, 0x112, 0], 48, Global, "AS112-v6 (RFC 7535)"),
    v6([0x2001, 0x10, 0, 0], 28, Never, "Deprecated (previously ORCHID) (RFC 4843)"),
    v6([0x2001, 0x20, 0, 0], 28, Global, "ORCHIDv2 (RFC 7343)"),
    v6([0x2001, 0x30, 0, 0], 28, Global, "Drone Remote ID Protocol Entity Tags (RFC 9374)"),
    v6([0x2001, 0xdb8, 0, 0], 32, Never, "Documentation (RFC 3849)"),
    v6([0x2002, 0, 0, 0], 16, Never, "6to4 (RFC 3056)"),
    v6([0x2620, 0x4f, 0x8000, 0], 48, Global, "Direct Delegation AS112 Service (RFC 7534)"),
    v6([0x3fff, 0, 0, 0], 20, Never, "Documentation (RFC 9637)"),
    v6([0x5f00, 0, 0, 0], 16, Never, "Segment Routing (SRv6) SIDs (RFC 9602)"),
    v6([0xfc00, 0, 0, 0], 7, Local, "Unique-Local (RFC 4193)"),
    v6([0xfe80, 0, 0, 0], 10, Never, "Link-Local Unicast (RFC 4291)"),
    v6([0xfec0, 0, 0, 0], 10, Never, "Deprecated site-local (RFC 3879)"),
    v6([0xff00, 0, 0, 0], 8, Never, "Multicast (RFC 4291 §2.7)"),
];

/// The only part of IPv6 that IANA has opened as global unicast (RFC 4291 §2.4, IPv6 Address Space
/// registry).
const GLOBAL_UNICAST_V6: Ipv6Net =
    Ipv6Net::new_assert(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// The well-known prefix of address translation, which embeds an IPv4 address in its last 32 bits
/// (RFC 6052 §2.1).
const TRANSLATED: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

fn translated(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [.., a, b, c, d] = address.octets();
    TRANSLATED
        .contains(&address)
        .then_some(Ipv4Addr::new(a, b, c, d))
}

fn judge(address: IpAddr, private: PrivateAddresses) -> Result<(), AddressRefusal> {
    let entry = match address {
        IpAddr::V4(v4) => REGISTRY_V4
            .iter()
            .filter(|entry| entry.net.contains(&v4))
            .max_by_key(|entry| entry.net.prefix_len())
            .map(|entry| (entry.reach, entry.name)),
        IpAddr::V6(v6) => REGISTRY_V6
            .iter()
            .filter(|entry| entry.net.contains(&v6))
            .max_by_key(|entry| entry.net.prefix_len())
            .map(|entry| (entry.reach, entry.name)),
    };
    match (entry, address) {
        (Some((Global, _)), _) => Ok(()),
        (Some((Local, _)), _) if private == PrivateAddresses::Allow => Ok(()),
        (Some((Local | Never, name)), _) => Err(AddressRefusal::Special(name)),
        (None, IpAddr::V6(v6)) if !GLOBAL_UNICAST_V6.contains(&v6) => {
            Err(AddressRefusal::Unassigned)
        }
        (None, IpAddr::V4(_) | IpAddr::V6(_)) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
