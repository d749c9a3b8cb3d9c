//! robots.txt in all its forms: files that forbid checks, and files that only look odd.

use std::time::Duration;

use bytes::Bytes;
use protocol::DeadReason;

use super::shapes::{DOCUMENT, PEERS_PATH, WELL_KNOWN, flat, living};
use super::table::Table;
use crate::expectation::Expectation;
use crate::play::{Act, Answer};

const ROBOTS: &str = "/robots.txt";

/// Bytes of the huge files, well above the 500 KiB that are parsed.
const HUGE_BYTES: usize = 3 * 1024 * 1024;

/// Bytes of a robots.txt that are parsed.
const PARSED_BYTES: usize = 500 * 1024;

pub(super) fn add(table: &mut Table) {
    opted_out(table);
    allowed(table);
    odd(table);
    statuses(table);
    broken(table);
}

fn persona(
    table: &mut Table,
    name: &str,
    plays: &str,
    facts: &[u8],
    wanted: Expectation,
    answer: Answer,
) {
    let host = format!("{name}.lab.test");
    let play = living(&host, "mastodon", "4.5.2")
        .route(PEERS_PATH, flat::<&str>(&[]))
        .route(ROBOTS, answer);
    table.add(&host, plays, facts, wanted, play);
}

fn opted_out(table: &mut Table) {
    for (name, plays, text) in [
        (
            "robots-all",
            "Denies everything to everybody",
            &b"User-agent: *\nDisallow: /\n"[..],
        ),
        (
            "robots-us",
            "Denies everything to us by name",
            b"User-agent: *\nDisallow:\n\nUser-agent: fedicensus\nDisallow: /\n",
        ),
        (
            "robots-us-case",
            "Denies everything to us in capitals",
            b"USER-AGENT: FEDICENSUS\nDISALLOW: /\n",
        ),
        (
            "robots-us-many",
            "Denies everything to a group of names, ours among them",
            b"User-agent: GPTBot\nUser-agent: Fedicensus\nDisallow: /\n",
        ),
        (
            "robots-well-known",
            "Denies well-known NodeInfo",
            b"User-agent: *\nDisallow: /.well-known/nodeinfo\n",
        ),
        (
            "robots-bom",
            "Denies everything after a byte order mark",
            b"\xef\xbb\xbfUser-agent: *\nDisallow: /\n",
        ),
        (
            "robots-crlf",
            "Denies everything with CRLF line ends",
            b"User-agent: *\r\nDisallow: /\r\n",
        ),
        (
            "robots-cr",
            "Denies everything with CR line ends",
            b"User-agent: *\rDisallow: /\r",
        ),
        (
            "robots-latin1",
            "Denies everything after a comment in Latin-1",
            b"# d\xe9sol\xe9\nUser-agent: *\nDisallow: /\n",
        ),
        (
            "robots-no-newline",
            "Denies everything without a last line end",
            b"User-agent: *\nDisallow: /",
        ),
        (
            "robots-wildcard",
            "Denies everything by a pattern",
            b"User-agent: *\nDisallow: /*\n",
        ),
    ] {
        let facts: &[u8] = if name.contains("all") || name.contains("us") || name.contains("known")
        {
            &[14]
        } else {
            &[15]
        };
        let wanted = Expectation::opted_out(&[ROBOTS]);
        persona(table, name, plays, facts, wanted, Answer::text(text));
    }
    for (name, mark, bytes) in [
        (
            "robots-utf16-le",
            [0xff, 0xfe],
            u16::to_le_bytes as fn(u16) -> [u8; 2],
        ),
        ("robots-utf16-be", [0xfe, 0xff], u16::to_be_bytes),
    ] {
        let units = "User-agent: *\r\nDisallow: /\r\n".encode_utf16();
        let file: Vec<u8> = mark.into_iter().chain(units.flat_map(bytes)).collect();
        let wanted = Expectation::opted_out(&[ROBOTS]);
        let plays = "Denies everything in UTF-16 after a byte order mark";
        persona(table, name, plays, &[15], wanted, Answer::text(file));
    }
    let text = "User-agent: *\nDisallow: /nodeinfo/\n";
    let wanted = Expectation::opted_out(&[ROBOTS, WELL_KNOWN]).never_asking(DOCUMENT);
    persona(
        table,
        "robots-document",
        "Denies the NodeInfo document alone",
        &[14],
        wanted,
        Answer::text(text),
    );
    let mut huge = b"User-agent: *\nDisallow: /\n".to_vec();
    huge.resize(HUGE_BYTES, b'#');
    let wanted = Expectation::opted_out(&[ROBOTS]);
    persona(
        table,
        "robots-huge-deny",
        "Denies everything at the start of 3 MiB",
        &[15],
        wanted,
        Answer::text(huge),
    );
    let host = "robots-moved.lab.test";
    table.add(
        host,
        "Keeps its robots.txt at another address of its own, which denies everything",
        &[16],
        Expectation::opted_out(&[ROBOTS, "/robots-real.txt"]),
        living(host, "mastodon", "4.5.2")
            .route(ROBOTS, Answer::redirect(301, "/robots-real.txt"))
            .route(
                "/robots-real.txt",
                Answer::text("User-agent: *\nDisallow: /\n"),
            ),
    );
}

