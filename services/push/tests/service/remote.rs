//! Subscriptions at other push services, with a daemon that a test simulates.

use std::collections::BTreeSet;

use local_socket::{Ask as _, Connection, LineLimits, read_line, write_line};
use protocol::{DeliveryOrder, Host, MessageOutcome, UnpostedReason};
use push::endpoint::vapid::{Expected, signer};
use push::remote::wire::{Answer, Request};
use push::storage::sqlite::CONFIRMATION;
use tokio::net::UnixListener;

use tokio_util::sync::DropGuard;

use super::notify::{
    announce, appeared, asked, begin, died, publish, reader, subscribe, subscriptions, telling,
    until_told, words_of,
};
use super::*;

const OTHER: &str = "https://push.other.example";

/// A request to the daemon: its host and messages.
type Asked = (String, DeliveryOrder);

/// A daemon that passes requests to the test and returns the test's answers.
struct Played {
    requests: mpsc::Receiver<(Asked, oneshot::Sender<Answer>)>,
}

impl Played {
    fn start(path: &std::path::Path) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let (told, requests) = mpsc::channel(1);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut connection = Connection::from(stream);
                let limits = LineLimits {
                    bytes_max: Request::BYTES_MAX,
                    time_max: PATIENCE,
                };
                let line = read_line(&mut connection.reader, limits).await.unwrap();
                let Request::Deliver { host, messages } = Request::parse(&line).unwrap();
                let (answer, answered) = oneshot::channel();
                let asked = (host.to_string(), messages);
                if told.send((asked, answer)).await.is_err() {
                    return;
                }
                // A test that does not answer simulates a killed daemon.
                if let Ok(answer) = answered.await {
                    let line = serde_json::to_vec(&answer).unwrap();
                    let sent = write_line(&mut connection.writer, line, PATIENCE);
                    sent.await.ok();
                }
            }
        });
        Self { requests }
    }

    async fn asked(&mut self) -> (Asked, oneshot::Sender<Answer>) {
        timeout(PATIENCE, self.requests.recv())
            .await
            .unwrap()
            .unwrap()
    }

    /// The next request, which is to post messages to these paths.
    async fn asked_for(&mut self, expect: &[&str]) -> oneshot::Sender<Answer> {
        let ((_, messages), answer) = self.asked().await;
        assert_eq!(paths(&messages), expect);
        answer
    }

    /// Accepts the message of the next request, after which none comes.
    async fn accept_last(&mut self) {
        let (_, answer) = self.asked().await;
        answer.send(delivered(&[answered(201)])).unwrap();
        self.asked_nothing().await;
    }

    async fn asked_nothing(&mut self) {
        let asked = timeout(SILENCE, self.requests.recv()).await;
        assert!(asked.is_err(), "{:?}", asked.map(|asked| asked.unwrap().0));
    }
}

fn answered(status: u16) -> MessageOutcome {
    MessageOutcome::Answered {
        status,
        retry_after_s: None,
    }
}

fn delivered(outcomes: &[MessageOutcome]) -> Answer {
    Answer::Delivered {
        outcomes: outcomes.to_vec(),
    }
}

fn paths(messages: &DeliveryOrder) -> Vec<&str> {
    let paths = messages.messages().iter().map(|one| one.path.as_str());
    paths.collect()
}

/// A service with confirmed subscriptions of these paths to all changes, its daemon, and the guard
/// of its notifications. A first list is announced.
async fn rig(paths: &[&str]) -> (Push, Played, DropGuard) {
    let push = open(tempfile::tempdir().unwrap());
    let daemon = Played::start(&push.folder.path().join("daemon.sock"));
    subscribed_elsewhere(&push, paths).await;
    let telling = begin(&push).await;
    (push, daemon, telling)
}

/// 150 paths in order: one and a half batches.
fn many() -> Vec<&'static str> {
    let path = |number| &*format!("/{number:03}").leak();
    (0..150).map(path).collect()
}

fn open(folder: TempDir) -> Push {
    let services = vec![Host::parse("other.example").unwrap()];
    Push::open_with(folder, settings(Rules::AUTOPUSH), services.into())
}

async fn subscribe_elsewhere(push: &Push, paths: &[&str]) {
    for path in paths {
        let asked = asked(&format!("{OTHER}{path}"), &json!("all"));
        let added = subscribe(push, &asked).await;
        assert_eq!(added.status, StatusCode::CREATED, "{path}");
    }
}

/// Records that the other service has accepted a first message for each endpoint.
fn confirm_all(push: &Push) {
    let storage = push.storage();
    let pending = storage.pending(CONFIRMATION, OTHER, None, 0, 1000).unwrap();
    let accepted = pending
        .into_iter()
        .map(|pending| (pending.id, pending.subscription.endpoint));
    let accepted: Vec<_> = accepted.collect();
    storage.settle(CONFIRMATION, &accepted, &[]).unwrap();
}

async fn subscribed_elsewhere(push: &Push, paths: &[&str]) {
    subscribe_elsewhere(push, paths).await;
    confirm_all(push);
}

