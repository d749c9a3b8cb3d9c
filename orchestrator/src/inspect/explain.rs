//! The answer to "why is this host (not) listed?", in plain words. Every word that the census uses for people stands here.

use admission::{Listed, Waiter};
use census::group::Decision;
use census::listing::is_listed;
use census::state::{OptedOutBy, Record, State};
use census::time::{Calendar, Timestamp};
use census::transition::Entry;
use protocol::Host;
use serde::Serialize;
use site::Found;
use site::why::is_taken_over;
use store::Stored;

use crate::names::groups;
use crate::publish::pages::group_says;

/// What is known of one host.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    /// The host.
    pub host: Host,
    /// Its state in one word; `unknown` when the census has never heard of it, `waiting` when it had no room, `forgotten` when it gave it up.
    pub state: String,
    /// Since when, RFC 3339.
    pub since: Option<String>,
    /// Whether it is in a list written now.
    pub listed: bool,
    /// Why it is, or is not.
    pub why: String,
    /// Its group and what was decided about that, when it is held or decided about.
    pub group: Option<String>,
    /// The last verdict in one word.
    pub verdict: Option<String>,
    /// Its reason in the wire's word.
    pub reason: Option<String>,
    /// Its reason with all that was kept of it.
    pub detail: Option<String>,
    /// NodeInfo's software name.
    pub software: Option<String>,
    /// NodeInfo's software version.
    pub version: Option<String>,
    /// When it last lived.
    pub last_alive: Option<String>,
    /// When a verdict last came in.
    pub last_checked: Option<String>,
    /// When it is asked next; nothing when never.
    pub next_check: Option<String>,
    /// It is being asked, or waits for confirmation.
    pub in_flight: bool,
    /// What last happened to it on our side, without a verdict.
    pub note: Option<String>,
    /// The last verdicts, newest first.
    pub history: Vec<Past>,
}

/// A verdict of the past.
#[derive(Debug, Clone, Serialize)]
pub struct Past {
    /// When, RFC 3339.
    pub at: String,
    /// In one word.
    pub verdict: String,
    /// Its reason.
    pub reason: Option<String>,
}

/// Explains a host that the census knows. A list written now goes by this; the one that stands may be older.
pub fn explain(stored: &Stored, now: Timestamp, calendar: Calendar) -> Explanation {
    let record = &stored.record;
    let would_be_listed = is_listed(record, stored.target_is_alive, now, calendar);
    let held = stored
        .group
        .as_ref()
        .filter(|group| !group.group.lists(stored.place));
    let listed = would_be_listed && held.is_none();
    let last = stored.history.first();
    Explanation {
        host: record.host.clone(),
        state: record.state.name().as_str().to_owned(),
        since: Some(rfc3339(record.since)),
        listed,
        why: match held {
            Some(group) if group_says(&group.group, false).decides(record, would_be_listed) => {
                groups::why_not(group, &record.host)
            }
            Some(_) | None => why(record, stored.target_is_alive, listed, now, calendar),
        },
        group: stored
            .group
            .as_ref()
            .filter(|group| group.group.is_held() || group.group.decision != Decision::None)
            .map(|group| format!("{}: {}", group.domain, groups::in_words(group))),
        verdict: last.map(|entry| entry.verdict.clone()),
        reason: last.and_then(bare_reason),
        detail: last.and_then(|entry| entry.reason.clone()),
        software: record.software.clone(),
        version: record.version.clone(),
        last_alive: record.last_alive.map(rfc3339),
        last_checked: record.last_checked.map(rfc3339),
        next_check: record.due.map(rfc3339),
        in_flight: stored.in_flight,
        note: stored.last_note.clone(),
        history: stored
            .history
            .iter()
            .map(|entry| Past {
                at: rfc3339(entry.at),
                verdict: entry.verdict.clone(),
                reason: entry.reason.clone(),
            })
            .collect(),
    }
}

/// What the operator's deny-list says goes before all else, whatever is known of the host.
pub fn denied(explanation: Explanation, listed: &Listed) -> Explanation {
    let reason = if listed.reason.is_empty() {
        String::new()
    } else {
        format!(": {}", listed.reason)
    };
    Explanation {
        listed: false,
        why: format!(
            "the operator of this census does not let `{}` and what lies below it in{reason}; it is neither asked nor listed while that is so",
            listed.domain
        ),
        next_check: None,
        ..explanation
    }
}

