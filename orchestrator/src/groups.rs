//! Groups: all hosts below one registered domain, and the operator's decisions about them.
//!
//! Names are grouped in the transaction that admits them. A background task groups other rows
//! without a group, such as opt-outs of unknown hosts, a portion at a time. Decisions are stored in
//! the database; both are shown as text. A domain that is not a registered domain and an invalid
//! reason are rejected.

pub mod facts;

use std::sync::Arc;
use std::time::Duration;

use admission::Names;
use census::group::{Decision, Evidence, PLACES_MAX, RESPONSES_MIN, SOURCES_MIN};
use census::time::{Calendar, rfc3339};
use protocol::Host;
use protocol::limits::TEXT_BYTES_MAX;
use serde::{Deserialize, Serialize};
use store::{Decided, Ruling, StoreError, StoredGroup, Writer};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::check::services::Services;

/// Interval between two looks for hosts to group. A look that finds none costs one look-up in an
/// index.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Pause between two portions when all hosts are grouped again at a start: the writer serves others
/// too. A million hosts take minutes.
const PAUSE: Duration = Duration::from_millis(50);

/// The operator's decision about a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Treat its hosts like any others.
    Allow,
    /// Check and list none of its hosts.
    Deny,
    /// Check at most this many of its hosts a day.
    Limit(u32),
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

/// Gives every host its group until `shutdown`: all hosts at the start and after another list of
/// suffixes is put in force, and rows that were inserted without one.
///
/// # Errors
/// None; it is a `Result` so that it can be joined with the loop.
pub async fn keep(services: Services, shutdown: CancellationToken) -> anyhow::Result<()> {
    let mut names = services.gate.names();
    let mut left = Some(0);
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
            if let Some(after) = left {
                return services.writer.group_again(Arc::clone(&names), after).await;
            }
            group_new(&services.writer, &names).await.map(|()| None)
        };
        match round.await {
            Ok(more) => left = more,
            // The loop reports other failures of the same cause. The next look continues.
            Err(error) => tracing::debug!(%error, "hosts could not be grouped"),
        }
    }
}

async fn group_new(writer: &Writer, names: &Arc<Names>) -> Result<(), StoreError> {
    let mut after = Some(0);
    while let Some(last) = after {
        after = writer.group_new(Arc::clone(names), last).await?;
    }
    Ok(())
}

/// Carries out a decision, and returns its id and what follows from it.
pub async fn decide(
    writer: &Writer,
    names: &Arc<Names>,
    domain: &str,
    verb: Verb,
    ruling: &Ruling,
    calendar: Calendar,
) -> Result<(i64, String), String> {
    let domain = registered(names, domain)?;
    let reason = a_line(&ruling.reason)?;
    if verb == Verb::Limit(0) {
        return Err("a limit is at least 1; `groups deny` checks none of them".to_owned());
    }
    // Without a daemon, opt-outs of unknown hosts are not grouped yet.
    group_new(writer, names)
        .await
        .map_err(|error| error.to_string())?;
    let decided = Decided {
        at: ruling.at,
        decision: verb.into(),
        reason: reason.to_owned(),
        who: ruling.who.clone(),
    };
    let recorded = writer
        .decide_group(domain.clone(), decided, calendar)
        .await
        .map_err(|error| error.to_string())?;
    let hosts = count(recorded.hosts);
    let words = match verb {
        Verb::Allow => format!(
            "{domain}: allowed; checks of its {hosts} begin within about a day, with listing like any others"
        ),
        Verb::Deny => format!(
            "{domain}: denied; no more checks of its {hosts}, and none in the next list. If that list loses more than 30 % of its names, it is held back, and the hosts are removed from the published one"
        ),
        Verb::Limit(a_day) => format!(
            "{domain}: limited; at most {a_day} checks a day of its {hosts}, with listing while they respond"
        ),
        Verb::ForgetDecision => {
            format!(
                "{domain}: no decision is in force any more; the threshold applies to its {hosts}"
            )
        }
    };
    Ok((recorded.id, words))
}

/// Trims and checks a reason.
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
/// The name is not a registered domain; the error names the one it belongs to.
pub fn registered(names: &Names, text: &str) -> Result<String, String> {
    let host = names
        .admit(protocol::pasted(text))
        .map_err(|refusal| format!("{}: {refusal}", protocol::escaped(text.as_bytes(), 200)))?;
    let domain = names.registered_domain(&host);
    if domain == host.as_str() {
        Ok(domain)
    } else {
        Err(format!("{host} belongs to the group {domain}; enter that"))
    }
}

/// A group in one line, without its domain.
pub fn in_words(stored: &StoredGroup) -> String {
    let held_back = if stored.group.is_held() {
        format!(
            ", {} held back, {} of at most {PLACES_MAX} with a place",
            count(stored.held_back),
            stored.group.hosts.saturating_sub(stored.held_back)
        )
    } else {
        String::new()
    };
    format!(
        "{}{held_back}{}",
        count(stored.group.hosts),
        decided_words(stored)
    )
}

/// Why a host's group keeps it off the list, if it does.
pub fn why_not(stored: &StoredGroup, host: &Host) -> String {
    if stored.group.decision == Decision::Deny {
        return format!(
            "the operator of this census denies its group `{}`: {}; it is neither checked nor listed until that changes",
            stored.domain,
            stored.reason.as_deref().unwrap_or_default()
        );
    }
    format!(
        "its group `{}` has {}: {host} joined when that was over the threshold, or had not responded by then. It is held back until enough sources have named it and it has responded often enough, or until `fedicensus groups allow {}`",
        stored.domain,
        count(stored.group.hosts),
        stored.domain
    )
}

/// What a held-back host has of the evidence that it needs.
pub fn evidence_words(evidence: &Evidence) -> String {
    format!(
        "named by {} of {SOURCES_MIN} independent sources for a week, responded to {} of {RESPONSES_MIN} checks; {} of at most {PLACES_MAX} hosts of its group have a place",
        evidence.sources.min(SOURCES_MIN),
        evidence.responses.min(RESPONSES_MIN),
        evidence.places
    )
}

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
