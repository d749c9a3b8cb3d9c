//! List mode: a public list of each format, and malicious hosts. None of them makes it print
//! anything that could be a verdict.

use std::time::Duration;

use protocol::ListFormat::{self, Csv, Json, Lines, Ndjson, Proof, Suffixes};
use protocol::{Event, ListOrder, ListOutcome, ListPath, UnlistedReason};

use crate::server::{Outcome, Reply, World, answer, gzip, ok, redirect};

const PATH: &str = "/list?all=1";

fn order(format: ListFormat) -> ListOrder {
    ListOrder {
        path: ListPath::parse(PATH).unwrap(),
        format,
        names_max: 250_000,
    }
}

fn plain(body: &[u8]) -> Reply {
    answer("200 OK", &["content-type: text/plain"], body)
}

fn packed(bytes: &[u8]) -> Reply {
    answer("200 OK", &["content-encoding: gzip"], bytes)
}

fn world(reply: Reply) -> World {
    World::empty().with(PATH, reply)
}

/// A host with this list alone.
impl From<Reply> for World {
    fn from(reply: Reply) -> Self {
        world(reply)
    }
}

/// The names and the finding, after checking that nothing else was printed.
fn told(outcome: &Outcome) -> (String, Event) {
    let [Event::Hello { .. }, inner @ .., finding, Event::Done { .. }] = &outcome.events[..] else {
        panic!("{:?}", outcome.events);
    };
    let is_finding = matches!(finding, Event::Listed { .. } | Event::Unlisted { .. });
    assert!(is_finding, "{finding:?}");
    let mut names = Vec::new();
    for event in inner {
        match event {
            Event::Peers { hosts } => names.extend(hosts.iter().map(ToString::to_string)),
            Event::SuffixLines { lines } => names.extend(lines.iter().cloned()),
            other => panic!("{other:?}"),
        }
    }
    (names.join(" "), finding.clone())
}

fn listed(outcome: ListOutcome, dropped: u64) -> Event {
    Event::Listed { outcome, dropped }
}

fn unlisted(reason: UnlistedReason) -> Event {
    Event::Unlisted {
        reason,
        status: None,
        to: None,
    }
}

async fn check(
    world: impl Into<World>,
    format: ListFormat,
    names: &str,
    finding: Event,
) -> Outcome {
    let outcome = world.into().list(&order(format)).await;
    assert_eq!(told(&outcome), (names.to_owned(), finding));
    outcome
}

