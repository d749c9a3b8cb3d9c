//! The network fails, completely or for one address family: its routes disappear, or packets are
//! dropped or reset. Simulated in a separate network namespace.

use tests::{Namespace, Need, Role, World};

use super::{CROWD, Trouble, crowd, options, until_all_live};

/// The namespace; without permission to make one the test is skipped: see [`tests::skip`].
pub(super) fn namespace() -> Option<Namespace> {
    match Namespace::new() {
        Ok(namespace) => Some(namespace),
        Err(error) => {
            tests::skip(
                Need::Privileges,
                &format!(
                    "taking the network away needs root, unshare, nsenter, ip and nft: {error:#}"
                ),
            );
            None
        }
    }
}

/// A crowd inside the namespace, half of it reached over IPv6, with a gateway that runs there as
/// well.
async fn a_crowd_of_two_families(namespace: &mut Namespace) -> anyhow::Result<World> {
    a_crowd_at(namespace, &Namespace::lab_places()).await
}

async fn a_crowd_at(namespace: &mut Namespace, places: &[String; 2]) -> anyhow::Result<World> {
    let mut world = World::prepare(options()).await?;
    let state = world.path("inside");
    namespace.start_lab(&state, CROWD)?;
    world
        .until("the lab inside has written its files", super::SOON, |_| {
            Ok(state.join("names").exists())
        })
        .await?;
    let lines = crowd().zip(places.iter().cycle());
    let names: String = lines
        .map(|(name, place)| format!("{name} {place}\n"))
        .collect();
    super::replace(&world, "inside/two-families", &names)?;
    let path = |name: &str| world.path(name).display().to_string();
    let (names, roots) = (path("inside/two-families"), path("inside/ca.pem"));
    world.set("lab.names_file", &names);
    world.set("lab.extra_ca", &roots);
    world.wrap(Role::Gateway, namespace.entrance());
    for role in [Role::Gateway, Role::Launcher, Role::Run] {
        world.begin(role).await?;
    }
    until_all_live(&world).await?;
    Ok(world)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_network_at_all_and_a_firewall_that_resets_change_no_state() -> anyhow::Result<()> {
    let Some(mut inside) = namespace() else {
        return Ok(());
    };
    let world = a_crowd_of_two_families(&mut inside).await?;
    let none = Trouble {
        fault: "no network at all",
        says: &["OUTAGE", "the gateway has no network", "NO NETWORK"],
        logs: [
            "no host is checked until this works again",
            "the outage is over",
        ],
        met_min: 0,
    };
    none.strikes(
        &world,
        || inside.run("ip addr del 127.0.0.1/8 dev lo; ip addr del ::1/128 dev lo"),
        || inside.run("ip addr add 127.0.0.1/8 dev lo; ip addr add ::1/128 dev lo"),
    )
    .await?;
    Trouble::blackout(
        "a firewall resets every connection",
        &[
            "unreachable ×",
            "Does a firewall block the gateway, or port 443?",
        ],
    )
    .strikes(
        &world,
        || firewall(&inside, "tcp dport 8443 reject with tcp reset"),
        || inside.run("nft delete table inet fault"),
    )
    .await?;
    Trouble::blackout(
        "every packet vanishes",
        &["unreachable ×", "NO CHECK SUCCEEDS since"],
    )
    .strikes(
        &world,
        || firewall(&inside, "tcp dport 8443 drop"),
        || inside.run("nft delete table inet fault"),
    )
    .await
}

fn firewall(inside: &Namespace, rule: &str) -> anyhow::Result<()> {
    inside.run(&format!(
        "nft 'add table inet fault; add chain inet fault in {{ type filter hook input priority 0; }}; add rule inet fault in {rule}'"
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn one_family_without_a_route_changes_no_state() -> anyhow::Result<()> {
    let Some(mut inside) = namespace() else {
        return Ok(());
    };
    let world = a_crowd_of_two_families(&mut inside).await?;
    for (fault, says, address) in [
        ("no route over IPv4", &["IPv6 only; NO IPv4"], "127.0.0.1/8"),
        ("no route over IPv6", &["IPv4 only; hosts with"], "::1/128"),
    ] {
        let trouble = Trouble {
            fault,
            says,
            logs: ["has no route any more", "has a route again"],
            met_min: super::MET_MIN,
        };
        trouble
            .strikes(
                &world,
                || inside.run(&format!("ip addr del {address} dev lo")),
                || inside.run(&format!("ip addr add {address} dev lo")),
            )
            .await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_family_whose_packets_vanish_changes_no_state() -> anyhow::Result<()> {
    let Some(mut inside) = namespace() else {
        return Ok(());
    };
    let world = a_crowd_of_two_families(&mut inside).await?;
    for (fault, logs, says, rule) in [
        (
            "packets vanish over IPv4",
            [
                "ERROR NO CHECK SUCCEEDS over IPv4",
                "ended: NO CHECK SUCCEEDS over IPv4",
            ],
            &[
                "NO CHECK SUCCEEDS over IPv4",
                "Does IPv4 reach the Internet from this machine?",
            ],
            "ip daddr 127.0.0.1 tcp dport 8443 drop",
        ),
        (
            "packets vanish over IPv6",
            [
                "ERROR NO CHECK SUCCEEDS over IPv6",
                "ended: NO CHECK SUCCEEDS over IPv6",
            ],
            &[
                "NO CHECK SUCCEEDS over IPv6",
                "Does IPv6 reach the Internet from this machine?",
            ],
            "ip6 daddr ::1 tcp dport 8443 drop",
        ),
    ] {
        Trouble {
            fault,
            says,
            logs,
            met_min: super::MET_MIN,
        }
        .strikes(
            &world,
            || firewall(&inside, rule),
            || inside.run("nft delete table inet fault"),
        )
        .await?;
    }
    Ok(())
}

/// How a DNS64 resolver answers for a host that has only an IPv4 address (RFC 6052).
const BEHIND_NAT64: &str = "64:ff9b::808:808 8443";

#[tokio::test(flavor = "multi_thread")]
async fn with_nat64_alone_hosts_of_both_families_live() -> anyhow::Result<()> {
    let Some(mut inside) = namespace() else {
        return Ok(());
    };
    inside.run("ip -6 route add local 64:ff9b::/96 dev lo; ip addr del 127.0.0.1/8 dev lo")?;
    let [_, over_ipv6] = Namespace::lab_places();
    let world = a_crowd_at(&mut inside, &[BEHIND_NAT64.to_owned(), over_ipv6]).await?;
    let text = super::status_text(&world)?;
    assert!(text.contains("IPv6 only; NO IPv4"), "{text}");
    assert!(world.command(&["health"])?.status.success(), "{text}");
    Ok(())
}
