use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use ::push::remote::wire::Daemon;
use gateway::control::Answer as GatewayAnswer;
use local_socket::Ask as _;
use protocol::DeadReason;
use protocol::egress::Deferral;
use protocol::order::delivery::{Message, MessageBody};
use protocol::{ListPath, limits};
use store::Store;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::check::services::tests::services;

const PUSH_SERVICE: &str = "wns2.push.example.com";

/// A daemon's socket, and a gateway that always gives the same answer and counts requests.
struct Rig {
    dir: TempDir,
    store: Store,
    asked: Arc<AtomicUsize>,
    daemon: Daemon,
    shutdown: CancellationToken,
}

impl Rig {
    fn new(gateway: &GatewayAnswer) -> Self {
        let dir = TempDir::new().unwrap();
        let store = store::open(&dir.path().join("census.db")).unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let gateway_socket = dir.path().join("gateway.sock");
        play_gateway(&gateway_socket, gateway, &asked);
        let names = ["push.example.com", "other.example.com"];
        let names = names.map(|name| Host::parse(name).unwrap()).to_vec();
        let handler = PushHandler::new(services(&store, &gateway_socket), names.into());
        let socket = dir.path().join("push.sock");
        let server = PushServer::open(&socket, Arc::new(handler)).unwrap();
        let shutdown = CancellationToken::new();
        tokio::spawn(server.serve(shutdown.clone()));
        Self {
            dir,
            store,
            asked,
            daemon: Daemon::new(socket),
            shutdown,
        }
    }

    async fn deliver(&self, host: &str) -> Answer {
        let request = Request::Deliver {
            host: Host::parse(host).unwrap(),
            messages: DeliveryOrder::new(vec![message()]).unwrap(),
        };
        self.daemon.ask(&request).await.unwrap()
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

fn message() -> Message {
    Message {
        path: ListPath::parse("/p").unwrap(),
        ttl_s: 60,
        topic: "t".to_owned().try_into().unwrap(),
        authorization: "vapid t=a,k=b".to_owned().try_into().unwrap(),
        body: MessageBody::new(b"hi".to_vec()).unwrap(),
    }
}

fn play_gateway(path: &Path, answer: &GatewayAnswer, asked: &Arc<AtomicUsize>) {
    let listener = UnixListener::bind(path).unwrap();
    let answer = serde_json::to_string(answer).unwrap() + "\n";
    let asked = Arc::clone(asked);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (reader, mut writer) = stream.into_split();
            let mut line = String::new();
            BufReader::new(reader).read_line(&mut line).await.unwrap();
            assert!(line.contains(r#""delivery":[{"path":"/p""#), "{line}");
            asked.fetch_add(1, Ordering::Relaxed);
            writer.write_all(answer.as_bytes()).await.unwrap();
        }
    });
}

fn deferred() -> GatewayAnswer {
    GatewayAnswer::Deferred {
        why: Deferral::GroupPace,
        retry_after_ms: 9_000,
    }
}

#[tokio::test] // S37
async fn only_hosts_of_the_daemons_own_setting_are_asked() {
    let rig = Rig::new(&deferred());
    for host in [
        "example.com",
        "evil-push.example.com",
        "push.example.com.evil.net",
        "fcm.googleapis.com",
    ] {
        assert_eq!(
            rig.deliver(host).await,
            Answer::NotAPushService {},
            "{host}"
        );
    }
    assert_eq!(rig.asked(), 0);
    let answer = rig.deliver(PUSH_SERVICE).await;
    let later = Answer::NotNow {
        why: "not now: its registered domain was just visited".to_owned(),
        retry_after_s: 10,
    };
    assert_eq!((answer, rig.asked()), (later, 1));
}

/// Invariant I7: robots.txt is the most that is requested, and not even that after an opt-out.
#[tokio::test] // S37
async fn a_host_that_opted_out_is_not_asked() {
    let rig = Rig::new(&deferred());
    let host = Host::parse(PUSH_SERVICE).unwrap();
    let by = census::state::OptedOutBy::Owner;
    let writer = rig.store.writer();
    let now = census::time::Timestamp(1_790_000_000_000);
    writer.opt_out(&host, by, now).await.unwrap();
    assert_eq!(rig.deliver(PUSH_SERVICE).await, Answer::NotAPushService {});
    assert_eq!(rig.asked(), 0);
}

/// Invariant I3.
#[tokio::test] // S38
async fn delivery_changes_no_row() {
    let rig = Rig::new(&GatewayAnswer::Unreachable {
        reason: DeadReason::Unreachable,
        detail: "refused".to_owned(),
        families: Vec::new(),
        fresh: true,
    });
    let answer = rig.deliver(PUSH_SERVICE).await;
    assert!(matches!(answer, Answer::Unreachable { .. }), "{answer:?}");
    let host = Host::parse(PUSH_SERVICE).unwrap();
    assert!(rig.store.reader().unwrap().record(&host).unwrap().is_none());
}

#[tokio::test]
async fn a_gateway_that_is_away_says_nothing_about_the_push_service() {
    let rig = Rig::new(&GatewayAnswer::Offline {});
    let offline = rig.deliver(PUSH_SERVICE).await;
    std::fs::remove_file(rig.dir.path().join("gateway.sock")).unwrap();
    let away = rig.deliver(PUSH_SERVICE).await;
    for answer in [offline, away] {
        assert!(matches!(answer, Answer::NotNow { .. }), "{answer:?}");
    }
}

#[tokio::test]
async fn what_is_no_request_within_its_bounds_reaches_nobody() {
    let rig = Rig::new(&deferred());
    let many = vec![serde_json::to_string(&message()).unwrap(); limits::MESSAGES_MAX + 1];
    for line in [
        "rubbish".to_owned(),
        format!(
            r#"{{"deliver":{{"host":"{PUSH_SERVICE}","messages":[{}]}}}}"#,
            many.join(",")
        ),
        format!(r#"{{"check":{{"host":"{PUSH_SERVICE}"}}}}"#),
        " ".repeat(Request::BYTES_MAX + 1),
    ] {
        let stream = UnixStream::connect(rig.dir.path().join("push.sock"))
            .await
            .unwrap();
        let (from, mut to) = stream.into_split();
        // The server does not read an overlong line to its end.
        to.write_all(format!("{line}\n").as_bytes()).await.ok();
        let mut answer = String::new();
        BufReader::new(from).read_line(&mut answer).await.unwrap();
        assert!(answer.starts_with(r#"{"not_now":"#), "{answer}");
    }
    assert_eq!(rig.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn one_delivery_follows_the_other_at_a_pace() {
    let dir = TempDir::new().unwrap();
    let store = store::open(&dir.path().join("census.db")).unwrap();
    let services = services(&store, &dir.path().join("nobody"));
    let names = vec![Host::parse("push.example.com").unwrap()];
    let handler = PushHandler::new(services, names.into());
    let request = Request::Deliver {
        host: Host::parse(PUSH_SERVICE).unwrap(),
        messages: DeliveryOrder::new(vec![message()]).unwrap(),
    };
    let start = Instant::now();
    for _ in 0..5 {
        handler.answer(request.clone()).await;
    }
    assert!(start.elapsed() >= EVERY * 4, "{:?}", start.elapsed());
    let _under_way = handler.turn.lock().await;
    let answer = handler.answer(request).await;
    let is_busy = matches!(&answer, Answer::NotNow { why, .. } if why.contains("in progress"));
    assert!(is_busy, "{answer:?}");
}
