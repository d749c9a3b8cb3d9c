//! How nginx, with our configuration, treats visitors: which requests count as one visitor, and
//! what it logs.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;

use anyhow::Context as _;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;
use tests::Web;

/// Requests of a crowd: more than one visitor's burst and what passes meanwhile.
const MANY: u32 = 1000;

/// Of them in one connection: what its buffers hold both ways.
const AT_ONCE: usize = 40;

/// Clients that never finish a head.
const SLOW_CLIENTS: usize = 2100;

const LARGE_BUFFERS: usize = 2;

const TOO_MANY_CLIENTS: usize = 4000;

/// Connections from one address in a crowd: nginx takes 512.
const OF_ONE_ADDRESS: usize = 100;

/// A file that does not fit into the sockets between nginx and a client.
const LARGE_FILE_BYTES: usize = 1024 * 1024;

/// An address that this machine claims to be.
const SOMEBODY: &str = "203.0.113.9";

/// A server of a few files that believes the claimed address of its clients, and its folder; `None`
/// without nginx.
async fn served() -> anyhow::Result<Option<(TempDir, Web)>> {
    if !tests::are_there(&["nginx"]) {
        return Ok(None);
    }
    let kept = tempfile::tempdir()?;
    let folder = kept.path();
    let public = folder.join("public");
    let current = publish::current(&public);
    for place in ["", "why", "why/0a", "data"] {
        std::fs::create_dir_all(current.join(place))?;
    }
    for file in ["index.html", "404.html", "why/0a/0.json", "data/index.json"] {
        std::fs::write(current.join(file), "x")?;
    }
    // If root starts it, its workers run as another user.
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))?;
    let believed = "set_real_ip_from 127.0.0.1;\nreal_ip_header X-Forwarded-For;\n";
    std::fs::write(folder.join("clients.conf"), believed)?;
    let web = Web::start(folder, &public).await?;
    Ok(Some((kept, web)))
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

