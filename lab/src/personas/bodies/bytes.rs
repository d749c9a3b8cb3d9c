//! Behaviour below the level of documents: broken TLS, invalid HTTP, and slow servers.

use std::time::Duration;

use bytes::Bytes;
use protocol::DeadReason::{self, Deadline, Http, NotNodeinfo, Timeout, TooLarge};

use crate::personas::shapes::{self, WELL_KNOWN, living};
use crate::personas::table::{Persona, Table};
use crate::play::{Act, Answer, Handshake, Play};

/// The head of a JSON answer, without its length.
const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";

pub(in crate::personas) fn add(table: &mut Table) {
    tls(table);
    unfinished_tls(table);
    lengths(table);
    chunks(table);
    heads(table);
    floods(table);
    interims(table);
    slow(table);
    tarpits(table);
    resets(table);
}

fn tls(table: &mut Table) {
    for (name, plays, handshake, reason) in [
        (
            "tls-expired",
            "Has a certificate that ended in 2001",
            Handshake::Expired,
            DeadReason::TlsExpired,
        ),
        (
            "tls-self-signed",
            "Has a certificate that signed itself",
            Handshake::SelfSigned,
            DeadReason::TlsSelfSigned,
        ),
        (
            "tls-wrong-name",
            "Has the certificate of another",
            Handshake::WrongName,
            DeadReason::TlsWrongName,
        ),
        (
            "tls-none",
            "Speaks plain HTTP on port 443",
            Handshake::PlainHttp,
            DeadReason::Tls,
        ),
        (
            "tls-not-yet-valid",
            "Has a certificate that begins in 4000",
            Handshake::NotYetValid,
            DeadReason::TlsNotYetValid,
        ),
        (
            "tls-incomplete-chain",
            "Doesn't send the intermediate certificate",
            Handshake::IncompleteChain,
            DeadReason::TlsIncompleteChain,
        ),
    ] {
        let row = table.add(name, plays, &[27]).dead(&[reason]);
        row.never_asking(WELL_KNOWN).play.handshake = handshake;
    }
}

fn unfinished_tls(table: &mut Table) {
    let slow = Handshake::Slow(Duration::from_secs(2));
    let plays_slow = "Sends a byte of its handshake each 2 s";
    let plays_reset = "Resets the connection after the TLS hello";
    let silent = Handshake::Silent;
    for (name, plays, handshake, facts) in [
        ("silent", "Never answers the TLS hello", silent, [21, 27]),
        ("slow", plays_slow, slow, [21, 27]),
        ("reset", plays_reset, Handshake::Reset, [27, 30]),
    ] {
        let row = table.add(&format!("tls-{name}"), plays, &facts);
        row.play.handshake = handshake;
        row.dead(&[
            Timeout,
            DeadReason::TlsClosed,
            Deadline,
            Http,
            DeadReason::RobotsUnavailable,
        ]);
    }
}

impl Persona {
    /// It answers well-known NodeInfo with these bytes, and then closes the connection.
    fn raw(&mut self, bytes: impl Into<Bytes>) -> &mut Self {
        self.route(WELL_KNOWN, Answer::raw(bytes))
    }

    fn script(&mut self, acts: Vec<Act>) -> &mut Self {
        self.route(WELL_KNOWN, Answer::Script(acts))
    }

    /// It answers well-known NodeInfo with the head, and then with the piece without end.
    fn endless(&mut self, head: impl Into<Bytes>, piece: impl Into<Bytes>) -> &mut Self {
        let answer = Answer::repeating(head, piece, Duration::ZERO);
        self.route(WELL_KNOWN, answer)
    }
}

fn pointer(name: &str) -> String {
    shapes::pointer("2.0", &format!("https://{name}.lab.test/nodeinfo/2.0")).to_string()
}

