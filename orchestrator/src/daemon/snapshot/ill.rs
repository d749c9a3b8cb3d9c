//! What keeps a running census from working, in the sentences of `status`, `health` and their exit
//! codes.

use std::time::Duration;

use census::time::{Timestamp, rfc3339};

use super::LiveState;

/// A healthy loop runs every second; waiting for an answer of the gateway or the launcher can take
/// 45 s.
const ROUND_WITHIN: Duration = Duration::from_secs(120);

/// A list is published every six hours.
const LISTED_WITHIN: Duration = Duration::from_hours(24);

/// A daemon that was off or slept for a day publishes within this time.
const LISTED_AGAIN_WITHIN: Duration = Duration::from_hours(1);

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

/// All that is wrong, the worst first. A list that is held back is no illness for a day: the census
/// works, and waits for its operator.
pub fn troubles(live: &LiveState) -> Vec<Trouble> {
    let trouble = |label: &str, text: String| {
        let label = label.to_owned();
        Trouble { label, text }
    };
    let since = |ms: i64| format!("since {}", rfc3339(Timestamp(ms)));
    let mut troubles = Vec::new();
    if live.still_s > ROUND_WITHIN.as_secs() {
        let still_s = live.still_s;
        let text = format!("the daemon's loop has not run for {still_s} s: restart it");
        troubles.push(trouble("HANGS", text));
    }
    if let Some((what, began)) = &live.outage {
        troubles.push(trouble("OUTAGE", format!("{}: {what}", since(*began))));
    }
    for (way, what, began) in &live.ill_ways {
        let instead = match live.ill_ways.len() {
            1 => "checks take the other way, and no failure over this one counts; ",
            _ => "",
        };
        let text = format!("{}: {instead}{what}", since(*began));
        troubles.push(trouble(&format!("{} WAY OUT", way.to_uppercase()), text));
    }
    if let Some(blackout) = &live.blackout {
        let text = format!("{}: {blackout}", since(blackout.since_ms));
        troubles.push(trouble(&blackout.scope.to_string(), text));
    }
    let listed = live.listed_ms.map(Timestamp);
    let now = Timestamp(live.now_ms);
    let is_awake = now.since(Timestamp(live.resumed_ms)) > LISTED_AGAIN_WITHIN;
    let is_old = is_awake && listed.is_some_and(|at| now.since(at) > LISTED_WITHIN);
    let why = live.dump_trouble.as_deref();
    let why = why.filter(|_| is_old || !live.is_held_back);
    if let (Some(at), true) = (listed, is_old) {
        let why = why.unwrap_or("nothing failed: report this");
        let text = format!("{} no list was published: {why}", since(at.0));
        troubles.push(trouble("DUMP", text));
    } else if let Some(why) = why {
        troubles.push(trouble("DUMP", why.to_owned()));
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
            still_s: 120,
            ..LiveState::default()
        };
        assert_eq!(troubles(&well), []);
        let ill = LiveState {
            still_s: 121,
            outage: Some(("the gateway is gone".to_owned(), 60_000)),
            ill_ways: vec![("second".to_owned(), "it hangs".to_owned(), 60_000)],
            blackout: Some(NoSuccess {
                scope: Scope::Anywhere,
                since_ms: 1000,
                failures: 5,
                most_often: vec![("tls".to_owned(), 5)],
                hint: "Is the clock right?".to_owned(),
            }),
            clock_trouble: Some("it is behind".to_owned()),
            dump_trouble: Some("the disk is full".to_owned()),
            ..LiveState::default()
        };
        let said: Vec<_> = troubles(&ill).iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "HANGS the daemon's loop has not run for 121 s: restart it",
                "OUTAGE since 1970-01-01T00:01:00Z: the gateway is gone",
                "SECOND WAY OUT since 1970-01-01T00:01:00Z: checks take the other way, and no failure \
                 over this one counts; it hangs",
                "NO CHECK SUCCEEDS since 1970-01-01T00:00:01Z: 5 checks in a row failed, none counts \
                 against its host; most often: tls ×5. Is the clock right?",
                "DUMP the disk is full",
                "CLOCK it is behind",
            ]
        );
        let hangs = |way: &str| (way.to_owned(), "it hangs".to_owned(), 60_000);
        let both = LiveState {
            ill_ways: vec![hangs("first"), hangs("second")],
            ..LiveState::default()
        };
        let said = troubles(&both)
            .iter()
            .map(ToString::to_string)
            .collect::<String>();
        assert!(!said.contains("the other way"), "{said}");
    }

    #[test]
    fn a_list_that_is_held_back_is_no_illness_for_a_day() {
        let day_ms = i64::try_from(LISTED_WITHIN.as_millis()).unwrap();
        let mut live = LiveState {
            now_ms: day_ms,
            listed_ms: Some(0),
            dump_trouble: Some("it has 1 name".to_owned()),
            is_held_back: true,
            ..LiveState::default()
        };
        assert_eq!(troubles(&live), []);
        live.now_ms += 1;
        let said: Vec<_> = troubles(&live).iter().map(ToString::to_string).collect();
        let expect = "DUMP since 1970-01-01T00:00:00Z no list was published: it has 1 name";
        assert_eq!(said, [expect]);
        live.resumed_ms = day_ms;
        assert_eq!(
            troubles(&live),
            [],
            "the machine slept, or the census was off"
        );
    }
}
