//! Behaviour below the level of documents: broken TLS, invalid HTTP, and slow servers.

use std::time::Duration;

use bytes::Bytes;
use protocol::DeadReason;

use crate::expectation::Expectation;
use crate::personas::shapes::{self, WELL_KNOWN, living};
use crate::personas::table::Table;
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
        let host = format!("{name}.lab.test");
        let play = living(&host, "mastodon", "4.5.2").handshake(handshake);
        let expectation = Expectation::dead(&[reason]).never_asking(WELL_KNOWN);
        table.add(&host, plays, &[27], expectation, play);
    }
}

fn unfinished_tls(table: &mut Table) {
    for (name, plays, handshake, facts) in [
        (
            "tls-silent",
            "Never answers the TLS hello",
            Handshake::Silent,
            [21, 27],
        ),
        (
            "tls-slow",
            "Sends a byte of its handshake each 2 s",
            Handshake::Slow(Duration::from_secs(2)),
            [21, 27],
        ),
        (
            "tls-reset",
            "Resets the connection after the TLS hello",
            Handshake::Reset,
            [27, 30],
        ),
    ] {
        let host = format!("{name}.lab.test");
        let play = living(&host, "mastodon", "4.5.2").handshake(handshake);
        let reasons = [
            DeadReason::Timeout,
            DeadReason::TlsClosed,
            DeadReason::Deadline,
            DeadReason::Http,
            DeadReason::RobotsUnavailable,
        ];
        table.add(&host, plays, &facts, Expectation::dead(&reasons), play);
    }
}

/// A persona that sends these bytes as its well-known NodeInfo, and then closes the connection.
fn raw(
    table: &mut Table,
    name: &str,
    plays: &str,
    facts: &[u8],
    wanted: Expectation,
    bytes: impl Into<Bytes>,
) {
    script(
        table,
        name,
        plays,
        facts,
        wanted,
        vec![Act::Send(bytes.into())],
    );
}

fn script(
    table: &mut Table,
    name: &str,
    plays: &str,
    facts: &[u8],
    wanted: Expectation,
    acts: Vec<Act>,
) {
    let host = format!("{name}.lab.test");
    let play = living(&host, "mastodon", "4.5.2").route(WELL_KNOWN, Answer::Script(acts));
    table.add(&host, plays, facts, wanted, play);
}

fn pointer(name: &str) -> String {
    shapes::pointer("2.0", &format!("https://{name}.lab.test/nodeinfo/2.0")).to_string()
}

fn lengths(table: &mut Table) {
    let http = || Expectation::dead(&[DeadReason::Http, DeadReason::NotNodeinfo]);
    let head = HEAD;
    let body = pointer("length-long");
    raw(
        table,
        "length-long",
        "Promises more than it sends",
        &[30],
        http(),
        format!("{head}Content-Length: {}\r\n\r\n{body}", body.len() + 1000),
    );
    let body = pointer("length-short");
    raw(
        table,
        "length-short",
        "Sends more than it promises",
        &[30],
        http(),
        format!("{head}Content-Length: {}\r\n\r\n{body}", body.len() / 2),
    );
    raw(
        table,
        "length-two",
        "Promises two lengths",
        &[30],
        http(),
        format!(
            "{head}Content-Length: 10\r\nContent-Length: 20\r\n\r\n{}",
            "x".repeat(20)
        ),
    );
    raw(
        table,
        "length-huge",
        "Promises more than can be counted",
        &[30],
        http(),
        format!("{head}Content-Length: 99999999999999999999999\r\n\r\n{{}}"),
    );
    raw(
        table,
        "length-negative",
        "Promises less than nothing",
        &[30],
        http(),
        format!("{head}Content-Length: -1\r\n\r\n{{}}"),
    );
    let body = pointer("no-length");
    let wanted =
        Expectation::alive().noting("A body that ends with its connection is sound HTTP/1.1.");
    raw(
        table,
        "no-length",
        "Ends its body with its connection",
        &[30],
        wanted,
        format!("{head}Connection: close\r\n\r\n{body}"),
    );
}