fn lengths(table: &mut Table) {
    let http = &[Http, NotNodeinfo];
    let head = HEAD;
    let body = pointer("length-long");
    let bytes = body.len() + 1000;
    table
        .add("length-long", "Promises more than it sends", &[30])
        .dead(http)
        .raw(format!("{head}Content-Length: {bytes}\r\n\r\n{body}"));
    let body = pointer("length-short");
    let bytes = body.len() / 2;
    table
        .add("length-short", "Sends more than it promises", &[30])
        .dead(http)
        .raw(format!("{head}Content-Length: {bytes}\r\n\r\n{body}"));
    let lengths = "Content-Length: 10\r\nContent-Length: 20";
    let body = "x".repeat(20);
    table
        .add("length-two", "Promises two lengths", &[30])
        .dead(http)
        .raw(format!("{head}{lengths}\r\n\r\n{body}"));
    table
        .add("length-huge", "Promises more than can be counted", &[30])
        .dead(http)
        .raw(format!(
            "{head}Content-Length: 99999999999999999999999\r\n\r\n{{}}"
        ));
    table
        .add("length-negative", "Promises less than nothing", &[30])
        .dead(http)
        .raw(format!("{head}Content-Length: -1\r\n\r\n{{}}"));
    let body = pointer("no-length");
    table
        .add("no-length", "Ends its body with its connection", &[30])
        .noting("A body that ends with its connection is sound HTTP/1.1.")
        .raw(format!("{head}Connection: close\r\n\r\n{body}"));
}

fn chunks(table: &mut Table) {
    let http = &[Http, NotNodeinfo];
    let chunked = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n");
    table
        .add("chunk-unfinished", "Breaks off in a chunk", &[30])
        .dead(http)
        .raw(format!("{chunked}ffff\r\n{{\"links\":["));
    table
        .add("chunk-garbage", "Sends a chunk whose size is none", &[30])
        .dead(http)
        .raw(format!("{chunked}zz\r\n{{}}\r\n0\r\n\r\n"));
    let plays = "Sends a chunk whose size can't be counted";
    table
        .add("chunk-huge", plays, &[30])
        .dead(http)
        .raw(format!("{chunked}ffffffffffffffffff\r\n{{}}\r\n0\r\n\r\n"));
    let plays = "Sends a chunk extension without end";
    table
        .add("chunk-extension", plays, &[30])
        .dead(http)
        .endless(format!("{chunked}2;"), vec![b'e'; 64 * 1024]);
    let plays = "Sends blanks in chunks of one byte without end";
    table
        .add("chunk-endless", plays, &[20, 30])
        .dead(&[TooLarge, Deadline, NotNodeinfo])
        .endless(chunked, "1\r\n \r\n".repeat(1000));
}

fn heads(table: &mut Table) {
    for (name, plays, facts, bytes) in [
        (
            "http-09",
            "Speaks HTTP/0.9",
            &[30][..],
            "<html>It works!</html>",
        ),
        (
            "http-ssh",
            "Speaks another protocol",
            &[30],
            "SSH-2.0-OpenSSH_9.9\r\n",
        ),
        (
            "http-nothing",
            "Closes the connection without an answer",
            &[30],
            "",
        ),
        (
            "http-status",
            "Has a status that is none",
            &[30],
            "HTTP/1.1 99999 ?\r\n\r\n",
        ),
        (
            "header-nul",
            "Has a zero byte in a header",
            &[30],
            "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 2\r\n\r\n{}",
        ),
        (
            "location-cr",
            "Has a bare CR in a redirect",
            &[24, 30],
            "HTTP/1.1 302 Found\r\nLocation: /a\rX-Injected: b\r\nContent-Length: 0\r\n\r\n",
        ),
    ] {
        let row = table.add(name, plays, facts);
        row.dead(&[Http, Timeout]).raw(bytes);
    }
}

fn floods(table: &mut Table) {
    let http = &[Http, Timeout];
    let ok = "HTTP/1.1 200 OK\r\n";
    let end = "Content-Length: 2\r\n\r\n{}";
    let long = format!("X-Long: {}\r\n", "a".repeat(100 * 1024)).repeat(100);
    table
        .add("header-long", "Has 100 headers of 100 KiB each", &[30])
        .dead(http)
        .raw(format!("{ok}{long}{end}"));
    let many: String = (0..10_000).map(|n| format!("X-{n}: y\r\n")).collect();
    table
        .add("header-many", "Has 10 000 headers", &[30])
        .dead(http)
        .raw(format!("{ok}{many}{end}"));
    table
        .add("header-endless", "Has headers without end", &[20, 30])
        .dead(http)
        .endless(ok, "X-More: y\r\n".repeat(1000));
}