#[tokio::test]
async fn only_named_push_services_are_served() {
    let push = open(tempfile::tempdir().unwrap());
    subscribed_elsewhere(&push, &["/a"]).await;
    for endpoint in [
        "https://evil-other.example/a",
        "https://push.other.example:443/a",
        "https://push.other.example",
        &format!("{OTHER}/{}", "x".repeat(1000)),
    ] {
        let refused = subscribe(&push, &asked(endpoint, &json!("all"))).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{endpoint}");
    }
    // Without allowed services, no endpoint elsewhere is accepted.
    let alone = Push::new(Rules::AUTOPUSH);
    let refused = subscribe(&alone, &asked(&format!("{OTHER}/a"), &json!("all"))).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
}

#[tokio::test] // S36
async fn a_subscription_elsewhere_is_confirmed_before_it_gets_a_list() {
    let push = open(tempfile::tempdir().unwrap());
    let mut daemon = Played::start(&push.folder.path().join("daemon.sock"));
    let endpoints = ["/busy", "/gone", "/refused", "/taken"];
    subscribe_elsewhere(&push, &endpoints).await;
    let host = asked(&format!("{OTHER}/taken"), &json!({"host": "a.example"}));
    subscribe(&push, &host).await;
    publish(&push, "aa", &[]);
    let _telling = telling(&push);
    let ((_, messages), answer) = daemon.asked().await;
    assert_eq!(paths(&messages), endpoints, "one for each endpoint");
    for message in messages.messages() {
        let said = words_of(message.body.as_bytes());
        assert_eq!(said["title"], "Notifications are on");
    }
    until_told(&push, "aa").await;
    announce(&push, "bb", &[died("b.example")]).await;
    let outcomes = [503, 410, 400, 201].map(answered);
    answer.send(delivered(&outcomes)).unwrap();
    let confirmed = async {
        while subscriptions(&push) < 2 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, confirmed).await.unwrap();
    let answer = daemon.asked_for(&["/busy"]).await;
    answer.send(delivered(&[answered(503)])).unwrap();
    daemon.asked_nothing().await;
    publish(&push, "cc", &[died("a.example")]);
    // A filter each.
    daemon.asked_for(&["/taken"; 2]).await;
    let waiting = push.storage().pending(CONFIRMATION, OTHER, None, 0, 9);
    let waiting = waiting.unwrap();
    let waiting = waiting.iter().map(|pending| &pending.subscription.endpoint);
    assert_eq!(waiting.collect::<Vec<_>>(), [&format!("{OTHER}/busy")]);
}

/// Subscribers of this service don't wait for other services.
#[tokio::test]
async fn a_message_for_each_is_posted_and_what_comes_of_it_is_kept() {
    let push = open(tempfile::tempdir().unwrap());
    let mut daemon = Played::start(&push.folder.path().join("daemon.sock"));
    let (mut client, endpoint) = reader(&push).await;
    subscribe(&push, &asked(&endpoint, &json!("all"))).await;
    subscribed_elsewhere(&push, &["/taken?x=1", "/gone", "/refused"]).await;
    let host = asked(&format!("{OTHER}/taken?x=1"), &json!({"host": "b.example"}));
    subscribe(&push, &host).await;
    let _telling = begin(&push).await;
    publish(&push, "bb", &[died("a.example")]);

    let ((host, messages), answer) = daemon.asked().await;
    assert_eq!(host, "push.other.example");
    assert_eq!(paths(&messages), ["/gone", "/refused", "/taken?x=1"]);
    // The daemon has not answered yet.
    client.heard().await;
    until_told(&push, "bb").await;
    for message in messages.messages() {
        let ttl_s = message.ttl_s;
        assert!((86_000..=86_400).contains(&ttl_s), "{ttl_s}");
        let said = words_of(message.body.as_bytes());
        assert_eq!(said["body"], "0 new, 1 gone, 10 listed");
        let expected = Expected {
            origin: OTHER,
            now_s: now()() / 1000,
        };
        let signed_by = signer(Some(message.authorization.as_str()), None, expected);
        assert!(signed_by.unwrap().is_some());
    }
    let topics = messages.messages().iter().map(|one| one.topic.as_str());
    let topics: BTreeSet<&str> = topics.collect();
    assert_eq!(topics.len(), 1, "one filter, one topic");
    let outcomes = [410, 400, 201].map(answered);
    answer.send(delivered(&outcomes)).unwrap();
    daemon.asked_nothing().await;
    // The next list: nothing for the endpoint that is gone, and a message for each filter.
    publish(&push, "cc", &[died("b.example")]);
    let expect = ["/refused", "/taken?x=1", "/taken?x=1"];
    let answer = daemon.asked_for(&expect).await;
    answer.send(delivered(&[answered(201); 3])).unwrap();
    daemon.asked_nothing().await;
}

