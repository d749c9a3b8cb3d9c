//! The orchestrator's request whether all names below a domain resolve.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use gateway::control::{Wildcard, WildcardTrouble};
use gateway::family::Routes;
use gateway::{LookedBelow, Opened};
use protocol::Host;
use protocol::egress::Deferral;
use tokio::time::Instant;

use crate::names::{Everywhere, NameServer};
use crate::rig::Rig;

async fn below(rig: &Rig, domain: &str) -> LookedBelow {
    let domain = Host::parse(domain).unwrap();
    rig.client.wildcard(domain).await.unwrap()
}

pub(crate) async fn over_dns(resolver: SocketAddr, pace_divisor: u32) -> Rig {
    Rig::start_over("", Box::new(Everywhere), |settings| {
        settings.pace_divisor = pace_divisor;
        settings.names_file = None;
        settings.resolvers = vec![resolver];
        settings.dns_timeout = Duration::from_secs(8);
    })
    .await
}

#[tokio::test]
async fn made_up_names_show_whether_any_name_resolves() {
    let names = "*.farm.test 127.0.0.1 9\na.plain.test 127.0.0.1 9\nplain.test 127.0.0.1 9\n*.bare.test nodata\n\
        *.down.test servfail\n*.slow.test timeout\n";
    let rig = Rig::start(names, |_| {}).await;
    let unknown = |why| Wildcard::Unknown { why };
    for (domain, expect) in [
        ("farm.test", Wildcard::SamePlace {}),
        ("plain.test", Wildcard::No {}),
        ("bare.test", Wildcard::No {}),
        ("down.test", unknown(WildcardTrouble::ServerFailed)),
        ("slow.test", unknown(WildcardTrouble::TimedOut)),
    ] {
        let found = below(&rig, domain).await;
        assert_eq!(found, LookedBelow::Answered(expect), "{domain}");
    }
}

#[tokio::test]
async fn names_that_each_lead_elsewhere_are_told_from_those_that_lead_to_one_place() {
    let server = NameServer::start_by(|name| {
        let first = name.bytes().next().unwrap();
        let is_below = |domain: &str| name.ends_with(domain);
        if is_below(".one.test.") {
            Some(Ipv4Addr::new(192, 0, 2, 1))
        } else if is_below(".each.test.") {
            let [a, b, c, ..] = name.as_bytes() else {
                return None;
            };
            // The invented label is random.
            Some(Ipv4Addr::new(first, *a, *b, *c))
        } else {
            None
        }
    })
    .await;
    let rig = over_dns(server.address, u32::MAX).await;
    for (domain, expect) in [
        ("one.test", Wildcard::SamePlace {}),
        ("none.test", Wildcard::No {}),
    ] {
        let found = below(&rig, domain).await;
        assert_eq!(found, LookedBelow::Answered(expect), "{domain}");
    }
    // A few names in a thousand begin alike, but not three times in a row.
    let mut found = Vec::new();
    for _ in 0..3 {
        found.push(below(&rig, "each.test").await);
    }
    assert!(
        found.contains(&LookedBelow::Answered(Wildcard::Apart {})),
        "{found:?}"
    );
    let asked = server.asked.lock().unwrap();
    let of_none = asked.keys().filter(|name| name.ends_with(".none.test."));
    assert_eq!(of_none.count(), 1, "one name that is not there is enough");
}

/// Invariant I5.
#[tokio::test]
async fn trouble_of_our_own_says_nothing_of_a_domain() {
    // A resolver that leads all names to its provider's page.
    let server = NameServer::start_by(|_name| Some(Ipv4Addr::new(192, 0, 2, 1))).await;
    let rig = over_dns(server.address, u32::MAX).await;
    check_deferred_by_dns(&below(&rig, "farm.test").await);
    // A resolver that never answered.
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let resolver = silent.local_addr().unwrap();
    let rig = Rig::start_over("", Box::new(Everywhere), |settings| {
        settings.names_file = None;
        settings.resolvers = vec![resolver];
    })
    .await;
    check_deferred_by_dns(&below(&rig, "farm.test").await);
    // No network.
    let rig = Rig::start_over("", Box::new(Nowhere), |settings| settings.names_file = None).await;
    assert_eq!(below(&rig, "farm.test").await, LookedBelow::Offline);
}

#[track_caller]
fn check_deferred_by_dns(found: &LookedBelow) {
    let why = Deferral::Dns;
    assert!(
        matches!(found, LookedBelow::Deferred { why: w, .. } if *w == why),
        "{found:?}"
    );
}

#[derive(Debug)]
struct Nowhere;

impl Routes for Nowhere {
    fn reaches(&self, _address: IpAddr) -> bool {
        false
    }
}

/// Invariant I8.
#[tokio::test(start_paused = true)]
async fn made_up_names_are_paced_with_all_others_below_their_domain() {
    let server =
        NameServer::start_by(|name| name.ends_with(".farm.test.").then_some(Ipv4Addr::LOCALHOST))
            .await;
    let rig = over_dns(server.address, 1).await;
    let opened = rig.open_in_group(1, "a.farm.test", "farm.test").await;
    assert!(
        matches!(opened, Ok(Opened::Unreachable { .. })),
        "{opened:?}"
    );
    let began = Instant::now();
    let found = below(&rig, "farm.test").await;
    assert_eq!(found, LookedBelow::Answered(Wildcard::SamePlace {}));
    let late = rig.open_in_group(2, "b.farm.test", "farm.test").await;
    assert!(
        matches!(
            late,
            Ok(Opened::Deferred {
                why: Deferral::GroupPace,
                ..
            })
        ),
        "{late:?}"
    );
    assert!(began.elapsed() < Duration::from_secs(30));
    let asked = server.asked.lock().unwrap();
    let mut look_ups: Vec<_> = asked
        .iter()
        .filter(|(name, _)| name.ends_with(".farm.test."))
        .map(|(_, queries)| queries[0])
        .collect();
    look_ups.sort_unstable();
    assert_eq!(look_ups.len(), 3);
    let closest = look_ups.windows(2).map(|pair| pair[1] - pair[0]).min();
    assert!(closest.unwrap() >= Duration::from_secs(10), "{closest:?}");
}

#[tokio::test(start_paused = true)]
async fn a_pace_that_is_too_slow_to_wait_for_defers_it() {
    let server =
        NameServer::start_by(|name| name.ends_with(".farm.test.").then_some(Ipv4Addr::LOCALHOST))
            .await;
    let resolver = server.address;
    let rig = Rig::start_over("", Box::new(Everywhere), |settings| {
        settings.pace_divisor = 1;
        settings.paces.group = Duration::from_hours(1);
        settings.names_file = None;
        settings.resolvers = vec![resolver];
        settings.dns_timeout = Duration::from_secs(8);
    })
    .await;
    let found = below(&rig, "farm.test").await;
    let LookedBelow::Deferred { why, retry_after } = found else {
        panic!("{found:?}");
    };
    assert_eq!(why, Deferral::GroupPace);
    assert!(retry_after > Duration::from_mins(50), "{retry_after:?}");
}
