//! Delivery mode: what is posted to a push service, in which order, and when posting stops.

use std::time::Duration;

use protocol::order::delivery::{Message, MessageBody};
use protocol::{DeliveryOrder, Event, ListPath, limits};

use crate::server::{Certificate, Outcome, Reply, World, answer, kept_alive, redirect};

/// An order with a message for each path. Each body is the message's number.
fn order(paths: &[&str]) -> DeliveryOrder {
    let message = |(number, path): (usize, &&str)| Message {
        path: ListPath::parse(path).unwrap(),
        ttl_s: 3600,
        topic: format!("topic{number}").try_into().unwrap(),
        authorization: "vapid t=a.b.c, k=d".to_owned().try_into().unwrap(),
        body: MessageBody::new(number.to_string().into_bytes()).unwrap(),
    };
    DeliveryOrder::new(paths.iter().enumerate().map(message).collect()).unwrap()
}

#[track_caller]
fn posted(outcome: &Outcome, expect: &str) {
    let expect = expect.split(", ").map(|post| format!("POST {post}"));
    assert_eq!(outcome.requests, expect.collect::<Vec<_>>());
}

/// A push service that accepts messages at `/a`.
fn accepting() -> World {
    World::empty().with("POST /a", kept_alive("201 Created", &[], ""))
}

fn answered_bytes(outcome: &Outcome) -> u64 {
    match outcome.events.last() {
        Some(Event::Done { bytes, .. }) => *bytes,
        _ => panic!("{:?}", outcome.events),
    }
}

/// The outcome of each message, after checking that nothing else was printed.
fn told(outcome: &Outcome) -> Vec<String> {
    let [Event::Hello { .. }, told @ .., Event::Done { .. }] = &outcome.events[..] else {
        panic!("{:?}", outcome.events);
    };
    let mut found = Vec::new();
    for (number, event) in (0_u32..).zip(told) {
        let (message, what) = match event {
            Event::Posted {
                message,
                status,
                retry_after_s: None,
            } => (message, status.to_string()),
            Event::Posted {
                message,
                status,
                retry_after_s: Some(seconds),
            } => (message, format!("{status} after {seconds}")),
            Event::Unposted { message, reason } => (message, format!("{reason:?}")),
            other => panic!("{other:?}"),
        };
        assert_eq!(*message, number);
        found.push(what);
    }
    found
}

