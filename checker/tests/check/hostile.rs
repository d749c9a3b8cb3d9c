//! Malicious hosts: each one leads to a finding, within the bounds.

use std::time::Duration;

use checker::limits::Limits;
use protocol::{DeadReason, Event};
use tokio::time::Instant;

use crate::server::{Reply, World, answer, gzip, ok};

const WELL_KNOWN: &str = "/.well-known/nodeinfo";

async fn check(world: World, expect: DeadReason) {
    let outcome = world.check().await;
    let expect = Event::Dead {
        reason: expect,
        status: None,
        to: None,
    };
    assert_eq!(*outcome.finding(), expect);
}

fn well_known(reply: Reply) -> World {
    World::of("mastodon").with(WELL_KNOWN, reply)
}

fn head(lines: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{lines}\r\n").into_bytes()
}

#[tokio::test]
async fn an_endless_body_ends_at_its_bound() {
    let endless = Reply::Endless(head(""), vec![b' '; 64 * 1024]);
    check(well_known(endless), DeadReason::TooLarge).await;
}

#[tokio::test]
async fn a_gzip_bomb_ends_at_its_bound() {
    let bomb = gzip(&vec![b' '; 64 * 1024 * 1024]);
    let reply = answer("200 OK", &["content-encoding: gzip"], &bomb);
    let outcome = well_known(reply).check().await;
    let Some(Event::Done { bytes, .. }) = outcome.events.last() else {
        panic!("{:?}", outcome.events);
    };
    assert!(*bytes <= 2 * 1024 * 1024, "{bytes}");
}

#[tokio::test]
async fn encodings_are_taken_once_and_only_if_offered() {
    let pointer = crate::server::POINTER.as_bytes();
    let once = answer("200 OK", &["content-encoding: gzip"], &gzip(pointer));
    let outcome = well_known(once).check().await;
    assert!(matches!(outcome.finding(), Event::Alive(_)));
    let twice = gzip(&gzip(pointer));
    for line in ["content-encoding: gzip, gzip", "content-encoding: br"] {
        let reply = answer("200 OK", &[line], &twice);
        check(well_known(reply), DeadReason::Encoding).await;
    }
    let mut cut = gzip(pointer);
    cut.truncate(cut.len() - 3);
    let reply = answer("200 OK", &["content-encoding: gzip"], &cut);
    check(well_known(reply), DeadReason::Http).await;
    let lie = answer("200 OK", &["content-encoding: gzip"], pointer);
    check(well_known(lie), DeadReason::Http).await;
}

#[tokio::test]
async fn deep_and_broken_json_is_no_nodeinfo() {
    for body in [
        "[".repeat(1_000_000),
        format!("{{\"links\":{}", "[".repeat(70)),
    ] {
        check(well_known(ok(&body)), DeadReason::NotNodeinfo).await;
    }
    let long = format!("{{\"links\":\"{}\"}}", "x".repeat(1_000_000));
    check(well_known(ok(&long)), DeadReason::NotNodeinfo).await;
    let invalid = answer("200 OK", &[], b"{\"links\":[],\"x\":\"\xff\"}");
    check(well_known(invalid), DeadReason::NotNodeinfo).await;
}

#[tokio::test(start_paused = true)]
async fn a_drip_ends_at_the_checks_deadline() {
    let drip = Reply::Drip(head(""), b" ".to_vec(), Duration::from_millis(20));
    let world = well_known(drip).limits(|limits| limits.whole = Duration::from_millis(500));
    check(world, DeadReason::Deadline).await;
}

