//! Two gateways that keep one ledger of paces.

use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use gateway::family::SystemRoutes;
use gateway::net::dial::{Dialled, Dialler};
use gateway::net::ledger::{GRANT_TIME_MAX, PaceLedger};
use gateway::{ClientError, Paces, Settings};
use protocol::egress::Deferral;
use tokio::net::UnixListener;
use tokio::time::{Instant, advance};

use crate::opening::deferral;
use crate::rig::{FakeHost, Rig};

/// I5 and I8. The orchestrator treats a refusal as an outage.
#[tokio::test(start_paused = true)]
async fn second_gateway_visits_only_by_the_first_ones_ledger() {
    let host = FakeHost::start("127.0.0.1:0").await;
    for waits in [Duration::ZERO, GRANT_TIME_MAX] {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("ledger.sock");
        let silent = (!waits.is_zero()).then(|| UnixListener::bind(&socket).unwrap());
        let second = Rig::start(&host.line("a.lab.test"), |settings| {
            settings.other_ledger = Some(socket.clone());
        })
        .await;
        let begin = Instant::now();
        // Its name does not exist: nothing has resolved it.
        let opened = second.open(1, "absent.lab.test").await;
        assert_eq!(begin.elapsed(), waits);
        let Err(ClientError::Refused(why)) = opened else {
            panic!("{opened:?}");
        };
        let trouble = async || second.client.status().await.unwrap().trouble;
        assert_eq!(trouble().await, Some(why));
        drop(silent);
        let first = Rig::start(&host.line("a.lab.test"), |settings| {
            settings.pace_divisor = 1;
            settings.ledger_socket = Some(socket);
        })
        .await;
        assert_eq!(trouble().await, None);
        let egress = second.ready(1, "a.lab.test").await;
        // The visit may have been later than its charge, so the pace alone is too short.
        let waits = async |group: &str, expect: Deferral, pace: Duration| {
            let (why, waits) = deferral(first.open_in_group(1, "a.lab.test", group).await);
            assert_eq!(why, expect);
            assert!(waits > pace && waits <= pace + GRANT_TIME_MAX, "{waits:?}");
        };
        let paces = Paces::default();
        waits("a.lab.test", Deferral::GroupPace, paces.group).await;
        waits("b.lab.test", Deferral::AddressPace, paces.address).await;
        egress.close(true).await.unwrap();
        waits("c.lab.test", Deferral::BlockPace, paces.block).await;
    }
}

/// I5 and I8. A process that was stopped and continued finds an answer from before.
#[tokio::test(start_paused = true)]
async fn host_is_undecided_if_a_turn_between_dials_comes_late() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ledger.sock");
    let mut listener = local_socket::bind(&path, 0o600).unwrap();
    let mut settings = Settings::default();
    let first = PaceLedger::new(&settings);
    settings.other_ledger = Some(path);
    let dialler = Dialler {
        paces: &PaceLedger::new(&settings),
        routes: &SystemRoutes,
        settings: &settings,
        dials_total: &AtomicU64::new(0),
    };
    let answers = async {
        for stops in [Duration::ZERO, GRANT_TIME_MAX * 2] {
            let stream = listener.accept().await.unwrap();
            let answer = async |request| first.answer(request, GRANT_TIME_MAX);
            let answered = local_socket::answer_one(stream, GRANT_TIME_MAX, answer);
            answered.await.unwrap();
            advance(stops).await;
        }
    };
    // No server listens there.
    let targets = [1, 2].map(|block| SocketAddr::from(([127, 0, block, 1], 1)));
    let dialled = tokio::join!(dialler.dial(&targets), answers).0;
    assert!(matches!(dialled, Dialled::NoLedger(why) if why.contains("too late")));
}
