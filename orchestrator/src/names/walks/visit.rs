//! One walk through one host: a container of the checker image in walk mode.
//!
//! In: a host. Out: the hosts that its public conversations name, for the gate, and what is
//! remembered of the walk. Refused: hosts on the deny-list, and all that must be left alone, were
//! walked within a week, or pause. Nothing that comes of a walk changes its host's state (invariant
//! I3); a fault of ours leaves no trace.

use std::time::Duration;

use census::backoff::Answer;
use protocol::egress::Deferral;
use protocol::order::AskPeers;
use protocol::{CheckOrder, Host, WalkOrder, WalkOutcome};
use report::walk::{Walk, WalkReport, conclude};
use store::{LastWalk, StoreError, WalkTimes};

use crate::check::fault::Fault;
use crate::names::reading::{self, Errand, Ran, Ways, Went};
use crate::services::Services;

/// From one walk through a host to the next, at least: what its people talk about in a week names
/// hardly a host that the next week does not.
const AGAIN_AFTER: Duration = Duration::from_hours(7 * 24);

/// Responding hosts that have been due for so long come before walks.
const LATE_AFTER: Duration = Duration::from_hours(1);

/// What came of wanting to walk through a host.
#[derive(Debug)]
pub enum Visit {
    /// A walk, whatever its end.
    Walked {
        /// What the container said.
        walk: Walk,
        /// Of the hosts that it named, those that nobody had named before.
        new: Vec<Host>,
    },
    /// It was not asked, and why.
    Left(String),
    /// It has its turn later.
    Deferred {
        /// Why.
        why: Deferral,
        /// How long to wait at least.
        retry_after: Duration,
    },
    /// We have no network.
    Offline,
    /// Ours.
    Fault(Fault),
}

impl From<StoreError> for Visit {
    fn from(error: StoreError) -> Self {
        Self::Fault(Fault::Store(error))
    }
}

/// When walks may begin, as of now.
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

/// Offers the names that a walk found to the gate, and remembers how the walk ended. Returns those
/// names that nobody had named before.
///
/// # Errors
/// A fault of ours. Names may be in then, and the walk is not remembered.
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

/// Why the host is left alone, if it is.
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
            "it is left alone for a while after how it answered the last time"
        }
        Some(_) | None => {
            "it does not respond, wants to be left alone, is held back, or runs software whose conversations are not read"
        }
    };
    Ok(Some(why.to_owned()))
}

/// A walk that came to an end, or what came instead.
async fn walk(host: &Host, services: &Services) -> Result<Walk, Visit> {
    let order = CheckOrder {
        contact: services.contact.to_string(),
        peers: AskPeers::Skip,
        list: None,
        walk: Some(WalkOrder {
            seed: services.random.seed(),
        }),
        delivery: None,
    };
    let errand = Errand {
        host,
        order,
        id: services.random.check_id(),
        group: services.gate.names().registered_domain(host),
    };
    let went = reading::read(errand, WalkReport::default(), &Ways::of(services)).await;
    match went.map_err(Visit::Fault)? {
        Went::Ran(Ran {
            report,
            end,
            stderr,
            account,
        }) => conclude(report, end, &account, &stderr).map_err(|fault| Visit::Fault(fault.into())),
        Went::Unreachable { .. } => Ok(Walk::failed()),
        Went::Deferred { why, retry_after } => Err(Visit::Deferred { why, retry_after }),
        Went::Offline => Err(Visit::Offline),
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
