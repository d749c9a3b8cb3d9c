//! What passes through an egress socket, and what doesn't.

use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gateway::family::Routes;
use protocol::CheckOrder;
use protocol::egress::FailedSide;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::rig::{FakeHost, Rig, eventually, order};

fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a_checker_reaches_its_host_and_the_account_says_how() {
    let host = FakeHost::start("127.0.0.1:0").await;
    let rig = Rig::start(&host.line("a.lab.test"), |_| ()).await;
    let egress = rig.ready(1, "a.lab.test").await;
    assert_eq!((egress.address, egress.fresh), (host.address.ip(), true));
    let directory = rig.directory(1);
    assert_eq!(mode(&directory), 0o711);
    assert_eq!(mode(&directory.join("https.sock")), 0o666);
    assert_eq!(mode(&directory.join("order.json")), 0o644);
    let laid: CheckOrder =
        serde_json::from_slice(&std::fs::read(directory.join("order.json")).unwrap()).unwrap();
    assert_eq!(laid, order());
    assert!(!directory.join("ca.pem").exists());

    host.echo(&rig, 1, "a.lab.test", "one").await;
    assert_eq!(
        host.seen(),
        (1, 1),
        "the connection dialled at open is the first one handed out"
    );
    host.echo(&rig, 1, "A.lab.test", "two").await;
    assert_eq!(host.seen(), (2, 2));

    let account = egress.close(true).await.unwrap();
    assert_eq!((account.connections, account.sni_refused), (2, 0));
    assert_eq!(
        (account.failed, account.budget_hit, account.up),
        (FailedSide::None, None, true)
    );
    assert!(
        account.bytes_up > 500 && account.bytes_down > 500,
        "{account:?}"
    );
    assert!(!directory.exists());
    let status = rig.client.status().await.unwrap();
    assert_eq!(
        (
            status.open,
            status.opens_total,
            status.dials_total,
            status.lab
        ),
        (0, 1, 2, true)
    );
}

/// I1: through its socket a checker reaches no other name, not even one at the same address.
#[tokio::test] // S6
async fn another_name_or_no_tls_never_reaches_the_host() {
    let host = FakeHost::start("127.0.0.1:0").await;
    let rig = Rig::start(&host.line("a.lab.test"), |_| ()).await;
    let egress = rig.ready(1, "a.lab.test").await;
    assert!(host.tls(rig.checker(1).await, "b.lab.test").await.is_err());
    let mut plain = rig.checker(1).await;
    plain
        .write_all(b"GET / HTTP/1.1\r\nHost: a.lab.test\r\n\r\n")
        .await
        .unwrap();
    assert!(matches!(plain.read(&mut [0; 16]).await, Ok(0) | Err(_)));
    assert_eq!(host.seen(), (1, 0));
    host.echo(&rig, 1, "a.lab.test", "still").await;
    let account = egress.close(false).await.unwrap();
    assert_eq!((account.connections, account.sni_refused), (1, 2));
}

/// I2: a name is resolved once per check, and pinned.
#[tokio::test]
async fn a_name_that_moves_within_a_check_is_still_asked_at_its_first_address() {
    let host = FakeHost::start("127.0.0.1:0").await;
    let elsewhere = FakeHost::start("127.0.0.1:0").await;
    let rig = Rig::start(&host.line("a.lab.test"), |_| ()).await;
    let _egress = rig.ready(1, "a.lab.test").await;
    host.echo(&rig, 1, "a.lab.test", "one").await;
    std::fs::write(&rig.names, elsewhere.line("a.lab.test")).unwrap();
    host.echo(&rig, 1, "a.lab.test", "two").await;
    assert_eq!((host.seen(), elsewhere.seen()), ((2, 2), (0, 0)));
    let _next = rig.ready(2, "a.lab.test").await;
    elsewhere.echo(&rig, 2, "a.lab.test", "three").await;
}