/// Less than 10 KiB arrives in ten seconds. Without the rule a drip lasts until the deadline.
#[tokio::test(start_paused = true)]
async fn a_drip_ends_within_fifteen_seconds() {
    let ordinary = |limits: &mut Limits| limits.body_window = Limits::default().body_window;
    for (piece, pause) in [(1, 9000), (1, 20), (900, 1000)] {
        let drip = Reply::Drip(head(""), vec![b' '; piece], Duration::from_millis(pause));
        let start = Instant::now();
        check(well_known(drip).limits(ordinary), DeadReason::TooSlow).await;
        assert!(start.elapsed() < Duration::from_secs(15), "{piece} {pause}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_line_is_no_drip() {
    let ordinary = |limits: &mut Limits| limits.body_window = Limits::default().body_window;
    // 20 kB a second for as long as the check lasts, then 1.1 kB.
    for (piece, pause) in [(1000, 50), (1100, 950)] {
        let slow = Reply::Drip(head(""), vec![b' '; piece], Duration::from_millis(pause));
        let world = well_known(slow).limits(ordinary);
        let world = world.limits(|limits| limits.whole = Duration::from_secs(55));
        check(world, DeadReason::Deadline).await;
    }
}

#[tokio::test(start_paused = true)]
async fn silence_and_a_dripping_head_end_in_time() {
    let shorten =
        |world: World| world.limits(|limits| limits.first_byte = Duration::from_millis(300));
    let silence = Reply::RawThenSilence(Vec::new());
    check(shorten(well_known(silence)), DeadReason::Timeout).await;
    let drip = Reply::Drip(head(""), b"x: y\r\n".to_vec(), Duration::from_millis(20));
    let Reply::Drip(_, lines, pause) = drip else {
        return;
    };
    let drip = Reply::Drip(b"HTTP/1.1 200 OK\r\n".to_vec(), lines, pause);
    check(shorten(well_known(drip)), DeadReason::Timeout).await;
}

#[tokio::test]
async fn what_is_not_http_is_told_so() {
    let mut many = b"HTTP/1.1 200 OK\r\n".to_vec();
    for number in 0..200 {
        many.extend_from_slice(format!("x-{number}: y\r\n").as_bytes());
    }
    many.extend_from_slice(b"\r\n{}");
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(1_000_000));
    for reply in [
        b"SSH-2.0-x\r\n".to_vec(),
        b"<html>HTTP/0.9</html>".to_vec(),
        Vec::new(),
        b"HTTP/1.1 200 OK\r\ncontent-le".to_vec(),
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n{}".to_vec(),
        b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{}".to_vec(),
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n".to_vec(),
        many,
        long.into_bytes(),
    ] {
        check(well_known(Reply::Raw(reply)), DeadReason::Http).await;
    }
}

/// Paused time would not advance while bytes arrive. So the wait is real, and robots.txt has to be
/// answered within it.
#[tokio::test]
async fn a_flood_of_interim_answers_ends_in_time() {
    let flood = Reply::Endless(Vec::new(), b"HTTP/1.1 103 Hints\r\n\r\n".to_vec());
    let world = well_known(flood).limits(|limits| limits.first_byte = Duration::from_secs(3));
    check(world, DeadReason::Timeout).await;
}

#[tokio::test]
async fn robots_beyond_500_kib_are_not_read() {
    let mut file = b"User-agent: *\nDisallow: /x\n".to_vec();
    file.resize(499 * 1024, b'#');
    file.extend_from_slice(&vec![b'\n'; 2048]);
    file.extend_from_slice(b"Disallow: /\n");
    let world = World::of("mastodon").with("/robots.txt", answer("200 OK", &[], &file));
    assert!(matches!(world.check().await.finding(), Event::Alive(_)));
    let bomb = gzip(&file);
    let reply = answer("200 OK", &["content-encoding: gzip"], &bomb);
    let world = World::of("mastodon").with("/robots.txt", reply);
    assert!(matches!(world.check().await.finding(), Event::Alive(_)));
    let endless = Reply::Endless(
        head(""),
        b"User-agent: *\nDisallow: /.well-known/\n".to_vec(),
    );
    let world = World::of("mastodon").with("/robots.txt", endless);
    assert_eq!(*world.check().await.finding(), Event::OptedOut {});
}

#[tokio::test]
async fn a_connection_closed_without_notice_is_opened_again() {
    let keep = |body: &str| {
        let length = body.len();
        let raw = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
        Reply::Raw(raw.into_bytes())
    };
    let world = World::of("mastodon")
        .with("/robots.txt", keep("User-agent: *\nDisallow:\n"))
        .with(WELL_KNOWN, keep(crate::server::POINTER));
    let outcome = world.check().await;
    assert!(matches!(outcome.finding(), Event::Alive(_)));
}
