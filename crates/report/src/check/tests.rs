use super::*;
use kit::{HELLO, account, end, labelled};
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
    match conclude(&feed(lines).0, end, &account(), "") {
        Ok(Verdict::Dead { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_whole_report_is_a_verdict_and_its_names_are_candidates_without_the_host_itself() {
    let (report, candidates) = feed(&[HELLO, ALIVE, PEERS, PEERS_END, DONE]);
    assert_eq!(candidates, [labelled("a"), labelled("b")]);
    assert_eq!(report.breach(), None);
    assert_eq!(
        report.peers(),
        PeersSummary {
            names: 3,
            dropped: 2,
            outcome: PeersOutcome::Complete
        }
    );
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
    let (report, _) = feed(&[
        HELLO,
        r#"{"alive":{"software":"<b>","version":"4\u001b[2J","private":"no"}}"#,
        PEERS_END,
        DONE,
    ]);
    let verdict = conclude(&report, end(0), &account(), "").unwrap();
    assert_eq!(verdict.to_string(), "alive <b> 4\\x1b[2J");
}

#[test]
fn what_is_out_of_order_ends_the_check() {
    for (lines, breach) in [
        (&[ALIVE][..], Breach::NoHello),
        (&["rubbish"], Breach::NoHello),
        (
            &[r#"{"hello":{"protocol":99,"checker":"9"}}"#],
            Breach::NoHello,
        ),
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
        (
            &[HELLO, r#"{"state":{"host":"victim.example","dead":true}}"#],
            Breach::NotAnEvent,
        ),
        (
            &[HELLO, r#"{"dead":{"reason":"faulting"}}"#],
            Breach::OutOfBounds,
        ),
    ] {
        assert_eq!(feed(lines).0.breach(), Some(&breach), "{lines:?}");
    }
}

#[test]
fn after_hello_whatever_breaks_is_the_hosts() {
    let memory = Some(End {
        exit_code: 137,
        out_of_memory: true,
        killed: None,
        millis: 1,
    });
    let deadline = Some(End {
        exit_code: 137,
        out_of_memory: false,
        killed: Some(Killed::Deadline),
        millis: 1,
    });
    assert_eq!(reason(&[HELLO, "rubbish"], None), DeadReason::Protocol);
    assert_eq!(reason(&[HELLO], end(101)), DeadReason::Crashed);
    assert_eq!(reason(&[HELLO], memory), DeadReason::Memory);
    assert_eq!(reason(&[HELLO], deadline), DeadReason::Deadline);
}

/// Podman's API may be restarted while its containers continue: their output ends in the middle,
/// and they exit with 0.
#[test]
fn a_finding_that_was_lost_on_the_way_is_not_the_hosts() {
    let stalled = Some(End {
        exit_code: 0,
        out_of_memory: false,
        killed: Some(Killed::Deadline),
        millis: 65_000,
    });
    for end in [end(0), stalled] {
        let concluded = conclude(&feed(&[HELLO]).0, end, &account(), "");
        assert!(
            matches!(concluded, Err(ReportFault::OutputLost)),
            "{concluded:?}"
        );
    }
    assert_eq!(reason(&[HELLO, "rubbish"], end(0)), DeadReason::Protocol);
}

#[test]
fn before_hello_it_is_ours() {
    let fault = conclude(&feed(&[]).0, end(127), &account(), "no such file").expect_err("a fault");
    assert!(
        matches!(fault, ReportFault::NoHello { exit_code: 127, .. }),
        "{fault}"
    );
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
    assert!(matches!(
        conclude(&report, None, &account(), ""),
        Ok(Verdict::Alive(_))
    ));
    assert_eq!(report.peers().outcome, PeersOutcome::Truncated);
    let (killed, _) = feed(&[HELLO, ALIVE, PEERS]);
    assert_eq!(killed.peers().outcome, PeersOutcome::Truncated);
    let (flooded, _) = feed(&[HELLO, ALIVE, PEERS, PEERS_END, DONE, "more"]);
    assert!(flooded.is_alive());
    assert_eq!(flooded.peers().outcome, PeersOutcome::Truncated);
}

#[test]
fn the_gateways_account_tells_us_from_them() {
    let (dead, _) = feed(&[HELLO, TIMEOUT, DONE]);
    let (alive, _) = feed(&[HELLO, ALIVE, PEERS_END, DONE]);
    let never_connected = Account {
        connections: 0,
        ..account()
    };
    assert!(matches!(
        conclude(&dead, end(0), &never_connected, ""),
        Err(ReportFault::NoConnection)
    ));
    assert!(matches!(
        conclude(&alive, end(0), &never_connected, ""),
        Err(ReportFault::NoConnection)
    ));
    let talked_otherwise = Account {
        sni_refused: 1,
        ..never_connected
    };
    assert!(matches!(
        conclude(&alive, end(0), &talked_otherwise, ""),
        Ok(Verdict::Dead {
            reason: DeadReason::Protocol,
            ..
        })
    ));
    let hung_up = Account {
        failed: FailedSide::Host,
        ..never_connected.clone()
    };
    assert!(matches!(
        conclude(&dead, end(0), &hung_up, ""),
        Ok(Verdict::Dead {
            reason: DeadReason::Unreachable,
            ..
        })
    ));
    let network_lost = Account {
        up: false,
        ..account()
    };
    assert!(matches!(
        conclude(&dead, end(0), &network_lost, ""),
        Err(ReportFault::NetworkLost)
    ));
    assert!(conclude(&alive, end(0), &network_lost, "").is_ok());
    let over_budget = Account {
        budget_hit: Some(Budget::Bytes),
        ..account()
    };
    assert!(matches!(
        conclude(&dead, end(0), &over_budget, ""),
        Ok(Verdict::Dead {
            reason: DeadReason::Budget,
            ..
        })
    ));
}

#[test]
fn a_move_to_itself_is_none() {
    assert_eq!(
        reason(
            &[HELLO, r#"{"moved":{"to":"HOST.example."}}"#, DONE],
            end(0)
        ),
        DeadReason::RedirectToSelf
    );
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
    let dead = r#"{"dead":{"reason":"bad_redirect","to":"\u001b[2J\u0007<b>é"}}"#;
    let verdict = conclude(&feed(&[HELLO, dead, DONE]).0, end(0), &account(), "").unwrap();
    let Verdict::Dead { to: Some(to), .. } = verdict else {
        panic!("{verdict:?}");
    };
    assert_eq!(to, r"\x1b[2J\x07<b>\xc3\xa9");
    // Escaped text stays unchanged.
    let dead = r#"{"dead":{"reason":"bad_redirect","to":"ftp://x\\x1b…"}}"#;
    let verdict = conclude(&feed(&[HELLO, dead, DONE]).0, end(0), &account(), "").unwrap();
    let Verdict::Dead { to: Some(to), .. } = verdict else {
        panic!("{verdict:?}");
    };
    assert_eq!(to, r"ftp://x\x1b…");
}
