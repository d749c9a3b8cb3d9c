//! One walk through one host: a container of the checker image in walk mode.
//!
//! The names of hosts in its public conversations go to the gate, and the walk's end is remembered.
//! Hosts are skipped if they are on the deny-list, must be left alone, were walked within a week,
//! or pause. A walk never changes its host's state (invariant I3), and a fault of ours leaves no
//! trace.

use std::time::Duration;

use census::backoff::Answer;
use protocol::egress::Deferral;
use protocol::{Host, WalkOrder, WalkOutcome};
use report::walk::{Walk, WalkReport};
use store::{LastWalk, StoreError, WalkTimes};

use crate::check::services::Services;
use crate::discover::reading::{self, Ended, Errand, Ways};
use crate::ground::fault::Fault;

/// Least time between two walks through a host: the conversations of one week name hardly a host
/// that those of the next week don't.
const AGAIN_AFTER: Duration = Duration::from_hours(7 * 24);

/// Responding hosts that are overdue by this much come before walks.
const LATE_AFTER: Duration = Duration::from_hours(1);

#[derive(Debug)]
pub enum Visit {
    /// The host was walked, however the walk ended.
    Walked {
        walk: Walk,
        /// Hosts named in the walk that no one had named before.
        new: Vec<Host>,
    },
    /// The host was not asked, and why.
    Left(String),
    /// The host is walked later.
    Deferred {
        why: Deferral,
        retry_after: Duration,
    },
    Offline,
    Fault(Fault),
}

impl From<StoreError> for Visit {
    fn from(error: StoreError) -> Self {
        Self::Fault(Fault::Store(error))
    }
}

/// The moments that decide whether a walk may begin now.
pub fn times(services: &Services) -> WalkTimes {
    let (now, calendar) = (services.now(), services.calendar);
    WalkTimes {
        now,
        walked_before: now.minus(calendar.shortened(AGAIN_AFTER)),
        late_before: now.minus(calendar.shortened(LATE_AFTER)),
    }
}

/// Walks through a host, if it may be walked now.
pub async fn visit(host: &Host, services: &Services) -> Visit {
    match may_be_walked(host, services).await {
        Ok(None) => {}
        Ok(Some(why)) => return Visit::Left(why),
        Err(error) => return error.into(),
    }
    let walk = match walk(host, services).await {
        Ok(walk) => walk,
        Err(other) => return other,
    };
    match settle(host, &walk, services).await {
        Ok(new) => Visit::Walked { walk, new },
        Err(error) => error.into(),
    }
}

/// Offers the names of a walk to the gate, and remembers how the walk ended. Returns the names that
/// were new.
///
/// # Errors
/// A fault of ours. Names may have been admitted then, and the walk is not remembered.
pub async fn settle(
    host: &Host,
    walk: &Walk,
    services: &Services,
) -> Result<Vec<Host>, StoreError> {
    let is_news = |host: &&Host| !services.writer.recognises(host);
    let new: Vec<Host> = walk.hosts.iter().filter(is_news).cloned().collect();
    let named = walk.hosts.iter().cloned().collect();
    services.learn(named, host).await?;
    remember(host, walk, services).await?;
    services
        .meters
        .walk(walk.outcome, walk.hosts.len(), new.len());
    Ok(new)
}

/// Why the host must not be walked, if so.
async fn may_be_walked(host: &Host, services: &Services) -> Result<Option<String>, StoreError> {
    if let Err(refusal) = services.gate.denies(host) {
        return Ok(Some(refusal.to_string()));
    }
    let times = times(services);
    if services.writer.may_be_walked(host, times).await? {
        return Ok(None);
    }
    let last = services.writer.last_walk(host).await?;
    let why = match last {
        Some(last) if last.at > times.walked_before => "it was walked within the last week",
        Some(last) if last.backoff.is_paused(times.now) => {
            "it is paused after how its last walk ended"
        }
        Some(_) | None => {
            "it does not respond, opted out, is hidden or held back, or runs software whose conversations are not read"
        }
    };
    Ok(Some(why.to_owned()))
}

/// Runs a walk to its end, or returns why there was none.
async fn walk(host: &Host, services: &Services) -> Result<Walk, Visit> {
    let mut errand = Errand::to(host, services);
    errand.order.walk = Some(WalkOrder {
        seed: services.random.seed(),
    });
    match reading::read(errand, WalkReport::default(), &Ways::of(services)).await {
        Ended::Read(walk) => Ok(walk),
        Ended::Unreachable { .. } => Ok(Walk::failed()),
        Ended::Deferred { why, retry_after } => Err(Visit::Deferred { why, retry_after }),
        Ended::Offline => Err(Visit::Offline),
        Ended::Fault(fault) => Err(Visit::Fault(fault)),
    }
}

async fn remember(host: &Host, walk: &Walk, services: &Services) -> Result<(), StoreError> {
    let before = services.writer.last_walk(host).await?;
    let before = before.map(|last| last.backoff).unwrap_or_default();
    let (now, jitter) = (services.now(), services.random.jitter());
    let stated = walk.retry_after_s.map(Duration::from_secs);
    let last = LastWalk {
        at: now,
        outcome: walk.outcome,
        requests: walk.requests,
        posts: walk.posts,
        named: u32::try_from(walk.hosts.len()).unwrap_or(u32::MAX),
        backoff: before.after(answer(walk.outcome), stated, now, Some(jitter)),
    };
    services.writer.remember_walk(host, last).await
}

/// What a walk's end means for the next one.
fn answer(outcome: WalkOutcome) -> Answer {
    match outcome {
        WalkOutcome::Complete | WalkOutcome::Truncated => Answer::Answered,
        WalkOutcome::NotFound => Answer::NotFound,
        // None of these changes soon.
        WalkOutcome::AccessControlled | WalkOutcome::Disallowed | WalkOutcome::None => {
            Answer::AccessControlled
        }
        WalkOutcome::Unresponsive => Answer::Unresponsive,
        WalkOutcome::NotJson => Answer::NotJson,
    }
}
