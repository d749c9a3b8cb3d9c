use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use push::serve::tell;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::{CancellationToken, DropGuard};
use web_push_native::p256::SecretKey;
use web_push_native::{Auth, decrypt};

use super::*;

const SECRET: [u8; 16] = [3; 16];

fn user_key() -> SecretKey {
    SecretKey::from_slice(&[7; 32]).unwrap()
}

pub(super) fn asked(endpoint: &str, filter: &Value) -> Value {
    let key = user_key().public_key().to_sec1_bytes();
    json!({
        "endpoint": endpoint,
        "keys": {"p256dh": BASE64URL_NOPAD.encode(&key), "auth": BASE64URL_NOPAD.encode(&SECRET)},
        "filter": filter,
    })
}

/// The declared type of a subscriber's body.
const IS_JSON: (&str, &str) = ("content-type", "application/json");

pub(super) async fn subscribe(push: &Push, asked: &Value) -> Answer {
    let body = asked.to_string();
    push.ask("POST", "/subscribe", &[IS_JSON], body.as_bytes())
        .await
}

pub(super) fn subscriptions(push: &Push) -> usize {
    let storage = push.storage();
    storage.subscriptions_after(0).unwrap().len()
}

fn words(message: &Value) -> Value {
    let sealed = BASE64URL_NOPAD
        .decode(message["data"].as_str().unwrap().as_bytes())
        .unwrap();
    words_of(&sealed)
}

/// The text of an encrypted message.
pub(super) fn words_of(sealed: &[u8]) -> Value {
    let read = decrypt(sealed.to_vec(), &user_key(), &Auth::from(SECRET)).unwrap();
    serde_json::from_slice(&read).unwrap()
}

fn head(sha256: &str) -> Value {
    json!({"change": "dump", "hosts": 10, "section_sha256": sha256})
}

fn publish_lines(push: &Push, day: &str, lines: &[Value]) {
    let folder = push.folder.path().join("changes");
    std::fs::create_dir_all(&folder).unwrap();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(folder.join(format!("{day}.ndjson")), text).unwrap();
}

pub(super) fn publish(push: &Push, sha256: &str, changes: &[Value]) {
    let lines = [&[head(sha256)], changes].concat();
    publish_lines(push, "2026-11-26", &lines);
}

/// Publishes a list, and waits until it is announced.
pub(super) async fn announce(push: &Push, sha256: &str, changes: &[Value]) {
    publish(push, sha256, changes);
    until_told(push, sha256).await;
}

/// Starts notifications, and announces a first list.
pub(super) async fn begin(push: &Push) -> DropGuard {
    publish(push, "aa", &[]);
    let telling = telling(push);
    until_told(push, "aa").await;
    telling
}

pub(super) fn died(host: &str) -> Value {
    json!({"change": "died", "host": host})
}

pub(super) fn appeared(host: &str) -> Value {
    json!({"change": "appeared", "host": host, "software": "mastodon"})
}

fn software() -> Value {
    json!({"software": "mastodon"})
}

/// A registered client whose endpoint is for this census, and the endpoint.
pub(super) async fn reader(push: &Push) -> (Client, String) {
    let key = push.ask("GET", "/subscribe", &[], b"").await.json()["key"].clone();
    subscribed(push, key.as_str()).await
}

async fn unsubscribe(push: &Push, ended: &Value) -> StatusCode {
    let body = ended.to_string();
    let answer = push.ask("DELETE", "/subscribe", &[IS_JSON], body.as_bytes());
    answer.await.status
}

/// Starts notifications. Dropping the guard stops them.
pub(super) fn telling(push: &Push) -> DropGuard {
    let shutdown = CancellationToken::new();
    let every = Duration::from_millis(20);
    tokio::spawn(tell(Arc::clone(&push.service), every, shutdown.clone()));
    shutdown.drop_guard()
}

/// A client that notices when a list was announced: it follows the broadcast.
pub(super) async fn until_told(push: &Push, version: &str) {
    let mut client = push.client().await;
    loop {
        client
            .say(json!({"messageType": "hello", "broadcasts": {"census/instances": ""}}))
            .await;
        let told = client.heard().await["broadcasts"]["census/instances"] == version;
        client.leave().await;
        if told {
            return;
        }
        client = push.client().await;
    }
}

#[tokio::test]
async fn who_asked_is_told_of_the_next_list_and_of_no_former_one() {
    let push = Push::new(Rules::AUTOPUSH);
    let (mut client, endpoint) = reader(&push).await;
    let filter = json!({"host": "a.example"});
    let added = subscribe(&push, &asked(&endpoint, &filter)).await;
    assert_eq!(added.status, StatusCode::CREATED);
    let _telling = telling(&push);
    announce(&push, "aa", &[died("a.example")]).await;
    let left = HEXLOWER.encode(&Sha256::digest("a.example"));
    let left = json!({"change": "left", "host_sha256": left});
    publish(&push, "bb", &[appeared("b.example"), left]);
    let message = client.heard().await;
    let said = words(&message);
    assert_eq!(said["title"], "a.example");
    assert_eq!(said["body"], "It is no longer in the list.");
    // The next list must not announce these changes to anybody.
    announce(&push, "cc", &[died("b.example")]).await;
    client.hears_nothing().await;
}

