//! Logs the scheduler's notices.

use census::time::{Timestamp, rfc3339};
use scheduler::command::Notice;

pub(super) fn log(notice: &Notice) {
    match notice {
        Notice::OutageBegan(what) => tracing::error!(
            what,
            "no host is checked until this works again; no failure counts against any host"
        ),
        Notice::OutageRelapsed(what) => tracing::error!(
            what,
            "the outage goes on; the census tries again and logs nothing more until it ends"
        ),
        Notice::OutageOver { lasted } => {
            tracing::info!(lasted_s = lasted.as_secs(), "the outage is over");
        }
        Notice::BlackoutBegan(nobody) => tracing::error!(
            since = rfc3339(Timestamp(nobody.since_ms)),
            "{}: {nobody}",
            nobody.scope
        ),
        Notice::BlackoutOver(over) => tracing::info!(
            lasted_s = over.lasted.as_secs(),
            failures = over.failures,
            dropped = over.dropped,
            "checks succeed again; ended: {}",
            over.scope
        ),
        Notice::WayIll { way, what } => tracing::error!(
            what,
            "the {} way out does not work; checks take the other one, and no failure by it counts",
            way.as_str()
        ),
        Notice::WayWell { way, lasted } => tracing::info!(
            lasted_s = lasted.as_secs(),
            "the {} way out works again",
            way.as_str()
        ),
        Notice::CanaryAsked {
            host,
            family,
            waiting,
        } => {
            tracing::debug!(%host, ?family, waiting, "failures wait, and no host that could confirm them has answered for a minute: checking a canary");
        }
    }
}
