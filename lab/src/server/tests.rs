use std::sync::LazyLock;

use super::*;
use crate::client;
use crate::personas::shapes::{DOCUMENT, PEERS_PATH, WELL_KNOWN};

/// The most that a test reads of an answer.
const ANSWER_BYTES_MAX: u64 = 3 * 1024 * 1024;

/// Serialises the tests that start a lab, because each holds a few documents of megabytes.
static ONE: LazyLock<tokio::sync::Mutex<()>> = LazyLock::new(tokio::sync::Mutex::default);

struct Started {
    lab: Lab,
    _one: tokio::sync::MutexGuard<'static, ()>,
}

async fn started(crowd: Crowd) -> Started {
    let one = ONE.lock().await;
    let settings = Settings {
        crowd,
        ..Settings::default()
    };
    Started {
        lab: Lab::start(settings).await.unwrap(),
        _one: one,
    }
}

impl Started {
    async fn raw(&self, host: &str, request: &str) -> io::Result<Vec<u8>> {
        let lab = &self.lab;
        let ca_pem = lab.ca_pem().as_bytes();
        client::ask(lab.address(), host, ca_pem, request, ANSWER_BYTES_MAX).await
    }

    /// Status, head and body of a well-formed answer.
    async fn ask(&self, host: &str, path: &str) -> (u16, String, Vec<u8>) {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
        );
        let answer = self.raw(host, &request).await.unwrap();
        let end = answer
            .windows(4)
            .position(|window| window == b"\r\n\r\n")
            .unwrap_or_else(|| panic!("{host}{path} has no head"));
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head, answer[end + 4..].to_vec())
    }

    async fn json(&self, host: &str, path: &str) -> serde_json::Value {
        let (status, _, body) = self.ask(host, path).await;
        assert_eq!(status, 200, "{host}{path}");
        serde_json::from_slice(&body).unwrap_or_else(|error| panic!("{host}{path}: {error}"))
    }

    #[track_caller]
    fn persona(&self, host: &str) -> &Persona {
        let personas = &self.lab.table().personas;
        personas
            .iter()
            .find(|row| row.host.as_str() == host)
            .unwrap()
    }
}

#[tokio::test]
async fn every_living_software_shows_its_nodeinfo_over_tls() {
    let started = started(Crowd::default()).await;
    for persona in started.lab.table().personas.clone() {
        let Some(software) = &persona.expectation.software else {
            continue;
        };
        let host = persona.host.as_str();
        let pointer = started.json(host, WELL_KNOWN).await;
        assert!(
            pointer["links"][0]["href"]
                .as_str()
                .unwrap()
                .contains("/nodeinfo/2.0"),
            "{host}"
        );
        let document = started.json(host, DOCUMENT).await;
        let found = document["software"]["name"]
            .as_str()
            .unwrap()
            .to_lowercase();
        assert_eq!(found, *software, "{host}");
    }
    assert_eq!(started.ask("seed.lab.test", "/robots.txt").await.0, 404);
}

#[tokio::test]
async fn a_crowd_lives_behind_the_same_port() {
    let started = started(Crowd::new(25, 3)).await;
    let peers = started.json("seed.lab.test", PEERS_PATH).await;
    assert!(
        peers
            .as_array()
            .unwrap()
            .contains(&"n00001.crowd-1.test".into())
    );
    for name in Crowd::new(25, 3).names() {
        started.json(&name, WELL_KNOWN).await;
        started.json(&name, DOCUMENT).await;
    }
    assert!(
        started
            .raw("n00026.crowd-3.test", "GET / HTTP/1.1\r\n\r\n")
            .await
            .is_err()
    );
    assert!(
        started
            .raw("nobody.lab.test", "GET / HTTP/1.1\r\n\r\n")
            .await
            .is_err()
    );
}

#[tokio::test]
async fn broken_handshakes_are_broken_as_they_should_be() {
    let started = started(Crowd::default()).await;
    for (host, text) in [
        ("tls-expired.lab.test", "Expired"),
        ("tls-self-signed.lab.test", "UnknownIssuer"),
        ("tls-wrong-name.lab.test", "NotValidForName"),
        ("tls-none.lab.test", "InvalidContentType"),
        ("tls-reset.lab.test", "reset"),
    ] {
        let error = started.raw(host, "").await.unwrap_err();
        let shown = format!("{error:?} {error}");
        assert!(shown.contains(text), "{host}: {shown}");
    }
}

