//! Groups: all hosts below one registered domain, and what the operator decides about them.
//!
//! In: hosts without a group; the operator's decisions. Out: grouped hosts, a portion at a time in the background; decisions in the database; both in
//! words. Refused: a domain that is no registered domain, a reason that is none.

pub mod wildcards;

use std::sync::Arc;
use std::time::Duration;

use admission::Names;
use census::group::Decision;
use census::time::{Calendar, rfc3339};
use protocol::Host;
use protocol::limits::TEXT_BYTES_MAX;
use serde::{Deserialize, Serialize};
use store::{Decided, Ruling, StoreError, StoredGroup, Writer};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::services::Services;

/// How often hosts that came in are grouped: long before most of them are due, and an empty look costs a look-up in an index.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Between two portions of the hosts that are grouped again at a start: the writer has others to serve, and a million hosts are through within minutes.
const PAUSE: Duration = Duration::from_millis(50);

/// What the operator decides about a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Its hosts are like any others.
    Allow,
    /// None is asked or listed.
    Deny,
    /// So many are asked a day at most.
    Limit(u32),
    /// What was decided is no longer in force.
    ForgetDecision,
}

impl From<Verb> for Decision {
    fn from(verb: Verb) -> Self {
        match verb {
            Verb::Allow => Self::Allow,
            Verb::Deny => Self::Deny,
            Verb::Limit(a_day) => Self::Limit { a_day },
            Verb::ForgetDecision => Self::None,
        }
    }
}

/// Sees to it that every host has its group until `shutdown`: all of them at the start and whenever another list of suffixes is in force, and those that
/// come in.
///
/// # Errors
/// None; it is a `Result` so that it can be joined with the loop.
pub async fn keep(
    services: Services,
    threshold: u32,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let mut names = services.gate.names();
    let mut left = Some(0);
    let mut is_set = false;
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            () = tokio::time::sleep(PAUSE), if left.is_some() => {}
            _ = look.tick() => {}
        }
        let in_force = services.gate.names();
        if !Arc::ptr_eq(&names, &in_force) {
            (names, left) = (in_force, Some(0));
        }
        let round = async {
            if !is_set {
                services.writer.set_group_threshold(threshold).await?;
            }
            if let Some(after) = left {
                return services.writer.group_again(Arc::clone(&names), after).await;
            }
            group_new(&services.writer, &names).await.map(|()| None)
        };
        match round.await {
            Ok(more) => (left, is_set) = (more, true),
            // What else fails for it is told by the loop. The next look goes on.
            Err(error) => tracing::debug!(%error, "hosts could not be grouped"),
        }
    }
}

/// Groups all hosts that have no group.
async fn group_new(writer: &Writer, names: &Arc<Names>) -> Result<(), StoreError> {
    let mut after = Some(0);
    while let Some(last) = after {
        after = writer.group_new(Arc::clone(names), last).await?;
    }
    Ok(())
}

/// Carries a decision out, and says what follows from it.
///
/// # Errors
/// Why it is not taken, in words.
pub async fn decide(
    writer: &Writer,
    names: &Arc<Names>,
    domain: &str,
    verb: Verb,
    ruling: &Ruling,
    calendar: Calendar,
) -> Result<String, String> {
    let domain = registered(names, domain)?;
    let reason = a_line(&ruling.reason)?;
    if verb == Verb::Limit(0) {
        return Err("a limit is 1 at least; `groups deny` has none of them asked".to_owned());
    }
    // Without a daemon nobody has done so.
    group_new(writer, names)
        .await
        .map_err(|error| error.to_string())?;
    let decided = Decided {
        at: ruling.at,
        decision: verb.into(),
        reason: reason.to_owned(),
        who: ruling.who.clone(),
    };
    let hosts = writer
        .decide_group(domain.clone(), decided, calendar)
        .await
        .map_err(|error| error.to_string())?;
    let hosts = count(hosts);
    Ok(match verb {
        Verb::Allow => format!(
            "{domain}: allowed; its {hosts} are asked and listed like any others, the first time within a day or so"
        ),
        Verb::Deny => format!(
            "{domain}: denied; of its {hosts} none is asked, and none is on the next list. Should that take more than 30 % of the list away, the next one is held back, and the standing one is rid of them"
        ),
        Verb::Limit(a_day) => format!(
            "{domain}: limited; of its {hosts} at most {a_day} are asked a day, and they are listed like any others while they live"
        ),
        Verb::ForgetDecision => {
            format!("{domain}: no decision is in force any more; its {hosts} go by the threshold")
        }
    })
}

/// A reason as it is kept.
///
/// # Errors
/// When it is empty, too long, or no line.
pub fn a_line(reason: &str) -> Result<&str, String> {
    let reason = reason.trim();
    if reason.is_empty() || reason.len() > TEXT_BYTES_MAX || reason.chars().any(char::is_control) {
        return Err(format!(
            "the reason must be a line of 1 to {TEXT_BYTES_MAX} bytes"
        ));
    }
    Ok(reason)
}

/// The registered domain that the operator means.
///
/// # Errors
/// When it is none, with the one that it belongs to.
pub fn registered(names: &Names, text: &str) -> Result<String, String> {
    let host = names
        .admit(text.trim())
        .map_err(|refusal| format!("{}: {refusal}", protocol::escaped(text.as_bytes(), 200)))?;
    let domain = names.registered_domain(&host);
    if domain == host.as_str() {
        Ok(domain)
    } else {
        Err(format!("{host} belongs to the group {domain}; name that"))
    }
}

/// A group in a line, behind its domain.
pub fn in_words(stored: &StoredGroup) -> String {
    let held_back = if stored.group.is_held() {
        format!(
            ", held: nobody has looked at it, {} held back",
            count(stored.held_back)
        )
    } else {
        String::new()
    };
    format!(
        "{}{held_back}{}{}",
        count(stored.group.hosts),
        decided_words(stored),
        wildcards::in_words(&stored.wildcard)
    )
}

/// Why the group of a host keeps it off the list, for one that it does.
pub fn why_not(stored: &StoredGroup, host: &Host) -> String {
    if stored.group.decision == Decision::Deny {
        return format!(
            "the operator of this census denies its group `{}`: {}; it is neither asked nor listed while that is so",
            stored.domain,
            stored.reason.as_deref().unwrap_or_default()
        );
    }
    format!(
        "its group `{}` has {} and nobody has looked at it: {host} came, or had not lived, when that was more than we take without a look. It is held back, and one such host is asked a day, until `fedicensus groups allow {}`",
        stored.domain,
        count(stored.group.hosts),
        stored.domain
    )
}

/// A decision in one word, with its number.
pub fn decision_words(decision: Decision) -> String {
    match decision {
        Decision::None => "decision forgotten".to_owned(),
        Decision::Allow => "allowed".to_owned(),
        Decision::Deny => "denied".to_owned(),
        Decision::Limit { a_day } => format!("limited to {a_day} a day"),
    }
}

fn decided_words(stored: &StoredGroup) -> String {
    let (Some(reason), Some(at)) = (&stored.reason, stored.decided_at) else {
        return String::new();
    };
    format!(
        ", {} since {}: {reason}",
        decision_words(stored.group.decision),
        rfc3339(at)
    )
}

fn count(hosts: u64) -> String {
    if hosts == 1 {
        "1 host".to_owned()
    } else {
        format!("{hosts} hosts")
    }
}

#[cfg(test)]
mod tests;
