//! What the scheduler learns from a verdict: the outcome, what it shows to work, and what must be
//! shown to work before it counts.
//!
//! Used for hosts that could not be opened and for those that a container checked.

use std::net::IpAddr;

use census::state::Verdict;
use census::time::Timestamp;
use gateway::Egress;
use protocol::DeadReason;
use protocol::egress::{Deferral, Family};
use scheduler::blame::doubt::{Dns, Doubt, Witness};
use scheduler::event::CheckOutcome;

/// How a verdict was reached.
#[derive(Debug)]
pub(crate) struct Evidence {
    pub(crate) began: Timestamp,
    /// When its host printed `alive`, if it did.
    pub(crate) lived: Option<Timestamp>,
    /// The families over which the host was tried.
    pub(crate) families: Vec<Family>,
    /// The address that took a connection; `None` if the host could not be opened.
    pub(crate) address: Option<IpAddr>,
    /// The DNS answer came from the network during this check.
    pub(crate) fresh: bool,
}

impl Evidence {
    /// Evidence of a check whose host was opened.
    pub(crate) fn opened(began: Timestamp, lived: Option<Timestamp>, egress: &Egress) -> Self {
        Self {
            began,
            lived,
            families: vec![Family::of(egress.address)],
            address: Some(egress.address),
            fresh: egress.fresh,
        }
    }
}

pub(crate) fn judged(verdict: Verdict, evidence: Evidence) -> CheckOutcome {
    let Evidence {
        began,
        lived,
        families,
        address,
        fresh,
    } = evidence;
    let dns = match (answered_by_itself(&verdict), fresh) {
        (true, _) => Dns::Sound,
        (false, true) => Dns::Fresh(address),
        (false, false) => Dns::Remembered(address),
    };
    let is_alive = matches!(verdict, Verdict::Alive(_));
    let witness = address.filter(|_| is_alive).map(|address| Witness {
        began,
        lived: lived.unwrap_or(began),
        address,
        fresh,
    });
    CheckOutcome::Verdict {
        verdict,
        witness,
        doubt: Doubt { families, dns },
    }
}

/// Whether the host itself is why it was not opened, rather than our paces or our network.
pub(crate) fn is_about_host(outcome: &CheckOutcome) -> bool {
    match outcome {
        CheckOutcome::Verdict { .. }
        | CheckOutcome::Deferred {
            why: Deferral::Dns | Deferral::NoFamily,
            ..
        } => true,
        CheckOutcome::Deferred { .. } | CheckOutcome::Offline | CheckOutcome::Fault(_) => false,
    }
}

/// Whether the server that answered had the host's own certificate, so that the name led to the
/// right server. Failures before TLS or without it may come from a wrong server, and so may
/// failures of the checker itself.
fn answered_by_itself(verdict: &Verdict) -> bool {
    let Verdict::Dead { reason, .. } = verdict else {
        return true;
    };
    match reason {
        DeadReason::TooLarge
        | DeadReason::Encoding
        | DeadReason::RedirectLoop
        | DeadReason::RedirectToSelf
        | DeadReason::TemporaryRedirect
        | DeadReason::BadRedirect
        | DeadReason::NodeinfoElsewhere
        | DeadReason::NoNodeinfo
        | DeadReason::NotNodeinfo
        | DeadReason::Status => true,
        DeadReason::RobotsUnavailable
        | DeadReason::Tls
        | DeadReason::TlsExpired
        | DeadReason::TlsNotYetValid
        | DeadReason::TlsWrongName
        | DeadReason::TlsSelfSigned
        | DeadReason::TlsUnknownIssuer
        | DeadReason::TlsIncompleteChain
        | DeadReason::TlsUnsupported
        | DeadReason::TlsClosed
        | DeadReason::Http
        | DeadReason::Timeout
        | DeadReason::Deadline
        | DeadReason::TooSlow
        | DeadReason::NoSuchName
        | DeadReason::NoAddress
        | DeadReason::AddressRefused
        | DeadReason::DnsBroken
        | DeadReason::Unreachable
        | DeadReason::Protocol
        | DeadReason::Crashed
        | DeadReason::Memory
        | DeadReason::Budget
        | DeadReason::Faulting => false,
    }
}

#[cfg(test)]
mod tests {
    use kit::dead;
    use protocol::Host;

    use super::*;

    const BEGAN: Timestamp = Timestamp(1_000);
    const LIVED: Timestamp = Timestamp(1_007);
    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    fn check(
        verdict: Verdict,
        address: Option<IpAddr>,
        fresh: bool,
        expect: (Option<Witness>, Dns),
    ) {
        let evidence = Evidence {
            began: BEGAN,
            lived: Some(LIVED),
            families: vec![Family::V4],
            address,
            fresh,
        };
        let (witness, dns) = expect;
        let doubt = Doubt {
            families: vec![Family::V4],
            dns,
        };
        let expect = CheckOutcome::Verdict {
            verdict: verdict.clone(),
            witness,
            doubt,
        };
        assert_eq!(judged(verdict, evidence), expect);
    }

    #[test]
    fn only_a_responding_host_is_a_witness() {
        let alive = kit::alive();
        let witness = Witness {
            began: BEGAN,
            lived: LIVED,
            address: ADDRESS,
            fresh: true,
        };
        check(alive, Some(ADDRESS), true, (Some(witness), Dns::Sound));
        let to = Host::parse("new.example").unwrap();
        check(
            Verdict::Moved { to },
            Some(ADDRESS),
            false,
            (None, Dns::Sound),
        );
        check(
            dead(DeadReason::Status),
            Some(ADDRESS),
            false,
            (None, Dns::Sound),
        );
        let fresh = Dns::Fresh(Some(ADDRESS));
        check(dead(DeadReason::Tls), Some(ADDRESS), true, (None, fresh));
        let remembered = Dns::Remembered(Some(ADDRESS));
        check(
            dead(DeadReason::Tls),
            Some(ADDRESS),
            false,
            (None, remembered),
        );
        check(
            dead(DeadReason::NoSuchName),
            None,
            true,
            (None, Dns::Fresh(None)),
        );
        check(
            dead(DeadReason::Unreachable),
            None,
            false,
            (None, Dns::Remembered(None)),
        );
    }
}
