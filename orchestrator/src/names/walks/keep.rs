//! Walks through one host after the other, up to the operator's number per hour.
//!
//! [`visit`] gets a host drawn at random. There are no walks during an outage, while a list is
//! published, or while responding hosts wait for their check: walks use what checks leave over.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::visit::{self, Visit};
use crate::daemon::{Live, LiveState};
use crate::services::Services;

/// The setting's unit of time.
const HOUR: Duration = Duration::from_hours(1);

/// Walks until `shutdown`; not at all if `per_hour` is 0.
///
/// # Errors
/// None; it is a `Result` so that it can be joined with the loop.
pub async fn keep(
    services: Services,
    live: Arc<Live>,
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
        if !is_quiet(&live.state(services.now())) {
            continue;
        }
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            () = walk_one(&services) => {}
        }
    }
}

/// Whether the daemon has no more urgent work. Unknown before the loop's first round, so `false`.
fn is_quiet(state: &LiveState) -> bool {
    let is_up = state.last_round_ms != 0;
    is_up && state.outage.is_none() && state.blackout.is_none() && !state.is_publishing
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
            tracing::info!(%host, outcome, requests, posts, named, new, "public conversations were read");
        }
        Visit::Left(why) => tracing::debug!(%host, why, "a host is not walked"),
        Visit::Deferred { why, .. } => tracing::debug!(%host, ?why, "a walk is deferred"),
        Visit::Offline => tracing::debug!(%host, "there is no network for a walk"),
        Visit::Fault(fault) => tracing::info!(%host, %fault, "a walk failed through our own fault"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_walked_while_the_daemon_has_something_better_to_do() {
        let quiet = LiveState {
            last_round_ms: 1,
            ..LiveState::default()
        };
        assert!(is_quiet(&quiet));
        for busy in [
            LiveState::default(),
            LiveState {
                outage: Some(("gateway".to_owned(), 1)),
                ..quiet.clone()
            },
            LiveState {
                is_publishing: true,
                ..quiet.clone()
            },
        ] {
            assert!(!is_quiet(&busy), "{busy:?}");
        }
    }
}
