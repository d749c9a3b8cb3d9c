//! The firewall behind the gateway refuses what the gateway refuses (invariant I2):
//! `deploy/nftables/fedicensus.nft` and the tables of `gateway::address` can't diverge. The
//! scenarios' `firewall` tests that its rules work.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gateway::address::{self, PrivateAddresses};
use ipnet::IpNet;

const RULES: &str = include_str!("../../../../deploy/nftables/fedicensus.nft");

/// The well-known prefix of address translation (RFC 6052).
const TRANSLATED: [u16; 6] = [0x64, 0xff9b, 0, 0, 0, 0];

fn sets() -> BTreeMap<&'static str, Vec<IpNet>> {
    let mut sets = BTreeMap::new();
    for block in RULES.split("\n    set ").skip(1) {
        let (name, rest) = block.split_once(" {").unwrap();
        let body = rest.split("\n    }").next().unwrap();
        let Some((_, elements)) = body.split_once("elements = {") else {
            continue;
        };
        let networks = elements.trim_end().trim_end_matches('}').split(',');
        sets.insert(name, networks.map(|text| network(text.trim())).collect());
    }
    sets
}

fn network(text: &str) -> IpNet {
    text.parse()
        .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
        .unwrap_or_else(|_| panic!("{text:?} is no network"))
}

/// How the chain `from_gateway` treats a connection to port 443.
fn passes(sets: &BTreeMap<&str, Vec<IpNet>>, address: IpAddr) -> bool {
    let holds = |name: &str| sets[name].iter().any(|net| net.contains(&address));
    match address {
        IpAddr::V4(_) => !holds("refused_v4") || holds("open_v4"),
        IpAddr::V6(_) => (!holds("refused_v6") || holds("open_v6")) && holds("unicast_v6"),
    }
}

/// The first and last address of a network and their neighbours outside.
fn borders(net: IpNet) -> Vec<IpAddr> {
    match net {
        IpNet::V4(net) => {
            let (first, last) = (u32::from(net.network()), u32::from(net.broadcast()));
            let around = [first.saturating_sub(1), first, last, last.saturating_add(1)];
            around.map(|n| IpAddr::V4(n.into())).to_vec()
        }
        IpNet::V6(net) => {
            let (first, last) = (u128::from(net.network()), u128::from(net.broadcast()));
            let around = [first.saturating_sub(1), first, last, last.saturating_add(1)];
            around.map(|n| IpAddr::V6(n.into())).to_vec()
        }
    }
}

fn translated(address: Ipv4Addr) -> IpAddr {
    let [a, b, c, d] = address.octets();
    let [p, q, r, s, t, u] = TRANSLATED;
    let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    IpAddr::V6(Ipv6Addr::new(p, q, r, s, t, u, high, low))
}

#[test]
fn the_firewall_blocks_what_the_gateway_refuses_and_nothing_else() {
    let sets = sets();
    let mut asked: BTreeSet<IpAddr> = address::networks()
        .chain(sets.values().flatten().copied())
        .flat_map(borders)
        .collect();
    // Every block of IPv4, so that both sides cover every range; and each of them in translated
    // form.
    asked.extend((0..=u16::MAX).map(|block| IpAddr::V4((u32::from(block) << 16 | 0x0102).into())));
    let embedded: Vec<_> = asked
        .iter()
        .filter_map(|address| match address {
            IpAddr::V4(v4) => Some(translated(*v4)),
            IpAddr::V6(_) => None,
        })
        .collect();
    asked.extend(embedded);
    // And every /16 of IPv6.
    asked
        .extend((0..=u16::MAX).map(|block| IpAddr::V6((u128::from(block) << 112 | 0x0102).into())));
    let mut refused = 0;
    for address in asked {
        // Mapped addresses don't occur on the wire: the kernel treats them as IPv4.
        if matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some()) {
            continue;
        }
        let gateway = address::admit(address, PrivateAddresses::Refuse, &[]);
        assert_eq!(
            passes(&sets, address),
            gateway.is_ok(),
            "{address}: the gateway says {gateway:?}"
        );
        refused += usize::from(gateway.is_err());
    }
    assert!(refused > 50_000, "only {refused} were refused");
}

fn rules(chain: &str) -> Vec<&'static str> {
    RULES
        .split_once(&format!("chain {chain} {{\n"))
        .and_then(|(_, rest)| rest.split_once("\n    }"))
        .map(|(chain, _)| chain)
        .unwrap()
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

/// The test above checks sets; this one checks the rules that use them, in this order.
#[test]
fn the_firewalls_chain_uses_its_sets() {
    assert_eq!(
        rules("from_gateway"),
        [
            "jump floods",
            "ct state established,related accept",
            "jump asks_resolver",
            "ip daddr @denied_v4 jump blocked",
            "ip6 daddr @denied_v6 jump blocked",
            "ip daddr @refused_v4 ip daddr != @open_v4 jump blocked",
            "ip6 daddr @refused_v6 ip6 daddr != @open_v6 jump blocked",
            "ip6 daddr != @unicast_v6 jump blocked",
            "ct state new tcp dport 443 accept",
            "jump blocked",
        ]
    );
}

#[test]
fn the_firewall_lets_nothing_through_before_it_has_looked_for_floods() {
    for chain in ["from_gateway", "to_machine"] {
        assert_eq!(rules(chain).first(), Some(&"jump floods"), "{chain}");
        assert_eq!(rules(chain).last(), Some(&"jump blocked"), "{chain}");
    }
    assert_eq!(
        rules("floods"),
        [
            "meta l4proto udp limit rate over 200/second burst 200 packets counter drop",
            "ct state new limit rate over 200/second burst 200 packets counter drop",
        ]
    );
    assert_eq!(
        rules("asks_resolver"),
        [
            "ip daddr @resolvers_v4 meta l4proto { tcp, udp } th dport 53 accept",
            "ip6 daddr @resolvers_v6 meta l4proto { tcp, udp } th dport 53 accept",
        ]
    );
}

/// An operator who denies an IPv4 network has to deny its translated form too.
#[test]
fn the_firewalls_example_of_a_denied_network_is_right_in_both_families() {
    let example = |set: &str| {
        let (_, rest) = RULES
            .split_once(&format!("add element inet fedicensus {set} '{{ "))
            .unwrap();
        network(rest.split_once(" }'").unwrap().0)
    };
    let (IpNet::V4(v4), v6) = (example("denied_v4"), example("denied_v6")) else {
        panic!("not of IPv4");
    };
    assert_eq!(v6.prefix_len(), 96 + v4.prefix_len());
    assert_eq!(v6.network(), translated(v4.network()));
}
