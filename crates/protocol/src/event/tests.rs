use super::*;
use crate::Private;

fn parse(line: &str) -> Option<Event> {
    serde_json::from_str(line).ok()
}

#[test]
fn events_are_read_and_written_as_this_json() {
    let hello = Event::Hello {
        protocol: limits::PROTOCOL_VERSION,
        checker: "0.1.0".to_owned(),
    };
    let version = limits::PROTOCOL_VERSION;
    let line = format!(r#"{{"hello":{{"protocol":{version},"checker":"0.1.0"}}}}"#);
    assert_eq!(serde_json::to_string(&hello).unwrap(), line);
    assert_eq!(parse(&line), Some(hello));
    assert_eq!(parse(r#"{"opted_out":{}}"#), Some(Event::OptedOut {}));
}

#[test]
fn an_alive_without_a_member_leaves_it_out() {
    for (said, expect) in [
        (
            Some(true),
            r#"{"alive":{"software":"mastodon","private":"no","open_registrations":true}}"#,
        ),
        (None, r#"{"alive":{"software":"mastodon","private":"no"}}"#),
    ] {
        let alive = Event::Alive(Instance {
            software: Some("mastodon".to_owned()),
            private: Private::No,
            open_registrations: said,
            ..Instance::default()
        });
        assert_eq!(serde_json::to_string(&alive).unwrap(), expect);
        assert_eq!(parse(expect), Some(alive));
    }
}

#[test]
fn whatever_is_not_exactly_in_the_language_is_no_event() {
    for line in [
        r#"{"alive":{"software":"a","private":"no"},"moved":{"to":"b.example"}}"#,
        r#"{"alive":{"software":"a","private":"no","users":7}}"#,
        r#"{"alive":{"private":"no"}}"#,
        r#"{"alive":{"software":null,"private":"no"}}"#,
        r#"{"alive":{"software":"a"}}"#,
        r#"{"alive":{"software":"a","software":"b","private":"no"}}"#,
        r#"{"alive":{"software":"a","private":"no","open_registrations":"yes"}}"#,
        r#"{"alive":{"software":"a","private":"no","open_registrations":1}}"#,
        r#"{"opted_out":null}"#,
        r#"{"opted_out":{"host":"b.example"}}"#,
        r#"{"moved":{"to":"b.example/x"}}"#,
        r#"{"peers":{"hosts":["127.0.0.1"]}}"#,
        r#"{"dead":{"reason":"because"}}"#,
        r#"{"refused":{"status":403,"wall":"a firewall"}}"#,
        r#"{"state":{}}"#,
        r#"{}"#,
        r#"[]"#,
        r#""hello""#,
    ] {
        assert_eq!(parse(line), None, "{line}");
    }
}

#[test]
fn a_checker_cannot_speak_for_the_gateway() {
    for reason in ["no_such_name", "memory", "faulting"] {
        let event = parse(&format!(r#"{{"dead":{{"reason":"{reason}"}}}}"#)).unwrap();
        assert!(!event.is_within_bounds(), "{reason}");
    }
}

#[test]
fn the_events_of_deliveries_are_bounded() {
    for (line, expect) in [
        (r#"{"posted":{"message":0,"status":201}}"#, true),
        (
            r#"{"posted":{"message":99,"status":429,"retry_after_s":86400}}"#,
            true,
        ),
        (
            r#"{"posted":{"message":0,"status":429,"retry_after_s":86401}}"#,
            false,
        ),
        (r#"{"posted":{"message":0,"status":99}}"#, false),
        (r#"{"posted":{"message":0,"status":1000}}"#, false),
        (r#"{"unposted":{"message":0,"reason":"not_sent"}}"#, true),
    ] {
        assert_eq!(parse(line).unwrap().is_within_bounds(), expect, "{line}");
    }
    for line in [
        r#"{"posted":{"message":-1,"status":201}}"#,
        r#"{"posted":{"message":0,"status":201,"body":"x"}}"#,
        r#"{"unposted":{"message":0,"reason":"dead"}}"#,
    ] {
        assert_eq!(parse(line), None, "{line}");
    }
}

#[test]
fn the_events_of_lists_are_bounded() {
    let event = parse(r#"{"listed":{"outcome":"complete","dropped":0}}"#);
    assert!(event.unwrap().is_within_bounds());
    let event = parse(r#"{"unlisted":{"reason":"status","status":404}}"#);
    assert!(event.unwrap().is_within_bounds());
    for line in [
        r#"{"listed":{"outcome":"failed","dropped":0}}"#,
        r#"{"listed":{"outcome":"complete","dropped":0,"state":"alive"}}"#,
        r#"{"unlisted":{"reason":"dead"}}"#,
        r#"{"suffix_lines":{"lines":[7]}}"#,
    ] {
        assert_eq!(parse(line), None, "{line}");
    }
    let check = |lines: Vec<String>, expect: bool| {
        assert_eq!(Event::SuffixLines { lines }.is_within_bounds(), expect);
    };
    check(vec![String::new(); limits::SUFFIX_LINES_PER_LINE_MAX], true);
    check(
        vec![String::new(); limits::SUFFIX_LINES_PER_LINE_MAX + 1],
        false,
    );
    check(vec!["x".repeat(limits::SUFFIX_LINE_BYTES_MAX)], true);
    check(vec!["x".repeat(limits::SUFFIX_LINE_BYTES_MAX + 1)], false);
    check(vec!["//\tx".to_owned()], true);
    check(vec!["com\nevil".to_owned()], false);
    check(vec!["com\revil".to_owned()], false);
    let to = Some("x".repeat(limits::TEXT_BYTES_MAX + 61));
    let event = Event::Unlisted {
        reason: UnlistedReason::BadRedirect,
        status: None,
        to,
    };
    assert!(!event.is_within_bounds());
}