fn chunks(table: &mut Table) {
    let http = || Expectation::dead(&[DeadReason::Http, DeadReason::NotNodeinfo]);
    let chunked = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n");
    raw(
        table,
        "chunk-unfinished",
        "Breaks off in a chunk",
        &[30],
        http(),
        format!("{chunked}ffff\r\n{{\"links\":["),
    );
    raw(
        table,
        "chunk-garbage",
        "Sends a chunk whose size is none",
        &[30],
        http(),
        format!("{chunked}zz\r\n{{}}\r\n0\r\n\r\n"),
    );
    raw(
        table,
        "chunk-huge",
        "Sends a chunk whose size can't be counted",
        &[30],
        http(),
        format!("{chunked}ffffffffffffffffff\r\n{{}}\r\n0\r\n\r\n"),
    );
    let extension = vec![
        Act::Send(Bytes::from(format!("{chunked}2;"))),
        Act::Repeat(Bytes::from(vec![b'e'; 64 * 1024]), Duration::ZERO),
    ];
    script(
        table,
        "chunk-extension",
        "Sends a chunk extension without end",
        &[30],
        http(),
        extension,
    );
    let ones = vec![
        Act::Send(Bytes::from(chunked)),
        Act::Repeat(Bytes::from("1\r\n \r\n".repeat(1000)), Duration::ZERO),
    ];
    let wanted = Expectation::dead(&[
        DeadReason::TooLarge,
        DeadReason::Deadline,
        DeadReason::NotNodeinfo,
    ]);
    script(
        table,
        "chunk-endless",
        "Sends blanks in chunks of one byte without end",
        &[20, 30],
        wanted,
        ones,
    );
}

fn heads(table: &mut Table) {
    let http = || Expectation::dead(&[DeadReason::Http, DeadReason::Timeout]);
    raw(
        table,
        "http-09",
        "Speaks HTTP/0.9",
        &[30],
        http(),
        "<html>It works!</html>",
    );
    raw(
        table,
        "http-ssh",
        "Speaks another protocol",
        &[30],
        http(),
        "SSH-2.0-OpenSSH_9.9\r\n",
    );
    raw(
        table,
        "http-nothing",
        "Closes the connection without an answer",
        &[30],
        http(),
        "",
    );
    raw(
        table,
        "http-status",
        "Has a status that is none",
        &[30],
        http(),
        "HTTP/1.1 99999 ?\r\n\r\n",
    );
    raw(
        table,
        "header-nul",
        "Has a zero byte in a header",
        &[30],
        http(),
        "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 2\r\n\r\n{}",
    );
    raw(
        table,
        "location-cr",
        "Has a bare CR in a redirect",
        &[24, 30],
        http(),
        "HTTP/1.1 302 Found\r\nLocation: /a\rX-Injected: b\r\nContent-Length: 0\r\n\r\n",
    );
}

fn floods(table: &mut Table) {
    let http = || Expectation::dead(&[DeadReason::Http, DeadReason::Timeout]);
    let long = format!("X-Long: {}\r\n", "a".repeat(100 * 1024));
    raw(
        table,
        "header-long",
        "Has 100 headers of 100 KiB each",
        &[30],
        http(),
        format!(
            "HTTP/1.1 200 OK\r\n{}Content-Length: 2\r\n\r\n{{}}",
            long.repeat(100)
        ),
    );
    let many: String = (0..10_000).map(|n| format!("X-{n}: y\r\n")).collect();
    raw(
        table,
        "header-many",
        "Has 10 000 headers",
        &[30],
        http(),
        format!("HTTP/1.1 200 OK\r\n{many}Content-Length: 2\r\n\r\n{{}}"),
    );
    let endless = vec![
        Act::Send(Bytes::from_static(b"HTTP/1.1 200 OK\r\n")),
        Act::Repeat(Bytes::from("X-More: y\r\n".repeat(1000)), Duration::ZERO),
    ];
    script(
        table,
        "header-endless",
        "Has headers without end",
        &[20, 30],
        http(),
        endless,
    );
}

fn interims(table: &mut Table) {
    let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(100_000);
    let wanted = Expectation::dead(&[DeadReason::Http, DeadReason::Timeout, DeadReason::Deadline]);
    raw(
        table,
        "interim-flood",
        "Says 100 000 times that we may continue, and no more",
        &[30],
        wanted.clone(),
        interim,
    );
    // Either the gateway's byte budget or the checker's timeout ends it first.
    let wanted = Expectation::dead(&[
        DeadReason::Budget,
        DeadReason::Http,
        DeadReason::Timeout,
        DeadReason::Deadline,
    ]);
    let endless = vec![Act::Repeat(
        Bytes::from("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".repeat(1000)),
        Duration::ZERO,
    )];
    script(
        table,
        "interim-endless",
        "Sends early hints without end",
        &[20, 30],
        wanted,
        endless,
    );
    let wanted = Expectation::dead(&[
        DeadReason::Http,
        DeadReason::Status,
        DeadReason::Timeout,
        DeadReason::NotNodeinfo,
    ]);
    raw(
        table,
        "switching",
        "Switches to another protocol",
        &[30],
        wanted,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\u{1}\u{2}",
    );
}

