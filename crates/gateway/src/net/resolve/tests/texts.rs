use hickory_resolver::proto::rr::rdata::TXT;

use super::*;
use crate::net::resolve::text::TextSource;
use crate::wire::control::Texts;
use crate::wire::text_name::{RECORD_BYTES_MAX, RECORDS_MAX, TextName};

fn txt(strings: &[&[u8]]) -> RData {
    RData::TXT(TXT::from_bytes(strings.to_vec()))
}

fn zone(name: &str, kind: RecordType) -> Option<(ResponseCode, Vec<RData>)> {
    assert_eq!(kind, RecordType::TXT, "{name}");
    let records = match name {
        "_fedicensus.a.test." => vec![txt(&[b"first ", b"and more"]), txt(&[b"second"])],
        "_fedicensus.alias.test." => {
            let target = Name::from_ascii("_fedicensus.a.test.").unwrap();
            vec![RData::CNAME(CNAME(target)), txt(&[b"at its target"])]
        }
        "_fedicensus.odd.test." => {
            vec![txt(&[b"\xff\x00\n\"\\"]), txt(&[b""]), txt(&[&[b'x'; 200]])]
        }
        "_fedicensus.many.test." => (0..20_u8).map(|index| txt(&[&[b'a' + index]])).collect(),
        "_fedicensus.empty.test." => Vec::new(),
        "_fedicensus.servfail.test." => return Some((ResponseCode::ServFail, Vec::new())),
        "_fedicensus.refused.test." => return Some((ResponseCode::Refused, Vec::new())),
        "_fedicensus.silent.test." => return None,
        _ => return Some((ResponseCode::NXDomain, Vec::new())),
    };
    Some((ResponseCode::NoError, records))
}

fn name(domain: &str) -> TextName {
    TextName::parse(&format!("_fedicensus.{domain}")).unwrap()
}

async fn check(domain: &str, expect: Texts) {
    let server = Server::start(zone).await;
    let found = server.resolver().ask_texts(&name(domain)).await;
    assert_eq!(found, TextSource::Answered(expect), "{domain}");
}

fn records(records: &[&str]) -> Texts {
    Texts::Records {
        records: records.iter().map(|record| (*record).to_owned()).collect(),
    }
}

#[tokio::test]
async fn records_come_joined_and_in_the_order_in_which_they_were_received() {
    check("a.test", records(&["first and more", "second"])).await;
    check("alias.test", records(&["at its target"])).await;
}

#[tokio::test]
async fn what_dns_denies_and_what_it_fails_to_tell_are_different_answers() {
    check("nowhere.test", Texts::NoSuchName {}).await;
    check("empty.test", Texts::NoData {}).await;
    check("servfail.test", Texts::ServerFailed {}).await;
    let server = Server::start(zone).await;
    let refused = server.resolver().ask_texts(&name("refused.test")).await;
    assert_eq!(refused, TextSource::OwnFailure);
}

#[tokio::test]
async fn nobody_who_answers_is_a_time_out() {
    let server = Server::start(zone).await;
    let resolver = resolver(server.address, Duration::from_millis(100));
    let found = resolver.ask_texts(&name("silent.test")).await;
    assert_eq!(found, TextSource::Answered(Texts::TimedOut {}));
}

#[tokio::test]
async fn records_are_cut_to_their_bounds_and_odd_bytes_make_them_no_text() {
    let long = "x".repeat(RECORD_BYTES_MAX);
    check(
        "odd.test",
        records(&["\u{fffd}\u{fffd}\u{fffd}\"\\", "", &long]),
    )
    .await;
    let server = Server::start(zone).await;
    let found = server.resolver().ask_texts(&name("many.test")).await;
    let TextSource::Answered(Texts::Records { records }) = found else {
        panic!("{found:?}");
    };
    assert_eq!(records.len(), RECORDS_MAX);
    assert_eq!((records[0].as_str(), records[15].as_str()), ("a", "p"));
}

#[tokio::test]
async fn the_largest_answer_fits_a_control_line() {
    let worst = Texts::Records {
        records: vec!["\u{fffd}".repeat(RECORD_BYTES_MAX); RECORDS_MAX],
    };
    let line = serde_json::to_vec(&crate::wire::control::Answer::Txt(worst)).unwrap();
    assert!(
        line.len() < crate::wire::control::CONTROL_LINE_BYTES_MAX,
        "{}",
        line.len()
    );
}

#[tokio::test]
async fn an_answer_is_remembered_as_long_as_its_ttl_and_a_failure_never() {
    let server = Server::start(zone).await;
    let resolver = server.resolver();
    for domain in ["a.test", "nowhere.test"] {
        assert_eq!(resolver.remembered_texts(&name(domain)), None);
        resolver.ask_texts(&name(domain)).await;
        assert!(
            resolver.remembered_texts(&name(domain)).is_some(),
            "{domain}"
        );
    }
    resolver.ask_texts(&name("servfail.test")).await;
    assert_eq!(resolver.remembered_texts(&name("servfail.test")), None);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    for domain in ["a.test", "nowhere.test"] {
        assert_eq!(resolver.remembered_texts(&name(domain)), None, "{domain}");
    }
}