/// Explains a host that had no room.
pub fn explain_waiting(host: &Host, waiter: &Waiter) -> Explanation {
    let moment = |seconds: u64| {
        let ms = i64::try_from(seconds)
            .unwrap_or(i64::MAX)
            .saturating_mul(1000);
        rfc3339(Timestamp(ms))
    };
    let named_by = match waiter.named_by.count() {
        0 => "nobody but its own neighbours names it".to_owned(),
        1 => "one source named it".to_owned(),
        many => format!("about {many} sources named it"),
    };
    Explanation {
        since: Some(moment(waiter.first_named_s)),
        why: format!(
            "it waits for room: when it was tried last, {}. {named_by}, the last time on {}. It comes in by itself, or with `fedicensus add`",
            waiter.room,
            moment(waiter.last_named_s).get(..10).unwrap_or_default(),
        ),
        ..nothing_known(host, "waiting")
    }
}

/// Explains a host that the census does not know.
pub fn explain_unknown(host: &Host, forgotten: bool) -> Explanation {
    let (state, why) = if forgotten {
        (
            "forgotten",
            "it never answered in a year and was given up; `fedicensus add` brings it back",
        )
    } else {
        (
            "unknown",
            "no peers list that we read has named it yet; `fedicensus add` brings it in",
        )
    };
    Explanation {
        why: why.to_owned(),
        ..nothing_known(host, state)
    }
}

fn nothing_known(host: &Host, state: &str) -> Explanation {
    Explanation {
        host: host.clone(),
        state: state.to_owned(),
        since: None,
        listed: false,
        why: String::new(),
        group: None,
        verdict: None,
        reason: None,
        detail: None,
        software: None,
        version: None,
        last_alive: None,
        last_checked: None,
        next_check: None,
        in_flight: false,
        note: None,
        history: Vec::new(),
    }
}

fn why(
    record: &Record,
    target_is_alive: bool,
    listed: bool,
    now: Timestamp,
    calendar: Calendar,
) -> String {
    if listed {
        return listed_because(record);
    }
    match &record.state {
        State::OptedOut { by: OptedOutBy::Robots } => "its robots.txt asks us to stay away; we ask weekly for robots.txt alone whether it still does".to_owned(),
        State::OptedOut { by: OptedOutBy::Owner } => "its owner asked to be left alone; it is never asked again unless the owner takes that back".to_owned(),
        State::OptedOut { by: OptedOutBy::Moderator } => "a moderator of this census removed it".to_owned(),
        State::Parked => "its name was valid once and no longer is".to_owned(),
        _ if is_taken_over(record) => "another crawler says that it lived; it is listed once a check of ours has found that it lives and may be shown".to_owned(),
        _ if record.hidden => "it asks to be left out of statistics, or we could not learn whether it does".to_owned(),
        State::Discovered if record.refuses => "somebody is there, who has refused to talk to us so far".to_owned(),
        State::Discovered => "it was never judged yet".to_owned(),
        State::Dying { gone: true, .. } => "it answered 410 Gone".to_owned(),
        State::Dead => "it has not answered as an instance for too long".to_owned(),
        State::Moved { target } => format!("it redirects to {target} for good"),
        State::Moving { target, .. } if target_is_alive => format!("it redirects to {target}, which is listed instead"),
        State::Dying { .. } | State::Moving { .. } if record.last_alive.is_none() => "it has not come out alive yet".to_owned(),
        State::Alive | State::Dying { .. } | State::Moving { .. } => stale(record, now, calendar),
    }
}

fn listed_because(record: &Record) -> String {
    match &record.state {
        State::Dying { count, .. } => {
            let failed = match count {
                1 => "one check has failed since".to_owned(),
                _ => format!("{count} checks in a row have failed since"),
            };
            format!("it lived a short while ago; {failed}")
        }
        State::Moving { target, .. } => {
            format!("it redirects to {target}, which is not alive itself")
        }
        State::Discovered
        | State::Alive
        | State::Dead
        | State::Moved { .. }
        | State::OptedOut { .. }
        | State::Parked => {
            if record.refuses {
                "it lives, though it refused to talk to us the last time".to_owned()
            } else {
                "it lives".to_owned()
            }
        }
    }
}

fn stale(record: &Record, now: Timestamp, calendar: Calendar) -> String {
    let since = record
        .last_alive
        .map(|alive| now.since(alive).as_secs() / 86_400);
    let bound = calendar.unlisted_after().as_secs() / 86_400;
    match since {
        Some(days) => {
            format!("it last came out alive {days} days ago; nothing is listed after {bound}")
        }
        None => "it has not come out alive yet".to_owned(),
    }
}

