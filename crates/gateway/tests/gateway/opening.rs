//! The answers to `open`, and what the control socket rejects.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gateway::control::{Answer, REQUEST_LINE_BYTES_MAX};
use gateway::family::Routes;
use gateway::{ClientError, GatewayError, Opened, Settings, serve};
use local_socket::BindError;
use protocol::egress::{Deferral, Family};
use protocol::{CheckId, DeadReason};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UdpSocket, UnixStream};
use tokio_util::sync::CancellationToken;

use crate::names::{Everywhere, NameServer, SURE_NAME};
use crate::rig::{FakeHost, Rig};

fn reason(opened: Result<Opened, ClientError>) -> (DeadReason, Vec<Family>, String) {
    match opened {
        Ok(Opened::Unreachable {
            reason,
            families,
            detail,
            fresh,
        }) => {
            assert!(fresh);
            (reason, families, detail)
        }
        other => panic!("{other:?}"),
    }
}

pub(crate) fn deferral(opened: Result<Opened, ClientError>) -> (Deferral, Duration) {
    match opened {
        Ok(Opened::Deferred { why, retry_after }) => (why, retry_after),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_hosts_own_failures_have_their_reasons() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let names = format!(
        "none.lab.test nodata\nclosed.lab.test 127.0.0.1 {}\nmeta.lab.test 169.254.169.254 80\n",
        closed.port()
    );
    let rig = Rig::start(&names, |_| ()).await;
    assert_eq!(
        reason(rig.open(1, "absent.lab.test").await).0,
        DeadReason::NoSuchName
    );
    assert_eq!(
        reason(rig.open(2, "none.lab.test").await).0,
        DeadReason::NoAddress
    );
    let (why, families, detail) = reason(rig.open(3, "closed.lab.test").await);
    assert_eq!((why, families), (DeadReason::Unreachable, vec![Family::V4]));
    assert_eq!(detail, "127.0.0.1: refused");
    let (why, families, detail) = reason(rig.open(4, "meta.lab.test").await);
    assert_eq!((why, families), (DeadReason::AddressRefused, vec![]));
    assert!(detail.contains("Link Local"), "{detail}");
    assert!(
        std::fs::read_dir(&rig.root).unwrap().next().is_none(),
        "nothing was opened"
    );
}

/// I2: outside the lab no private address is dialled, and in the lab none that the operator denies.
#[tokio::test]
async fn private_and_denied_addresses_are_never_dialled() {
    let host = FakeHost::start("127.0.0.1:0").await;
    for lab in [false, true] {
        let rig = Rig::start(&host.line("a.lab.test"), |settings| {
            settings.allow_private = lab;
            settings.deny_addresses = vec!["127.0.0.0/30".parse().unwrap()];
        })
        .await;
        assert_eq!(
            reason(rig.open(1, "a.lab.test").await).0,
            DeadReason::AddressRefused
        );
    }
    assert_eq!(host.seen(), (0, 0));
}

#[tokio::test]
async fn dns_trouble_is_deferred_twice_and_then_the_hosts() {
    let rig = Rig::start("a.lab.test servfail\nb.lab.test timeout", |settings| {
        settings.pace_divisor = 1000
    })
    .await;
    for name in ["a.lab.test", "b.lab.test"] {
        for group in ["x.test", "y.test"] {
            let (why, retry_after) =
                deferral(rig.open_in_group(1, name, &format!("{group}{name}")).await);
            assert_eq!(
                (why, retry_after),
                (Deferral::Dns, Duration::from_millis(300))
            );
        }
        assert_eq!(reason(rig.open(1, name).await).0, DeadReason::DnsBroken);
    }
    std::fs::remove_file(&rig.names).unwrap();
    for turn in 0..4 {
        let group = format!("group{turn}.test");
        assert_eq!(
            deferral(rig.open_in_group(1, "c.lab.test", &group).await).0,
            Deferral::Dns
        );
    }
}

/// I8.
#[tokio::test(start_paused = true)]
async fn groups_and_addresses_have_their_pace() {
    let host = FakeHost::start("127.0.0.1:0").await;
    let rig = Rig::start(&host.line("*.lab.test"), |settings| {
        settings.pace_divisor = 1
    })
    .await;
    let Ok(Opened::Ready(egress)) = rig.open_in_group(1, "a.lab.test", "one.test").await else {
        panic!("not ready");
    };
    let (why, retry_after) = deferral(rig.open_in_group(2, "b.lab.test", "one.test").await);
    assert_eq!(why, Deferral::GroupPace);
    assert!(retry_after > Duration::from_secs(5) && retry_after <= Duration::from_secs(10));
    let (why, retry_after) = deferral(rig.open_in_group(2, "b.lab.test", "two.test").await);
    assert_eq!(why, Deferral::AddressPace);
    assert!(retry_after > Duration::from_secs(5) && retry_after <= Duration::from_secs(10));
    egress.close(true).await.unwrap();
    let (_, retry_after) = deferral(rig.open_in_group(2, "b.lab.test", "three.test").await);
    assert!(
        retry_after <= Duration::from_secs(2),
        "proven: {retry_after:?}"
    );
}

#[tokio::test]
async fn no_more_than_the_setting_allows_are_open() {
    let host = FakeHost::start("127.0.0.1:0").await;
    let rig = Rig::start(&host.line("*.lab.test"), |settings| settings.open_max = 1).await;
    let egress = rig.ready(1, "a.lab.test").await;
    assert_eq!(deferral(rig.open(2, "b.lab.test").await).0, Deferral::Full);
    egress.close(false).await.unwrap();
    crate::rig::eventually(|| async { rig.client.status().await.unwrap().open == 0 }).await;
    rig.ready(2, "b.lab.test").await;
}

#[derive(Debug)]
struct OnlyV4;

impl Routes for OnlyV4 {
    fn reaches(&self, address: IpAddr) -> bool {
        address.is_ipv4()
    }
}

#[derive(Debug)]
struct Nothing;

impl Routes for Nothing {
    fn reaches(&self, _address: IpAddr) -> bool {
        false
    }
}

/// I5: a missing family, or a missing network, is our fault.
#[tokio::test]
async fn without_its_family_a_host_is_deferred_and_without_any_we_are_offline() {
    let rig = Rig::start_over("a.lab.test ::1 443", Box::new(OnlyV4), |_| ()).await;
    assert_eq!(
        deferral(rig.open(1, "a.lab.test").await).0,
        Deferral::NoFamily
    );
    assert_eq!(rig.client.status().await.unwrap().families, [Family::V4]);
    let rig = Rig::start_over("a.lab.test ::1 443", Box::new(Nothing), |_| ()).await;
    assert!(matches!(
        rig.open(1, "a.lab.test").await,
        Ok(Opened::Offline)
    ));
    let rig = Rig::start_over("", Box::new(Nothing), |settings| {
        settings.names_file = None;
        settings.resolvers = vec!["127.0.0.1:9".parse().unwrap()];
    })
    .await;
    assert!(matches!(
        rig.open(1, "a.lab.test").await,
        Ok(Opened::Offline)
    ));
}

#[tokio::test]
async fn a_check_id_is_open_once() {
    let host = FakeHost::start("127.0.0.1:0").await;
    let rig = Rig::start(&host.line("*.lab.test"), |_| ()).await;
    let _egress = rig.ready(1, "a.lab.test").await;
    assert!(matches!(
        rig.open(1, "b.lab.test").await,
        Err(ClientError::Refused(_))
    ));
    assert!(rig.directory(1).exists(), "the first one's directory stays");
}

#[tokio::test]
async fn an_extra_ca_is_laid_beside_the_socket() {
    let host = FakeHost::start("127.0.0.1:0").await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "a certificate").unwrap();
    let path = file.path().to_owned();
    let rig = Rig::start(&host.line("a.lab.test"), |settings| {
        settings.extra_ca = Some(path)
    })
    .await;
    let _egress = rig.ready(1, "a.lab.test").await;
    assert_eq!(
        std::fs::read(rig.directory(1).join("ca.pem")).unwrap(),
        b"a certificate"
    );
    let missing = file.path().display().to_string();
    drop(file);
    match rig.open(2, "a.lab.test").await {
        // Our own failure, which affects every check: reported to the orchestrator, not counted
        // against a host.
        Err(ClientError::Refused(why)) => assert!(why.contains(&missing), "{why}"),
        other => panic!("{other:?}"),
    }
    assert!(!rig.directory(2).exists());
}

