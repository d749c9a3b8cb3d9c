//! The firewall behind the gateway (`deploy/nftables/fedicensus.nft`): a gateway that was taken
//! over reaches what the gateway would have dialled, and nothing more (invariant I2).
//!
//! Four network namespaces represent gateway, machine, another container and the world, which has
//! real listeners at addresses of every refused range. Without the rules, all of them answer, which
//! proves that the test can fail. Then the shipped rules are loaded.

mod spaces;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Instant;

use spaces::{Listener, Network, Probe, Transport, privileged};
use tests::Table;

/// The machine's bridge, the gateway on it, another container on another bridge.
const MACHINE: [&str; 2] = ["172.18.0.1", "fd00:18::1"];
const GATEWAY: [&str; 2] = ["172.18.0.2", "fd00:18::2"];
const OTHER: [&str; 2] = ["172.19.0.2", "fd00:19::2"];

/// The machine's own public address; its port 8080 is published for the other container.
const MACHINE_PUBLIC: &str = "93.184.216.1";

const PUBLIC: [&str; 3] = [
    "93.184.216.34",
    "2606:2800:220:1::1",
    // Translated, as in an IPv6-only network.
    "64:ff9b::5db8:d822",
];

/// Globally reachable addresses within ranges that are not.
const PUBLIC_WITHIN: [&str; 6] = [
    "192.0.0.9",
    "192.31.196.1",
    "192.175.48.1",
    "2001:1::1",
    "2001:20::1",
    "64:ff9b::c000:9",
];

/// The resolvers named at the top of the file: one in the world for each family, a private one, the
/// machine itself.
const RESOLVERS_V4: [&str; 2] = ["9.9.9.9", "10.0.0.53"];
const RESOLVERS_V6: [&str; 2] = ["2620:fe::fe", "fd00:18::1"];

/// One address of each refused range that the kernel can dial at all: loopback, link-local,
/// multicast and unspecified addresses never leave a namespace.
/// `crates/gateway/tests/gateway/firewall.rs` compares the file with the whole table, including
/// these.
const REFUSED: [&str; 29] = [
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.8",
    "192.0.0.170",
    "192.0.2.1",
    "192.88.99.2",
    "192.168.0.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "240.0.0.1",
    "64:ff9b::a00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::c0a8:1",
    "64:ff9b:1::1",
    "100::1",
    "100:0:0:1::1",
    "2001::1",
    "2001:2::1",
    "2001:10::1",
    "2001:db8::1",
    "2002:a00:1::1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "fd00::1",
];

const PORTS: [u16; 5] = [22, 53, 80, 443, 8443];

fn socket(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse::<IpAddr>().expect("an address"), port)
}

/// What a gateway that was taken over requests, and whether the rules must allow it.
fn wanted() -> Vec<(Probe, bool)> {
    let tcp = |address, port| Probe::new("gateway", socket(address, port), Transport::Tcp);
    let udp = |address, port| Probe::new("gateway", socket(address, port), Transport::Udp);
    let mut wanted = Vec::new();
    for address in PUBLIC {
        wanted.extend(PORTS.map(|port| (tcp(address, port), port == 443)));
        wanted.extend([53, 443].map(|port| (udp(address, port), false)));
    }
    wanted.extend(PUBLIC_WITHIN.map(|address| (tcp(address, 443), true)));
    wanted.extend(PUBLIC_WITHIN.map(|address| (tcp(address, 80), false)));
    for address in RESOLVERS_V4.into_iter().chain(RESOLVERS_V6) {
        wanted.extend([(tcp(address, 53), true), (udp(address, 53), true)]);
        wanted.push((tcp(address, 22), false));
    }
    wanted.push((tcp("10.0.0.53", 443), false));
    wanted.extend(REFUSED.map(|address| (tcp(address, 443), false)));
    wanted.push((udp("10.0.0.1", 53), false));
    for address in [MACHINE[0], MACHINE_PUBLIC] {
        wanted.extend(PORTS.map(|port| (tcp(address, port), false)));
        wanted.push((udp(address, 53), false));
    }
    wanted.extend([22, 80, 443].map(|port| (tcp(MACHINE[1], port), false)));
    // Published by the engine, whose rules forward this to the other container.
    wanted.push((tcp(MACHINE_PUBLIC, 8080), false));
    wanted.extend(OTHER.map(|address| (tcp(address, 443), false)));
    wanted
}

