//! Opens a way to a host: pace, resolve, filter, dial, pin. The first step that fails ends it.
//!
//! It takes an `open` request, and returns an egress or the answer with the reason and whose
//! failure it is (invariants I2, I5, I8).

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use protocol::{CheckId, CheckOrder, DeadReason, Host, escaped, limits};

use crate::egress::error::EgressError;
use crate::egress::{Egress, Opening};
use crate::net::address::{self, PrivateAddresses};
use crate::net::dial::Dialled;
use crate::net::ledger::LedgerRequest;
use crate::net::pace::Late;
use crate::net::resolve::Resolution;
use crate::state::Shared;
use crate::wire::control::{Answer, Deferral, Family, Wish};

/// Retry interval for a name whose DNS failed: three failures in a row then span ten minutes,
/// longer than a restart of its servers.
pub(crate) const DNS_RETRY: Duration = Duration::from_mins(5);

/// Retry interval for a host of a family that this machine lacks: only an operator can change that.
pub(crate) const NO_FAMILY_RETRY: Duration = Duration::from_hours(1);

/// Retry interval after a failure of this machine.
pub(crate) const OWN_FAILURE_RETRY: Duration = Duration::from_secs(30);

/// Longest group, which is a registered domain.
const GROUP_BYTES_MAX: usize = 253;

/// Bytes of a detail before the ellipsis: together the wire's 200.
const DETAIL_BYTES_MAX: usize = limits::TEXT_BYTES_MAX - '…'.len_utf8();

/// An `open` request's fields.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) check: CheckId,
    pub(crate) host: Host,
    pub(crate) group: String,
    pub(crate) order: CheckOrder,
    pub(crate) wish: Wish,
}

#[derive(Debug)]
pub(crate) enum Opened {
    Ready(Egress, Answer),
    /// No egress, and the answer with the reason.
    Not(Answer),
}

/// Opens a way for `wanted`, step by step.
pub(crate) async fn open(shared: &Arc<Shared>, wanted: &Wanted) -> Opened {
    match Box::pin(try_open(shared, wanted)).await {
        Ok((egress, answer)) => Opened::Ready(egress, answer),
        Err(answer) => {
            tracing::debug!(host = %wanted.host, check.id = %wanted.check, ?answer, "not opened");
            if matches!(answer, Answer::Unreachable { .. } | Answer::Refused { .. }) {
                shared.resolver.forget(&wanted.host);
            }
            let dns = Deferral::Dns;
            if matches!(&answer, Answer::Deferred { why, .. } if *why == dns)
                || matches!(answer, Answer::Unreachable { .. })
            {
                shared.resolver.led_to_instance(false);
            }
            Opened::Not(answer)
        }
    }
}

/// Records that an instance responded at `address`.
pub(crate) async fn prove(shared: &Shared, address: IpAddr) {
    // Without an answer the address keeps its slower pace.
    let proven = LedgerRequest::Proven { address };
    shared.paces.ask(proven).await.ok();
}

/// The answer to a request that has to wait.
pub(crate) fn deferred(why: Deferral, retry_after: Duration) -> Answer {
    Answer::Deferred {
        why,
        // Rounded up, so that a client that waits exactly this long is in turn.
        retry_after_ms: u64::try_from(retry_after.as_micros().div_ceil(1000)).unwrap_or(u64::MAX),
    }
}

async fn try_open(shared: &Arc<Shared>, wanted: &Wanted) -> Result<(Egress, Answer), Answer> {
    if wanted.group.is_empty() || wanted.group.len() > GROUP_BYTES_MAX {
        return Err(refused("the group is not a registered domain"));
    }
    let families = shared.families();
    shared.tell_of(&families);
    if families.is_empty() && shared.settings.names_file.is_none() {
        return Err(Answer::Offline {});
    }
    // Charged before the look-up, so that a wildcard farm can't make us query its servers at will.
    let group = wanted.group.clone();
    let asked = shared.paces.ask(LedgerRequest::Group { group });
    asked.await.map_err(|why| refused(&why))?.map_err(late)?;
    if wanted.wish.fresh {
        shared.resolver.forget(&wanted.host);
    }
    let (targets, fresh) = resolve(shared, wanted).await?;
    let admitted = admit(shared, &targets, fresh)?;
    let routed = with_route(shared, &admitted)?;
    let dialler = shared.dialler();
    let (dialled, pinned) = match dialler.dial_first(wanted.wish.family, &routed).await {
        Dialled::Up(stream, pinned) => (stream, pinned),
        Dialled::Failed { families, detail } => {
            return Err(unreachable(
                DeadReason::Unreachable,
                &detail,
                families,
                fresh,
            ));
        }
        Dialled::Late(lateness) => return Err(late(lateness)),
        Dialled::NoRoute => return Err(without_route(shared)),
        Dialled::Ours(error) => {
            tracing::error!(host = %wanted.host, %error, "this machine can't dial");
            return Err(deferred(Deferral::Full, OWN_FAILURE_RETRY));
        }
        Dialled::NoLedger(why) => return Err(refused(&why)),
    };
    let opening = Opening {
        check: &wanted.check,
        host: &wanted.host,
        order: &wanted.order,
        pinned,
        dialled,
    };
    match Egress::open(shared, opening) {
        Ok(egress) => {
            shared.tell_of_egress(None);
            let address = pinned.ip();
            Ok((egress, Answer::Ready { address, fresh }))
        }
        Err(EgressError::Exists) => Err(refused("a check with this id is open")),
        Err(error @ (EgressError::Io(_) | EgressError::ExtraCa { .. } | EgressError::Order(_))) => {
            // Every check would fail for this reason, each after a useless connection to its host,
            // so the orchestrator has to know.
            let message = no_egress(shared, &error);
            shared.tell_of_egress(Some(&message));
            Err(refused(&message))
        }
    }
}