#[tokio::test]
async fn a_first_connection_that_the_host_closed_meanwhile_is_dialled_again() {
    let closing = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = closing.local_addr().unwrap();
    let rig = Rig::start(&format!("a.lab.test 127.0.0.1 {}", address.port()), |_| ()).await;
    let _egress = rig.ready(1, "a.lab.test").await;
    let (first, _) = closing.accept().await.unwrap();
    drop((first, closing));
    let host = FakeHost::start(&address.to_string()).await;
    // The end of the first connection must have arrived; loopback delivers it within the close
    // itself.
    tokio::task::yield_now().await;
    host.echo(&rig, 1, "a.lab.test", "again").await;
    assert_eq!(host.seen(), (1, 1));
}

#[tokio::test]
async fn a_host_that_takes_no_second_connection_has_failed() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let rig = Rig::start(&format!("a.lab.test 127.0.0.1 {port}"), |_| ()).await;
    let egress = rig.ready(1, "a.lab.test").await;
    let (first, _) = listener.accept().await.unwrap();
    drop((first, listener));
    let stranger = FakeHost::start("127.0.0.1:0").await;
    assert!(
        stranger
            .tls(rig.checker(1).await, "a.lab.test")
            .await
            .is_err()
    );
    let account = egress.close(false).await.unwrap();
    assert_eq!((account.connections, account.failed), (0, FailedSide::Host));
}

#[tokio::test]
async fn ipv6_hosts_are_reached_where_the_machine_has_it() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return;
    }
    let host = FakeHost::start("[::1]:0").await;
    let rig = Rig::start(&host.line("a.lab.test"), |_| ()).await;
    let egress = rig.ready(1, "a.lab.test").await;
    assert!(egress.address.is_ipv6());
    host.echo(&rig, 1, "a.lab.test", "six").await;
}

#[derive(Debug)]
struct Cable(Arc<AtomicBool>);

impl Routes for Cable {
    fn reaches(&self, _address: IpAddr) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// I5: a check during which the network disappeared is recognised.
#[tokio::test]
async fn the_account_says_that_the_network_went_away() {
    let host = FakeHost::start("127.0.0.1:0").await;
    let plugged = Arc::new(AtomicBool::new(true));
    let cable = Box::new(Cable(Arc::clone(&plugged)));
    let rig = Rig::start_over(&host.line("a.lab.test"), cable, |_| ()).await;
    let egress = rig.ready(1, "a.lab.test").await;
    plugged.store(false, Ordering::SeqCst);
    assert!(!egress.close(false).await.unwrap().up);
    plugged.store(true, Ordering::SeqCst);
    let egress = rig.ready(2, "a.lab.test").await;
    assert!(egress.close(false).await.unwrap().up);
}

#[tokio::test]
async fn an_open_whose_orchestrator_went_away_leaves_nothing() {
    let host = FakeHost::start("127.0.0.1:0").await;
    let rig = Rig::start(&host.line("a.lab.test"), |_| ()).await;
    let egress = rig.ready(1, "a.lab.test").await;
    let mut tls = host.tls(rig.checker(1).await, "a.lab.test").await.unwrap();
    drop(egress);
    eventually(|| async { !rig.directory(1).exists() }).await;
    assert!(
        matches!(tls.read(&mut [0; 16]).await, Ok(0) | Err(_)),
        "connections end with it"
    );
    eventually(|| async { rig.client.status().await.unwrap().open == 0 }).await;
}

#[tokio::test]
async fn a_gateway_that_ends_is_noticed_and_cleans_up() {
    let host = FakeHost::start("127.0.0.1:0").await;
    let mut rig = Rig::start(&host.line("a.lab.test"), |_| ()).await;
    let mut egress = rig.ready(1, "a.lab.test").await;
    rig.shutdown.cancel();
    egress.lost().await;
    assert!(matches!(
        egress.close(false).await,
        Err(gateway::ClientError::BrokenOff(_))
    ));
    (&mut rig.served).await.unwrap().unwrap();
    assert!(!rig.directory(1).exists());
    assert!(!rig.control.exists());
    assert!(matches!(
        rig.client.status().await,
        Err(gateway::ClientError::NotThere(_))
    ));
}
