//! Finds out whether all names below a domain resolve, and to the same place.
//!
//! It takes a registered domain, and returns the DNS results of two invented names below it, which
//! reveal wildcard DNS. It reports no address and dials nothing. A request whose turn does not come
//! in time is deferred. The gateway invents the names, so that no client can use this to look up
//! names of its choice.

use std::io;
use std::net::SocketAddr;
use std::sync::PoisonError;
use std::time::Duration;

use protocol::{Host, HostError};
use rustix::rand::{GetRandomFlags, getrandom};
use tokio::time::Instant;

use crate::net::resolve::once::Once;
use crate::service::open::{OWN_FAILURE_RETRY, deferred, dns_failed, has_no_family, late};
use crate::service::state::Shared;
use crate::wire::control::{Answer, Deferral, Wildcard, WildcardTrouble};

/// Random bytes in an invented label: no host has such a name or can prepare for it.
const LABEL_BYTES: usize = 16;

/// Longest total wait for one domain's turns: six at the default pace. With a slower pace nothing
/// is found out.
pub(crate) const TURNS_TIME_MAX: Duration = Duration::from_mins(1);

/// Least time that a wait for a turn counts, however short it is.
const TURN_LEAST: Duration = Duration::from_millis(1);

/// Looks up two invented names below `domain`, each in the domain's turn; the second only if the
/// first resolves.
pub(crate) async fn look_up(shared: &Shared, domain: &Host) -> Answer {
    match find(shared, domain).await {
        Ok(wildcard) => Answer::Wildcard(wildcard),
        Err(answer) => {
            tracing::debug!(%domain, ?answer, "it is unknown whether names below it resolve");
            answer
        }
    }
}

async fn find(shared: &Shared, domain: &Host) -> Result<Wildcard, Answer> {
    if has_no_family(shared) && shared.settings.names_file.is_none() {
        return Err(Answer::Offline {});
    }
    let families = shared.families();
    let mut places = Vec::new();
    let mut left = TURNS_TIME_MAX;
    for _ in 0..2 {
        let Ok(name) = made_up(domain.as_str()).map_err(|error| no_chance(&error))? else {
            return Ok(unknown(WildcardTrouble::NameTooLong));
        };
        wait_for_turn(shared, domain, &mut left).await?;
        match shared.resolver.look_up_once(&name, &families).await {
            Once::Found(targets) => places.push(targets),
            Once::Nothing => return Ok(Wildcard::No {}),
            Once::ServerFailed => return Ok(unknown(WildcardTrouble::ServerFailed)),
            Once::TimedOut => return Ok(unknown(WildcardTrouble::TimedOut)),
            Once::OwnFailure if has_no_family(shared) => return Err(Answer::Offline {}),
            Once::OwnFailure => return Err(dns_failed(shared)),
            Once::Offline => return Err(Answer::Offline {}),
        }
    }
    if leads_everywhere(shared).await? {
        tracing::warn!(
            "the resolver returns addresses for names that do not exist: whether a domain has a wildcard is unknown"
        );
        return Err(dns_failed(shared));
    }
    Ok(compare(&places))
}

fn compare(places: &[Vec<SocketAddr>]) -> Wildcard {
    let shares_one = match places {
        [first, second] => first.iter().any(|place| second.contains(place)),
        _ => false,
    };
    if shares_one {
        Wildcard::SamePlace {}
    } else {
        Wildcard::Apart {}
    }
}

fn unknown(why: WildcardTrouble) -> Wildcard {
    Wildcard::Unknown { why }
}

/// Whether our resolver resolves all names, as some providers' resolvers do to show advertisements.
/// Invariant I5: then the result proves nothing about the domain.
async fn leads_everywhere(shared: &Shared) -> Result<bool, Answer> {
    // An invented top-level domain. The reserved ones (RFC 6761) are unsuitable, because resolvers
    // answer them without a query.
    let top_level = label().map_err(|error| no_chance(&error))?;
    let Ok(name) = made_up(&top_level).map_err(|error| no_chance(&error))? else {
        return Ok(false);
    };
    let families = shared.families();
    let found = shared.resolver.look_up_once(&name, &families).await;
    Ok(matches!(found, Once::Found(_)))
}

/// An unused name directly below `domain`. The inner result is an error if the name would be too
/// long.
fn made_up(domain: &str) -> io::Result<Result<Host, HostError>> {
    Ok(Host::parse(&format!("{}.{domain}", label()?)))
}

fn label() -> io::Result<String> {
    let mut chance = [0; LABEL_BYTES];
    let drawn = getrandom(&mut chance, GetRandomFlags::empty())?;
    if drawn < LABEL_BYTES {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(chance.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn no_chance(error: &io::Error) -> Answer {
    tracing::error!(%error, "this machine gives no chance to make a name up from");
    deferred(Deferral::Full, OWN_FAILURE_RETRY)
}

/// Waits until `domain` may be looked up, and charges that. Invariant I8: invented names are paced
/// like those of checks.
async fn wait_for_turn(shared: &Shared, domain: &Host, left: &mut Duration) -> Result<(), Answer> {
    loop {
        let charged = shared
            .pace
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .charge_group_unpromised(domain.as_str(), Instant::now().into_std());
        let Err(lateness) = charged else {
            return Ok(());
        };
        // Each turn that another request takes in between reduces the remaining time, so that this
        // ends.
        let Some(rest) = left.checked_sub(lateness.retry_after.max(TURN_LEAST)) else {
            return Err(late(lateness));
        };
        *left = rest;
        tokio::time::sleep(lateness.retry_after).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_up_name_lies_directly_below_its_domain_and_is_another_each_time() {
        let names: Vec<_> = (0..100)
            .map(|_| made_up("farm.test").unwrap().unwrap())
            .collect();
        for name in &names {
            let (label, rest) = name.as_str().split_once('.').unwrap();
            assert_eq!((label.len(), rest), (32, "farm.test"));
        }
        let different: std::collections::HashSet<_> = names.iter().collect();
        assert_eq!(different.len(), names.len());
    }

    #[test]
    fn a_domain_without_room_for_another_label_has_no_made_up_name() {
        let labels =
            |last: usize| format!("{0}.{0}.{0}.{1}.test", "a".repeat(60), "b".repeat(last));
        // The label and its dot take 33 of 253 bytes.
        let longest = labels(32);
        assert_eq!(longest.len(), 220);
        assert!(made_up(&longest).unwrap().is_ok());
        assert!(made_up(&labels(33)).unwrap().is_err());
    }

    #[test]
    fn one_shared_address_makes_it_the_same_place() {
        let check = |first: &[&str], second: &[&str], expect: Wildcard| {
            let places =
                [first, second].map(|all| all.iter().map(|text| text.parse().unwrap()).collect());
            assert_eq!(compare(&places), expect, "{first:?} {second:?}");
        };
        let (a, b, c) = ("8.8.8.8:443", "[2606:4700::1]:443", "9.9.9.9:443");
        check(&[a], &[a], Wildcard::SamePlace {});
        check(&[a, b], &[b, c], Wildcard::SamePlace {});
        check(&[a, b], &[c], Wildcard::Apart {});
    }
}
