//! What nginx, with our configuration, makes of who visits: whom it counts as one, and what it writes down.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use tests::{Need, Web};

/// Requests of many: over the burst that one visitor has, and what is let through meanwhile.
const MANY: u32 = 1000;

/// Whom this machine says to be.
const SOMEBODY: &str = "203.0.113.9";

/// Says that nginx is missing, if it is.
fn is_there() -> bool {
    let there = Command::new("nginx").arg("-v").output().is_ok();
    if !there {
        let why = "no `nginx` here: apt-get install nginx-light";
        tests::skip(Need::Programs, why);
    }
    there
}

/// A server of a few files that believes whoever asks about his address.
async fn served(folder: &Path) -> anyhow::Result<Web> {
    let public = folder.join("public");
    for place in ["", "why", "data"] {
        std::fs::create_dir_all(public.join(place))?;
    }
    for file in ["index.html", "404.html", "why/0.json", "data/index.json"] {
        std::fs::write(public.join(file), "x")?;
    }
    // Started by root, its workers are somebody else.
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))?;
    let believed = "set_real_ip_from 127.0.0.1;\nreal_ip_header X-Forwarded-For;\n";
    std::fs::write(folder.join("clients.conf"), believed)?;
    Web::start(folder, &public).await
}

/// The status of an answer to `request`, such as `GET /`, from `address`.
fn asked(web: &Web, address: &str, request: &str) -> anyhow::Result<u16> {
    let place = web.address().trim_start_matches("http://");
    let mut stream = TcpStream::connect(place)?;
    write!(
        stream,
        "{request} HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\nX-Forwarded-For: {address}\r\n\
         User-Agent: teapot/7\r\nReferer: https://elsewhere.example/\r\nContent-Length: 0\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer.split(' ').nth(1).context("no status")?;
    Ok(status.parse()?)
}

/// Whether one of many who ask at these addresses, one after the other, is told to slow down.
fn is_slowed(web: &Web, address: impl Fn(u32) -> String) -> anyhow::Result<bool> {
    for number in 0..MANY {
        if asked(web, &address(number), "GET /data/index.json")? == 429 {
            return Ok(true);
        }
    }
    Ok(false)
}

#[tokio::test]
async fn a_visitor_is_an_ipv4_address_or_an_ipv6_network_however_it_is_written()
-> anyhow::Result<()> {
    if !is_there() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let web = served(folder.path()).await?;
    for (one, of_one) in [
        ("all groups", "2001:db8:1:2:3:4:5:"),
        ("one before the gap", "2001::"),
        ("two", "2001:db8::"),
        ("three", "2001:db8:1::"),
        ("three, and the gap is short", "2001:db8:2:0:1::"),
        ("four", "2001:db8:1:1::"),
    ] {
        assert!(
            is_slowed(&web, |number| format!("{of_one}{number:x}"))?,
            "{one}"
        );
    }
    assert!(is_slowed(&web, |_| "198.51.100.1".to_owned())?);
    // Each of them is somebody else.
    let bytes = |number: u32| (number / 250, number % 250);
    assert!(!is_slowed(&web, |number| format!(
        "2001:db8:a{number:03x}::5"
    ))?);
    assert!(!is_slowed(&web, |number| format!(
        "2001:db8:f:{number:x}::"
    ))?);
    assert!(!is_slowed(&web, |number| {
        let (third, fourth) = bytes(number);
        format!("192.0.{third}.{fourth}")
    })?);
    assert!(!is_slowed(&web, |number| {
        let (third, fourth) = bytes(number);
        format!("::ffff:198.18.{third}.{fourth}")
    })?);
    Ok(())
}

/// Invariant I10.
#[tokio::test]
async fn the_log_says_what_was_asked_for_and_not_by_whom_or_about_whom() -> anyhow::Result<()> {
    if !is_there() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let web = served(folder.path()).await?;
    let stories = [
        ("GET /", Some("GET /index.html 200")),
        (
            "GET /data/index.json?mine=alice.example",
            Some("GET /data/index.json 200"),
        ),
        ("GET /why/0.json", Some("GET /why/ 200")),
        ("GET //why/./0.json", Some("GET /why/ 200")),
        ("GET /health", None),
        ("GET /alice.example", Some("GET /404.html 404")),
        ("GET /submit/alice.example", Some("GET /submit/ 503")),
        ("POST /opt-out", Some("POST /opt-out 503")),
        ("POST /why/alice", Some("POST /why/ 405")),
        ("ALICE /@alice", Some("OTHER /other 405")),
    ];
    for (request, _) in stories {
        asked(&web, SOMEBODY, request)?;
    }
    let log = web.logged()?;
    let mut lines: Vec<String> = log
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(words.len(), 6, "{line}");
            let is_of_a_host = ["/why/", "/submit/", "/opt-out"].contains(&words[2]);
            assert_eq!(is_of_a_host, words[4] == "-", "{line}");
            words[1..4].join(" ")
        })
        .collect();
    let mut wanted: Vec<_> = stories.iter().filter_map(|(_, line)| *line).collect();
    // Each of nginx's workers writes what it has at times of its own.
    lines.sort();
    wanted.sort_unstable();
    assert_eq!(lines, wanted);
    for nobodys in [
        SOMEBODY,
        "127.0.0.1",
        "alice",
        "ALICE",
        "teapot",
        "elsewhere",
    ] {
        assert!(!log.contains(nobodys), "{nobodys} is in\n{log}");
    }
    Ok(())
}