fn wanted_by_others() -> Vec<(Probe, bool)> {
    let probe = |from, address, port| Probe::new(from, socket(address, port), Transport::Tcp);
    let mut wanted = Vec::new();
    for address in ["10.0.0.1", "169.254.169.254", PUBLIC[0], PUBLIC[1]] {
        wanted.extend([80, 443].map(|port| (probe("other", address, port), true)));
    }
    wanted.push((probe("other", "172.19.0.1", 22), true));
    wanted.push((probe("world", MACHINE_PUBLIC, 8080), true));
    wanted.push((probe("world", MACHINE_PUBLIC, 22), true));
    // No one needs to open a connection to the gateway.
    wanted.extend(GATEWAY.map(|address| (probe("world", address, 443), false)));
    wanted.extend(GATEWAY.map(|address| (probe("other", address, 443), false)));
    wanted
}

fn build() -> anyhow::Result<Network> {
    let mut network = Network::new(&["gateway", "machine", "other", "world"])?;
    network.bridge("machine", "fedicensus0", MACHINE, "gateway", GATEWAY)?;
    network.bridge(
        "machine",
        "other0",
        ["172.19.0.1", "fd00:19::1"],
        "other",
        OTHER,
    )?;
    let world = PUBLIC
        .into_iter()
        .chain(PUBLIC_WITHIN)
        .chain(RESOLVERS_V4)
        .chain(["2620:fe::fe"])
        .chain(REFUSED);
    network.world("machine", MACHINE_PUBLIC, "world", world)?;
    network.nft(
        "machine",
        &format!(
            "table ip engine {{\nchain prerouting {{\ntype nat hook prerouting priority dstnat\n\
             ip daddr {MACHINE_PUBLIC} tcp dport 8080 dnat to {}:443\n}}\n}}",
            OTHER[0]
        ),
    )?;
    for space in ["gateway", "machine", "other", "world"] {
        for port in PORTS {
            network.listen(space, Listener::Tcp(port))?;
        }
    }
    let in_world = PUBLIC
        .iter()
        .chain(&RESOLVERS_V4)
        .chain(&["10.0.0.1", "2620:fe::fe"]);
    let on_machine = MACHINE.iter().chain([&MACHINE_PUBLIC]);
    for (space, address) in in_world
        .map(|address| ("world", *address))
        .chain(on_machine.map(|address| ("machine", *address)))
    {
        for port in [53, 443] {
            network.listen(space, Listener::Udp(socket(address, port)))?;
        }
    }
    Ok(network)
}

/// The shipped file, with its variables set like an operator sets them.
fn rules() -> anyhow::Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/nftables/fedicensus.nft");
    let mut set = 0;
    let lines: Vec<String> = std::fs::read_to_string(path)?
        .lines()
        .map(|line| {
            let named = [
                ("define resolvers_v4 = ", RESOLVERS_V4),
                ("define resolvers_v6 = ", RESOLVERS_V6),
            ];
            let found = named
                .iter()
                .find(|(variable, _)| line.starts_with(variable));
            found.map_or_else(
                || line.to_owned(),
                |(variable, addresses)| {
                    set += 1;
                    format!("{variable}{{ {} }}", addresses.join(", "))
                },
            )
        })
        .collect();
    assert_eq!(set, 2, "the file's variables have other names");
    Ok(lines.join("\n"))
}

#[test] // S13
fn hostile_gateway_reaches_only_what_it_may_dial() -> anyhow::Result<()> {
    if !privileged(&["ip", "nft"]) {
        return Ok(());
    }
    let network = build()?;
    let wanted: Vec<_> = wanted().into_iter().chain(wanted_by_others()).collect();
    let probes: Vec<_> = wanted.iter().map(|(probe, _)| *probe).collect();
    let without = network.reached(&probes)?;
    network.nft("machine", &rules()?)?;
    let with = network.reached(&probes)?;
    let mut rows = BTreeMap::new();
    for (probe, may) in &wanted {
        let row = (without[probe], with[probe], *may);
        rows.insert(*probe, row);
    }
    write_table(&rows)?;
    for (probe, (without, with, may)) in rows {
        assert!(
            without,
            "{probe}: not reached even without rules, so that this shows nothing"
        );
        assert_eq!(with, may, "{probe}: reached with the rules in force");
    }
    floods_are_cut(&network)
}

/// Packets of a flood: a machine that takes less than 20 s to send them exceeds [`RATE`].
const FLOOD_PACKETS: u32 = 5000;

/// Packets that the rules let through per second, and in a burst.
const RATE: u64 = 200;
const BURST: u64 = 200;

