use kit::{HELLO, account, end, offline, unconnected};

use super::*;
use crate::fault::ReportFault;
use crate::run::{Run, feed};
use proptest::prelude::*;

const PEERS: &str = r#"{"peers":{"hosts":["b.example","a.example"]}}"#;
const WALKED: &str = r#"{"walked":{"outcome":"complete","requests":7,"posts":40}}"#;
const BUSY: &str =
    r#"{"walked":{"outcome":"unresponsive","requests":4,"posts":0,"retry_after_s":90}}"#;
const DONE: &str = r#"{"done":{"requests":7,"bytes":900,"millis":40}}"#;

const OTHERS: [&str; 8] = [
    r#"{"alive":{"software":"mastodon","version":"4.3.0","private":"no"}}"#,
    r#"{"dead":{"reason":"timeout"}}"#,
    r#"{"moved":{"to":"b.example"}}"#,
    r#"{"opted_out":{}}"#,
    r#"{"gone":{}}"#,
    r#"{"peers_end":{"outcome":"complete","dropped":2}}"#,
    r#"{"listed":{"outcome":"complete","dropped":2}}"#,
    r#"{"suffix_lines":{"lines":["// x"]}}"#,
];

fn walked(lines: &[&str]) -> Run<WalkReport> {
    feed(WalkReport::default(), lines)
}

#[test]
fn a_whole_walk_is_its_hosts() {
    let walk = walked(&[HELLO, PEERS, PEERS, WALKED, DONE]).conclude(end(0), &account(), "");
    let hosts = ["a.example", "b.example"].map(|name| Host::parse(name).unwrap());
    let expect = Walk {
        outcome: WalkOutcome::Complete,
        hosts: hosts.into(),
        requests: 7,
        posts: 40,
        retry_after_s: None,
    };
    assert_eq!(walk, Ok(expect));
    let busy = walked(&[HELLO, BUSY, DONE]).conclude(end(0), &account(), "");
    let busy = busy.unwrap();
    assert_eq!(busy.outcome, WalkOutcome::Unresponsive);
    assert_eq!(busy.retry_after_s, Some(90));
}

/// Checks and lists may not print `walked` either, nor a walk their events.
#[test]
fn a_walk_may_say_nothing_of_its_host() {
    for other in OTHERS {
        let report = walked(&[HELLO, PEERS, other]);
        assert_eq!(report.breach(), Some(&Breach::OutOfOrder), "{other}");
        let walk = report.conclude(None, &account(), "").unwrap();
        assert_eq!(walk, Walk::failed(), "nothing of it counts: {other}");
    }
    let mut check = crate::check::Report::new(Host::parse("host.example").unwrap());
    check.accept(HELLO.as_bytes()).unwrap();
    assert_eq!(check.accept(WALKED.as_bytes()), Err(Breach::OutOfOrder));
    let order = protocol::ListOrder {
        path: protocol::ListPath::parse("/x").unwrap(),
        format: protocol::ListFormat::Json,
        names_max: 5,
    };
    let list = feed(crate::list::ListReport::new(&order), &[HELLO, WALKED]);
    assert_eq!(list.breach(), Some(&Breach::OutOfOrder));
}

#[test]
fn more_than_a_walk_may_bring_is_a_breach() {
    let many = r#"{"walked":{"outcome":"complete","requests":41,"posts":1}}"#;
    assert_eq!(walked(&[HELLO, many]).breach(), Some(&Breach::OutOfOrder));
    let names: Vec<String> = (0..500)
        .map(|number| format!("\"h{number}.example\""))
        .collect();
    let line = format!(r#"{{"peers":{{"hosts":[{}]}}}}"#, names.join(","));
    let mut report = walked(&[HELLO]);
    for _ in 0..20 {
        report.accept(line.as_bytes()).unwrap();
    }
    assert_eq!(report.accept(line.as_bytes()), Err(Breach::OutOfBounds));
}

#[test]
fn what_fails_on_our_side_is_a_fault() {
    let former = walked(&[]).conclude(end(70), &account(), "the order");
    let no_hello = matches!(former, Err(ReportFault::NoHello { exit_code: 70, .. }));
    assert!(no_hello);
    let cut = walked(&[HELLO, PEERS]).conclude(end(0), &account(), "");
    assert_eq!(cut, Err(ReportFault::OutputLost));
    let lost = walked(&[HELLO, BUSY, DONE]).conclude(end(0), &offline(), "");
    assert_eq!(lost, Err(ReportFault::NetworkLost));
    let made_up = walked(&[HELLO, PEERS, WALKED, DONE]).conclude(end(0), &unconnected(), "");
    assert_eq!(made_up, Err(ReportFault::NoConnection));
    // A crash that the host caused is no fault of ours.
    let crashed = walked(&[HELLO, PEERS]).conclude(end(134), &account(), "");
    assert_eq!(crashed, Ok(Walk::failed()));
}

proptest! {
    /// For any output of a compromised checker, there is no host without an end that reports it.
    #[test]
    fn no_lines_hand_on_hosts_of_a_walk_that_did_not_end(
        lines in proptest::collection::vec(
            proptest::sample::select([&[HELLO, PEERS, WALKED, BUSY, DONE][..], &OTHERS].concat()),
            0..10,
        ),
    ) {
        let lines: Vec<&str> = std::iter::once(HELLO).chain(lines).collect();
        if let Ok(walk) = walked(&lines).conclude(end(0), &account(), "") {
            prop_assert!(walk.hosts.is_empty() || lines.contains(&WALKED) || lines.contains(&BUSY));
            let strange = lines.iter().any(|line| OTHERS.contains(line));
            prop_assert!(walk.hosts.is_empty() || !strange);
        }
    }
}