fn interims(table: &mut Table) {
    let plays = "Says 100 000 times that we may continue, and no more";
    table
        .add("interim-flood", plays, &[30])
        .dead(&[Http, Timeout, Deadline])
        .raw("HTTP/1.1 100 Continue\r\n\r\n".repeat(100_000));
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".repeat(1000);
    // Either the gateway's byte budget or the checker's timeout ends it first.
    table
        .add(
            "interim-endless",
            "Sends early hints without end",
            &[20, 30],
        )
        .dead(&[DeadReason::Budget, Http, Timeout, Deadline])
        .script(vec![Act::Repeat(hints.into(), Duration::ZERO)]);
    table
        .add("switching", "Switches to another protocol", &[30])
        .dead(&[Http, DeadReason::Status, Timeout, NotNodeinfo])
        .raw("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\u{1}\u{2}");
}

fn slow(table: &mut Table) {
    let late = &[Timeout, Deadline];
    table
        .add("silent", "Never answers when asked for NodeInfo", &[21])
        .dead(late)
        .script(vec![Act::Hold]);
    table
        .add("silent-all", "Never answers anything", &[21])
        .dead(late)
        .acting(Play::default().otherwise(Answer::Script(vec![Act::Hold])));
    let body =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{";
    let drip = Answer::repeating(body, " ", Duration::from_secs(9));
    table
        .add("drip", "Sends a byte of its NodeInfo each 9 s", &[21])
        .dead(&[DeadReason::TooSlow])
        .route(WELL_KNOWN, drip);
    let head = "HTTP/1.1 200 OK\r\nX-Slow: ";
    let drip = Answer::repeating(head, "y", Duration::from_secs(2));
    let plays = "Sends a byte of its headers each 2 s";
    table
        .add("drip-headers", plays, &[21])
        .dead(late)
        .route(WELL_KNOWN, drip);
}

fn tarpits(table: &mut Table) {
    let large = &[TooLarge, NotNodeinfo];
    table
        .add("tarpit", "Has a NodeInfo without end", &[20])
        .dead(large)
        .endless(
            format!("{HEAD}\r\n{{\"links\":["),
            "{\"rel\":\"x\",\"href\":\"y\"},".repeat(1000),
        );
    table
        .add("hellpot", "Has a page without end", &[20])
        .dead(large)
        .endless(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html><body>",
            "<p>lorem ipsum</p>\n".repeat(1000),
        );
    let body = pointer("late");
    let answer = format!("{HEAD}Content-Length: {}\r\n\r\n{body}", body.len());
    table
        .add("late", "Takes 3 s for its NodeInfo, as it may", &[21])
        .script(vec![
            Act::Pause(Duration::from_secs(3)),
            Act::Send(answer.into()),
        ]);
}

fn resets(table: &mut Table) {
    let half = format!("{HEAD}Content-Length: 1000\r\n\r\n{{\"links\":[");
    let plays = "Resets the connection within its NodeInfo";
    table
        .add("reset-body", plays, &[30])
        .dead(&[Http])
        .script(vec![
            Act::Send(half.into()),
            Act::Pause(Duration::from_millis(50)),
            Act::Reset,
        ]);
    let plays = "Resets the connection when asked for NodeInfo";
    table
        .add("reset", plays, &[30])
        .dead(&[Http])
        .script(vec![Act::Reset]);
    let plays = "Resets the connection whatever is asked";
    table
        .add("reset-all", plays, &[30])
        .dead(&[DeadReason::RobotsUnavailable, Http])
        .acting(Play::default().otherwise(Answer::Script(vec![Act::Reset])));
    let play = living("closes.lab.test", "mastodon", "4.5.2");
    let routes = play.routes.clone();
    let play = routes.into_iter().fold(play, |play, (path, answer)| {
        play.route(&path, answer.with("Connection", "close"))
    });
    let plays = "Closes the connection after each answer, as it may";
    table.add("closes", plays, &[30]).acting(play);
}