fn slow(table: &mut Table) {
    let late = || Expectation::dead(&[DeadReason::Timeout, DeadReason::Deadline]);
    let dripping = || Expectation::dead(&[DeadReason::TooSlow]);
    script(
        table,
        "silent",
        "Never answers when asked for NodeInfo",
        &[21],
        late(),
        vec![Act::Hold],
    );
    let host = "silent-all.lab.test";
    let mute = Answer::Script(vec![Act::Hold]);
    let play = Play::default().otherwise(mute);
    table.add(host, "Never answers anything", &[21], late(), play);
    let drip = |head: &'static str, byte: &'static str, seconds: u64| {
        vec![
            Act::Send(Bytes::from_static(head.as_bytes())),
            Act::Repeat(
                Bytes::from_static(byte.as_bytes()),
                Duration::from_secs(seconds),
            ),
        ]
    };
    let body =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{";
    script(
        table,
        "drip",
        "Sends a byte of its NodeInfo each 9 s",
        &[21],
        dripping(),
        drip(body, " ", 9),
    );
    script(
        table,
        "drip-headers",
        "Sends a byte of its headers each 2 s",
        &[21],
        late(),
        drip("HTTP/1.1 200 OK\r\nX-Slow: ", "y", 2),
    );
}

fn tarpits(table: &mut Table) {
    let wanted = Expectation::dead(&[DeadReason::TooLarge, DeadReason::NotNodeinfo]);
    let tarpit = vec![
        Act::Send(Bytes::from_static(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"links\":[",
        )),
        Act::Repeat(
            Bytes::from("{\"rel\":\"x\",\"href\":\"y\"},".repeat(1000)),
            Duration::ZERO,
        ),
    ];
    script(
        table,
        "tarpit",
        "Has a NodeInfo without end",
        &[20],
        wanted.clone(),
        tarpit,
    );
    let words = vec![
        Act::Send(Bytes::from_static(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html><body>",
        )),
        Act::Repeat(
            Bytes::from("<p>lorem ipsum</p>\n".repeat(1000)),
            Duration::ZERO,
        ),
    ];
    script(
        table,
        "hellpot",
        "Has a page without end",
        &[20],
        wanted,
        words,
    );
    let host = "late.lab.test";
    let answer = vec![
        Act::Pause(Duration::from_secs(3)),
        Act::Send(Bytes::from({
            let body = pointer("late");
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
        })),
    ];
    let play = living(host, "mastodon", "4.5.2").route(WELL_KNOWN, Answer::Script(answer));
    table.add(
        host,
        "Takes 3 s for its NodeInfo, as it may",
        &[21],
        Expectation::alive(),
        play,
    );
}

fn resets(table: &mut Table) {
    let half = Bytes::from_static(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"links\":[");
    let wanted = Expectation::dead(&[DeadReason::Http]);
    script(
        table,
        "reset-body",
        "Resets the connection within its NodeInfo",
        &[30],
        wanted.clone(),
        vec![
            Act::Send(half),
            Act::Pause(Duration::from_millis(50)),
            Act::Reset,
        ],
    );
    script(
        table,
        "reset",
        "Resets the connection when asked for NodeInfo",
        &[30],
        wanted,
        vec![Act::Reset],
    );
    let host = "reset-all.lab.test";
    let play = Play::default().otherwise(Answer::Script(vec![Act::Reset]));
    let wanted = Expectation::dead(&[DeadReason::RobotsUnavailable, DeadReason::Http]);
    table.add(
        host,
        "Resets the connection whatever is asked",
        &[30],
        wanted,
        play,
    );
    let host = "closes.lab.test";
    let play = living(host, "mastodon", "4.5.2");
    let routes = play.routes.clone();
    let play = routes.into_iter().fold(play, |play, (path, answer)| {
        play.route(&path, answer.with("Connection", "close"))
    });
    table.add(
        host,
        "Closes the connection after each answer, as it may",
        &[30],
        Expectation::alive(),
        play,
    );
}
