use super::*;
use crate::emit::Emitter;
use crate::emit::tests::Kept;
use crate::peers::software::endpoints;
use crate::peers::{lemmy, mastodon, misskey};
use proptest::prelude::*;
use protocol::{Event, Host, PeersOutcome};

fn read(document: &[u8], shape: &'static Shape) -> (Option<Page>, String, u64) {
    let kept = Kept::default();
    let emitter = Emitter::new(Box::new(kept.clone()), 1 << 24);
    let mut sink = Sink::new(emitter, Some(Host::parse("own.example").unwrap()), 1000);
    let page = read_page(document, shape, &mut sink).ok();
    sink.finish(PeersOutcome::Complete).unwrap();
    let mut names = Vec::new();
    let mut dropped = 0;
    for event in kept.events() {
        if let Event::Peers { hosts } = &event {
            names.extend(hosts.iter().map(ToString::to_string));
        } else if let Event::PeersEnd {
            dropped: number, ..
        } = event
        {
            dropped = number;
        }
    }
    (page, names.join(" "), dropped)
}

fn shape_of(software: &str) -> &'static Shape {
    &endpoints(software).next().unwrap().shape
}

/// `expect` holds the names, the number of dropped elements, and whether it was such a list.
fn check(document: &str, shape: &'static Shape, expect: (&str, u64, bool)) {
    let (page, names, dropped) = read(document.as_bytes(), shape);
    let is_list = page.is_some_and(|page| page.is_list);
    assert_eq!((names.as_str(), dropped, is_list), expect, "{document}");
}

#[test]
fn flat_lists_are_read_element_by_element() {
    let shape = &mastodon::SHAPE;
    check(
        r#"["a.example","B.Example."]"#,
        shape,
        ("a.example b.example", 0, true),
    );
    check(
        r#"[null,7,1.5,-1,true,[],{},"localhost","own.example","a.example",["x.example"]]"#,
        shape,
        ("a.example", 9, true),
    );
    check(
        r#"[{"domain":"a.example"},{"domain":"o*g.*u**"},{"domain":"b.example","suspended_at":"2020-01-01"},{"domain":"c.example","suspended_at":null}]"#,
        shape,
        ("a.example c.example", 1, true),
    );
    check("[]", shape, ("", 0, true));
    check(r#"{"error":"x"}"#, shape, ("", 0, false));
    check("{}", shape, ("", 0, false));
    check("null", shape, ("", 0, false));
    check(r#""a.example""#, shape, ("", 0, false));
}

#[test]
fn names_before_broken_json_are_kept() {
    let shape = &mastodon::SHAPE;
    check(r#"["a.example","#, shape, ("a.example", 0, false));
    check(r#"["a.example"] x"#, shape, ("a.example", 0, false));
    check("<html>", shape, ("", 0, false));
}

#[test]
fn lemmy_is_read_in_its_three_shapes() {
    let shape = &lemmy::SHAPE;
    check(
        r#"{"federated_instances":{"linked":[{"id":1,"domain":"a.example","software":"lemmy"}],"allowed":[{"domain":"x.example"}],"blocked":[{"domain":"y.example"}]}}"#,
        shape,
        ("a.example", 0, true),
    );
    check(
        r#"{"federated_instances":{"linked":["a.example"],"allowed":null,"blocked":["y.example"]}}"#,
        shape,
        ("a.example", 0, true),
    );
    check(
        r#"{"federated_instances":[{"instance":{"domain":"a.example"},"blocked":false},{"instance":{"domain":"b.example"},"blocked":true}],"next_page":"c1","prev_page":null}"#,
        shape,
        ("a.example", 0, true),
    );
    check(
        r#"{"items":[{"instance":{"domain":"a.example"}}],"next_page":null}"#,
        shape,
        ("a.example", 0, true),
    );
    check(r#"{"federated_instances":null}"#, shape, ("", 0, true));
    check("{}", shape, ("", 0, true));
    check(r#"{"error":"not_found"}"#, shape, ("", 0, false));
    let site = &lemmy::SITE_SHAPE;
    check(
        r#"{"site_view":{"site":{}},"federated_instances":{"linked":["a.example"],"blocked":["b.example"]}}"#,
        site,
        ("a.example", 0, true),
    );
    check(r#"{"site_view":{},"admins":[]}"#, site, ("", 0, true));
}

#[test]
fn cursors_are_kept_within_their_bound() {
    let next = |document: &str| read(document.as_bytes(), &lemmy::SHAPE).0.unwrap().next;
    assert_eq!(
        next(r#"{"items":[],"next_page":"c1"}"#).as_deref(),
        Some("c1")
    );
    assert_eq!(next(r#"{"items":[],"next_page":7}"#), None);
    let long = format!(r#"{{"items":[],"next_page":"{}"}}"#, "x".repeat(600));
    assert_eq!(next(&long), None);
}

#[test]
fn the_other_families_are_read() {
    check(
        r#"[{"id":"1","host":"a.example","isSuspended":false},{"host":"b.example","isBlocked":true},{"host":"c.example","isSuspended":true}]"#,
        &misskey::SHAPE,
        ("a.example", 0, true),
    );
    check(
        r#"{"instances":[{"domain":"a.example","software":"mbin"}]}"#,
        shape_of("mbin"),
        ("a.example", 0, true),
    );
    let follow = r#"{"total":1,"data":[{"follower":{"host":"own.example"},"following":{"host":"a.example"},"state":"accepted"}]}"#;
    let [following, followers] = ["a.example", ""].map(|names| (names, 0, true));
    let mut both = endpoints("peertube").map(|endpoint| &endpoint.shape);
    check(follow, both.next().unwrap(), following);
    check(follow, both.next().unwrap(), followers);
    check(
        r#"{"count":2,"next":"https://evil.example/","results":[{"name":"a.example"},{"name":null}]}"#,
        shape_of("funkwhale"),
        ("a.example", 1, true),
    );
    check(
        r#"{"servers":[{"iri":"https://a.example/x"},{"iri":"user@b.example"}]}"#,
        shape_of("owncast"),
        ("a.example b.example", 0, true),
    );
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(document in "[\\[\\]{}\":,a.ex0-9ntrufls]{0,120}") {
        read(document.as_bytes(), &lemmy::SHAPE);
    }
}
