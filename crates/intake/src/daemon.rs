//! The daemon, asked for somebody who waits for an answer over HTTP.
//!
//! In: a request of the [wire](crate::wire). Out: the daemon's answer, or the problem that says when to come again.

use std::time::Duration;

use crate::problem::Problem;
use crate::wire::{Answer, Census, Request};

/// When to come again while the daemon is away: it is started anew within that.
const AWAY_RETRY: Duration = Duration::from_secs(30);

/// Asks.
///
/// # Errors
/// When the daemon does not answer: a fault of ours, and logged here.
pub(crate) async fn ask(census: &Census, request: &Request) -> Result<Answer, Problem> {
    census.ask(request).await.map_err(|error| {
        tracing::error!(error = %std::error::Error::source(&error).map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}")), "the daemon can't be asked: see that it runs, and that its setting `optional_sockets` names `intake`");
        is_away()
    })
}

/// 503 while the daemon can't do its part.
pub(crate) fn is_away() -> Problem {
    let words = "the census can't take this now: try again later";
    Problem::unavailable("census_away", words, AWAY_RETRY)
}