async fn raw(rig: &Rig, sent: &[u8]) -> Answer {
    let mut stream = UnixStream::connect(&rig.control).await.unwrap();
    // The gateway may close the connection before it has read everything.
    stream.write_all(sent).await.ok();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.ok();
    serde_json::from_slice(&answer).unwrap()
}

#[tokio::test]
async fn what_is_no_request_is_refused() {
    let rig = Rig::start("", |_| ()).await;
    let id = CheckId::from_random(1);
    let escape = r#"{"open":{"check":"../../../../../../../../etc/passwd","host":"a.test","group":"a.test","order":{"contact":"","peers":"ask"}}}"#;
    let group = format!(
        r#"{{"open":{{"check":"{id}","host":"a.test","group":"","order":{{"contact":"","peers":"ask"}}}}}}"#
    );
    for line in [
        "hello",
        "{}",
        r#"{"close":{"proven":true}}"#,
        r#"{"status":{},"close":{"proven":true}}"#,
        escape,
        &group,
    ] {
        let answer = raw(&rig, format!("{line}\n").as_bytes()).await;
        assert!(
            matches!(answer, Answer::Refused { .. }),
            "{line}: {answer:?}"
        );
    }
    let mut stream = UnixStream::connect(&rig.control).await.unwrap();
    stream
        .write_all(&vec![b' '; REQUEST_LINE_BYTES_MAX + 1])
        .await
        .unwrap();
    let mut answer = vec![0; 200];
    let read = stream.read(&mut answer).await.unwrap();
    assert!(String::from_utf8_lossy(&answer[..read]).contains("longer than"));
}

