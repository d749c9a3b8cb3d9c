use super::*;
use kit::{HELLO, account, astray, end, labelled, offline, over_budget, unconnected};
use proptest::prelude::*;
use protocol::Private;
use protocol::limits::PROTOCOL_VERSION;

const ALIVE: &str = r#"{"alive":{"software":"mastodon","version":"4.3.0","private":"no"}}"#;
const PEERS: &str = r#"{"peers":{"hosts":["a.example","host.example","b.example"]}}"#;
const PEERS_END: &str = r#"{"peers_end":{"outcome":"complete","dropped":2}}"#;
const TIMEOUT: &str = r#"{"dead":{"reason":"timeout"}}"#;
const DONE: &str = r#"{"done":{"requests":3,"bytes":900,"millis":40}}"#;

fn feed(lines: &[&str]) -> (Report, Vec<Host>) {
    let mut report = Report::new(labelled("host"));
    let mut candidates = Vec::new();
    for line in lines {
        match report.accept(line.as_bytes()) {
            Ok(hosts) => candidates.extend(hosts),
            Err(breach) => {
                report.broken_by(breach);
                break;
            }
        }
    }
    (report, candidates)
}

fn reason(lines: &[&str], end: Option<End>) -> DeadReason {
    reason_with(lines, end, &account())
}

