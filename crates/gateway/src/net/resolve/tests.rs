use kit::host;
use std::net::Ipv4Addr;
use std::sync::Arc;

use hickory_resolver::proto::op::{Message, OpCode};
use hickory_resolver::proto::rr::rdata::{A, AAAA, CNAME, SOA};
use hickory_resolver::proto::rr::{RData, Record};
use tokio::net::UdpSocket;

use super::*;

mod texts;

/// The answers of the test's DNS server by name and type; `None` is silence.
type Zone = fn(&str, RecordType) -> Option<(ResponseCode, Vec<RData>)>;

const BOTH: [Family; 2] = [Family::V6, Family::V4];

struct Server {
    address: SocketAddr,
    queries: Arc<Mutex<Vec<String>>>,
    _task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// A DNS server on loopback; TTL 60 s everywhere.
    async fn start(zone: Zone) -> Self {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let address = socket.local_addr().unwrap();
        let queries = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&queries);
        let task = tokio::spawn(async move {
            let mut buffer = [0; 4096];
            while let Ok((read, from)) = socket.recv_from(&mut buffer).await {
                let query = Message::from_vec(&buffer[..read]).unwrap();
                let asked = query.queries[0].clone();
                let (name, kind) = (asked.name().to_ascii(), asked.query_type());
                let (mark, name) = name.split_once("--").unwrap_or(("", &name));
                seen.lock().unwrap().push(format!("{name} {kind} {from}"));
                let Some((mut code, mut data)) = zone(name, kind) else {
                    continue;
                };
                if mark == "old" && query.edns.is_some() {
                    (code, data) = (ResponseCode::FormErr, Vec::new());
                }
                let mut answer = Message::response(query.metadata.id, OpCode::Query);
                answer.metadata.response_code = code;
                // Some old servers reject EDNS with a header alone.
                if code != ResponseCode::FormErr {
                    answer.add_query(asked.clone());
                }
                if data.is_empty() {
                    let zone = Name::from_ascii("test.").unwrap();
                    let soa = SOA::new(zone.clone(), zone.clone(), 1, 1, 1, 1, 60);
                    answer.add_authority(Record::from_rdata(zone, 60, RData::SOA(soa)));
                }
                for rdata in data {
                    answer.add_answer(Record::from_rdata(asked.name().clone(), 60, rdata));
                }
                let seconds = match (mark, kind) {
                    ("late", _) => 9,
                    ("slow6", RecordType::AAAA) => 2,
                    _ => 0,
                };
                let socket = Arc::clone(&socket);
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    let answer = answer.to_vec().unwrap();
                    socket.send_to(&answer, from).await.unwrap();
                });
            }
        });
        Self {
            address,
            queries,
            _task: task,
        }
    }

    fn resolver(&self) -> Resolver {
        resolver(self.address, Duration::from_secs(4))
    }

    fn queries(&self) -> usize {
        self.queries.lock().unwrap().len()
    }
}

fn resolver(address: SocketAddr, dns_timeout: Duration) -> Resolver {
    let settings = Settings {
        resolvers: vec![address],
        dns_timeout,
        ..Settings::default()
    };
    Resolver::new(&settings).unwrap()
}

fn a(octets: [u8; 4]) -> RData {
    RData::A(A(Ipv4Addr::from(octets)))
}

fn zone(name: &str, kind: RecordType) -> Option<(ResponseCode, Vec<RData>)> {
    let none = Vec::new();
    let answer = match (name, kind) {
        ("both.test.", RecordType::A) => (ResponseCode::NoError, vec![a([8, 8, 8, 8])]),
        ("both.test." | "six.test.", RecordType::AAAA) => {
            let v6 = "2606:4700::1111".parse().unwrap();
            (ResponseCode::NoError, vec![RData::AAAA(AAAA(v6))])
        }
        ("four.test.", RecordType::A) => (ResponseCode::NoError, vec![a([10, 0, 0, 1])]),
        ("alias.test.", _) => {
            let target = Name::from_ascii("four.test.").unwrap();
            (ResponseCode::NoError, vec![RData::CNAME(CNAME(target))])
        }
        ("dangling.test.", _) => {
            let target = Name::from_ascii("nowhere.test.").unwrap();
            (ResponseCode::NoError, vec![RData::CNAME(CNAME(target))])
        }
        ("loop.test.", _) => {
            let target = Name::from_ascii("loop.test.").unwrap();
            (ResponseCode::NoError, vec![RData::CNAME(CNAME(target))])
        }
        ("half.test.", RecordType::A) => (ResponseCode::NoError, vec![a([9, 9, 9, 9])]),
        ("half.test.", _) | ("servfail.test.", _) => (ResponseCode::ServFail, none),
        ("silent.test.", _) => return None,
        ("many.test.", RecordType::A) => {
            let all = (0..40).map(|index| a([8, 8, index, 8])).collect();
            (ResponseCode::NoError, all)
        }
        ("empty.test." | "four.test." | "many.test." | "six.test.", _) => {
            (ResponseCode::NoError, none)
        }
        _ => (ResponseCode::NXDomain, none),
    };
    Some(answer)
}