#[tokio::test]
async fn only_one_gateway_serves_and_a_former_lifes_remains_go() {
    let rig = Rig::start("", |_| ()).await;
    let settings = |control: &std::path::Path| Settings {
        control_socket: control.to_owned(),
        egress_root: rig.root.clone(),
        names_file: Some(rig.names.clone()),
        ..Settings::default()
    };
    let in_use = rig.directory(8);
    std::fs::create_dir(&in_use).unwrap();
    let second = serve(settings(&rig.control), CancellationToken::new()).await;
    assert!(
        matches!(second, Err(GatewayError::Listen(BindError::InUse(_)))),
        "{second:?}"
    );
    assert!(in_use.exists(), "the second one swept the first one's");

    let remains = rig.directory(7);
    std::fs::create_dir(&remains).unwrap();
    std::fs::write(remains.join("order.json"), "{}").unwrap();
    let others = rig.root.join("lost+found");
    std::fs::create_dir(&others).unwrap();
    let stale = rig.root.join("stale.sock");
    drop(std::os::unix::net::UnixListener::bind(&stale).unwrap());
    let shutdown = CancellationToken::new();
    let served = tokio::spawn(serve(settings(&stale), shutdown.clone()));
    crate::rig::eventually(|| async { UnixStream::connect(&stale).await.is_ok() }).await;
    assert!(!remains.exists());
    assert!(others.exists());
    shutdown.cancel();
    served.await.unwrap().unwrap();

    let missing = serve(
        Settings {
            egress_root: rig.root.join("missing"),
            ..settings(&stale)
        },
        CancellationToken::new(),
    )
    .await;
    assert!(
        matches!(missing, Err(GatewayError::EgressRoot { .. })),
        "{missing:?}"
    );
}

