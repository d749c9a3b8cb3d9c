//! Each answer of a host leads to one finding.

use protocol::{DeadReason, Event, Host, Instance, Private, Wall};

use crate::server::{Certificate, POINTER, Reply, World, answer, ok, redirect};

const WELL_KNOWN: &str = "/.well-known/nodeinfo";

fn dead(reason: DeadReason, status: Option<u16>, to: Option<&str>) -> Event {
    Event::Dead {
        reason,
        status,
        to: to.map(str::to_owned),
    }
}

fn refused(status: u16, retry_after_s: Option<u64>) -> Event {
    Event::Refused {
        status,
        wall: None,
        retry_after_s,
    }
}

fn behind(wall: Wall, status: u16) -> Event {
    Event::Refused {
        status,
        wall: Some(wall),
        retry_after_s: None,
    }
}

async fn check(world: World, expect: Event) {
    let outcome = world.check().await;
    assert_eq!(*outcome.finding(), expect, "{:?}", outcome.requests);
}

fn dead_with(reason: DeadReason) -> Event {
    dead(reason, None, None)
}

/// A Mastodon that answers this path so.
fn mastodon(path: &str, reply: Reply) -> World {
    World::of("mastodon").with(path, reply)
}

fn robots(reply: Reply) -> World {
    mastodon("/robots.txt", reply)
}

fn text(status: &str, body: &str) -> Reply {
    answer(status, &["content-type: text/plain"], body.as_bytes())
}

fn alive(software: &str, private: Private) -> Event {
    Event::Alive(Instance {
        private,
        ..kit::software(software, "1.0")
    })
}

#[tokio::test]
async fn a_sound_instance_is_alive() {
    let outcome = World::of("Mastodon").check().await;
    assert_eq!(*outcome.finding(), alive("mastodon", Private::No));
    let requests = ["/robots.txt", WELL_KNOWN, "/nodeinfo/2.0"];
    assert_eq!(outcome.requests[..3], requests);
    let version = env!("CARGO_PKG_VERSION");
    let agent = format!("user-agent: Fedicensus/{version} (+https://census.example)\r\n");
    assert!(outcome.heads.contains(&agent), "{}", outcome.heads);
    let accept = "accept: application/json, application/jrd+json;q=0.9, */*;q=0.1\r\n";
    assert!(outcome.heads.contains(accept));
    assert!(!outcome.heads.contains("referer"));
}

#[tokio::test]
async fn a_busy_robots_txt_is_a_refusal_that_says_when_to_come_back() {
    for (line, head, expect) in [
        ("429 Slow", &[][..], refused(429, None)),
        ("429 Slow", &["retry-after: 600"], refused(429, Some(600))),
        ("503 Busy", &["retry-after: 90"], refused(503, Some(90))),
    ] {
        let outcome = robots(answer(line, head, b"")).check().await;
        assert_eq!(*outcome.finding(), expect);
        assert_eq!(outcome.requests, ["/robots.txt"]);
    }
}

#[tokio::test]
async fn robots_in_utf_16_are_obeyed() {
    let rules = "User-agent: *\nDisallow: /\n";
    let encoded = |mark: [u8; 2], bytes: fn(u16) -> [u8; 2]| {
        let units = rules.encode_utf16().flat_map(bytes);
        mark.into_iter().chain(units).collect::<Vec<u8>>()
    };
    for file in [
        encoded([0xff, 0xfe], u16::to_le_bytes),
        encoded([0xfe, 0xff], u16::to_be_bytes),
    ] {
        check(robots(answer("200 OK", &[], &file)), Event::OptedOut {}).await;
    }
}

