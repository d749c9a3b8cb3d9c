//! Forwards requests to the daemon while a client waits over HTTP.
//!
//! It takes a request of the [wire](crate::wire), and returns the daemon's answer or a problem that
//! says when to retry.

use std::time::Duration;

use crate::problem::Problem;
use crate::wire::{Answer, Census, Request};

/// Retry interval while the daemon is away: it is restarted within that time.
const AWAY_RETRY: Duration = Duration::from_secs(30);

/// Sends a request to the daemon.
///
/// # Errors
/// Fails if the daemon does not answer. This is our fault, and is logged here.
pub(crate) async fn ask(census: &Census, request: &Request) -> Result<Answer, Problem> {
    census.ask(request).await.map_err(|error| {
        tracing::error!(error = %std::error::Error::source(&error).map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}")), "the daemon can't be reached: check that it runs and that its setting `optional_sockets` contains `intake`");
        is_away()
    })
}

/// 503 while the daemon is unavailable.
pub(crate) fn is_away() -> Problem {
    let words = "the census can't process this now: try again later";
    Problem::unavailable("census_away", words, AWAY_RETRY)
}