async fn over_dns(resolver: SocketAddr) -> Rig {
    Rig::start_over("", Box::new(Everywhere), |settings| {
        settings.pace_divisor = u32::MAX;
        settings.names_file = None;
        settings.resolvers = vec![resolver];
        settings.dns_timeout = Duration::from_secs(8);
    })
    .await
}

/// Invariant I5: otherwise an outage of the resolver would count against hosts for a quarter of an
/// hour after its end.
#[tokio::test]
async fn a_denial_is_never_remembered_beyond_its_verdict() {
    let server = NameServer::start(None).await;
    let rig = over_dns(server.address).await;
    for id in 1..=3 {
        let opened = rig.open(id, "denied.example").await.unwrap();
        let Opened::Unreachable { reason, fresh, .. } = opened else {
            panic!("{opened:?}");
        };
        assert_eq!((reason, fresh), (DeadReason::NoSuchName, true));
    }
    let asked = server.asked.lock().unwrap();
    assert_eq!(asked["denied.example."].len(), 6, "A and AAAA, each time");
}

/// Invariant I5. The orchestrator treats a refusal as an outage.
#[tokio::test(start_paused = true)] // S1
async fn resolver_that_never_resolved_is_named_and_judges_no_host() {
    let denying = NameServer::start_by(|_name| None).await;
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for resolver in [denying.address, silent.local_addr().unwrap()] {
        let rig = over_dns(resolver).await;
        for id in 1..=2 {
            // Time stands still, so only another group has its turn.
            let group = format!("{id}.example");
            let opened = rig.open_in_group(id, "first.example", &group);
            let Err(ClientError::Refused(why)) = opened.await else {
                panic!("{resolver} is believed");
            };
            assert!(why.contains("127.0.0.1"), "{why}");
        }
    }
    let asked = denying.asked.lock().unwrap();
    assert_eq!(asked["first.example."].len(), 4, "A and AAAA, each time");
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dns {
    Sound,
    Denies,
    Astray,
}

/// Invariant I5. Dead names alone are no reason to doubt the resolver.
#[tokio::test] // S1
async fn resolver_that_fails_later_is_named_until_it_works_again() {
    let dns = Arc::new(Mutex::new(Dns::Sound));
    let now = Arc::clone(&dns);
    let server = NameServer::start_by(move |name| match *now.lock().unwrap() {
        Dns::Sound => (name == SURE_NAME).then_some(Ipv4Addr::new(198, 41, 0, 4)),
        Dns::Denies => None,
        Dns::Astray => Some(Ipv4Addr::new(127, 0, 77, 1)),
    })
    .await;
    let rig = over_dns(server.address).await;
    for id in 1..=7 {
        let opened = rig.open(id, &format!("h{id}.example")).await.unwrap();
        assert!(matches!(opened, Opened::Unreachable { .. }), "{opened:?}");
    }
    for (id, next, says) in [
        (10, Dns::Denies, "says that no name exists"),
        (20, Dns::Astray, "leads all names to 127.0.77.1"),
    ] {
        *dns.lock().unwrap() = next;
        let mut why = String::new();
        for id in id..id + 4 {
            let opened = rig.open(id, &format!("h{id}.example")).await;
            if let Err(ClientError::Refused(refusal)) = opened {
                why = refusal;
            }
        }
        assert!(why.contains(says), "{why}");
        let status = rig.client.status().await.unwrap();
        assert_eq!(status.trouble, Some(why));
        *dns.lock().unwrap() = Dns::Sound;
        crate::rig::eventually(|| async {
            let status = rig.client.status().await.unwrap();
            status.trouble.is_none()
        })
        .await;
    }
}