/// Above 200 new connections and 200 datagrams a second, nothing passes to any destination. That
/// includes the resolvers: they answer, so all datagrams except the first belong to a connection.
fn floods_are_cut(network: &Network) -> anyhow::Result<()> {
    let flood = |address, port, transport| Probe::new("gateway", socket(address, port), transport);
    let resolvers = [RESOLVERS_V4[0], MACHINE[1]].map(|it| flood(it, 53, Transport::Udp));
    let floods = [
        flood(PUBLIC[0], 443, Transport::Tcp),
        flood(RESOLVERS_V4[0], 53, Transport::Tcp),
        flood(MACHINE[1], 53, Transport::Tcp),
    ];
    for flood in resolvers.into_iter().chain(floods) {
        let (before, start) = (cut(network)?, Instant::now());
        network.flood(flood, FLOOD_PACKETS)?;
        // Rounded up: the rate is measured in whole packets.
        let seconds = start.elapsed().as_secs() + 1;
        let cut = cut(network)? - before;
        let passed = u64::from(FLOOD_PACKETS).saturating_sub(cut);
        assert!(
            cut > 0 && passed <= RATE * seconds + BURST,
            "{flood}: {cut} of {FLOOD_PACKETS} packets were cut in {seconds} s"
        );
    }
    // After the flood, every request is answered.
    for (flood, reached) in network.reached(&resolvers)? {
        assert!(reached, "{flood}: not reached after the flood");
    }
    Ok(())
}

/// Packets that were dropped as floods so far.
fn cut(network: &Network) -> anyhow::Result<u64> {
    let chain = network.run(
        "machine",
        &["nft", "list", "chain", "inet", "fedicensus", "floods"],
    )?;
    let counters = chain
        .split("limit rate over 200/second burst 200 packets counter packets ")
        .skip(1)
        .map(|rest| Ok(rest.split(' ').next().unwrap_or_default().parse::<u64>()?))
        .collect::<anyhow::Result<Vec<_>>>()?;
    assert_eq!(counters.len(), 2, "the rules and their counters: {chain}");
    Ok(counters.into_iter().sum())
}

fn write_table(rows: &BTreeMap<Probe, (bool, bool, bool)>) -> anyhow::Result<()> {
    let word = |reached| if reached { "reached" } else { "blocked" };
    let columns = ["tried", "without rules", "with rules", "expected"];
    let mut table = Table::new("Connections of a gateway that was taken over", &columns);
    for (probe, (without, with, may)) in rows {
        let probe = probe.to_string();
        table.row(&[probe.as_str(), word(*without), word(*with), word(*may)]);
    }
    table.write("firewall", "1")
}

/// Without the rules, all connections are answered, which proves that the test can fail.
#[test] // S47
fn client_holds_128_connections_and_blocks_no_other() -> anyhow::Result<()> {
    if !privileged(&["ip", "nft"]) {
        return Ok(());
    }
    let mut network = Network::new(&["web-machine", "web-near", "web-far"])?;
    let near = ["172.20.0.2", "fd00:20::2"];
    let far = ["172.21.0.2", "fd00:21::2"];
    for (bridge, machine, guest, guests) in [
        ("near0", ["172.20.0.1", "fd00:20::1"], "web-near", near),
        ("far0", ["172.21.0.1", "fd00:21::1"], "web-far", far),
    ] {
        network.bridge("web-machine", bridge, machine, guest, guests)?;
    }
    // Another address in the same IPv6 network is the same client.
    let second = "address add fd00:20::3/64 dev eth0 nodad";
    network.run(
        "web-near",
        &[&["ip"], &*second.split(' ').collect::<Vec<_>>()].concat(),
    )?;
    network.forward("web-machine")?;
    for port in [8080, 22] {
        network.listen("web-machine", Listener::Tcp(port))?;
    }
    network.listen("web-far", Listener::Tcp(443))?;
    let held = |space, sources: &[&str], to, port| {
        let sources = sources
            .iter()
            .map(|source| source.parse().expect("an address"));
        network.held(space, sources.collect(), socket(to, port), 200)
    };
    let of_v6 = [near[1], "fd00:20::3"];
    assert_eq!(held("web-near", &near[..1], "172.20.0.1", 8080)?, 200);
    assert_eq!(held("web-near", &of_v6, "fd00:20::1", 8080)?, 200);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/nftables/fedicensus-web.nft");
    network.nft("web-machine", &std::fs::read_to_string(path)?)?;
    assert_eq!(held("web-near", &near[..1], "172.20.0.1", 8080)?, 128);
    assert_eq!(held("web-near", &of_v6, "fd00:20::1", 8080)?, 128);
    assert_eq!(held("web-near", &near[..1], "172.20.0.1", 22)?, 200);
    // The machine forwards it, as it forwards a gateway's checks.
    assert_eq!(held("web-near", &near[..1], far[0], 443)?, 200);
    assert_eq!(held("web-near", &near[1..], far[1], 443)?, 200);
    for (to, transport) in [("172.20.0.1", 0), ("fd00:20::1", 1)] {
        assert!(held("web-far", &far[transport..=transport], to, 8080)? > 0);
    }
    Ok(())
}