/// Two lists came while the service did not look, the second one on another day.
#[tokio::test]
async fn lists_that_the_service_missed_are_told_together() {
    let push = Push::new(Rules::AUTOPUSH);
    let (mut client, endpoint) = reader(&push).await;
    subscribe(&push, &asked(&endpoint, &json!("all"))).await;
    let first = begin(&push).await;
    drop(first);
    let first_day = [head("aa"), head("bb"), died("b.example")];
    publish_lines(&push, "2026-11-26", &first_day);
    publish_lines(&push, "2026-11-27", &[head("cc"), died("c.example")]);
    let _telling = telling(&push);
    let said = words(&client.heard().await);
    assert_eq!(said["body"], "0 new, 2 gone, 10 listed");
}

/// I7: the message was accepted before the host opted out, and its line was rewritten.
#[tokio::test] // S34
async fn a_waiting_message_names_no_host_that_left() {
    let left = json!({"change": "left", "host_sha256": "00"});
    let former = [appeared("a.example"), appeared("b.example")];
    for (lines, expect) in [
        (former.clone(), Some("a.example, b.example")),
        ([left.clone(), appeared("b.example")], Some("b.example")),
        ([left.clone(), left], None),
    ] {
        for is_connected in [true, false] {
            let push = Push::new(Rules::AUTOPUSH);
            let (mut client, endpoint) = subscribed(&push, None).await;
            let uaid = client.uaid.clone();
            subscribe(&push, &asked(&endpoint, &software())).await;
            if !is_connected {
                push.dismissed(client).await;
                client = push.client().await;
            }
            let _telling = begin(&push).await;
            announce(&push, "bb", &former).await;
            if is_connected {
                let body = words(&client.heard().await)["body"].clone();
                assert_eq!(body, "a.example, b.example");
            }
            let rewritten = [head("b2"), lines[0].clone(), lines[1].clone()];
            let file = [&rewritten[..], &[head("cc"), died("x.example")]].concat();
            publish_lines(&push, "2026-11-26", &file);
            until_told(&push, "cc").await;
            // The client has acknowledged nothing.
            drop(client);
            until_empty(&push).await;
            let mut client = push.greeted(&uaid).await;
            if let Some(expect) = expect {
                assert_eq!(words(&client.heard().await)["body"], expect);
            }
            client.hears_nothing().await;
        }
    }
}

#[tokio::test]
async fn a_notification_that_was_read_does_not_come_again() {
    let (push, mut client, endpoint) = rig().await;
    subscribe(&push, &asked(&endpoint, &software())).await;
    let _telling = begin(&push).await;
    publish(&push, "bb", &[appeared("a.example")]);
    let message = client.heard().await;
    client.acknowledge(&message).await;
    // The answer to a ping comes after the acknowledgement was carried out.
    client.say(json!({})).await;
    assert_eq!(client.heard().await, json!({}));
    until_told(&push, "bb").await;
    let file = [head("bb"), appeared("a.example"), head("cc")];
    publish_lines(&push, "2026-11-26", &file);
    until_told(&push, "cc").await;
    client.hears_nothing().await;
}

#[tokio::test]
async fn a_subscription_that_no_list_touches_ends_with_its_channel() {
    let (push, mut client, endpoint) = rig().await;
    subscribe(&push, &asked(&endpoint, &json!({"host": "none.example"}))).await;
    let _telling = begin(&push).await;
    announce(&push, "bb", &[]).await;
    assert_eq!(subscriptions(&push), 1);
    client.unregister().await;
    announce(&push, "cc", &[]).await;
    assert_eq!(subscriptions(&push), 0);
}

/// Clients connect before the first look, for example after a restart.
#[tokio::test]
async fn the_broadcast_is_there_before_the_first_list() {
    let push = Push::new(Rules {
        ping_every: Duration::from_millis(20),
        ..Rules::AUTOPUSH
    });
    let mut client = push.client().await;
    let hello = json!({"messageType": "hello", "broadcasts": {"census/instances": "old"}});
    client.say(hello).await;
    let versions = |version: &str| json!({"census/instances": version});
    assert_eq!(client.heard().await["broadcasts"], versions(""));
    publish(&push, "aa", &[]);
    let _telling = telling(&push);
    assert_eq!(client.heard().await["broadcasts"], versions("aa"));
}

#[tokio::test]
async fn a_stop_does_not_wait_until_all_are_told() {
    let push = Push::new(Rules::AUTOPUSH);
    let (mut node, endpoint) = SlowNode::start(&push, "/notif/{uaid}").await;
    subscribe(&push, &asked(&endpoint, &json!("all"))).await;
    publish(&push, "aa", &[]);
    let shutdown = CancellationToken::new();
    let every = Duration::from_millis(20);
    let telling = tokio::spawn(tell(Arc::clone(&push.service), every, shutdown.clone()));
    until_told(&push, "aa").await;
    publish(&push, "bb", &[died("a.example")]);
    let asked = node.asked().await;
    shutdown.cancel();
    // Less than the three seconds that a request to a node may take.
    timeout(Duration::from_secs(2), telling)
        .await
        .unwrap()
        .unwrap();
    drop(asked);
    // The next process tells them.
    let _telling = self::telling(&push);
    drop(node.asked().await);
    until_told(&push, "bb").await;
}