#[tokio::test]
async fn several_requests_go_over_one_connection() {
    let started = started(Crowd::default()).await;
    let request = format!(
        "GET {WELL_KNOWN} HTTP/1.1\r\n\r\nPOST /api/federation/instances HTTP/1.1\r\nContent-Length: 11\r\n\r\n{{\"limit\":1}}GET /x HTTP/1.1\r\nConnection: close\r\n\r\n"
    );
    let answer = started.raw("sharkey.lab.test", &request).await.unwrap();
    let text = String::from_utf8(answer).unwrap();
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 2, "{text}");
    assert!(
        text.contains("p0.pages.invalid") && text.contains("HTTP/1.1 404"),
        "{text}"
    );
}

#[tokio::test]
async fn hostile_bytes_arrive_as_they_were_meant() {
    let started = started(Crowd::default()).await;
    let request = format!("GET {WELL_KNOWN} HTTP/1.1\r\nConnection: close\r\n\r\n");
    let check = async |host: &str, expect: &[u8]| {
        let answer = started.raw(host, &request).await.unwrap();
        let found = answer.windows(expect.len()).any(|window| window == expect);
        assert!(found, "{host}: {}", protocol::escaped(&answer, 300));
    };
    check("http-09.lab.test", b"<html>It works!</html>").await;
    check(
        "length-two.lab.test",
        b"Content-Length: 10\r\nContent-Length: 20\r\n",
    )
    .await;
    check("chunk-garbage.lab.test", b"\r\n\r\nzz\r\n").await;
    check(
        "location-bytes.lab.test",
        b"Location: https://\xff\xfe.test/\xe9\r\n",
    )
    .await;
    check("location-newline.lab.test", b"%0d%0aX-Injected").await;
    check("refuses-429.lab.test", b"Retry-After: 120\r\n").await;
    let endless = started.raw("tarpit.lab.test", &request).await.unwrap();
    assert_eq!(endless.len() as u64, ANSWER_BYTES_MAX);
    let headers = started.raw("header-long.lab.test", &request).await.unwrap();
    assert_eq!(headers.len() as u64, ANSWER_BYTES_MAX);
    assert!(started.raw("reset.lab.test", &request).await.is_err());
    assert_eq!(
        started
            .raw("http-nothing.lab.test", &request)
            .await
            .unwrap(),
        b""
    );
}

#[tokio::test]
async fn bombs_are_small_on_the_wire() {
    let started = started(Crowd::default()).await;
    let (status, head, body) = started.ask("gzip-bomb.lab.test", DOCUMENT).await;
    assert_eq!(status, 200);
    assert!(head.contains("Content-Encoding: gzip"), "{head}");
    assert!(body.len() < 1024 * 1024, "{}", body.len());
    let mut unpacked = io::Read::take(
        flate2::read::GzDecoder::new(body.as_slice()),
        4 * 1024 * 1024,
    );
    assert_eq!(
        io::copy(&mut unpacked, &mut io::sink()).unwrap(),
        4 * 1024 * 1024
    );
    let (_, _, list) = started.ask("long-list.lab.test", PEERS_PATH).await;
    assert!(list.len() > 3_000_000, "{}", list.len());
}

#[tokio::test]
async fn a_story_goes_on_with_each_check() {
    let started = started(Crowd::default()).await;
    let host = "dying.lab.test";
    for expect in [200, 200, 404, 404] {
        started.ask(host, "/robots.txt").await;
        assert_eq!(started.ask(host, WELL_KNOWN).await.0, expect);
    }
    let host = "moving.lab.test";
    for expect in [200, 200, 301] {
        started.ask(host, "/robots.txt").await;
        assert_eq!(started.ask(host, WELL_KNOWN).await.0, expect);
    }
}

/// In real time: a paused clock would overtake the sockets.
#[tokio::test]
async fn a_far_lab_shakes_hands_and_answers_later() {
    let (answer, host) = (Duration::from_millis(50), "seed.lab.test");
    let _one = ONE.lock().await;
    let settings = Settings {
        answer,
        ..Settings::default()
    };
    let lab = Lab::start(settings).await.unwrap();
    let mut distance = Distance::new(answer, host);
    let least = distance.round_trip() + distance.answer_time() + distance.answer_time();
    let began = std::time::Instant::now();
    let request = "GET / HTTP/1.1\r\nConnection: close\r\n\r\n";
    let asked = client::ask(lab.address(), host, lab.ca_pem().as_bytes(), request, 1);
    asked.await.unwrap();
    assert!(began.elapsed() >= least, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_stopped_lab_frees_its_port() {
    let started = started(Crowd::default()).await;
    assert!(started.persona("seed.lab.test").expectation.listed);
    let address = started.lab.address();
    started.lab.stop().await;
    assert!(TcpStream::connect(address).await.is_err());
}