async fn check(name: &str, expect: Resolution) {
    let server = Server::start(zone).await;
    assert_eq!(
        server.resolver().resolve(&host(name), &BOTH).await,
        expect,
        "{name}"
    );
}

fn found(targets: &[&str]) -> Resolution {
    Resolution::Found {
        targets: targets.iter().map(|text| text.parse().unwrap()).collect(),
        fresh: true,
    }
}

#[tokio::test]
async fn names_lead_to_addresses_of_both_families() {
    check(
        "both.test",
        found(&["[2606:4700::1111]:443", "8.8.8.8:443"]),
    )
    .await;
    check("four.test", found(&["10.0.0.1:443"])).await;
    check("alias.test", found(&["10.0.0.1:443"])).await;
    check("old--four.test", found(&["10.0.0.1:443"])).await;
}

#[tokio::test]
async fn what_dns_denies_is_the_hosts_own() {
    check("nowhere.test", Resolution::NoSuchName { fresh: true }).await;
    check("dangling.test", Resolution::NoSuchName { fresh: true }).await;
    check("empty.test", Resolution::NoAddress { fresh: true }).await;
}

#[tokio::test]
async fn addresses_of_one_family_are_enough_when_the_other_fails() {
    check("half.test", found(&["9.9.9.9:443"])).await;
}

/// An embedded forwarder tries several resolvers before it answers the first question.
#[tokio::test(start_paused = true)]
async fn a_late_answer_finds_the_socket_of_its_question() {
    let server = Server::start(zone).await;
    let resolver = resolver(server.address, Settings::default().dns_timeout);
    let late = resolver.resolve(&host("late--four.test"), &BOTH).await;
    assert_eq!(late, found(&["10.0.0.1:443"]));
    let queries = server.queries.lock().unwrap();
    let sockets: std::collections::HashSet<_> = queries.iter().collect();
    // A and AAAA, after 0, 1, 3 and 7 s.
    assert_eq!((sockets.len(), queries.len()), (2, 8), "{queries:?}");
}

#[tokio::test(start_paused = true)]
async fn aaaa_may_be_late_and_is_requested_last_without_ipv6() {
    let (v6, v4) = ("[2606:4700::1111]:443", "8.8.8.8:443");
    for (name, families, targets, seconds) in [
        ("slow6--both.test", &BOTH[..], &[v4][..], 1),
        ("slow6--both.test", &[Family::V6], &[v6, v4], 2),
        ("both.test", &[Family::V4], &[v4], 0),
        ("six.test", &[Family::V4], &[v6], 0),
    ] {
        let (server, start) = (Server::start(zone).await, now());
        let resolution = server.resolver().resolve(&host(name), families).await;
        assert_eq!(resolution, found(targets), "{name} {families:?}");
        assert_eq!(now().duration_since(start).as_secs(), seconds);
        assert_eq!(server.queries() == 1, name == "both.test", "A alone");
    }
}

#[tokio::test]
async fn an_answer_is_cut_to_its_bound() {
    let server = Server::start(zone).await;
    let Resolution::Found { targets, .. } =
        server.resolver().resolve(&host("many.test"), &BOTH).await
    else {
        panic!("not found");
    };
    assert_eq!(targets.len(), ADDRESSES_MAX / 2);
}

#[tokio::test]
async fn an_alias_of_itself_ends() {
    let server = Server::start(zone).await;
    let resolution = server.resolver().resolve(&host("loop.test"), &BOTH).await;
    assert!(
        !matches!(resolution, Resolution::Found { .. }),
        "{resolution:?}"
    );
    assert!(server.queries() < 50);
}

#[tokio::test]
async fn answers_are_remembered_and_then_not_fresh() {
    let server = Server::start(zone).await;
    let resolver = server.resolver();
    for name in ["both.test", "nowhere.test", "empty.test"] {
        let first = resolver.resolve(&host(name), &BOTH).await;
        let asked = server.queries();
        let second = resolver.resolve(&host(name), &BOTH).await;
        assert_eq!(server.queries(), asked, "{name}");
        let fresh = |resolution: &Resolution| match resolution {
            Resolution::Found { fresh, .. }
            | Resolution::NoSuchName { fresh }
            | Resolution::NoAddress { fresh } => *fresh,
            other => panic!("{other:?}"),
        };
        assert!(fresh(&first) && !fresh(&second), "{name}");
    }
}

