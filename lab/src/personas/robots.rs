//! robots.txt in all its forms: files that forbid checks, and files that only look odd.

use std::time::Duration;

use bytes::Bytes;
use protocol::DeadReason::{Http, RobotsUnavailable, TooSlow};

use super::shapes::{DOCUMENT, PEERS_PATH, WELL_KNOWN, flat};
use super::table::{Persona, Table};
use crate::expectation::Expectation;
use crate::play::Answer;

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

impl Persona {
    /// It answers robots.txt with this, and has an empty peers list.
    fn robots(&mut self, answer: Answer) -> &mut Self {
        self.route(PEERS_PATH, flat::<&str>(&[]))
            .route(ROBOTS, answer)
    }

    fn robots_text(&mut self, text: impl Into<Bytes>) -> &mut Self {
        self.robots(Answer::text(text))
    }

    /// Its robots.txt forbids checks, and nothing else is ever requested.
    fn opted_out(&mut self) -> &mut Self {
        self.expecting(Expectation::opted_out(&[ROBOTS]))
    }
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
        let about_us = name.contains("all") || name.contains("us") || name.contains("known");
        let fact = if about_us { 14 } else { 15 };
        let row = table.add(name, plays, &[fact]);
        row.opted_out().robots_text(text);
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
        let plays = "Denies everything in UTF-16 after a byte order mark";
        let row = table.add(name, plays, &[15]);
        row.opted_out().robots_text(file);
    }
    let plays = "Denies the NodeInfo document alone";
    table
        .add("robots-document", plays, &[14])
        .expecting(Expectation::opted_out(&[ROBOTS, WELL_KNOWN]))
        .never_asking(DOCUMENT)
        .robots_text("User-agent: *\nDisallow: /nodeinfo/\n");
    let mut huge = b"User-agent: *\nDisallow: /\n".to_vec();
    huge.resize(HUGE_BYTES, b'#');
    let plays = "Denies everything at the start of 3 MiB";
    table
        .add("robots-huge-deny", plays, &[15])
        .opted_out()
        .robots_text(huge);
    let real = "/robots-real.txt";
    let plays = "Keeps its robots.txt at another address of its own, which denies everything";
    table
        .add("robots-moved", plays, &[16])
        .expecting(Expectation::opted_out(&[ROBOTS, real]))
        .route(ROBOTS, Answer::redirect(301, real))
        .route(real, Answer::text("User-agent: *\nDisallow: /\n"));
}

fn allowed(table: &mut Table) {
    table
        .add("robots-peers", "Denies its peers list alone", &[14])
        .never_asking(PEERS_PATH)
        .robots_text("User-agent: *\nDisallow: /api/\n");
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
        table.add(name, plays, &[14]).robots_text(text);
    }
    let host = "cdn.lab-cdn.test";
    let for_now = "Keeps its robots.txt at a content network";
    for (name, plays, status) in [
        ("robots-cdn", for_now, 302),
        ("robots-cdn-301", "Keeps it there for good", 301),
    ] {
        let away = format!("https://{host}{ROBOTS}");
        table
            .add(name, plays, &[16])
            .noting("Another origin can't be asked: all is allowed, and it is no move.")
            .robots(Answer::redirect(status, &away));
    }
    let plays = "Is the content network that a robots.txt redirects to";
    table.add_untouchable(host, plays, &[16]);
}

fn odd(table: &mut Table) {
    let html = "<!doctype html>\n<html><title>Not here</title><body>\nNo page.\n</body></html>\n";
    table
        .add("robots-html", "Answers robots.txt with a page", &[15])
        .robots(Answer::html(200, html));
    let mut huge = vec![b'#'; PARSED_BYTES];
    huge.extend_from_slice(b"\nUser-agent: *\nDisallow: /\n");
    huge.resize(HUGE_BYTES, b'#');
    let plays = "Denies everything, after 500 KiB of comment";
    table
        .add("robots-huge", plays, &[15])
        .noting("What stands after 500 KiB isn't read.")
        .robots_text(huge);
    let mut rules = String::from("User-agent: *\n");
    for number in 0..20_000 {
        rules.push_str(&format!("Disallow: /p{number}/*x\n"));
    }
    table
        .add("robots-rules", "Has 20 000 rules, none for us", &[15])
        .robots_text(rules);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nUser-agent: *\nDisallow:\n";
    let plays = "Has a robots.txt without end";
    let comment = vec![b'#'; 64 * 1024];
    table
        .add("robots-endless", plays, &[15, 20])
        .robots(Answer::repeating(head, comment, Duration::ZERO));
    let binary: Vec<u8> = (0..=255).cycle().take(4096).collect();
    table
        .add("robots-binary", "Answers robots.txt with noise", &[15])
        .robots_text(binary);
}

fn statuses(table: &mut Table) {
    for status in [400, 401, 403, 404, 410, 451] {
        // The body of such an answer does not count as a robots.txt.
        let answer = Answer::typed(status, "text/plain", "User-agent: *\nDisallow: /\n");
        let plays = "Has no robots.txt to show: all is allowed";
        table
            .add(&format!("robots-{status}"), plays, &[15])
            .robots(answer);
    }
    let later = |status| Answer::status(status).with("Retry-After", "120");
    for (name, answer) in [
        ("robots-429", Answer::status(429)),
        ("robots-429-later", later(429)),
        ("robots-503-later", later(503)),
    ] {
        let plays = "Limits requests, its robots.txt included";
        table
            .add(name, plays, &[15, 18])
            .expecting(Expectation::refused())
            .never_asking(WELL_KNOWN)
            .robots(answer);
    }
    for status in [500, 502, 503] {
        let plays = "Can't show its robots.txt now: no crawl this time";
        table
            .add(&format!("robots-{status}"), plays, &[15])
            .dead(&[RobotsUnavailable])
            .never_asking(WELL_KNOWN)
            .robots(Answer::status(status));
    }
}

fn broken(table: &mut Table) {
    let short = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nUser-agent: *\n";
    let plays = "Breaks off in its robots.txt";
    table
        .add("robots-short", plays, &[15, 30])
        .dead(&[RobotsUnavailable, Http])
        .never_asking(WELL_KNOWN)
        .robots(Answer::raw(short));
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
    let plays = "Sends a byte of its robots.txt each 9 s";
    table
        .add("robots-drip", plays, &[21])
        .dead(&[TooSlow])
        .never_asking(WELL_KNOWN)
        .robots(Answer::repeating(head, "#", Duration::from_secs(9)));
}