#[tokio::test]
async fn messages_are_posted_in_their_order_over_one_connection_and_nothing_else_is() {
    let world = World::empty()
        .with("POST /a?token=1", kept_alive("201 Created", &[], ""))
        .with("POST /b", kept_alive("410 Gone", &[], r#"{"errno":106}"#))
        .with("POST /c", kept_alive("204 No Content", &[], ""));
    let paths = ["/a?token=1", "/b", "/a?token=1", "/c"];
    let outcome = world.deliver(&order(&paths)).await;
    assert_eq!(told(&outcome), ["201", "410", "201", "204"]);
    posted(&outcome, "/a?token=1 0, /b 1, /a?token=1 2, /c 3");
    assert_eq!(outcome.connections, 1);
    // A body that is not read to its end would cost its connection.
    assert_eq!(answered_bytes(&outcome), 13);
    for line in [
        "ttl: 3600",
        "topic: topic3",
        "urgency: normal",
        "content-encoding: aes128gcm",
        "authorization: vapid t=a.b.c, k=d",
        "host: a.example",
        "user-agent: Fedicensus/",
    ] {
        assert!(outcome.heads.contains(line), "{line}: {}", outcome.heads);
    }
}

#[tokio::test]
async fn a_push_service_that_asks_for_a_pause_is_left_alone() {
    let (many, busy) = ("429 Too Many Requests", "503 Service Unavailable");
    for (status, head, expect) in [
        (many, &["retry-after: 90"][..], "429 after 90"),
        (many, &[], "429"),
        (busy, &["retry-after: 99999999999"], "503 after 86400"),
    ] {
        let world = accepting().with("POST /b", kept_alive(status, head, ""));
        let outcome = world.deliver(&order(&["/a", "/b", "/a", "/a"])).await;
        assert_eq!(told(&outcome), ["201", expect, "NotSent", "NotSent"]);
        assert_eq!(outcome.requests.len(), 2, "{:?}", outcome.requests);
    }
    // An error alone says nothing about the next message.
    let world = World::empty()
        .with("POST /a", kept_alive("500 Internal Server Error", &[], ""))
        .with("POST /b", kept_alive(busy, &[], ""));
    let outcome = world.deliver(&order(&["/a", "/b", "/a"])).await;
    assert_eq!(told(&outcome), ["500", "503", "500"]);
}

#[tokio::test]
async fn redirects_are_answers_and_are_not_followed() {
    let world = World::empty()
        .with("POST /a", redirect("307 Temporary Redirect", "/elsewhere"))
        .with("POST /b", redirect("301 Moved", "https://evil.example/"));
    let outcome = world.deliver(&order(&["/a", "/b"])).await;
    assert_eq!(told(&outcome), ["307", "301"]);
    posted(&outcome, "/a 0, /b 1");
}

#[tokio::test]
async fn a_push_service_that_cant_be_talked_to_is_tried_a_few_times() {
    let many = ["/a"; 6];
    for (certificate, reason) in [
        (Certificate::OtherName, "Tls"),
        (Certificate::Cut, "Tls"),
        (Certificate::None, "Tls"),
    ] {
        let world = World::empty().certificate(certificate);
        let outcome = world.deliver(&order(&many)).await;
        let expect = [&[reason; 3][..], &["NotSent"; 3]].concat();
        assert_eq!(told(&outcome), expect, "{certificate:?}");
    }
    let world = World::empty().with("POST /a", Reply::Raw(b"rubbish\r\n\r\n".to_vec()));
    let outcome = world.deliver(&order(&many)).await;
    let expect = [&["Http"; 3][..], &["NotSent"; 3]].concat();
    assert_eq!(told(&outcome), expect);
    assert_eq!(outcome.requests.len(), 3, "{:?}", outcome.requests);
}

/// A kept connection may have been closed in the meantime, which is no failure of the push service.
#[tokio::test]
async fn a_message_on_a_kept_connection_that_breaks_is_posted_once_more() {
    let world = accepting().with("POST /b", Reply::Raw(Vec::new()));
    let outcome = world.deliver(&order(&["/a", "/b", "/b", "/a"])).await;
    assert_eq!(told(&outcome), ["201", "Http", "Http", "201"]);
    posted(&outcome, "/a 0, /b 1, /b 1, /b 2, /a 3");
}

#[tokio::test]
async fn an_answer_without_end_costs_its_connection_and_no_more() {
    let head = b"HTTP/1.1 201 Created\r\ncontent-type: text/plain\r\n\r\n".to_vec();
    let zeros = vec![b'x'; 16 * 1024];
    let coded = b"HTTP/1.1 201 Created\r\ncontent-encoding: br\r\n\r\nx".to_vec();
    let world = World::empty()
        .with("POST /a", Reply::Endless(head, zeros))
        .with("POST /b", Reply::RawThenSilence(coded))
        .with("POST /c", kept_alive("201 Created", &[], &"x".repeat(5000)));
    let outcome = world.deliver(&order(&["/a", "/b", "/c", "/c"])).await;
    assert_eq!(told(&outcome), ["201"; 4]);
    // It is chance whether the last body arrives at once and its connection can be reused.
    let connections = outcome.connections;
    assert!((3..=4).contains(&connections), "{connections}");
    let bytes = answered_bytes(&outcome);
    assert!(bytes <= 4 * limits::DELIVERY_ANSWER_BYTES_MAX, "{bytes}");
}

#[tokio::test]
async fn silence_ends_with_the_containers_time() {
    let world = accepting()
        .with("POST /b", Reply::RawThenSilence(Vec::new()))
        .limits(|limits| limits.first_byte = Duration::from_millis(200));
    let outcome = world.deliver(&order(&["/b", "/a"])).await;
    assert_eq!(told(&outcome), ["Timeout", "201"]);

    let world = World::empty()
        .with("POST /b", Reply::RawThenSilence(Vec::new()))
        .limits(|limits| limits.whole = Duration::from_millis(500));
    let outcome = world.deliver(&order(&["/b", "/a"])).await;
    assert_eq!(told(&outcome), ["Timeout", "NotSent"]);
}

/// A hundred messages are allowed, more than a check's requests.
#[tokio::test]
async fn a_whole_order_is_posted() {
    let paths = [&["/a"; 99][..], &["/b"]].concat();
    let world = accepting().with("POST /b", answer("404 Not Found", &[], b""));
    let outcome = world.deliver(&order(&paths)).await;
    let told = told(&outcome);
    assert_eq!(told.len(), limits::MESSAGES_MAX);
    assert_eq!(told[99], "404");
    assert!(told[..99].iter().all(|status| status == "201"), "{told:?}");
    assert!(!told.iter().any(|word| word == "NotSent"));
    assert_eq!(outcome.connections, 1);
}
