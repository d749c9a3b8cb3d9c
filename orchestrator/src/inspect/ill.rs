//! What keeps a running census from working, in the sentences of `status`, `health` and their exit
//! codes.

use std::time::Duration;

use census::time::{Timestamp, rfc3339};

use crate::daemon::LiveState;

/// A healthy loop runs every second; waiting for an answer of the gateway or the launcher can take
/// 45 s.
const ROUND_WITHIN: Duration = Duration::from_secs(120);

/// A kind of trouble, as `status` labels it, and since when, what is wrong and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    pub label: String,
    pub text: String,
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.label, self.text)
    }
}

/// All that is wrong, the worst first. A list that is held back is no illness: the census works.
pub fn troubles(live: &LiveState) -> Vec<Trouble> {
    let trouble = |label: &str, text: String| {
        let label = label.to_owned();
        Trouble { label, text }
    };
    let since = |ms: i64| format!("since {}", rfc3339(Timestamp(ms)));
    let mut troubles = Vec::new();
    let last_round = Timestamp(live.last_round_ms.max(live.started_ms));
    let still = Timestamp(live.now_ms).since(last_round);
    if still > ROUND_WITHIN {
        let text = format!(
            "the daemon's loop has not run for {} s: restart it",
            still.as_secs()
        );
        troubles.push(trouble("HANGS", text));
    }
    if let Some((what, began)) = &live.outage {
        troubles.push(trouble("OUTAGE", format!("{}: {what}", since(*began))));
    }
    if let Some(blackout) = &live.blackout {
        let text = format!("{}: {blackout}", since(blackout.since_ms));
        troubles.push(trouble(&blackout.scope.to_string(), text));
    }
    let clock = live.clock_trouble.clone();
    troubles.extend(clock.map(|text| trouble("CLOCK", text)));
    troubles
}

#[cfg(test)]
mod tests {
    use scheduler::blame::blackout::{NoSuccess, Scope};

    use super::*;

    #[test]
    fn all_that_is_wrong_is_said_the_worst_first() {
        let well = LiveState {
            now_ms: 120_000,
            ..LiveState::default()
        };
        assert_eq!(troubles(&well), []);
        let ill = LiveState {
            now_ms: 120_001,
            outage: Some(("the gateway is gone".to_owned(), 60_000)),
            blackout: Some(NoSuccess {
                scope: Scope::Anywhere,
                since_ms: 1000,
                failures: 5,
                most_often: vec![("tls".to_owned(), 5)],
                hint: "Is the clock right?".to_owned(),
            }),
            clock_trouble: Some("it is behind".to_owned()),
            ..LiveState::default()
        };
        let said: Vec<_> = troubles(&ill).iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "HANGS the daemon's loop has not run for 120 s: restart it",
                "OUTAGE since 1970-01-01T00:01:00Z: the gateway is gone",
                "NO CHECK SUCCEEDS since 1970-01-01T00:00:01Z: 5 checks in a row failed, none counts \
                 against its host; most often: tls ×5. Is the clock right?",
                "CLOCK it is behind",
            ]
        );
    }
}