#[tokio::test]
async fn what_was_not_taken_is_posted_again_after_the_stated_pause() {
    let (push, mut daemon, _telling) = rig(&["/a", "/b", "/c"]).await;
    publish(&push, "bb", &[died("a.example")]);
    let (_, answer) = daemon.asked().await;
    let busy = MessageOutcome::Answered {
        status: 429,
        retry_after_s: Some(1),
    };
    let not_sent = MessageOutcome::Unposted {
        reason: UnpostedReason::NotSent,
    };
    let asked_at = tokio::time::Instant::now();
    let outcomes = [answered(201), busy, not_sent];
    answer.send(delivered(&outcomes)).unwrap();
    let answer = daemon.asked_for(&["/b", "/c"]).await;
    assert!(asked_at.elapsed() >= Duration::from_millis(990));
    // No slot is free, which is nobody's failure.
    let not_now = Answer::NotNow {
        why: "the test says so".to_owned(),
        retry_after_s: 1,
    };
    answer.send(not_now).unwrap();
    let answer = daemon.asked_for(&["/b", "/c"]).await;
    answer.send(delivered(&[answered(201); 2])).unwrap();
    daemon.asked_nothing().await;
}

#[tokio::test]
async fn a_restart_in_the_middle_loses_no_message() {
    let endpoints = many();
    let (push, mut daemon, first) = rig(&endpoints).await;
    publish(&push, "bb", &[died("a.example")]);
    let answer = daemon.asked_for(&endpoints[..100]).await;
    answer.send(delivered(&[answered(201); 100])).unwrap();
    // The second batch is in progress, and its answer never comes.
    drop(daemon.asked_for(&endpoints[100..]).await);
    drop(first);
    let Push { folder, service } = push;
    drop(service);

    let push = open(folder);
    let _second = telling(&push);
    let answer = daemon.asked_for(&endpoints[100..]).await;
    answer.send(delivered(&[answered(201); 50])).unwrap();
    daemon.asked_nothing().await;
}

/// I7: the message may name a host that has opted out since.
#[tokio::test] // S34
async fn no_message_about_a_former_list_follows_a_newer_one() {
    let push = open(tempfile::tempdir().unwrap());
    let mut daemon = Played::start(&push.folder.path().join("daemon.sock"));
    subscribed_elsewhere(&push, &["/a"]).await;
    let new = asked(&format!("{OTHER}/b"), &json!({"software": "mastodon"}));
    subscribe(&push, &new).await;
    confirm_all(&push);
    let _telling = begin(&push).await;
    publish(&push, "bb", &[appeared("a.example")]);
    let answer = daemon.asked_for(&["/a", "/b"]).await;
    // The host opts out before the push service accepts anything.
    let left = json!({"change": "left", "host_sha256": "00"});
    announce(&push, "cc", &[left]).await;
    answer.send(delivered(&[answered(503); 2])).unwrap();
    // The failure's own pause is half a minute, and nothing is owed about `bb` any more.
    daemon.asked_nothing().await;
    let storage = push.storage();
    let owed = |section| storage.pending(section, OTHER, None, 0, 100).unwrap();
    assert_eq!(owed("bb"), []);
    // Both messages are made from the newest list, which does not name hosts that left.
    assert_eq!(owed("cc").len(), 2);
}

/// Also while subscribers of this service are still being notified.
#[tokio::test] // S34
async fn a_newer_list_ends_the_messages_about_the_former_at_once() {
    let push = open(tempfile::tempdir().unwrap());
    let mut daemon = Played::start(&push.folder.path().join("daemon.sock"));
    let endpoints = many();
    subscribed_elsewhere(&push, &endpoints).await;
    let (mut node, endpoint) = SlowNode::start(&push, "/notif/{uaid}").await;
    subscribe(&push, &asked(&endpoint, &json!("all"))).await;
    let _telling = begin(&push).await;
    publish(&push, "bb", &[died("a.example")]);
    drop(node.asked().await);
    let answer = daemon.asked_for(&endpoints[..100]).await;
    publish(&push, "cc", &[died("b.example")]);
    let asked = node.asked().await;
    answer.send(delivered(&[answered(201); 100])).unwrap();
    daemon.asked_nothing().await;
    drop(asked);
    // About the newer list.
    daemon.asked_for(&endpoints[..100]).await;
}

#[tokio::test]
async fn a_message_is_not_posted_again_because_its_outcome_could_not_be_stored() {
    let (push, mut daemon, _telling) = rig(&["/a"]).await;
    publish(&push, "bb", &[died("a.example")]);
    let (_, answer) = daemon.asked().await;
    let database = push.database();
    let full =
        "CREATE TRIGGER full BEFORE UPDATE ON subscriptions BEGIN SELECT raise(ABORT, 'full'); END";
    database.execute_batch(full).unwrap();
    answer.send(delivered(&[answered(201)])).unwrap();
    daemon.asked_nothing().await;
    database.execute_batch("DROP TRIGGER full").unwrap();
    publish(&push, "cc", &[died("b.example")]);
    daemon.accept_last().await;
}

#[tokio::test]
async fn a_host_that_the_daemon_does_not_post_to_is_asked_for_once_a_list() {
    let (push, mut daemon, _telling) = rig(&["/a"]).await;
    publish(&push, "bb", &[died("a.example")]);
    let (_, answer) = daemon.asked().await;
    answer.send(Answer::NotAPushService {}).unwrap();
    daemon.asked_nothing().await;
    publish(&push, "cc", &[died("a.example")]);
    daemon.accept_last().await;
}