/// A verdict of the past in a sentence, the site's own, followed by what else was kept of it.
///
/// A verdict of another version, which the site has no sentence for, stays in its words.
pub fn past_in_words(verdict: &str, reason: Option<&str>) -> String {
    let Some(found) = Found::parse(verdict, reason) else {
        return format!("{verdict} {}", reason.unwrap_or_default())
            .trim_end()
            .to_owned();
    };
    let kept = match found {
        // The sentence stands for the reason's first word.
        Found::Dead(_) => {
            reason.and_then(|reason| reason.split_once([' ', ',']).map(|(_, kept)| kept.trim()))
        }
        Found::Alive | Found::Moved | Found::OptedOut | Found::Gone | Found::Refused => reason,
    };
    match kept {
        Some(kept) if !kept.is_empty() => format!("{} ({kept})", site::words::of_found(found).says),
        Some(_) | None => site::words::of_found(found).says.to_owned(),
    }
}

/// What the owner can do about the last verdict; `None` if there is nothing to do.
pub fn advice(verdict: &str, reason: Option<&str>) -> Option<&'static str> {
    let advice = site::words::of_found(Found::parse(verdict, reason)?).advice;
    (!advice.is_empty()).then_some(advice)
}

/// The word of an entry's reason, without what was kept besides: a status, a target.
pub fn bare_reason(entry: &Entry) -> Option<String> {
    let text = entry.reason.as_ref()?;
    text.split([' ', ',']).next().map(str::to_owned)
}

/// A moment as RFC 3339 in UTC, to the second.
pub fn rfc3339(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(
        |_out_of_range| format!("{} ms", at.0),
        |at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use census::group::{Group, Place};
    use store::{StoredGroup, WildcardLook};

    use super::*;

    const NOW: Timestamp = Timestamp(1_700_000_000_000);

    fn stored(state: State, decision: Decision) -> Stored {
        let host = Host::parse("a.example").unwrap();
        let group = StoredGroup {
            domain: "a.example".to_owned(),
            group: Group {
                hosts: 1,
                is_over: true,
                decision,
                asked_since: None,
                asked: 0,
            },
            reason: Some("a farm".to_owned()),
            decided_at: None,
            held_back: 1,
            wildcard: WildcardLook::default(),
        };
        Stored {
            record: Record {
                state,
                ..Record::discovered(host, NOW, NOW)
            },
            in_flight: false,
            interruptions: 0,
            faults: 0,
            last_note: None,
            history: Vec::new(),
            target_is_alive: false,
            group: Some(group),
            place: Place::HeldBack,
        }
    }

    #[test]
    fn the_past_is_told_in_the_sites_sentences_with_what_was_kept() {
        for (verdict, reason, expect) in [
            (
                "alive",
                Some("mastodon 4.2"),
                "It answered as an instance. (mastodon 4.2)",
            ),
            ("gone", None, "It answered 410 Gone."),
            ("dead", Some("tls_expired"), "Its certificate has expired."),
            (
                "dead",
                Some("status, status 502"),
                "It answered with an unexpected status, such as 500 or 502. (status 502)",
            ),
            (
                "dead",
                Some("of_another_version"),
                "dead of_another_version",
            ),
        ] {
            assert_eq!(past_in_words(verdict, reason), expect);
        }
        assert_eq!(advice("alive", None), None);
        assert!(advice("dead", Some("tls_expired")).is_some());
    }

    #[test]
    fn one_failed_check_is_no_plural() {
        let dying = |count| {
            let before = census::state::Before::Alive;
            let state = State::Dying {
                before,
                count,
                gone: false,
                gone_last: false,
            };
            listed_because(&stored(state, Decision::None).record)
        };
        assert!(dying(1).ends_with("one check has failed since"));
        assert!(dying(2).ends_with("2 checks in a row have failed since"));
    }

    /// Nobody mends a host that stays off all the same; and a wish is told before what others decided.
    #[test]
    fn a_denied_group_is_why_whatever_else_is_wrong_with_the_host() {
        let robots = State::OptedOut {
            by: OptedOutBy::Robots,
        };
        for (state, decision, expect) in [
            (State::Dead, Decision::Deny, "denies its group"),
            (State::Dead, Decision::None, "has not answered"),
            (State::Discovered, Decision::None, "nobody has looked"),
            (robots, Decision::Deny, "robots.txt"),
        ] {
            let explained = explain(&stored(state, decision), NOW, Calendar::REAL);
            assert!(explained.why.contains(expect), "{}", explained.why);
        }
    }
}
