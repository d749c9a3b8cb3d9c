//! A container's stdout becomes lines, events, a report and a verdict, for any cuts and any
//! content.

use crate::input::{OWN, is_canonical, is_printable, pieces, survives_the_way, with_hello};
use protocol::limits::{LINE_BYTES_MAX, PEERS_PER_LINE_MAX};
use protocol::{DeadReason, Event, Host};
use report::Lines;
use report::{Breach, PeersSummary, Report, conclude};

#[derive(Debug, PartialEq)]
struct Heard {
    learned: Vec<Host>,
    breach: Option<Breach>,
    peers: PeersSummary,
    verdict: String,
}

pub fn check(data: &[u8]) {
    let data = with_hello(data);
    assert_eq!(hear(&[&data]), hear(&pieces(&data)));
}

fn hear(pieces: &[&[u8]]) -> Heard {
    let mut lines = Lines::default();
    let mut report = Report::new(OWN.clone());
    let mut learned = Vec::new();
    let mut accepted = Vec::new();
    let mut is_done = false;
    let mut outcome = Ok(());
    for piece in pieces {
        outcome = lines.push(piece, |line| {
            assert!(line.len() <= LINE_BYTES_MAX && !line.contains(&b'\n'));
            let hosts = report.accept(line)?;
            assert!(!is_done, "a line was accepted after `done`");
            let event: Event = protocol::parse_line(line).expect("it was accepted");
            survives_the_way(&event);
            is_done = matches!(event, Event::Done { .. });
            accepted.push(event);
            assert!(hosts.len() <= PEERS_PER_LINE_MAX);
            assert!(hosts.is_empty() || report.is_alive());
            learned.extend(hosts);
            Ok::<(), Breach>(())
        });
        if outcome.is_err() {
            break;
        }
    }
    if let Err(breach) = outcome.and_then(|()| Ok(lines.finish()?)) {
        report.broken_by(breach);
    }
    for host in &learned {
        is_canonical(host);
        assert_ne!(*host, *OWN);
    }
    in_order(&accepted);
    Heard {
        learned,
        breach: report.breach().cloned(),
        peers: report.peers(),
        verdict: judged(&report),
    }
}

/// `hello` first and once, one finding, peers only after `alive`.
fn in_order(accepted: &[Event]) {
    let is_hello = |event: &Event| matches!(event, Event::Hello { .. });
    let is_about_peers =
        |event: &Event| matches!(event, Event::Peers { .. } | Event::PeersEnd { .. });
    let is_done = |event: &Event| matches!(event, Event::Done { .. });
    let findings = accepted
        .iter()
        .filter(|event| !is_hello(event) && !is_about_peers(event) && !is_done(event));
    assert!(findings.count() <= 1);
    assert!(accepted.first().is_none_or(is_hello));
    assert!(!accepted.iter().skip(1).any(is_hello));
    if accepted.iter().any(is_about_peers) {
        assert!(matches!(accepted.get(1), Some(Event::Alive(_))));
    }
}

fn judged(report: &Report) -> String {
    let end = report.breach().is_none().then(|| kit::end(0)).flatten();
    let verdict = conclude(report, end, &kit::account(), "");
    use census::state::Verdict;
    match &verdict {
        Ok(Verdict::Alive(instance)) => {
            assert!(instance.is_within_bounds());
            let mut texts = [&instance.software, &instance.version]
                .into_iter()
                .flatten();
            assert!(texts.all(|text| is_printable(text)));
        }
        Ok(Verdict::Moved { to }) => {
            is_canonical(to);
            assert_ne!(*to, *OWN);
        }
        Ok(Verdict::Dead { reason, to, .. }) => {
            let ours = [DeadReason::Protocol, DeadReason::Crashed];
            assert!(reason.is_said_by_checker() || ours.contains(reason));
            assert!(to.as_deref().is_none_or(is_printable), "{to:?}");
        }
        Ok(Verdict::OptedOut | Verdict::Gone | Verdict::Refused { .. }) | Err(_) => {}
    }
    format!("{verdict:?}")
}
