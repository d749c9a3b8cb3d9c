//! Finds out whether any name below the domain of a held group resolves, so that the operator who
//! decides about the group knows (docs/admission.md).
//!
//! It looks up invented names and stores the result with the group. The result decides nothing.
//! Domains on the operator's deny-list are skipped. A fault of ours only causes a later retry
//! (invariant I5).

use std::collections::BTreeMap;
use std::time::Duration;

use census::group::Wildcard;
use census::time::{Calendar, Timestamp, rfc3339};
use gateway::control::{Wildcard as Found, WildcardTrouble};
use gateway::{ClientError, LookedBelow};
use protocol::Host;
use store::WildcardLook;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::services::Services;

/// Interval between groups: 1440 a day, far more than appear, and no burden for a resolver.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// The interval in the lab and wherever intervals are shortened.
const LOOK_EVERY_IN_HASTE: Duration = Duration::from_secs(1);

/// How long a group that the gateway defers is skipped.
const AGAIN_AFTER: Duration = Duration::from_secs(600);

/// Most groups deferred at once: as many as are looked at within [`AGAIN_AFTER`]. With more, the
/// fault is the network's.
const PUT_OFF_MAX: usize = 10;

/// The gateway's answer about one domain.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// A result to store with the group: what was found, or why nothing was, as text.
    Known(Result<Wildcard, String>),
    /// The domain is tried later.
    PutOff(Duration),
    /// A fault of ours.
    Fault,
}

/// Deferred groups, and until when.
#[derive(Debug, Default)]
struct PutOff(BTreeMap<String, Timestamp>);

impl PutOff {
    /// The first domain that is not deferred.
    fn first_in_turn(&mut self, domains: Vec<String>, now: Timestamp) -> Option<String> {
        self.0.retain(|_, until| *until > now);
        domains
            .into_iter()
            .find(|domain| !self.0.contains_key(domain))
    }

    fn add(&mut self, domain: String, wait: Duration, now: Timestamp, calendar: Calendar) {
        if self.0.len() < PUT_OFF_MAX {
            let wait = wait.clamp(calendar.shortened(AGAIN_AFTER), calendar.wildcard_again());
            self.0.insert(domain, now.plus(wait));
        }
    }
}

/// Looks at held groups until `shutdown`, one at a time.
///
/// # Errors
/// None; it is a `Result` so that it can be joined with the loop.
pub async fn keep(services: Services, shutdown: CancellationToken) -> anyhow::Result<()> {
    let every = if services.calendar.divisor > 1 {
        LOOK_EVERY_IN_HASTE
    } else {
        LOOK_EVERY
    };
    let mut look = tokio::time::interval(every);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut put_off = PutOff::default();
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            _ = look.tick() => {}
        }
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            () = look_at_one(&mut put_off, &services) => {}
        }
    }
}

/// Looks at the group that has waited for longest, if one waits.
async fn look_at_one(put_off: &mut PutOff, services: &Services) {
    let (now, calendar) = (services.now(), services.calendar);
    let limit = u32::try_from(PUT_OFF_MAX.saturating_add(1)).unwrap_or(u32::MAX);
    let waiting = services.writer.groups_not_looked_at(now, calendar, limit);
    let waiting = match waiting.await {
        Ok(domains) => domains,
        // The loop reports other failures of the same cause.
        Err(error) => return tracing::debug!(%error, "held groups could not be read"),
    };
    let Some(domain) = put_off.first_in_turn(waiting, now) else {
        return;
    };
    match look_below(&domain, services).await {
        Ended::Known(outcome) => {
            tracing::info!(
                domain,
                ?outcome,
                "a held group was checked for wildcard DNS"
            );
            let kept = services
                .writer
                .keep_wildcard(domain, outcome, services.now());
            if let Err(error) = kept.await {
                tracing::debug!(%error, "the result of the wildcard check could not be written");
            }
        }
        Ended::PutOff(wait) => put_off.add(domain, wait, now, calendar),
        Ended::Fault => {}
    }
}

async fn look_below(domain: &str, services: &Services) -> Ended {
    let Ok(host) = Host::parse(domain) else {
        return Ended::Known(Err("it is not a valid name any more".to_owned()));
    };
    if let Err(refusal) = services.gate.denies(&host) {
        return Ended::Known(Err(format!("not asked: {refusal}")));
    }
    conclude(services.gateway.wildcard(host).await)
}

fn conclude(looked: Result<LookedBelow, ClientError>) -> Ended {
    match looked {
        Ok(LookedBelow::Answered(found)) => Ended::Known(match found {
            Found::SamePlace {} => Ok(Wildcard::SamePlace),
            Found::Apart {} => Ok(Wildcard::Apart),
            Found::No {} => Ok(Wildcard::No),
            Found::Unknown { why } => Err(trouble_words(why).to_owned()),
        }),
        Ok(LookedBelow::Deferred { retry_after, .. }) => Ended::PutOff(retry_after),
        Ok(LookedBelow::Offline) => Ended::Fault,
        Err(error) => {
            // Checks fail for the same reason and report it.
            tracing::debug!(%error, "the gateway could not be asked about a held group");
            Ended::Fault
        }
    }
}

fn trouble_words(why: WildcardTrouble) -> &'static str {
    match why {
        WildcardTrouble::ServerFailed => "its name servers fail",
        WildcardTrouble::TimedOut => "its name servers did not answer",
        WildcardTrouble::NameTooLong => "it is too long to have names below it",
    }
}

/// The result as text that follows a group's description; empty if the group was never looked at.
pub(crate) fn in_words(look: &WildcardLook) -> String {
    let found = look.found.map(|(wildcard, at)| {
        let at = rfc3339(at);
        match wildcard {
            Wildcard::SamePlace => format!(
                "; any name below it resolves to the same address (wildcard DNS, checked {at})"
            ),
            Wildcard::Apart => format!(
                "; any name below it resolves, each to another address (wildcard DNS, checked {at})"
            ),
            Wildcard::No => format!("; made-up names below it do not resolve (checked {at})"),
        }
    });
    let trouble = look.trouble.as_ref().zip(look.tried).map(|(trouble, at)| {
        let at = rfc3339(at);
        format!(
            "; at {at} it could not be determined whether any name below it resolves: {trouble}"
        )
    });
    found.unwrap_or_default() + &trouble.unwrap_or_default()
}

#[cfg(test)]
mod tests;