#[tokio::test]
async fn robots_is_asked_first_and_then_the_list_alone() {
    let world = World::of("mastodon")
        .with(PATH, plain(b"b.example\nc.example\n"))
        .with("/api/v1/instance/peers", ok(r#"["x.example"]"#));
    let complete = listed(ListOutcome::Complete, 0);
    let outcome = check(world, Lines, "b.example c.example", complete).await;
    assert_eq!(outcome.requests, ["/robots.txt", PATH]);
}

#[tokio::test]
async fn each_format_is_read() {
    let complete = listed(ListOutcome::Complete, 1);
    for (format, body) in [
        (Lines, "# c\nb.example\n-\na.example\n"),
        (
            Json,
            r#"{"pods":[{"host":"b.example","name":"B"},7,{"domain":"a.example"}]}"#,
        ),
        (Ndjson, "\"b.example\"\n{}\n{\"host\":\"a.example\"}\n"),
        (Csv, "n,domain\n1,b.example\n2\n3,a.example\n"),
    ] {
        // The list's own host is a name like any other.
        let names = "b.example a.example";
        for reply in [plain(body.as_bytes()), packed(&gzip(body.as_bytes()))] {
            check(reply, format, names, complete.clone()).await;
        }
    }
    let text = "// ===BEGIN ICANN DOMAINS===\r\n\ncom\n*.ck\n!www.ck\n\u{440}\u{444}";
    let lines = "// ===BEGIN ICANN DOMAINS===  com *.ck !www.ck \u{440}\u{444}";
    let complete = listed(ListOutcome::Complete, 0);
    check(plain(text.as_bytes()), Suffixes, lines, complete).await;
}

#[tokio::test]
async fn what_robots_forbids_is_not_asked_for() {
    let robots = |status: &str, body: &[u8]| {
        world(plain(b"b.example")).with("/robots.txt", answer(status, &[], body))
    };
    for body in [
        &b"User-agent: *\nDisallow: /list"[..],
        b"User-agent: Fedicensus\nDisallow: /",
        b"User-agent: *\nDisallow: /*?all=",
    ] {
        let expect = unlisted(UnlistedReason::Disallowed);
        let outcome = check(robots("200 OK", body), Lines, "", expect).await;
        assert_eq!(outcome.requests, ["/robots.txt"]);
    }
    let expect = Event::Unlisted {
        reason: UnlistedReason::RobotsUnavailable,
        status: Some(503),
        to: None,
    };
    let outcome = check(robots("503 Oh", b""), Lines, "", expect).await;
    assert_eq!(outcome.requests, ["/robots.txt"]);
}

#[tokio::test]
async fn redirects_are_followed_within_the_host_alone() {
    let here = redirect("302 Found", "/v2/list");
    let moved = world(here.clone()).with("/v2/list", plain(b"b.example"));
    let complete = listed(ListOutcome::Complete, 0);
    check(moved, Lines, "b.example", complete).await;
    let robots = answer("200 OK", &[], b"User-agent: *\nDisallow: /v2/");
    let forbidden = world(here)
        .with("/v2/list", plain(b"b.example"))
        .with("/robots.txt", robots);
    let expect = unlisted(UnlistedReason::Disallowed);
    check(forbidden, Lines, "", expect).await;
    for status in ["301 Moved", "302 Found", "307 Oh", "308 Oh"] {
        let elsewhere = world(redirect(status, "https://b.example/list"));
        let expect = Event::Unlisted {
            reason: UnlistedReason::Elsewhere,
            status: None,
            to: Some("b.example".to_owned()),
        };
        let outcome = check(elsewhere, Lines, "", expect).await;
        assert_eq!(outcome.requests.len(), 2);
    }
    let expect = Event::Unlisted {
        reason: UnlistedReason::BadRedirect,
        status: None,
        to: Some("https://127.0.0.1/".to_owned()),
    };
    let address = redirect("302 F", "https://127.0.0.1/");
    check(address, Lines, "", expect).await;
    let expect = unlisted(UnlistedReason::RedirectLoop);
    check(redirect("302 F", PATH), Lines, "", expect).await;
}

#[tokio::test]
async fn what_is_no_list_is_told_so() {
    for status in [404, 410, 403, 500, 204] {
        let reply = answer(&format!("{status} Oh"), &[], b"");
        let expect = Event::Unlisted {
            reason: UnlistedReason::Status,
            status: Some(status),
            to: None,
        };
        check(reply, Lines, "", expect).await;
    }
    let no_list = unlisted(UnlistedReason::NotAList);
    let html = "content-type: Text/HTML; charset=utf-8";
    let page = answer("200 OK", &[html], b"b.example\n");
    check(page, Lines, "", no_list.clone()).await;
    let deep = "[".repeat(100_000);
    for body in [r#"{"error":"x"}"#, "<html>", "b.example", &deep] {
        check(plain(body.as_bytes()), Json, "", no_list.clone()).await;
    }
    for line in [&*"x".repeat(1025), "com\u{1b}[2J", "\u{0}"] {
        check(plain(line.as_bytes()), Suffixes, "", no_list.clone()).await;
    }
    check(plain(b"com\n\xff"), Suffixes, "com", no_list).await;
    let reply = answer("200 OK", &["content-encoding: br"], b"b.example");
    let expect = unlisted(UnlistedReason::Encoding);
    check(reply, Lines, "", expect.clone()).await;
    let reply = answer("200 OK", &["content-encoding: gzip, gzip"], b"b.example");
    check(reply, Lines, "", expect).await;
}

#[tokio::test]
async fn a_body_that_breaks_off_is_no_list_and_its_half_name_no_name() {
    let broken = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nb.example\nmastodon.exam".to_vec();
    let http = unlisted(UnlistedReason::Http);
    check(Reply::Raw(broken), Lines, "b.example", http).await;
}

#[tokio::test]
async fn bounds_truncate_a_list_and_keep_what_was_read() {
    let truncated = listed(ListOutcome::Truncated, 0);
    let body = b"b.example\nc.example\nd.example\n";
    let few = ListOrder {
        names_max: 2,
        ..order(Lines)
    };
    let outcome = world(plain(body)).list(&few).await;
    let names = "b.example c.example".to_owned();
    assert_eq!(told(&outcome), (names, truncated.clone()));
    let none = ListOrder {
        names_max: 0,
        ..few
    };
    let outcome = world(plain(body)).list(&none).await;
    assert_eq!(told(&outcome), (String::new(), truncated.clone()));
    let short = world(plain(body)).limits(|limits| limits.list_bytes = 15);
    check(short, Lines, "b.example", truncated).await;
}

/// Paused time would not advance while the parser waits on its thread. So the wait is real, and
/// everything before the list has to be answered within it.
#[tokio::test]
async fn the_deadline_truncates_a_list_that_drips() {
    let truncated = listed(ListOutcome::Truncated, 0);
    let head = b"HTTP/1.1 200 OK\r\n\r\nb.example\n".to_vec();
    let drip = Reply::Drip(head, b"c".to_vec(), Duration::from_millis(20));
    let slow = world(drip).limits(|limits| limits.whole = Duration::from_secs(5));
    check(slow, Lines, "b.example", truncated).await;
}

#[tokio::test]
async fn endless_lists_end_at_their_bound() {
    let bytes_max = 1024 * 1024;
    let bomb = gzip(&vec![b'x'; 2 * 1024 * 1024]);
    let endless = || {
        let head = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
        Reply::Endless(head, vec![b'x'; 64 * 1024])
    };
    let short = |reply| world(reply).limits(|limits| limits.list_bytes = bytes_max);
    for (format, dropped) in [(Lines, 1), (Ndjson, 1), (Csv, 0)] {
        let expect = listed(ListOutcome::Truncated, dropped);
        let outcome = check(short(endless()), format, "", expect.clone()).await;
        assert_eq!(decoded_bytes(&outcome), bytes_max);
        check(short(packed(&bomb)), format, "", expect).await;
    }
    let no_list = unlisted(UnlistedReason::NotAList);
    for format in [Json, Suffixes] {
        check(short(endless()), format, "", no_list.clone()).await;
    }
}

#[tokio::test]
async fn a_gzip_bomb_ends_after_32_mib() {
    let bomb = gzip(&vec![b' '; 33 * 1024 * 1024]);
    let truncated = listed(ListOutcome::Truncated, 0);
    let outcome = check(packed(&bomb), Json, "", truncated).await;
    assert_eq!(decoded_bytes(&outcome), 32 * 1024 * 1024);
}

fn decoded_bytes(outcome: &Outcome) -> u64 {
    let Some(Event::Done { bytes, .. }) = outcome.events.last() else {
        panic!("{:?}", outcome.events);
    };
    *bytes
}

#[tokio::test]
async fn a_suffix_list_has_a_bound_of_its_own() {
    let head = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    let endless = Reply::Endless(head, b"com\n".repeat(1000));
    let outcome = world(endless).list(&order(Suffixes)).await;
    let (lines, finding) = told(&outcome);
    assert_eq!(finding, listed(ListOutcome::Truncated, 0));
    assert_eq!(lines.len() + 1, 2 * 1024 * 1024);
}

#[tokio::test]
async fn a_proof_is_its_lines_and_one_over_its_bound_is_told_so() {
    let complete = listed(ListOutcome::Complete, 0);
    let text = b"4cb5abf6\r\nfedicensus-proof=submit";
    let told_of = "4cb5abf6 fedicensus-proof=submit";
    let outcome = check(plain(text), Proof, told_of, complete.clone()).await;
    assert_eq!(outcome.requests, ["/robots.txt", PATH]);

    let longest = "x\n".repeat(2048);
    let lines = vec!["x"; 2048].join(" ");
    let whole = world(plain(longest.as_bytes()));
    check(whole, Proof, &lines, complete).await;
    for longer in [format!("{longest}x"), format!("{}yy", "x\n".repeat(2047))] {
        let outcome = world(plain(longer.as_bytes())).list(&order(Proof)).await;
        assert_eq!(told(&outcome).1, listed(ListOutcome::Truncated, 0));
    }
    let bomb = gzip(&b"x\n".repeat(1024 * 1024));
    let outcome = world(packed(&bomb)).list(&order(Proof)).await;
    assert_eq!(told(&outcome).1, listed(ListOutcome::Truncated, 0));
    assert!(decoded_bytes(&outcome) <= 4096, "{outcome:?}");

    let page = answer("200 OK", &["content-type: text/html"], text);
    let no_list = unlisted(UnlistedReason::NotAList);
    check(page, Proof, "", no_list).await;
}

#[tokio::test]
async fn a_million_names_are_cut_to_a_quarter_million() {
    let names: Vec<String> = (0..1_000_000)
        .map(|number| format!("h{number}.example"))
        .collect();
    let outcome = world(plain(names.join("\n").as_bytes()))
        .list(&order(Lines))
        .await;
    let (told, finding) = told(&outcome);
    assert_eq!(finding, listed(ListOutcome::Truncated, 0));
    assert!(told == names[..250_000].join(" "), "other names were told");
}