#[tokio::test]
async fn the_next_best_link_is_tried_where_the_best_is_missing() {
    let links = |hrefs: &[(&str, &str)]| {
        let links = hrefs.iter().map(|(version, href)| {
            format!(
                r#"{{"rel":"http://nodeinfo.diaspora.software/ns/schema/{version}","href":"{href}"}}"#
            )
        });
        let links: Vec<_> = links.collect();
        ok(&format!(r#"{{"links":[{}]}}"#, links.join(",")))
    };
    let pointer = links(&[("2.0", "/nodeinfo/2.0"), ("2.1", "/nodeinfo/2.1")]);
    let outcome = mastodon(WELL_KNOWN, pointer).check().await;
    assert_eq!(*outcome.finding(), alive("mastodon", Private::No));
    let asked = [WELL_KNOWN, "/nodeinfo/2.1", "/nodeinfo/2.0"];
    assert_eq!(outcome.requests[1..4], asked);

    // Only a missing document is skipped, and no address is requested twice.
    let pointer = links(&[("2.0", "/nodeinfo/2.0"), ("2.1", "/broken")]);
    let broken = mastodon(WELL_KNOWN, pointer).with("/broken", answer("500 Oh", &[], b""));
    check(broken, dead(DeadReason::Status, Some(500), None)).await;
    let pointer = links(&[("2.0", "/no"), ("2.1", "/no"), ("1.0", "/nor")]);
    let outcome = mastodon(WELL_KNOWN, pointer).check().await;
    let none = dead(DeadReason::NoNodeinfo, Some(404), None);
    assert_eq!(*outcome.finding(), none);
    assert_eq!(outcome.requests[1..], [WELL_KNOWN, "/no", "/nor"]);
    let pointer = links(&[("2.0", "https://b.example/n"), ("2.1", "/no")]);
    let elsewhere = mastodon(WELL_KNOWN, pointer);
    let expect = dead(DeadReason::NodeinfoElsewhere, None, Some("b.example"));
    check(elsewhere, expect).await;
}

#[tokio::test]
async fn statuses_of_nodeinfo_are_told_apart() {
    let world = |reply: Reply| mastodon(WELL_KNOWN, reply);
    let document = |reply: Reply| mastodon("/nodeinfo/2.0", reply);
    check(world(answer("410 Gone", &[], b"")), Event::Gone {}).await;
    let status = |status| dead(DeadReason::Status, Some(status), None);
    check(document(answer("410 Gone", &[], b"")), status(410)).await;
    let none = dead(DeadReason::NoNodeinfo, Some(404), None);
    check(world(answer("404 No", &[], b"")), none.clone()).await;
    check(document(answer("404 No", &[], b"")), none).await;
    for number in [401, 403, 429, 451] {
        let line = format!("{number} No");
        check(world(answer(&line, &[], b"")), refused(number, None)).await;
        check(document(answer(&line, &[], b"")), refused(number, None)).await;
    }
    let later = answer("429 Slow", &["retry-after: 600"], b"");
    check(world(later), refused(429, Some(600))).await;
    // One minute after the epoch, the time of the tests' wall clock.
    let date = ["retry-after: Thu, 01 Jan 1970 00:10:00 GMT"];
    let outcome = world(answer("503 Busy", &date, b"")).check().await;
    let Event::Refused {
        status: 503,
        wall: None,
        retry_after_s: Some(590..=600),
    } = outcome.finding()
    else {
        panic!("{:?}", outcome.events);
    };
    let page = ["server: cloudflare", "content-type: text/html"];
    let cloudflare = behind(Wall::Cloudflare, 503);
    check(world(answer("503 Busy", &page, b"")), cloudflare).await;
    check(world(answer("503 Busy", &[], b"")), status(503)).await;
    check(world(answer("500 Oh", &[], b"")), status(500)).await;
    check(world(answer("204 Nothing", &[], b"")), status(204)).await;
    check(world(answer("206 Part", &[], b"{}")), status(206)).await;
}

#[tokio::test]
async fn redirects_are_followed_only_here() {
    let world = |status: &str, to: &str| mastodon(WELL_KNOWN, redirect(status, to));
    let moved = || Event::Moved {
        to: Host::parse("b.example").unwrap(),
    };
    check(world("301 M", "https://B.example./x"), moved()).await;
    check(world("308 M", "//b.example/x"), moved()).await;
    let other = || dead(DeadReason::TemporaryRedirect, None, Some("b.example"));
    check(world("302 F", "https://b.example/x"), other()).await;
    check(world("303 F", "https://b.example/x"), other()).await;
    check(world("307 F", "http://b.example/x"), other()).await;
    for to in [
        "javascript:x",
        "https://a.example:8443/",
        "https://10.0.0.1/",
        "https://localhost/",
    ] {
        let expect = dead(DeadReason::BadRedirect, None, Some(to));
        check(world("301 M", to), expect).await;
    }
    let missing = World::empty().with(WELL_KNOWN, answer("301 M", &[], b""));
    check(missing, dead_with(DeadReason::BadRedirect)).await;
    for to in [WELL_KNOWN, "http://A.example.:443/.well-known/nodeinfo"] {
        check(world("301 M", to), dead_with(DeadReason::RedirectToSelf)).await;
    }
    let here = world("301 M", "http://a.example/n?x=1").with("/n?x=1", ok(POINTER));
    check(here, alive("mastodon", Private::No)).await;
    let split = World::of("a").with("/nodeinfo/2.0", redirect("302 F", "https://b.example/n"));
    check(split, other()).await;
}

#[tokio::test]
async fn loops_of_redirects_end() {
    let round = World::empty()
        .with(WELL_KNOWN, redirect("302 F", "/b"))
        .with("/b", redirect("302 F", WELL_KNOWN));
    check(round, dead_with(DeadReason::RedirectLoop)).await;
    let mut long = World::empty().with(WELL_KNOWN, redirect("302 F", "/0"));
    for hop in 0..20 {
        let next = redirect("302 F", &format!("/{}", hop + 1));
        long = long.with(&format!("/{hop}"), next);
    }
    let outcome = long.check().await;
    assert_eq!(*outcome.finding(), dead_with(DeadReason::RedirectLoop));
    assert_eq!(outcome.requests.len(), 2 + 5);
}

#[tokio::test]
async fn broken_tls_ends_the_first_request_with_its_reason() {
    for (certificate, reason) in [
        (Certificate::Expired, DeadReason::TlsExpired),
        (Certificate::NotYetValid, DeadReason::TlsNotYetValid),
        (Certificate::OtherName, DeadReason::TlsWrongName),
        (Certificate::SelfSigned, DeadReason::TlsSelfSigned),
        (Certificate::SelfSignedCa, DeadReason::TlsSelfSigned),
        (Certificate::UnknownIssuer, DeadReason::TlsUnknownIssuer),
        (Certificate::IncompleteChain, DeadReason::TlsIncompleteChain),
        (Certificate::OldVersion, DeadReason::TlsUnsupported),
        (Certificate::None, DeadReason::Tls),
        (Certificate::Cut, DeadReason::TlsClosed),
    ] {
        let world = World::of("mastodon").certificate(certificate);
        check(world, dead_with(reason)).await;
    }
}

#[tokio::test]
async fn what_nodeinfo_says_of_registrations_is_told() {
    for (member, expect) in [
        (r#","openRegistrations":true"#, Some(true)),
        (r#","openRegistrations":false"#, Some(false)),
        (r#","openRegistrations":"yes""#, None),
    ] {
        let document = format!(r#"{{"software":{{"name":"a","version":"1.0"}}{member}}}"#);
        let world = World::of("a").with("/nodeinfo/2.0", ok(&document));
        let alive = Event::Alive(Instance {
            private: Private::No,
            open_registrations: expect,
            ..kit::software("a", "1.0")
        });
        check(world, alive).await;
    }
}

#[tokio::test]
async fn flags_of_opting_out_are_read() {
    let world = |software, path, body| World::of(software).with(path, ok(body));
    let statusnet = "/api/statusnet/config.json";
    let siteinfo = "/siteinfo.json";
    for (software, path, body, expect) in [
        (
            "friendica",
            statusnet,
            r#"{"site":{"private":true}}"#,
            Private::Yes,
        ),
        (
            "hubzilla",
            siteinfo,
            r#"{"hide_in_statistics":"1"}"#,
            Private::Yes,
        ),
        (
            "hubzilla",
            siteinfo,
            r#"{"hide_in_statistics":0}"#,
            Private::No,
        ),
    ] {
        check(world(software, path, body), alive(software, expect)).await;
    }
    check(World::of("hubzilla"), alive("hubzilla", Private::Unknown)).await;
    let rules = text("200 OK", "User-agent: *\nDisallow: /siteinfo.json");
    let forbidden = world("hubzilla", siteinfo, "{}").with("/robots.txt", rules);
    check(forbidden, alive("hubzilla", Private::Unknown)).await;
    let private = r#"{"software":{"name":"pleroma","version":"1.0"},"metadata":{"private":true}}"#;
    let world = World::of("").with("/nodeinfo/2.0", ok(private));
    check(world, alive("pleroma", Private::Yes)).await;
}