#[tokio::test]
async fn an_answer_lives_as_long_as_its_ttl() {
    let server = Server::start(zone).await;
    let resolver = server.resolver();
    resolver.resolve(&host("four.test"), &BOTH).await;
    let mut memory = resolver.memory();
    let known = Some(Known::Found(vec!["10.0.0.1:443".parse().unwrap()]));
    let now = Instant::now();
    assert_eq!(
        memory.remembered(&host("four.test"), now + Duration::from_secs(55)),
        known
    );
    assert_eq!(
        memory.remembered(&host("four.test"), now + Duration::from_secs(61)),
        None
    );
}

#[tokio::test]
async fn the_third_servfail_in_a_row_breaks_a_name() {
    let server = Server::start(zone).await;
    let resolver = server.resolver();
    for turn in 1..=4 {
        let resolution = resolver.resolve(&host("servfail.test"), &BOTH).await;
        let is_broken = matches!(resolution, Resolution::Broken { .. });
        let is_failing = matches!(resolution, Resolution::Failing { .. });
        assert_eq!((is_failing, is_broken), (turn < 3, turn >= 3), "{turn}");
        // Another name is answered between its failures, so our resolver works.
        resolver.memory().cache.clear();
        resolver.resolve(&host("both.test"), &BOTH).await;
    }
}

/// I5: a failing resolver of ours looks like a broken name, and must not count as one.
#[tokio::test]
async fn a_silent_resolver_never_breaks_a_name() {
    let server = Server::start(|_, _| None).await;
    let resolver = resolver(server.address, Duration::from_millis(40));
    for _ in 0..6 {
        let resolution = resolver.resolve(&host("silent.test"), &BOTH).await;
        assert!(
            matches!(resolution, Resolution::Failing { .. }),
            "{resolution:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn silence_for_one_name_alone_breaks_it() {
    let server = Server::start(zone).await;
    let resolver = resolver(server.address, Duration::from_millis(400));
    let mut last = Resolution::Offline;
    for _ in 0..3 {
        last = resolver.resolve(&host("silent.test"), &BOTH).await;
        resolver.memory().cache.clear();
        resolver.resolve(&host("both.test"), &BOTH).await;
    }
    assert!(matches!(last, Resolution::Broken { .. }), "{last:?}");
}

#[test]
fn an_answer_ends_a_row_of_failures() {
    let mut memory = Memory::default();
    let (a, b) = (host("a.test"), host("b.test"));
    let start = Instant::now();
    let mut second = 0;
    let mut later = || {
        second += 1;
        start + Duration::from_secs(second)
    };
    for _ in 0..2 {
        assert!(matches!(memory.failed(&a, later()), Verdict::Wait));
        memory.answered(&b, later());
    }
    memory.answered(&a, later());
    for _ in 0..2 {
        assert!(matches!(memory.failed(&a, later()), Verdict::Wait));
        memory.answered(&b, later());
    }
    assert!(matches!(memory.failed(&a, later()), Verdict::Broken));
}

#[test]
fn a_resolver_without_a_route_means_offline_and_a_dead_one_is_ours() {
    let io = |kind: io::ErrorKind| NetError::Io(Arc::new(kind.into()));
    assert!(matches!(
        judge(&io(io::ErrorKind::NetworkUnreachable)),
        Answer::NoRoute
    ));
    assert!(matches!(
        judge(&io(io::ErrorKind::ConnectionRefused)),
        Answer::OwnFailure(_)
    ));
    assert!(matches!(judge(&NetError::Busy), Answer::OwnFailure(_)));
    let failed = NetError::Dns(DnsError::ResponseCode(ResponseCode::ServFail));
    for kind in [io::ErrorKind::Other, io::ErrorKind::UnexpectedEof] {
        let halves = vec![Half::Failed(io(kind)), Half::Failed(failed.clone())];
        assert!(matches!(combine(halves), Answer::OwnFailure(_)), "{kind}");
    }
    assert!(matches!(judge(&NetError::Timeout), Answer::Failure(_)));
}

#[test]
fn the_engines_own_resolver_is_named_as_such() {
    let settings = Settings {
        resolvers: vec![(DOCKERS, 53).into(), "192.0.2.1:53".parse().unwrap()],
        ..Settings::default()
    };
    let Ok(Source::Dns(_, servers)) = dns(&settings) else {
        panic!("it needs no network");
    };
    let expect = "127.0.0.11 (Docker's own, which asks this machine's) and 192.0.2.1";
    assert_eq!(servers, expect);
}

#[test]
fn memory_is_bounded() {
    let mut memory = Memory::default();
    let now = Instant::now();
    for index in 0..CACHE_NAMES_MAX + 3 {
        let ttl = Duration::from_secs(u64::try_from(index).unwrap() + 100);
        memory.remember(&host(&format!("n{index}.test")), Known::NoAddress, ttl, now);
    }
    assert_eq!(memory.cache.len(), CACHE_NAMES_MAX);
    assert!(memory.remembered(&host("n0.test"), now).is_none());
    assert!(memory.remembered(&host("n3.test"), now).is_some());
}
