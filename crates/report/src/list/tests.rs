use kit::{HELLO, account, astray, end, offline, over_budget, unconnected};

use super::*;
use crate::check::Report;
use crate::fault::ReportFault;
use crate::run::{Run, feed};
use census::state::Verdict;
use proptest::prelude::*;
use protocol::ListPath;

const ALIVE: &str = r#"{"alive":{"software":"mastodon","version":"4.3.0","private":"no"}}"#;
const PEERS: &str = r#"{"peers":{"hosts":["a.example","host.example","a.example"]}}"#;
const PEERS_END: &str = r#"{"peers_end":{"outcome":"complete","dropped":2}}"#;
const LINES: &str = r#"{"suffix_lines":{"lines":["// x","com"]}}"#;
const LISTED: &str = r#"{"listed":{"outcome":"complete","dropped":2}}"#;
const TRUNCATED: &str = r#"{"listed":{"outcome":"truncated","dropped":2}}"#;
const UNLISTED: &str = r#"{"unlisted":{"reason":"status","status":404}}"#;
const DONE: &str = r#"{"done":{"requests":2,"bytes":900,"millis":40}}"#;

const EVENTS: [&str; 13] = [
    HELLO,
    ALIVE,
    PEERS,
    PEERS_END,
    LINES,
    LISTED,
    UNLISTED,
    DONE,
    r#"{"moved":{"to":"b.example"}}"#,
    r#"{"opted_out":{}}"#,
    r#"{"gone":{}}"#,
    r#"{"refused":{"status":403}}"#,
    r#"{"dead":{"reason":"timeout"}}"#,
];

fn order(format: ListFormat) -> ListOrder {
    ListOrder {
        path: ListPath::parse("/x").unwrap(),
        format,
        names_max: 5,
    }
}

fn run(format: ListFormat, lines: &[&str]) -> Run<ListReport> {
    feed(ListReport::new(&order(format)), lines)
}

fn read(format: ListFormat, lines: &[&str]) -> Result<Outcome, ReportFault> {
    run(format, lines).conclude(end(0), &account(), "")
}

