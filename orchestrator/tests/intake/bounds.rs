//! The cost that strangers can cause.

use std::io;
use std::sync::{Arc, Mutex};

use intake::wire::{Answer, Census, Request};
use token::Purpose;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::util::SubscriberInitExt;

use crate::stage::{Stage, host, read_reply, token};

const SOCIAL: &str = r#"{"host":"social.a.example"}"#;

#[tokio::test] // S58
async fn client_over_its_limit_gets_a_time_and_costs_no_look_up() {
    let stage = Stage::start().await;
    for _ in 0..20 {
        assert_eq!(stage.post("/submit", "", SOCIAL).await.status, 403);
    }
    let asked = stage.lookups();
    let reply = stage.post("/opt-out", "", SOCIAL).await;
    reply.has_code(429, "too_many_requests");
    let wait: u64 = reply.retry_after().unwrap().parse().unwrap();
    assert!((3500..=3600).contains(&wait), "{wait}");
    assert_eq!(stage.lookups(), asked);
    let other = stage.post_from("192.0.2.2", "/submit", "", SOCIAL).await;
    assert_eq!(other.status, 403, "nobody else is charged");
}

/// If the web server did not replace the header, it is the client's own claim.
#[tokio::test]
async fn clients_that_nobody_can_tell_apart_share_one_limit() {
    let stage = Stage::start().await;
    for number in 0..20 {
        let forged = format!("192.0.2.9\r\nx-real-ip: 192.0.2.{number}");
        let reply = stage.post_from(&forged, "/submit", "", SOCIAL).await;
        assert_eq!(reply.status, 403);
    }
    let reply = stage.post_from("unix:", "/submit", "", SOCIAL).await;
    assert_eq!(reply.status, 429);
}

#[tokio::test]
async fn bodies_and_heads_over_their_bounds_are_refused() {
    let stage = Stage::start().await;
    let fits = format!("{SOCIAL}{}", " ".repeat(4096 - SOCIAL.len()));
    let chunked = format!(
        "POST /submit HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1001\r\n{}\r\n0\r\n\r\n",
        " ".repeat(4097)
    );
    assert_eq!(stage.raw(chunked).await.status, 413);
    let long = format!("Fedicensus-Token: {}\r\n", "x".repeat(700));
    let longer = format!("x-more: {}\r\n", "x".repeat(17 * 1024));
    for (header, body, status) in [
        ("", fits.as_str(), 403),
        ("", &format!("{fits} "), 413),
        (&long, SOCIAL, 400),
        (&longer, SOCIAL, 431),
        (&"x: y\r\n".repeat(70), SOCIAL, 431),
    ] {
        let reply = stage.post("/submit", header, body).await;
        assert_eq!(reply.status, status, "{header:.20} {}", body.len());
    }
}

/// Any page can make its readers' browsers send a text. For a body declared as JSON, browsers ask
/// for permission first, and get none.
#[tokio::test] // S58
async fn body_without_json_type_changes_and_costs_nothing() {
    let stage = Stage::start().await;
    stage.bring_in("social.a.example").await;
    stage.publish_key("_fedicensus", "a.example");
    let header = token(Purpose::OptOut, "a.example", "social.a.example");
    let post = async |kind: &str| {
        let length = SOCIAL.len();
        let request = format!(
            "POST /opt-out HTTP/1.1\r\nhost: x\r\nx-real-ip: 192.0.2.1\r\n{kind}content-length: {length}\r\n{header}\r\n{SOCIAL}"
        );
        stage.raw(request).await
    };
    for _ in 0..4 {
        for kind in [
            "",
            "content-type: text/plain\r\n",
            "content-type: application/x-www-form-urlencoded\r\n",
            "content-type: multipart/form-data; boundary=application/json\r\n",
            "content-type: text/plain; application/json\r\n",
            "content-type: application/jsonp\r\n",
            "content-type: text/plain\r\ncontent-type: application/json\r\n",
        ] {
            let reply = post(kind).await;
            reply.has_code(415, "not_json");
            let type_line = "content-type: application/problem+json";
            assert!(reply.head.contains(type_line), "{kind}: {reply:?}");
        }
    }
    assert_eq!(stage.lookups(), 0);
    assert_eq!(stage.listed(), ["social.a.example"]);
    let reply = post("content-type: Application/JSON; charset=utf-8\r\n").await;
    assert_eq!(reply.status, 200, "{reply:?}");
}

