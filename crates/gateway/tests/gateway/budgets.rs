//! Bounds on what one check may use.

use std::time::Duration;

use protocol::egress::Budget;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::rig::{BIG_BYTES, FakeHost, Rig, eventually};

#[tokio::test] // S6
async fn bytes_end_every_connection_of_the_check() {
    let host = FakeHost::start("127.0.0.1:0").await;
    let rig = Rig::start(&host.line("a.lab.test"), |settings| {
        settings.budget.bytes_down_max = 100_000;
    })
    .await;
    let egress = rig.ready(1, "a.lab.test").await;
    let mut idle = host.tls(rig.checker(1).await, "a.lab.test").await.unwrap();
    let mut tls = host.tls(rig.checker(1).await, "a.lab.test").await.unwrap();
    tls.write_all(b"big").await.unwrap();
    let mut received = Vec::new();
    assert!(
        tls.read_to_end(&mut received).await.is_err(),
        "cut within TLS"
    );
    assert!(received.len() < BIG_BYTES);
    assert!(matches!(idle.read(&mut [0; 16]).await, Ok(0) | Err(_)));
    let account = egress.close(false).await.unwrap();
    assert_eq!(account.budget_hit, Some(Budget::Bytes));
    assert!(account.bytes_down <= 100_000, "{account:?}");
}

#[tokio::test] // S6
async fn connections_are_counted_refused_ones_included() {
    let host = FakeHost::start("127.0.0.1:0").await;
    let rig = Rig::start(&host.line("a.lab.test"), |settings| {
        settings.budget.connections_max = 3
    })
    .await;
    let egress = rig.ready(1, "a.lab.test").await;
    assert!(host.tls(rig.checker(1).await, "b.lab.test").await.is_err());
    host.echo(&rig, 1, "a.lab.test", "one").await;
    host.echo(&rig, 1, "a.lab.test", "two").await;
    assert!(host.tls(rig.checker(1).await, "a.lab.test").await.is_err());
    let socket = rig.directory(1).join("https.sock");
    eventually(|| async { UnixStream::connect(&socket).await.is_err() }).await;
    let account = egress.close(false).await.unwrap();
    assert_eq!((account.connections, account.sni_refused), (2, 1));
    assert_eq!(account.budget_hit, Some(Budget::Connections));
}

/// I4: whatever the checker and its host do, their connections end in time, and the account is
/// still available.
#[tokio::test(start_paused = true)] // S6
async fn time_ends_every_connection_of_the_check() {
    const TIME: Duration = Duration::from_secs(60);
    const LAST: Duration = Duration::from_secs(1);
    let host = FakeHost::start("127.0.0.1:0").await;
    let rig = Rig::start(&host.line("a.lab.test"), |settings| {
        settings.budget.time_max = TIME;
    })
    .await;
    let egress = rig.ready(1, "a.lab.test").await;
    let begun = tokio::time::Instant::now();
    let mut connections = Vec::new();
    for _ in 0..3 {
        connections.push(host.tls(rig.checker(1).await, "a.lab.test").await.unwrap());
    }
    tokio::time::advance(TIME - LAST).await;
    let mut silent = rig.checker(1).await;
    for tls in &mut connections {
        tls.write_all(b"still here").await.unwrap();
        let mut back = [0; 10];
        tls.read_exact(&mut back).await.unwrap();
        assert_eq!(&back, b"still here");
    }
    // Before the time limit for a client without a hello.
    let ends = begun + TIME + LAST;
    for tls in &mut connections {
        let ended = tokio::time::timeout_at(ends, tls.read(&mut [0; 16])).await;
        assert!(matches!(ended, Ok(Ok(0) | Err(_))), "{ended:?}");
    }
    let ended = tokio::time::timeout_at(ends, silent.read(&mut [0; 16])).await;
    assert!(matches!(ended, Ok(Ok(0) | Err(_))), "{ended:?}");
    let account = egress.close(false).await.unwrap();
    assert_eq!(account.budget_hit, Some(Budget::Time));
}

/// I5: the time that a host waits for a container slot does not count against it.
#[tokio::test(start_paused = true)]
async fn time_runs_from_the_first_connection_not_from_the_open() {
    let host = FakeHost::start("127.0.0.1:0").await;
    let rig = Rig::start(&host.line("a.lab.test"), |settings| {
        settings.budget.time_max = Duration::from_millis(1);
        settings.budget.unused_max = Duration::from_secs(60);
    })
    .await;
    let egress = rig.ready(1, "a.lab.test").await;
    // The socket accepts a connection long after `time_max`, which begins only then.
    let unused = tokio::time::timeout(Duration::from_millis(100), std::future::pending::<()>());
    assert!(unused.await.is_err());
    let connection = UnixStream::connect(rig.directory(1).join("https.sock")).await;
    assert!(connection.is_ok());
    let account = egress.close(false).await.unwrap();
    assert_ne!(
        account.budget_hit,
        Some(Budget::Time),
        "closed before its time began"
    );
}