fn unread(format: ListFormat, lines: &[&str]) -> String {
    match read(format, lines) {
        Ok(Outcome::Unread(unread)) => unread.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_whole_run_is_its_different_names() {
    let lines = [HELLO, PEERS, PEERS_NEXT, TRUNCATED, DONE];
    let outcome = read(ListFormat::Csv, &lines).unwrap();
    let names = ["a.example", "b.example", "host.example"];
    let names = names.map(|name| Host::parse(name).unwrap());
    let expect = NamesRead {
        names: names.into(),
        dropped: 2,
        outcome: ListOutcome::Truncated,
    };
    assert_eq!(outcome, Outcome::Names(expect));
}

const PEERS_NEXT: &str = r#"{"peers":{"hosts":["b.example"]}}"#;

#[test]
fn a_whole_suffix_list_is_its_text() {
    let outcome = read(ListFormat::Suffixes, &[HELLO, LINES, LINES, LISTED, DONE]);
    let text = "// x\ncom\n// x\ncom\n".to_owned();
    assert_eq!(outcome.unwrap(), Outcome::Suffixes(text));
    let half = unread(ListFormat::Suffixes, &[HELLO, LINES, TRUNCATED, DONE]);
    assert!(half.contains("not read to its end"), "{half}");
}

#[test]
fn a_proof_is_its_whole_text_or_none() {
    let outcome = read(ListFormat::Proof, &[HELLO, LINES, LISTED, DONE]);
    assert_eq!(outcome.unwrap(), Outcome::Proof("// x\ncom\n".to_owned()));
    let empty = read(ListFormat::Proof, &[HELLO, LISTED, DONE]);
    assert_eq!(empty.unwrap(), Outcome::Proof(String::new()));
    let half = unread(ListFormat::Proof, &[HELLO, LINES, TRUNCATED, DONE]);
    let reason = "it has more than 4096 bytes, or is too slow";
    assert!(half.contains(reason), "{half}");
}

#[test]
fn a_source_that_fails_is_told_with_its_reason() {
    let lines = ListFormat::Lines;
    let text = unread(lines, &[HELLO, PEERS, UNLISTED, DONE]);
    assert_eq!(text, "its host answers 404");
    let text = unread(lines, &[HELLO, LISTED, DONE]);
    assert!(text.contains("no names (2 other elements"), "{text}");
    let odd = r#"{"unlisted":{"reason":"bad_redirect","to":"\u001b[2J"}}"#;
    let text = unread(lines, &[HELLO, odd, DONE]);
    assert_eq!(text, "it redirects to \\x1b[2J");
    let crashed = run(lines, &[HELLO, PEERS]).conclude(end(134), &account(), "");
    assert!(matches!(crashed, Ok(Outcome::Unread(Unread::Ended(_)))));
    let cut = run(lines, &[HELLO, UNLISTED]).conclude(end(0), &over_budget(), "");
    assert!(matches!(cut, Ok(Outcome::Unread(Unread::TooLarge))));
    let lied = run(lines, &[HELLO, PEERS, LISTED]).conclude(end(0), &astray(), "");
    assert!(matches!(lied, Ok(Outcome::Unread(Unread::Ended(_)))));
}

#[test]
fn what_fails_on_our_side_is_a_fault() {
    let lines = ListFormat::Lines;
    // A checker without list mode rejects the order.
    let former = run(lines, &[]).conclude(end(70), &account(), "fedicensus-checker: the order");
    let Err(fault @ ReportFault::NoHello { exit_code: 70, .. }) = former else {
        panic!("{former:?}");
    };
    let advice = "build the checker's image";
    assert!(fault.to_string().contains(advice), "{fault}");
    let other = r#"{"hello":{"protocol":99,"checker":"9.0.0"}}"#;
    let other = read(lines, &[other]);
    assert!(matches!(other, Err(ReportFault::NoHello { .. })));
    let lost = run(lines, &[HELLO, PEERS]).conclude(end(0), &account(), "");
    assert!(matches!(lost, Err(ReportFault::OutputLost)));
    let down = run(lines, &[HELLO, UNLISTED, DONE]).conclude(end(0), &offline(), "");
    assert!(matches!(down, Err(ReportFault::NetworkLost)));
    let made_up = run(lines, &[HELLO, PEERS, LISTED]).conclude(end(0), &unconnected(), "");
    assert!(matches!(made_up, Err(ReportFault::NoConnection)));
}

#[test]
fn a_check_may_not_speak_of_lists_and_a_list_not_of_its_host() {
    let host = Host::parse("host.example").unwrap();
    for event in [LINES, LISTED, UNLISTED] {
        for before in [&[HELLO][..], &[HELLO, ALIVE], &[HELLO, ALIVE, PEERS_END]] {
            let mut report = Report::new(host.clone());
            for line in before {
                report.accept(line.as_bytes()).unwrap();
            }
            let breach = report.accept(event.as_bytes());
            assert_eq!(breach, Err(Breach::OutOfOrder), "{event}");
        }
        // It costs the host no more than any other breach.
        let mut report = Report::new(host.clone());
        report.accept(HELLO.as_bytes()).unwrap();
        report.broken_by(report_of(event));
        let verdict = crate::check::conclude(&report, None, &account(), "").unwrap();
        assert!(matches!(verdict, Verdict::Dead { .. }), "{verdict:?}");
    }
    for (_, format) in ListFormat::ALL {
        for event in EVENTS {
            let report = run(format, &[HELLO, event]);
            let takes_text = [ListFormat::Suffixes, ListFormat::Proof].contains(&format);
            let belongs = [LISTED, UNLISTED].contains(&event)
                || (event == PEERS && !takes_text)
                || (event == LINES && takes_text);
            assert_eq!(report.breach().is_none(), belongs, "{format}: {event}");
        }
    }
}

fn report_of(event: &str) -> Breach {
    let mut report = Report::new(Host::parse("host.example").unwrap());
    report.accept(HELLO.as_bytes()).unwrap();
    report.accept(event.as_bytes()).unwrap_err()
}

#[test]
fn more_than_was_asked_for_is_a_breach() {
    let lines = ListFormat::Lines;
    let report = run(lines, &[HELLO, PEERS, PEERS, LISTED]);
    assert_eq!(report.breach(), Some(&Breach::OutOfBounds));
    let text = unread(lines, &[HELLO, PEERS, PEERS, LISTED]);
    assert!(text.contains("broke the rules"), "{text}");
    let line = format!(r#"{{"suffix_lines":{{"lines":["{}"]}}}}"#, "x".repeat(1023));
    for (format, fit) in [(ListFormat::Suffixes, 2048), (ListFormat::Proof, 4)] {
        let mut report = run(format, &[HELLO]);
        for _ in 0..fit {
            report.accept(line.as_bytes()).unwrap();
        }
        let breach = report.accept(line.as_bytes());
        assert_eq!(breach, Err(Breach::OutOfBounds), "{format}");
    }
}

proptest! {
    /// For any output of a compromised checker, there are no more names than requested, and no
    /// names without a finding.
    #[test]
    fn no_lines_hand_on_more_than_was_asked_for(
        lines in proptest::collection::vec(proptest::sample::select(&EVENTS[..]), 0..12),
        format in proptest::sample::select(&[ListFormat::Suffixes, ListFormat::Proof, ListFormat::Json][..]),
    ) {
        let lines: Vec<&str> = std::iter::once(HELLO).chain(lines).collect();
        match read(format, &lines) {
            Ok(Outcome::Names(read)) => {
                prop_assert!(format == ListFormat::Json && read.names.len() <= 5);
                prop_assert!(lines.contains(&LISTED));
            }
            Ok(Outcome::Suffixes(_)) => {
                prop_assert!(format == ListFormat::Suffixes && lines.contains(&LISTED));
            }
            Ok(Outcome::Proof(_)) => {
                prop_assert!(format == ListFormat::Proof && lines.contains(&LISTED));
            }
            Ok(Outcome::Unread(_)) | Err(_) => {}
        }
    }
}