/// No connection is refused, and none that is idle keeps its slot forever.
#[tokio::test]
async fn connections_over_the_limit_are_served_when_others_end() {
    let stage = Stage::start().await;
    let mut idle = Vec::new();
    for _ in 0..intake::serve::CONNECTIONS_MAX {
        idle.push(UnixStream::connect(&stage.http).await.unwrap());
    }
    let mut waiting = UnixStream::connect(&stage.http).await.unwrap();
    waiting
        .write_all(b"GET /submit/a.example HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    drop(idle);
    assert_eq!(read_reply(waiting).await.status, 404);
}

#[tokio::test] // S17
async fn intake_socket_takes_no_other_requests() {
    let stage = Stage::start().await;
    for line in [
        r#"{"dump":{"force":true}}"#,
        r#"{"check":{"host":"a.example"}}"#,
        r#"{"add":{"names":["a.example"]}}"#,
        r#"{"live":{}}"#,
        r#"{"opt_out":{"host":"a.example","undo":false,"by":"moderator"}}"#,
        "nonsense",
    ] {
        let stream = UnixStream::connect(&stage.census).await.unwrap();
        let (from, mut to) = stream.into_split();
        to.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        BufReader::new(from).read_line(&mut answer).await.unwrap();
        assert!(answer.starts_with(r#"{"failed":"#), "{line}: {answer}");
    }
    assert_eq!(stage.state("a.example"), None);
    let census = Census::new(stage.census.clone());
    let host = host("192-0-2-1.co.uk.invalid");
    let vouched = None;
    let request = Request::Submit { host, vouched };
    let answer = census.ask(&request).await.unwrap();
    assert!(matches!(answer, Answer::NotAdmitted { .. }), "{answer:?}");
}

#[tokio::test]
async fn a_daemon_that_is_away_is_nobodys_fault() {
    let stage = Stage::start().await;
    stage.publish_key("_fedicensus", "a.example");
    std::fs::remove_file(&stage.census).unwrap();
    let header = token(Purpose::OptOut, "a.example", "social.a.example");
    let reply = stage.post("/opt-out", &header, SOCIAL).await;
    reply.has_code(503, "census_away");
    assert_eq!(reply.retry_after(), Some("30"));
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn begin(&self, level: tracing::Level) -> (DefaultGuard, tracing::Dispatch) {
        let log = self.clone();
        let logging = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(move || log.clone())
            .with_ansi(false)
            .finish()
            .set_default();
        // With a single subscriber, tracing would disable a line for good that another test's
        // thread reaches first.
        let second = tracing::Dispatch::new(tracing_subscriber::registry());
        (logging, second)
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// Behind a TLS terminator that is not configured, all of its clients have its address.
#[tokio::test]
async fn requests_that_all_come_from_one_address_are_warned_of_once_and_so_is_their_end() {
    let log = Log::default();
    let _logging = log.begin(tracing::Level::INFO);
    let stage = Stage::start().await;
    let lines = |with: &str| {
        let said = log.text();
        assert!(!said.contains("192.0.2"), "{said}");
        said.lines().filter(|line| line.contains(with)).count()
    };
    let (warning, over) = ("docs/submissions.md", "several addresses");
    for _ in 0..intake::one_client::RUN_MIN - 1 {
        stage.get("/submit/a.example").await;
    }
    assert_eq!((lines(warning), lines(over)), (0, 0));
    for _ in 0..3 {
        stage.post_from("192.0.2.1", "/submit", "", SOCIAL).await;
        stage.post_from("unix:", "/submit", "", SOCIAL).await;
    }
    assert_eq!((lines(warning), lines(over)), (1, 0));
    for _ in 0..3 {
        stage.post_from("192.0.2.2", "/submit", "", SOCIAL).await;
    }
    assert_eq!((lines(warning), lines(over)), (1, 1));
}

/// Invariant I10.
#[tokio::test] // S16
async fn no_log_line_has_a_clients_address() {
    let log = Log::default();
    let _logging = log.begin(tracing::Level::TRACE);
    let stage = Stage::start().await;
    stage.publish_key("_fedicensus", "a.example");
    let header = token(Purpose::OptOut, "a.example", "social.a.example");
    for client in ["203.0.113.77", "2001:db8:77::1"] {
        stage.post_from(client, "/opt-out", &header, SOCIAL).await;
        let secret = "Fedicensus-Token: v1 secretpart\r\n";
        stage.post_from(client, "/submit", secret, SOCIAL).await;
        stage.post_from(client, "/submit", "", "{").await;
    }
    let said = log.text();
    assert!(said.contains("opted out by its owner"), "{said}");
    for never in ["203.0.113", "2001:db8", "secretpart"] {
        assert!(!said.contains(never), "{never}: {said}");
    }
}