fn allowed(table: &mut Table) {
    let peers = "User-agent: *\nDisallow: /api/\n";
    let wanted = Expectation::alive().never_asking(PEERS_PATH);
    persona(
        table,
        "robots-peers",
        "Denies its peers list alone",
        &[14],
        wanted,
        Answer::text(peers),
    );
    for (name, plays, text) in [
        (
            "robots-others",
            "Denies everything to others",
            "User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n",
        ),
        (
            "robots-similar",
            "Denies everything to one whose name begins like ours",
            "User-agent: FedicensusX\nDisallow: /\n",
        ),
        (
            "robots-allow-us",
            "Denies everything to everybody but us",
            "User-agent: *\nDisallow: /\n\nUser-agent: Fedicensus\nAllow: /\n",
        ),
        (
            "robots-longest",
            "Denies everything but what we ask for",
            "User-agent: *\nDisallow: /\nAllow: /.well-known/nodeinfo\nAllow: /nodeinfo/\n",
        ),
        ("robots-empty", "Has an empty robots.txt", ""),
    ] {
        persona(
            table,
            name,
            plays,
            &[14],
            Expectation::alive(),
            Answer::text(text),
        );
    }
    let cdn = Answer::redirect(302, "https://cdn.lab-cdn.test/robots.txt");
    let wanted = Expectation::alive()
        .noting("Another origin can't be asked: all is allowed, and it is no move.");
    persona(
        table,
        "robots-cdn",
        "Keeps its robots.txt at a content network",
        &[16],
        wanted.clone(),
        cdn,
    );
    let cdn = Answer::redirect(301, "https://cdn.lab-cdn.test/robots.txt");
    persona(
        table,
        "robots-cdn-301",
        "Keeps it there for good",
        &[16],
        wanted,
        cdn,
    );
    table.add_untouchable(
        "cdn.lab-cdn.test",
        "Is the content network that a robots.txt redirects to",
        &[16],
    );
}

fn odd(table: &mut Table) {
    let html = "<!doctype html>\n<html><title>Not here</title><body>\nNo page.\n</body></html>\n";
    persona(
        table,
        "robots-html",
        "Answers robots.txt with a page",
        &[15],
        Expectation::alive(),
        Answer::html(200, html),
    );
    let mut huge = vec![b'#'; PARSED_BYTES];
    huge.extend_from_slice(b"\nUser-agent: *\nDisallow: /\n");
    huge.resize(HUGE_BYTES, b'#');
    let wanted = Expectation::alive().noting("What stands after 500 KiB isn't read.");
    persona(
        table,
        "robots-huge",
        "Denies everything, after 500 KiB of comment",
        &[15],
        wanted,
        Answer::text(huge),
    );
    let mut rules = String::from("User-agent: *\n");
    for number in 0..20_000 {
        rules.push_str(&format!("Disallow: /p{number}/*x\n"));
    }
    persona(
        table,
        "robots-rules",
        "Has 20 000 rules, none for us",
        &[15],
        Expectation::alive(),
        Answer::text(rules),
    );
    let endless = Answer::Script(vec![
        Act::Send(Bytes::from_static(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nUser-agent: *\nDisallow:\n",
        )),
        Act::Repeat(Bytes::from(vec![b'#'; 64 * 1024]), Duration::ZERO),
    ]);
    persona(
        table,
        "robots-endless",
        "Has a robots.txt without end",
        &[15, 20],
        Expectation::alive(),
        endless,
    );
    let binary: Vec<u8> = (0..=255).cycle().take(4096).collect();
    persona(
        table,
        "robots-binary",
        "Answers robots.txt with noise",
        &[15],
        Expectation::alive(),
        Answer::text(binary),
    );
}

fn statuses(table: &mut Table) {
    for status in [400, 401, 403, 404, 410, 451] {
        let wanted = Expectation::alive();
        // The body of such an answer does not count as a robots.txt.
        let answer = Answer::typed(status, "text/plain", "User-agent: *\nDisallow: /\n");
        persona(
            table,
            &format!("robots-{status}"),
            "Has no robots.txt to show: all is allowed",
            &[15],
            wanted,
            answer,
        );
    }
    for (name, answer) in [
        ("robots-429", Answer::status(429)),
        (
            "robots-429-later",
            Answer::status(429).with("Retry-After", "120"),
        ),
        (
            "robots-503-later",
            Answer::status(503).with("Retry-After", "120"),
        ),
    ] {
        let wanted = Expectation::refused().never_asking(WELL_KNOWN);
        let plays = "Limits requests, its robots.txt included";
        persona(table, name, plays, &[15, 18], wanted, answer);
    }
    for status in [500, 502, 503] {
        let wanted = Expectation::dead(&[DeadReason::RobotsUnavailable]).never_asking(WELL_KNOWN);
        persona(
            table,
            &format!("robots-{status}"),
            "Can't show its robots.txt now: no crawl this time",
            &[15],
            wanted,
            Answer::status(status),
        );
    }
}

fn broken(table: &mut Table) {
    let short = Answer::raw("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nUser-agent: *\n");
    let wanted = Expectation::dead(&[DeadReason::RobotsUnavailable, DeadReason::Http])
        .never_asking(WELL_KNOWN);
    persona(
        table,
        "robots-short",
        "Breaks off in its robots.txt",
        &[15, 30],
        wanted,
        short,
    );
    let drip = Answer::Script(vec![
        Act::Send(Bytes::from_static(
            b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n",
        )),
        Act::Repeat(Bytes::from_static(b"#"), Duration::from_secs(9)),
    ]);
    let wanted = Expectation::dead(&[DeadReason::TooSlow]).never_asking(WELL_KNOWN);
    persona(
        table,
        "robots-drip",
        "Sends a byte of its robots.txt each 9 s",
        &[21],
        wanted,
        drip,
    );
}
