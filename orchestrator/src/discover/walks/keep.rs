//! Walks through one host after the other, up to the operator's number per hour.
//!
//! [`visit`] gets a host drawn at random. There are no walks during an outage, while a list is
//! published, or while responding hosts wait for their check: walks use what checks leave over.

use std::time::Duration;

use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::visit::{self, Visit};
use crate::check::services::Services;

/// The setting's unit of time.
const HOUR: Duration = Duration::from_hours(1);

/// Walks until `shutdown`, while it `is_quiet`; not at all if `per_hour` is 0.
///
/// # Errors
/// None; it is a `Result` so that it can be joined with the loop.
pub async fn keep(
    services: Services,
    is_quiet: impl Fn() -> bool,
    per_hour: u32,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let Some(every) = services.calendar.shortened(HOUR).checked_div(per_hour) else {
        shutdown.cancelled().await;
        return Ok(());
    };
    let mut turn = tokio::time::interval(every);
    turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            _ = turn.tick() => {}
        }
        if !is_quiet() {
            continue;
        }
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            () = walk_one(&services) => {}
        }
    }
}

async fn walk_one(services: &Services) {
    let (draw, times) = (services.random.jitter(), visit::times(services));
    let host = match services.writer.next_walk(draw, times).await {
        Ok(Some(host)) => host,
        Ok(None) => return,
        // The loop logs other failures of the same cause.
        Err(error) => return tracing::debug!(%error, "the host of the next walk could not be read"),
    };
    match visit::visit(&host, services).await {
        Visit::Walked { walk, new } => {
            let (outcome, named) = (walk.outcome.as_str(), walk.hosts.len());
            let (requests, posts, new) = (walk.requests, walk.posts, new.len());
            tracing::debug!(%host, outcome, requests, posts, named, new, "public conversations were read");
        }
        Visit::Left(why) => tracing::debug!(%host, why, "a host is not walked"),
        Visit::Deferred { why, .. } => tracing::debug!(%host, ?why, "a walk is deferred"),
        Visit::Offline => tracing::debug!(%host, "there is no network for a walk"),
        Visit::Fault(fault) => tracing::info!(%host, %fault, "a walk failed through our own fault"),
    }
}