async fn resolve(shared: &Shared, wanted: &Wanted) -> Result<(Vec<SocketAddr>, bool), Answer> {
    let nowhere = |reason, detail: &str, fresh| unreachable(reason, detail, Vec::new(), fresh);
    let families = shared.families();
    let resolved = Box::pin(shared.resolver.resolve_in_doubt(&wanted.host, &families));
    // In trouble, every name would fail, so the orchestrator has to know.
    match resolved.await.map_err(|trouble| refused(&trouble))? {
        Resolution::Found { targets, fresh } => Ok((targets, fresh)),
        Resolution::NoSuchName { fresh } => Err(nowhere(DeadReason::NoSuchName, "NXDOMAIN", fresh)),
        Resolution::NoAddress { fresh } => {
            Err(nowhere(DeadReason::NoAddress, "neither A nor AAAA", fresh))
        }
        Resolution::Failing { detail } => {
            if has_no_family(shared) {
                return Err(Answer::Offline {});
            }
            tracing::debug!(host = %wanted.host, detail, "DNS failed");
            Err(dns_failed(shared))
        }
        Resolution::Broken { detail } => {
            if has_no_family(shared) {
                return Err(Answer::Offline {});
            }
            Err(nowhere(DeadReason::DnsBroken, &detail, true))
        }
        Resolution::Offline => Err(Answer::Offline {}),
    }
}

/// Keeps the addresses that may be dialled (invariant I2).
fn admit(shared: &Shared, targets: &[SocketAddr], fresh: bool) -> Result<Vec<SocketAddr>, Answer> {
    let private = if shared.settings.allow_private {
        PrivateAddresses::Allow
    } else {
        PrivateAddresses::Refuse
    };
    let mut admitted = Vec::new();
    let mut detail = String::new();
    for target in targets {
        match address::admit(target.ip(), private, &shared.settings.deny_addresses) {
            Ok(address) => admitted.push(SocketAddr::new(address, target.port())),
            Err(refusal) => {
                // Writing to a String can't fail.
                write!(detail, "{}: {refusal}; ", target.ip()).ok();
            }
        }
    }
    if admitted.is_empty() {
        let detail = detail.trim_end_matches("; ");
        return Err(unreachable(
            DeadReason::AddressRefused,
            detail,
            Vec::new(),
            fresh,
        ));
    }
    Ok(admitted)
}

/// Invariant I5: a host is neither dialled over a family that this machine lacks, nor judged
/// because of it.
fn with_route(shared: &Shared, targets: &[SocketAddr]) -> Result<Vec<SocketAddr>, Answer> {
    let routed: Vec<_> = targets
        .iter()
        .copied()
        .filter(|target| shared.routes.reaches(target.ip()))
        .collect();
    if routed.is_empty() {
        return Err(without_route(shared));
    }
    Ok(routed)
}

fn without_route(shared: &Shared) -> Answer {
    if has_no_family(shared) {
        Answer::Offline {}
    } else {
        let divisor = shared.settings.pace_divisor;
        let retry = NO_FAMILY_RETRY.checked_div(divisor);
        deferred(Deferral::NoFamily, retry.unwrap_or(NO_FAMILY_RETRY))
    }
}

/// The answer for a name that can't be judged now, because DNS failed.
fn dns_failed(shared: &Shared) -> Answer {
    let divisor = shared.settings.pace_divisor;
    let retry = DNS_RETRY.checked_div(divisor).unwrap_or(DNS_RETRY);
    deferred(Deferral::Dns, retry)
}

/// Whether this machine has no network at all.
fn has_no_family(shared: &Shared) -> bool {
    shared.families().is_empty()
}

fn unreachable(reason: DeadReason, detail: &str, families: Vec<Family>, fresh: bool) -> Answer {
    Answer::Unreachable {
        reason,
        detail: escaped(detail.as_bytes(), DETAIL_BYTES_MAX),
        families,
        fresh,
    }
}

/// The answer to a request before its turn.
pub(crate) fn late(late: Late) -> Answer {
    deferred(late.why, late.retry_after)
}

fn refused(message: &str) -> Answer {
    Answer::Refused {
        message: message.to_owned(),
    }
}

fn no_egress(shared: &Shared, error: &EgressError) -> String {
    let cause = std::error::Error::source(error)
        .map(|cause| format!(": {cause}"))
        .unwrap_or_default();
    if let EgressError::ExtraCa { .. } = error {
        return format!("{error}{cause}");
    }
    format!(
        "no egress socket can be made in {}{cause}; check its free space and permissions",
        shared.settings.egress_root.display()
    )
}
