//! What a farm of names costs its domain's name servers (invariant I8), counted at a DNS server, in
//! paused time and at the real pace.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gateway::Opened;
use gateway::family::Routes;
use hickory_resolver::proto::op::{Message, OpCode, ResponseCode};
use hickory_resolver::proto::rr::rdata::A;
use hickory_resolver::proto::rr::{RData, Record, RecordType};
use protocol::DeadReason;
use protocol::egress::{Deferral, Wish};
use tokio::net::UdpSocket;
use tokio::time::Instant;

use crate::rig::Rig;

/// The gateway looks this up while opens lead to no instance, to know whether its resolver works.
pub(crate) const SURE_NAME: &str = "a.root-servers.net.";

const NAMES: usize = 1_500;
const GROUP_PACE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Everywhere;

impl Routes for Everywhere {
    fn reaches(&self, _address: IpAddr) -> bool {
        true
    }
}

/// A DNS server that knows no name, or resolves all to one address, and records each query with its
/// time, except those for [`SURE_NAME`].
pub(crate) struct NameServer {
    pub(crate) address: SocketAddr,
    pub(crate) asked: Arc<Mutex<BTreeMap<String, Vec<Instant>>>>,
}

impl NameServer {
    /// A server that resolves all names or none but [`SURE_NAME`].
    pub(crate) async fn start(leads_to: Option<Ipv4Addr>) -> Self {
        let sure = |name: &str| (name == SURE_NAME).then_some(Ipv4Addr::LOCALHOST);
        Self::start_by(move |name| sure(name).or(leads_to)).await
    }

    /// A server that resolves names by `leads_to`; names without a result don't exist.
    pub(crate) async fn start_by(
        leads_to: impl Fn(&str) -> Option<Ipv4Addr> + Send + 'static,
    ) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(BTreeMap::<_, Vec<_>>::new()));
        let seen = Arc::clone(&asked);
        tokio::spawn(async move {
            let mut buffer = [0; 4096];
            while let Ok((read, from)) = socket.recv_from(&mut buffer).await {
                let query = Message::from_vec(&buffer[..read]).unwrap();
                let question = query.queries[0].clone();
                let name = question.name().to_ascii();
                let leads_to = leads_to(&name);
                if name != SURE_NAME {
                    let mut seen = seen.lock().unwrap();
                    seen.entry(name).or_default().push(Instant::now());
                }
                let mut answer = Message::response(query.metadata.id, OpCode::Query);
                if leads_to.is_none() {
                    answer.metadata.response_code = ResponseCode::NXDomain;
                }
                let name = question.name().clone();
                if let Some(address) = leads_to.filter(|_| question.query_type() == RecordType::A) {
                    answer.add_answer(Record::from_rdata(name, 600, RData::A(A(address))));
                }
                answer.add_query(question);
                let answer = answer.to_vec().unwrap();
                socket.send_to(&answer, from).await.unwrap();
            }
        });
        Self { address, asked }
    }
}

#[tokio::test(start_paused = true)]
async fn a_farm_of_names_costs_its_name_servers_one_look_up_a_pace() {
    let server = NameServer::start(None).await;
    let resolver = server.address;
    let rig = Rig::start_over("", Box::new(Everywhere), |settings| {
        settings.pace_divisor = 1;
        settings.names_file = None;
        settings.resolvers = vec![resolver];
        settings.dns_timeout = Duration::from_secs(8);
    })
    .await;
    let start = Instant::now();
    let mut waiting: BinaryHeap<_> = (0..NAMES).map(|name| Reverse((start, name))).collect();
    let mut opens = 0;
    while let Some(Reverse((at, name))) = waiting.pop() {
        tokio::time::sleep_until(at).await;
        opens += 1;
        let host = format!("n{name}.farm.test");
        match rig.open_in_group(opens, &host, "farm.test").await.unwrap() {
            Opened::Unreachable { reason, .. } => assert_eq!(reason, DeadReason::NoSuchName),
            Opened::Deferred { retry_after, .. } => {
                waiting.push(Reverse((Instant::now() + retry_after, name)));
            }
            other => panic!("{host}: {other:?}"),
        }
    }
    let took = start.elapsed();
    let asked = server.asked.lock().unwrap();
    assert_eq!(asked.len(), NAMES, "all were looked up in the end");
    let queries: usize = asked.values().map(Vec::len).sum();
    assert!(queries <= 2 * NAMES, "A and AAAA, once each: {queries}");
    let mut look_ups: Vec<_> = asked.values().map(|queries| queries[0]).collect();
    look_ups.sort_unstable();
    let closest = look_ups.windows(2).map(|pair| pair[1] - pair[0]).min();
    eprintln!("{NAMES} names in {took:?}, {opens} opens, {queries} queries, {closest:?} apart");
    assert!(closest.unwrap() >= GROUP_PACE, "I8: {closest:?}");
    let ideal = GROUP_PACE * u32::try_from(NAMES).unwrap();
    assert!(took <= ideal * 13 / 10, "{took:?} instead of {ideal:?}");
    assert!(opens <= 3 * NAMES as u128, "{opens} opens");
}

/// A cached answer for a canary, or for a host that failed before, proves nothing about DNS
/// (invariant I5). The pace of its domain applies nevertheless (I8).
#[tokio::test]
async fn a_wish_for_a_fresh_look_up_passes_over_what_is_remembered_and_over_no_pace() {
    let server = NameServer::start(Some(Ipv4Addr::new(127, 0, 77, 1))).await;
    let resolver = server.address;
    let rig = Rig::start_over("", Box::new(Everywhere), |settings| {
        settings.names_file = None;
        settings.resolvers = vec![resolver];
        settings.dns_timeout = Duration::from_secs(8);
        settings.pace_divisor = 1;
        settings.paces.group = Duration::from_hours(1);
        settings.paces.address = Duration::from_hours(1);
    })
    .await;
    let fresh = Wish {
        fresh: true,
        ..Wish::default()
    };
    let late = async |id, group, wish| match rig.open_wishing(id, "a.test", group, wish).await {
        Ok(Opened::Deferred { why, .. }) => why,
        other => panic!("{other:?}"),
    };
    let queries = || {
        server
            .asked
            .lock()
            .unwrap()
            .get("a.test.")
            .map_or(0, Vec::len)
    };
    // Nothing listens there, but the address is occupied for an hour: later hosts are looked up and
    // deferred.
    let first = rig.open(1, "other.test").await.unwrap();
    assert!(matches!(first, Opened::Unreachable { .. }), "{first:?}");
    let none = Wish::default();
    for (id, group, wish, why, expect) in [
        (2, "one.test", none, Deferral::AddressPace, 2),
        (3, "two.test", none, Deferral::AddressPace, 2),
        (4, "three.test", fresh, Deferral::AddressPace, 4),
        (5, "three.test", fresh, Deferral::GroupPace, 4),
    ] {
        assert_eq!(late(id, group, wish).await, why, "open {id}");
        assert_eq!(queries(), expect, "A and AAAA; open {id}");
    }
}