/// The head of the response to `request`, such as `GET /`, in lower case.
fn head_of(web: &Web, request: &str) -> anyhow::Result<String> {
    let place = web.address().trim_start_matches("http://");
    let mut stream = TcpStream::connect(place)?;
    write!(
        stream,
        "{request} HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, _) = answer.split_once("\r\n\r\n").context("no head")?;
    Ok(head.to_ascii_lowercase())
}

/// Whether any of many requests from these addresses gets the answer to slow down. Many at once, or
/// a busy machine would send fewer than a visitor may.
fn is_slowed(web: &Web, address: impl Fn(u32) -> String) -> anyhow::Result<bool> {
    let place = web.address().trim_start_matches("http://");
    for first in (0..MANY).step_by(AT_ONCE) {
        let mut requests = String::new();
        for number in (first..MANY).take(AT_ONCE) {
            let address = address(number);
            requests += &format!(
                "HEAD /data/index.json HTTP/1.1\r\nHost: {place}\r\nX-Forwarded-For: {address}\r\n\r\n"
            );
        }
        // The last one ends the connection.
        requests.insert_str(requests.len() - 2, "Connection: close\r\n");
        let mut stream = TcpStream::connect(place)?;
        stream.write_all(requests.as_bytes())?;
        let mut answers = String::new();
        stream.read_to_string(&mut answers)?;
        if answers.contains("HTTP/1.1 429 ") {
            return Ok(true);
        }
    }
    Ok(false)
}

#[tokio::test]
async fn a_visitor_is_an_ipv4_address_or_an_ipv6_network_however_it_is_written()
-> anyhow::Result<()> {
    let Some((_folder, web)) = served().await? else {
        return Ok(());
    };
    for (one, of_one) in [
        ("all groups", "2001:db8:1:2:3:4:5:"),
        ("one before the gap", "2001::"),
        ("two", "2001:db8::"),
        ("three", "2001:db8:1::"),
        ("three, and the gap is short", "2001:db8:2:0:1::"),
        ("four", "2001:db8:1:1::"),
    ] {
        let is_one = is_slowed(&web, |number| format!("{of_one}{number:x}"))?;
        assert!(is_one, "{one}");
    }
    assert!(is_slowed(&web, |_| "198.51.100.1".to_owned())?);
    // Each of them is another visitor.
    let bytes = |number: u32| format!("{}.{}", number / 250, number % 250);
    let others: [fn(u32, String) -> String; 4] = [
        |number, _| format!("2001:db8:a{number:03x}::5"),
        |number, _| format!("2001:db8:f:{number:x}::"),
        |_, bytes| format!("192.0.{bytes}"),
        |_, bytes| format!("::ffff:198.18.{bytes}"),
    ];
    for other in others {
        assert!(!is_slowed(&web, |number| other(number, bytes(number)))?);
    }
    Ok(())
}

/// As with an engine whose networks have IPv6: a visitor that tries it first must not be reset.
#[tokio::test]
async fn a_visitor_is_answered_over_ipv6_where_there_is_ipv6() -> anyhow::Result<()> {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        return Ok(());
    }
    let Some((_folder, web)) = served().await? else {
        return Ok(());
    };
    let (_, port) = web.address().rsplit_once(':').context("no port")?;
    let mut stream = TcpStream::connect(format!("[::1]:{port}"))?;
    stream.write_all(b"HEAD / HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    Ok(())
}

/// If a terminator or an engine hides addresses, all visitors are one: readers of the list must not
/// keep owners from opting out.
#[tokio::test]
async fn readers_of_the_list_and_the_intakes_clients_use_up_no_limit_of_each_other()
-> anyhow::Result<()> {
    let Some((_folder, web)) = served().await? else {
        return Ok(());
    };
    for request in 0..MANY {
        let status = asked(&web, SOMEBODY, "GET /submit/alice.example")?;
        if status == 429 {
            break;
        }
        assert!(request < MANY - 1, "the intake's clients have no limit");
    }
    assert_eq!(asked(&web, SOMEBODY, "GET /data/index.json")?, 200);
    // A client that the intake has not slowed down.
    let other = "203.0.113.10";
    assert!(is_slowed(&web, |_| other.to_owned())?);
    assert_eq!(asked(&web, other, "POST /opt-out")?, 503);
    Ok(())
}

#[tokio::test]
async fn pages_of_other_origins_read_files_and_nothing_that_the_intake_answers()
-> anyhow::Result<()> {
    let Some((_folder, web)) = served().await? else {
        return Ok(());
    };
    let head = head_of(&web, "GET /data/index.json")?;
    for kept in [
        "access-control-allow-origin: *",
        "access-control-expose-headers: etag, content-range, accept-ranges",
        "cache-control: public, max-age=300",
    ] {
        assert!(head.contains(kept), "{head}");
    }
    assert!(!head.contains("access-control-allow-methods"), "{head}");
    let head = head_of(&web, "OPTIONS /data/index.json")?;
    for kept in [
        "http/1.1 204 ",
        "access-control-allow-origin: *",
        "access-control-allow-methods: get, head",
        "access-control-allow-headers: if-none-match, if-modified-since, if-range, range",
        "access-control-max-age: 86400",
    ] {
        assert!(head.contains(kept), "{head}");
    }
    for request in [
        "GET /submit/alice.example",
        "POST /submit",
        "POST /opt-out",
        "OPTIONS /opt-out",
        "POST /proof",
        "PUT /submit",
    ] {
        let head = head_of(&web, request)?;
        assert!(!head.contains("access-control"), "{request}: {head}");
        assert!(!head.contains("cross-origin\r\n"), "{request}: {head}");
        for kept in ["x-content-type-options: nosniff", "x-frame-options: deny"] {
            assert!(head.contains(kept), "{request}: {head}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn pages_are_found_without_their_ending_and_errors_are_not_kept() -> anyhow::Result<()> {
    let Some((folder, web)) = served().await? else {
        return Ok(());
    };
    let current = folder.path().join("public/current");
    std::fs::create_dir(current.join("software"))?;
    for name in ["data", "why", "software", "owners", "software/lemmy"] {
        std::fs::write(current.join(format!("{name}.html")), "x")?;
    }
    let paths = "/data /data/ /why /why/ /software /software/ /software/lemmy /owners";
    for path in paths.split(' ') {
        let head = head_of(&web, &format!("GET {path}"))?;
        assert!(head.starts_with("http/1.1 200 "), "{path}: {head}");
        assert!(head.contains("content-type: text/html"), "{path}: {head}");
    }
    for (request, status, caching) in [
        ("GET /nowhere", 404, "public, max-age=60"),
        ("GET /data/nowhere/", 404, "public, max-age=60"),
        ("PUT /data.html", 405, "no-store"),
        ("GET /health", 200, "no-store"),
    ] {
        let head = head_of(&web, request)?;
        assert!(head.starts_with(&format!("http/1.1 {status} ")), "{head}");
        let kept = format!("cache-control: {caching}\r\n");
        assert_eq!(head.matches(&kept).count(), 1, "{request}: {head}");
    }
    Ok(())
}

/// Opens `count` connections, each of which sends only `head`.
fn slow_clients(web: &Web, count: usize, head: &[u8]) -> anyhow::Result<Vec<TcpStream>> {
    let own = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: own.maximum,
        ..own
    };
    setrlimit(Resource::Nofile, raised)?;
    let place = web.address().trim_start_matches("http://");
    let mut held = Vec::new();
    for _ in 0..count {
        let mut stream = TcpStream::connect(place)?;
        // nginx may have closed it: it has no room, or refuses the head.
        stream.write_all(head).ok();
        held.push(stream);
    }
    Ok(held)
}

/// An unfinished head that fills all buffers that nginx has for one: a line of 4000 bytes in each
/// large buffer, after short ones that fill the small buffer.
fn unfinished_head() -> Vec<u8> {
    let mut head = format!("GET / HTTP/1.1\r\nA: {}\r\n", "a".repeat(900));
    for _ in 0..LARGE_BUFFERS {
        head.push_str(&format!("B: {}\r\n", "b".repeat(4000)));
    }
    head.push_str("C: c");
    head.into_bytes()
}

#[tokio::test] // S42
async fn a_visitor_is_answered_while_2100_clients_finish_no_head() -> anyhow::Result<()> {
    let Some((_folder, web)) = served().await? else {
        return Ok(());
    };
    for head in [b"G".to_vec(), unfinished_head()] {
        let held = slow_clients(&web, SLOW_CLIENTS, &head)?;
        assert_eq!(asked(&web, SOMEBODY, "GET /data/index.json")?, 200);
        drop(held);
    }
    Ok(())
}

#[tokio::test] // S42
async fn heads_in_all_connections_fit_into_the_web_servers_memory() -> anyhow::Result<()> {
    let Some((_folder, web)) = served().await? else {
        return Ok(());
    };
    let held = slow_clients(&web, TOO_MANY_CLIENTS, &unfinished_head())?;
    web.fits_into_its_memory()?;
    drop(held);
    Ok(())
}

/// Each client reads nothing and goes on sending, so that its sockets are full both ways.
#[tokio::test] // S43
async fn unread_bytes_in_all_sockets_fit_into_the_web_servers_memory() -> anyhow::Result<()> {
    let Some((folder, web)) = served().await? else {
        return Ok(());
    };
    let large = folder.path().join("public/current/large");
    std::fs::write(large, vec![0; LARGE_FILE_BYTES])?;
    let mut held = slow_clients(&web, SLOW_CLIENTS, b"")?;
    for (number, stream) in held.iter_mut().enumerate() {
        let address = number / OF_ONE_ADDRESS;
        let request =
            format!("GET /large HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 192.0.2.{address}\r\n\r\n");
        stream.set_nonblocking(true)?;
        let requests = request.repeat(OF_ONE_ADDRESS);
        stream.write_all(requests.as_bytes()).ok();
    }
    // nginx handles requests in order, so it has filled all sockets before it answers this one.
    assert_eq!(asked(&web, SOMEBODY, "GET /data/index.json")?, 200);
    web.fits_into_its_memory()?;
    drop(held);
    Ok(())
}

/// Otherwise, the connections of the killed worker would be counted until the server stops.
#[tokio::test] // S45
async fn a_web_server_ends_with_its_worker() -> anyhow::Result<()> {
    let Some((_folder, web)) = served().await? else {
        return Ok(());
    };
    web.end_by_its_worker().await
}

/// Invariant I10.
#[tokio::test]
async fn the_log_says_what_was_asked_for_and_not_by_whom_or_about_whom() -> anyhow::Result<()> {
    let Some((_folder, web)) = served().await? else {
        return Ok(());
    };
    let with_query = "GET /data/index.json?mine=alice.example";
    let stories = [
        ("GET /", Some("GET /index.html 200")),
        (with_query, Some("GET /data/index.json 200")),
        ("GET /why/0a/0.json", Some("GET /why/ 200")),
        ("GET //why/./0a/0.json", Some("GET /why/ 200")),
        ("GET /health", None),
        ("GET /alice.example", Some("GET /404.html 404")),
        ("GET /submit/alice.example", Some("GET /submit/ 503")),
        ("POST /opt-out", Some("POST /opt-out 503")),
        ("POST /proof", Some("POST /proof 503")),
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
            let is_of_a_host = ["/why/", "/submit/", "/opt-out", "/proof"].contains(&words[2]);
            assert_eq!(is_of_a_host, words[4] == "-", "{line}");
            words[1..4].join(" ")
        })
        .collect();
    let mut wanted: Vec<_> = stories.iter().filter_map(|(_, line)| *line).collect();
    // Each worker of nginx writes its lines at its own times.
    lines.sort();
    wanted.sort_unstable();
    assert_eq!(lines, wanted);
    let words = ["127.0.0.1", "alice", "ALICE", "teapot", "elsewhere"];
    for nobodys in words.into_iter().chain([SOMEBODY]) {
        assert!(!log.contains(nobodys), "{nobodys} is in\n{log}");
    }
    Ok(())
}
