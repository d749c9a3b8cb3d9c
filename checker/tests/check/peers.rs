//! Peers of every family, and lists that are too long, too slow or not lists.

use std::time::Duration;

use protocol::{Event, PeersOutcome};

use crate::server::{Outcome, Reply, World, answer, gzip, ok, redirect};

const FLAT: &str = "/api/v1/instance/peers";

fn check_outcome(outcome: &Outcome, names: &str, expect: PeersOutcome, dropped_expect: u64) {
    let expect = Event::PeersEnd {
        outcome: expect,
        dropped: dropped_expect,
    };
    assert_eq!(outcome.peers(), (names.to_owned(), expect));
}

async fn check(world: World, names: &str, expect: PeersOutcome) -> Outcome {
    let outcome = world.check().await;
    check_outcome(&outcome, names, expect, 0);
    outcome
}

fn mastodon(peers: Reply) -> World {
    World::of("mastodon").with(FLAT, peers)
}

#[tokio::test]
async fn flat_lists_are_read() {
    for software in "mastodon akkoma misskey friendica something-new".split(' ') {
        let world = World::of(software).with(FLAT, ok(r#"["b.example","c.example"]"#));
        let outcome = check(world, "b.example c.example", PeersOutcome::Complete).await;
        assert_eq!(outcome.requests.last().unwrap(), FLAT);
    }
}

#[tokio::test]
async fn software_without_lists_is_not_asked() {
    let world = World::of("nodebb").with(FLAT, ok(r#"["b.example"]"#));
    let outcome = check(world, "", PeersOutcome::None).await;
    assert_eq!(outcome.requests.len(), 3);
}

fn with_metadata(software: &str, peers: &str) -> World {
    let document = format!(
        r#"{{"software":{{"name":"{software}","version":"1.0"}},"protocols":["activitypub"],"metadata":{{"peers":{peers}}}}}"#
    );
    World::of("").with("/nodeinfo/2.0", ok(&document))
}

#[tokio::test]
async fn a_relays_peers_are_read_from_its_nodeinfo() {
    let list = r#"["b.example",null,"https://c.example/","a.example",{"domain":"d.example"}]"#;
    let world = with_metadata("activityrelay", list).with(FLAT, ok(r#"["x.example"]"#));
    let outcome = world.check().await;
    check_outcome(&outcome, "b.example c.example", PeersOutcome::Complete, 2);
    assert_eq!(outcome.requests.len(), 3);
    let world = with_metadata("activityrelay", list).limits(|limits| limits.peers = 1);
    let outcome = world.check().await;
    check_outcome(&outcome, "b.example", PeersOutcome::Truncated, 1);
    // Software with its own list is asked for that list, and a value that is no array is no list.
    let world = with_metadata("mastodon", list).with(FLAT, ok(r#"["x.example"]"#));
    check(world, "x.example", PeersOutcome::Complete).await;
    let world = with_metadata("new", "7").with(FLAT, ok(r#"["x.example"]"#));
    check(world, "x.example", PeersOutcome::Complete).await;
}

#[tokio::test]
async fn junk_is_dropped_and_counted() {
    let list = r#"["https://B.example/","@x@c.example","b.example:80","localhost",null,"a.example","\"; DROP TABLE hosts","\n{\"alive\":{}}",{"domain":"d.example"}]"#;
    let outcome = mastodon(ok(list)).check().await;
    let names = "b.example c.example d.example";
    check_outcome(&outcome, names, PeersOutcome::Complete, 5);
}

#[tokio::test]
async fn a_list_that_is_kept_back_is_refused() {
    for status in ["401 No", "403 No", "404 No", "406 No"] {
        let world = mastodon(answer(status, &[], b"{}"));
        check(world, "", PeersOutcome::Refused).await;
    }
    let rules = b"User-agent: *\nDisallow: /api/\nCrawl-delay: 500";
    let robots = answer("200 OK", &[], rules);
    let world = World::of("gotosocial").with("/robots.txt", robots);
    let outcome = check(world, "", PeersOutcome::Refused).await;
    assert_eq!(outcome.requests.len(), 3);
    let world = mastodon(redirect("302 F", "https://b.example/"));
    check(world, "", PeersOutcome::Refused).await;
}

#[tokio::test]
async fn what_is_no_list_has_failed() {
    for reply in [
        ok("<html>"),
        ok(r#"{"error":"x"}"#),
        answer("500 Oh", &[], b""),
        ok(&"[".repeat(1000)),
    ] {
        check(mastodon(reply), "", PeersOutcome::Failed).await;
    }
    let broken = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n[\"b.example\",".to_vec();
    check(
        mastodon(Reply::Raw(broken)),
        "b.example",
        PeersOutcome::Failed,
    )
    .await;
}

#[tokio::test]
async fn bounds_truncate_a_list_and_keep_what_was_read() {
    let list = r#"["b.example","c.example","d.example"]"#;
    let names = "b.example c.example";
    let few = mastodon(ok(list)).limits(|limits| limits.peers = 2);
    check(few, names, PeersOutcome::Truncated).await;
    let short = mastodon(ok(list)).limits(|limits| limits.peers_bytes = 26);
    check(short, names, PeersOutcome::Truncated).await;
    let bomb = gzip(&vec![b' '; 64 * 1024 * 1024]);
    let reply = answer("200 OK", &["content-encoding: gzip"], &bomb);
    check(mastodon(reply), "", PeersOutcome::Truncated).await;
}

/// Paused time would not advance while the parser waits on its thread. So the wait is real, and
/// everything before the list has to be answered within it.
#[tokio::test]
async fn the_deadline_truncates_a_list_that_drips() {
    let head = b"HTTP/1.1 200 OK\r\n\r\n[\"b.example\"".to_vec();
    let drip = Reply::Drip(head, b" ".to_vec(), Duration::from_millis(20));
    let world = mastodon(drip).limits(|limits| limits.whole = Duration::from_secs(5));
    check(world, "b.example", PeersOutcome::Truncated).await;
}

#[tokio::test]
async fn misskey_falls_back_to_pages() {
    let page = |offset: u64, items: u64| {
        let hosts: Vec<String> = (offset..offset + items)
            .map(|number| format!(r#"{{"host":"h{number}.example","isBlocked":false}}"#))
            .collect();
        format!("[{}]", hosts.join(","))
    };
    let post = "POST /api/federation/instances";
    let world = World::of("sharkey").with(post, ok(&page(0, 3)));
    let names = "h0.example h1.example h2.example";
    let outcome = check(world, names, PeersOutcome::Complete).await;
    let body = r#"{"limit":100,"offset":0,"sort":"+firstRetrievedAt"}"#;
    assert_eq!(*outcome.requests.last().unwrap(), format!("{post} {body}"));
    // A host that always gives a full page gets as many requests as a check may make.
    let world = World::of("sharkey").with(post, ok(&page(0, 100)));
    let outcome = world.check().await;
    let Event::PeersEnd { outcome: end, .. } = outcome.peers().1 else {
        panic!("{:?}", outcome.events);
    };
    assert_eq!(end, PeersOutcome::Truncated);
    assert_eq!(outcome.requests.len(), 40);
}