fn reason_with(lines: &[&str], end: Option<End>, account: &Account) -> DeadReason {
    match conclude(&feed(lines).0, end, account, "") {
        Ok(Verdict::Dead { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

fn killed(exit_code: i64, killed: Option<Killed>) -> Option<End> {
    Some(End {
        exit_code,
        out_of_memory: killed.is_none(),
        killed,
        millis: 1,
    })
}

#[test]
fn a_whole_report_is_a_verdict_and_its_names_are_candidates_without_the_host_itself() {
    let (report, candidates) = feed(&[HELLO, ALIVE, PEERS, PEERS_END, DONE]);
    assert_eq!(candidates, [labelled("a"), labelled("b")]);
    assert_eq!(report.breach(), None);
    let peers = PeersSummary {
        names: 3,
        dropped: 2,
        outcome: PeersOutcome::Complete,
    };
    assert_eq!(report.peers(), peers);
    let verdict = conclude(&report, end(0), &account(), "").unwrap();
    assert_eq!(verdict.to_string(), "alive mastodon 4.3.0");
}

#[test]
fn what_alive_says_of_registrations_is_in_the_verdict() {
    for (member, expect) in [
        (r#","open_registrations":true"#, Some(true)),
        (r#","open_registrations":false"#, Some(false)),
        ("", None),
    ] {
        let alive = format!(r#"{{"alive":{{"software":"a","private":"no"{member}}}}}"#);
        let (report, _) = feed(&[HELLO, &alive, PEERS_END, DONE]);
        let verdict = conclude(&report, end(0), &account(), "").unwrap();
        let instance = Instance {
            software: Some("a".to_owned()),
            private: Private::No,
            open_registrations: expect,
            ..Instance::default()
        };
        assert_eq!(verdict, Verdict::Alive(instance), "{alive}");
    }
}

#[test]
fn a_version_never_reaches_a_terminal_as_it_was_sent() {
    let alive = r#"{"alive":{"software":"<b>","version":"4\u001b[2J","private":"no"}}"#;
    let (report, _) = feed(&[HELLO, alive, PEERS_END, DONE]);
    let verdict = conclude(&report, end(0), &account(), "").unwrap();
    assert_eq!(verdict.to_string(), "alive <b> 4\\x1b[2J");
}

#[test]
fn what_is_out_of_order_ends_the_check() {
    let other_hello = r#"{"hello":{"protocol":99,"checker":"9"}}"#;
    let no_event = r#"{"state":{"host":"victim.example","dead":true}}"#;
    let out_of_bounds = r#"{"dead":{"reason":"faulting"}}"#;
    for (lines, breach) in [
        (&[ALIVE][..], Breach::NoHello),
        (&["rubbish"], Breach::NoHello),
        (&[other_hello], Breach::NoHello),
        (&[HELLO, HELLO], Breach::OutOfOrder),
        (&[HELLO, PEERS], Breach::OutOfOrder),
        (&[HELLO, DONE], Breach::OutOfOrder),
        (&[HELLO, TIMEOUT, ALIVE], Breach::OutOfOrder),
        (&[HELLO, TIMEOUT, PEERS], Breach::OutOfOrder),
        (&[HELLO, ALIVE, ALIVE], Breach::OutOfOrder),
        (&[HELLO, ALIVE, PEERS_END, PEERS], Breach::OutOfOrder),
        (&[HELLO, ALIVE, DONE], Breach::OutOfOrder),
        (&[HELLO, TIMEOUT, DONE, DONE], Breach::OutOfOrder),
        (&[HELLO, "{\"alive\""], Breach::NotAnEvent),
        (&[HELLO, no_event], Breach::NotAnEvent),
        (&[HELLO, out_of_bounds], Breach::OutOfBounds),
    ] {
        assert_eq!(feed(lines).0.breach(), Some(&breach), "{lines:?}");
    }
}

#[test]
fn after_hello_whatever_breaks_is_the_hosts() {
    let (memory, deadline) = (killed(137, None), killed(137, Some(Killed::Deadline)));
    assert_eq!(reason(&[HELLO, "rubbish"], None), DeadReason::Protocol);
    assert_eq!(reason(&[HELLO], end(101)), DeadReason::Crashed);
    assert_eq!(reason(&[HELLO], memory), DeadReason::Memory);
    assert_eq!(reason(&[HELLO], deadline), DeadReason::Deadline);
}

/// Podman's API may be restarted while its containers continue: their output ends in the middle,
/// and they exit with 0.
#[test]
fn a_finding_that_was_lost_on_the_way_is_not_the_hosts() {
    for end in [end(0), killed(0, Some(Killed::Deadline))] {
        let concluded = conclude(&feed(&[HELLO]).0, end, &account(), "");
        assert_eq!(concluded, Err(ReportFault::OutputLost));
    }
    assert_eq!(reason(&[HELLO, "rubbish"], end(0)), DeadReason::Protocol);
}

#[test]
fn before_hello_it_is_ours() {
    let fault = conclude(&feed(&[]).0, end(127), &account(), "no such file").expect_err("a fault");
    let no_hello = matches!(fault, ReportFault::NoHello { exit_code: 127, .. });
    assert!(no_hello, "{fault}");
    assert!(conclude(&feed(&["rubbish"]).0, None, &account(), "").is_err());
}

/// The image is of an older or newer version. Whatever it found, only our deployment is wrong. It
/// proves nothing about the host, not even that it is alive.
#[test]
fn a_checker_of_another_protocol_says_nothing_about_its_host() {
    for protocol in [PROTOCOL_VERSION - 1, PROTOCOL_VERSION + 1] {
        let hello = format!(r#"{{"hello":{{"protocol":{protocol},"checker":"9"}}}}"#);
        for (finding, end) in [(ALIVE, end(0)), (TIMEOUT, end(0)), (TIMEOUT, None)] {
            let (report, _) = feed(&[&hello, finding, DONE]);
            let fault = conclude(&report, end, &account(), "").expect_err("a fault");
            assert!(matches!(fault, ReportFault::NoHello { .. }), "{fault}");
            let said = fault.to_string();
            assert!(said.contains("build the checker's image"), "{said}");
        }
    }
}

#[test]
fn a_finding_stands_whatever_comes_after_and_the_peers_are_truncated() {
    let (report, _) = feed(&[HELLO, ALIVE, PEERS, "rubbish"]);
    let verdict = conclude(&report, None, &account(), "");
    assert!(matches!(verdict, Ok(Verdict::Alive(_))));
    assert_eq!(report.peers().outcome, PeersOutcome::Truncated);
    let (killed, _) = feed(&[HELLO, ALIVE, PEERS]);
    assert_eq!(killed.peers().outcome, PeersOutcome::Truncated);
    let (flooded, _) = feed(&[HELLO, ALIVE, PEERS, PEERS_END, DONE, "more"]);
    assert!(flooded.is_alive());
    assert_eq!(flooded.peers().outcome, PeersOutcome::Truncated);
}

#[test]
fn the_gateways_account_tells_us_from_them() {
    let dead = &[HELLO, TIMEOUT, DONE];
    let alive = &[HELLO, ALIVE, PEERS_END, DONE];
    let concluded =
        |lines: &[&str], account: &Account| conclude(&feed(lines).0, end(0), account, "");
    for lines in [&dead[..], alive] {
        let unconnected = concluded(lines, &unconnected());
        assert_eq!(unconnected, Err(ReportFault::NoConnection));
    }
    let talked_otherwise = Account {
        connections: 0,
        ..astray()
    };
    let hung_up = Account {
        failed: FailedSide::Host,
        ..unconnected()
    };
    for (lines, account, expect) in [
        (&alive[..], talked_otherwise, DeadReason::Protocol),
        (dead, hung_up, DeadReason::Unreachable),
        (dead, over_budget(), DeadReason::Budget),
    ] {
        assert_eq!(reason_with(lines, end(0), &account), expect);
    }
    let lost = concluded(dead, &offline());
    assert_eq!(lost, Err(ReportFault::NetworkLost));
    assert!(concluded(alive, &offline()).is_ok());
}

#[test]
fn a_move_to_itself_is_none() {
    let moved = r#"{"moved":{"to":"HOST.example."}}"#;
    let reason = reason(&[HELLO, moved, DONE], end(0));
    assert_eq!(reason, DeadReason::RedirectToSelf);
}

#[test]
fn the_list_ends_at_its_bound() {
    let hosts: Vec<_> = (0..protocol::limits::PEERS_PER_LINE_MAX)
        .map(|n| format!("\"h{n}.example\""))
        .collect();
    let line = format!(r#"{{"peers":{{"hosts":[{}]}}}}"#, hosts.join(","));
    let (mut report, _) = feed(&[HELLO, ALIVE]);
    for _ in 0..PEERS_MAX / 500 {
        assert!(report.accept(line.as_bytes()).is_ok());
    }
    assert_eq!(report.accept(line.as_bytes()), Err(Breach::TooManyPeers));
}

proptest! {
    /// Invariant I3: no order of lines makes a report about another host, and none panics.
    #[test]
    fn any_lines_in_any_order_are_survived(picks in prop::collection::vec(0usize..8, 0..12), noise in "\\PC{0,60}") {
        let lines: Vec<&str> = picks.iter().map(|&pick| [HELLO, ALIVE, PEERS, PEERS_END, TIMEOUT, DONE, "{}", noise.as_str()][pick]).collect();
        let (report, candidates) = feed(&lines);
        prop_assert!(candidates.is_empty() || report.is_alive());
        let verdict = conclude(&report, end(1), &account(), "");
        prop_assert_eq!(lines.first() == Some(&HELLO), verdict.is_ok());
        // With only a hello, the output of a checker that exited with 0 was cut off.
        let verdict = conclude(&report, end(0), &account(), "");
        prop_assert_eq!(lines.first() == Some(&HELLO) && lines.len() > 1, verdict.is_ok());
    }
}

#[test] // S10
fn no_target_reaches_a_terminal_unescaped() {
    for (to, expect) in [
        (r"\u001b[2J\u0007<b>é", r"\x1b[2J\x07<b>\xc3\xa9"),
        // Escaped text stays unchanged.
        (r"ftp://x\\x1b…", r"ftp://x\x1b…"),
    ] {
        let dead = format!(r#"{{"dead":{{"reason":"bad_redirect","to":"{to}"}}}}"#);
        let verdict = conclude(&feed(&[HELLO, &dead, DONE]).0, end(0), &account(), "").unwrap();
        let Verdict::Dead { to: Some(to), .. } = verdict else {
            panic!("{verdict:?}");
        };
        assert_eq!(to, expect);
    }
}