#[tokio::test]
async fn who_has_ended_a_subscription_is_told_nothing() {
    let push = Push::new(Rules::AUTOPUSH);
    let (mut client, endpoint) = reader(&push).await;
    subscribe(&push, &asked(&endpoint, &json!("all"))).await;
    let _telling = begin(&push).await;
    let ended = json!({"endpoint": endpoint, "filter": "all"});
    for _ in 0..2 {
        assert_eq!(unsubscribe(&push, &ended).await, StatusCode::NO_CONTENT);
    }
    announce(&push, "bb", &[died("a.example")]).await;
    client.hears_nothing().await;
}

#[tokio::test]
async fn what_can_be_no_subscription_is_refused() {
    let (push, mut client, unregistered) = rig().await;
    client.unregister().await;
    let (_client, of_another_key) = subscribed(&push, Some("BAAA")).await;
    let (_client, endpoint) = subscribed(&push, None).await;
    let good = asked(&endpoint, &json!("all"));
    let changed = |pointer: &str, value: Value| {
        let mut asked = good.clone();
        *asked.pointer_mut(pointer).unwrap() = value;
        asked
    };
    for wrong in [
        json!("rubbish"),
        changed("/endpoint", json!("https://elsewhere.example/wpush/v1/x")),
        changed("/endpoint", json!(format!("{endpoint}A"))),
        changed("/endpoint", json!(unregistered)),
        changed("/endpoint", json!(of_another_key)),
        changed(
            "/endpoint",
            json!(format!("{endpoint}{}", "x".repeat(2000))),
        ),
        changed("/keys/p256dh", json!(BASE64URL_NOPAD.encode(&[4; 65]))),
        changed("/keys/p256dh", json!("AAAA")),
        changed("/keys/auth", json!("AAAA")),
        changed("/filter", json!("everything")),
        changed("/filter", json!({"host": ""})),
        changed("/filter", json!({"software": "x".repeat(300)})),
    ] {
        let refused = subscribe(&push, &wrong).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{wrong}");
        assert!(refused.json()["error"].is_string());
    }
}

#[tokio::test]
async fn an_address_subscribes_so_often_and_no_more() {
    let (push, _client, endpoint) = rig().await;
    let body = asked(&endpoint, &json!("all")).to_string();
    let subscribe = |address| {
        let (push, body) = (&push, body.as_bytes());
        async move {
            let from = [IS_JSON, ("x-real-ip", address)];
            push.ask("POST", "/subscribe", &from, body).await.status
        }
    };
    let mut taken = 0;
    while subscribe("192.0.2.1").await == StatusCode::CREATED {
        taken += 1;
        assert!(taken < 1000, "there is no end");
    }
    assert_eq!(
        subscribe("192.0.2.1").await,
        StatusCode::SERVICE_UNAVAILABLE
    );
    assert_eq!(subscribe("192.0.2.2").await, StatusCode::CREATED);
}

/// Any page can make its readers' browsers send a text. For a body declared as JSON, browsers ask
/// for permission first, and get none.
#[tokio::test] // S35
async fn a_page_of_another_site_changes_no_subscription() {
    let (push, _client, endpoint) = rig().await;
    let body = asked(&endpoint, &json!("all")).to_string();
    let text = ("content-type", "text/plain");
    let site = |site| ("sec-fetch-site", site);
    for (method, accepted) in [("POST", 201), ("DELETE", 204)] {
        for (headers, expect) in [
            (vec![text], 415),
            (vec![], 415),
            (vec![IS_JSON, site("cross-site")], 403),
            (vec![IS_JSON, site("same-site")], 403),
            (vec![IS_JSON, site("same-origin")], accepted),
            (vec![IS_JSON], accepted),
        ] {
            let answer = push.ask(method, "/subscribe", &headers, body.as_bytes());
            let status = answer.await.status.as_u16();
            assert_eq!(status, expect, "{method} {headers:?}");
        }
    }
    let long = format!("{body}{}", " ".repeat(4096));
    let answer = push.ask("POST", "/subscribe", &[IS_JSON], long.as_bytes());
    assert_eq!(answer.await.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(subscriptions(&push), 0);
}

/// Each registration makes another token, and a token's padding may be left out.
#[tokio::test] // S30
async fn an_endpoint_here_is_one_subscriber_however_it_is_written() {
    let (push, mut client, endpoint) = rig().await;
    let again = client.register(None).await;
    assert_ne!(again, endpoint);
    for written in [&endpoint, &format!("{endpoint}="), &again] {
        let added = subscribe(&push, &asked(written, &json!("all"))).await;
        assert_eq!(added.status, StatusCode::CREATED, "{written}");
    }
    assert_eq!(subscriptions(&push), 1);
    unsubscribe(&push, &json!({"endpoint": again})).await;
    assert_eq!(subscriptions(&push), 0);
}
