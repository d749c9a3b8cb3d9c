//! Answers the operator's question why a host is listed or not: `census::why` decides, and
//! `sentence` words the answer.

mod sentence;

use admission::{DomainList, Listed, Waiter};
use census::group::Decision;
use census::time::{Calendar, Timestamp, rfc3339};
use census::transition;
use census::why::{self, Denied, Facts, Found, Reason, Subject};
use protocol::Host;
use serde::Serialize;
use site::Why;
use site::words::{self, Words};
use store::{LastWalk, Reader, StoreError, Stored};

use self::sentence::{Details, sentence};
use crate::daemon::COUNTS_LATER;
use crate::groups;
use crate::inspect::state_word;

/// What the census knows about one host.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    pub host: Host,
    /// Its state in one word; `unknown` if no one named the host, `waiting` if it had no room,
    /// `forgotten` if the census dropped it.
    pub state: String,
    /// When the state began, RFC 3339.
    pub since: Option<String>,
    /// Whether a list written now contains it.
    pub listed: bool,
    /// Why it is listed or not.
    pub why: String,
    /// The site's answer, which names nobody.
    #[serde(skip)]
    pub site: Words,
    /// The same for a proven owner, with the reason that the site withholds.
    #[serde(skip)]
    pub owners_words: Words,
    /// Its group and the decision about it, if the group is held or decided about.
    pub group: Option<String>,
    /// What it has of the evidence that it needs, if its group holds it back.
    pub evidence: Option<String>,
    /// The last verdict in one word.
    pub verdict: Option<String>,
    /// The verdict's reason, as the protocol names it.
    pub reason: Option<String>,
    /// The verdict's reason with all recorded details.
    pub detail: Option<String>,
    pub software: Option<String>,
    pub version: Option<String>,
    /// NodeInfo's `openRegistrations`. `None` if it is no boolean.
    pub open_registrations: Option<bool>,
    /// The fork that its version or its repository names.
    pub variant: Option<String>,
    /// When a check last found it alive.
    pub last_alive: Option<String>,
    /// When the last verdict came in.
    pub last_checked: Option<String>,
    /// When it is checked next; `None` if never.
    pub next_check: Option<String>,
    /// Whether it is being checked or waits for confirmation.
    pub in_flight: bool,
    /// How its last peers list ended, as the protocol names it.
    pub peers: Option<String>,
    /// The last walk through its public conversations.
    pub walk: Option<String>,
    /// The only way out by which it responds, if there are two and it fails by the other.
    pub only_way: Option<String>,
    /// The last event on our side that gave no verdict.
    pub note: Option<String>,
    /// The last verdicts, newest first.
    pub history: Vec<Past>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Past {
    /// When it came in, RFC 3339.
    pub at: String,
    pub verdict: String,
    pub reason: Option<String>,
}

/// Where the census stores a name.
#[derive(Debug, Clone, Copy)]
pub enum Entry<'e> {
    /// It has a row in the database.
    Known(&'e Stored),
    Waiting(&'e Waiter),
    Forgotten,
    Unknown,
}

impl Entry<'_> {
    fn state(&self) -> &'static str {
        match self {
            Self::Known(stored) => stored.record.state.name().as_str(),
            Self::Waiting(_) => "waiting",
            Self::Forgotten => "forgotten",
            Self::Unknown => "unknown",
        }
    }

    fn reason(&self, denied: Option<&Listed>, now: Timestamp, calendar: Calendar) -> Reason<'_> {
        let subject = match self {
            Self::Known(stored) => Subject::Known(&stored.record, facts(stored)),
            Self::Waiting(_) => Subject::Waiting,
            Self::Forgotten => Subject::Forgotten,
            Self::Unknown => Subject::Unknown,
        };
        let denied = denied.map_or(Denied::No, |_listed| Denied::Yes);
        why::reason(subject, denied, now, calendar)
    }
}

/// Finds a name in the database and explains it.
pub fn look_up(
    reader: &Reader,
    host: &Host,
    deny: &DomainList,
    now: Timestamp,
    calendar: Calendar,
) -> Result<Explanation, StoreError> {
    let (stored, waiter) = (reader.record(host)?, reader.waiter(host)?);
    let entry = match (&stored, &waiter) {
        (Some(stored), _) => Entry::Known(stored),
        (None, Some(waiter)) => Entry::Waiting(waiter),
        (None, None) if reader.is_forgotten(host)? => Entry::Forgotten,
        (None, None) => Entry::Unknown,
    };
    let denied = deny.covers_text(host.as_str());
    Ok(Explanation {
        peers: reader.peers_outcome(host)?,
        walk: reader.last_walk(host)?.map(walk_in_words),
        only_way: reader.only_way(host)?.map(|(way, since)| {
            let since = rfc3339(since);
            format!(
                "it responds over one of our two networks only (the {} way out), since {since}",
                way.as_str()
            )
        }),
        evidence: reader
            .evidence(host, now, calendar)?
            .map(|evidence| groups::evidence_words(&evidence)),
        ..explain(host, entry, denied.as_ref(), now, calendar)
    })
}

fn walk_in_words(walk: LastWalk) -> String {
    let LastWalk {
        at,
        outcome,
        requests,
        posts,
        named,
        backoff,
    } = walk;
    let pause = backoff.free_at.map(rfc3339);
    let pause = pause.map(|free_at| format!("; not again before {free_at}"));
    format!(
        "{} {}: {requests} requests, {posts} posts, {named} hosts named{}",
        rfc3339(at),
        outcome.as_str(),
        pause.unwrap_or_default()
    )
}

impl Explanation {
    /// The explanation for a proven owner, as sentences, without a moderator's words.
    pub fn for_owner(&self) -> String {
        let listed = if self.listed { "listed" } else { "not listed" };
        let Words { says, advice } = self.owners_words;
        let mut sentences = vec![format!("{} is {listed}.", self.host), says.to_owned()];
        sentences.extend((!advice.is_empty()).then(|| advice.to_owned()));
        if let (Some(at), Some(last)) = (&self.last_checked, self.history.first()) {
            let found = past_in_words(&last.verdict, last.reason.as_deref());
            sentences.push(format!("The last check was at {at}: {found}"));
        }
        sentences.extend(self.only_way.as_ref().map(|only| {
            format!("From where we look, {only}: something between its network and our other one keeps us out.")
        }));
        if let Some(at) = &self.next_check {
            sentences.push(format!("The next one is due at {at}."));
        }
        sentences.join(" ")
    }

    /// The explanation as lines of text.
    pub fn text(&self) -> String {
        let listed = if self.listed { "listed" } else { "not listed" };
        let mut lines = vec![format!("{}: {listed}, because {}", self.host, self.why)];
        let last = self.history.first();
        let advice = last.and_then(|past| advice(&past.verdict, past.reason.as_deref()));
        let advice = advice.map(|advice| ("advice", advice.to_owned()));
        let facts = self.facts().into_iter().chain(advice);
        lines.extend(facts.map(|(label, value)| format!("  {label:<11} {value}")));
        let past = self.history.iter();
        lines.extend(past.map(|past| format!("  {} {}", past.at, past.in_words())));
        lines.join("\n")
    }

    /// All that is known about it except the reason and former checks, each with its label.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let since = self.since.as_ref().map(|since| format!(" since {since}"));
        let state = format!("{}{}", state_word(&self.state), since.unwrap_or_default());
        let mut lines = vec![("state", state)];
        let mut line = |label: &'static str, value: Option<&String>| {
            lines.extend(value.map(|value| (label, value.clone())));
        };
        let software = self
            .software
            .as_ref()
            .map(|software| format!("{software} {}", self.version.as_deref().unwrap_or("")));
        line("group", self.group.as_ref());
        line("evidence", self.evidence.as_ref());
        line("software", software.as_ref());
        line("fork", self.variant.as_ref());
        let sign_up = self.open_registrations.map(registrations);
        line("sign-up", sign_up.map(str::to_owned).as_ref());
        line("last up", self.last_alive.as_ref());
        line("last check", self.last_checked.as_ref());
        let next = if self.in_flight {
            "being checked, or waiting for confirmation".to_owned()
        } else {
            self.next_check
                .clone()
                .unwrap_or_else(|| "never".to_owned())
        };
        line("next check", Some(&next));
        line("peers list", self.peers.as_ref());
        line("walk", self.walk.as_ref());
        line("network", self.only_way.as_ref());
        line("note", self.note.as_ref());
        lines
    }
}

impl Past {
    pub fn in_words(&self) -> String {
        past_in_words(&self.verdict, self.reason.as_deref())
    }
}

fn facts(stored: &Stored) -> Facts<'_> {
    Facts {
        target_is_alive: stored.target_is_alive,
        group: stored.group.as_ref().map(|group| &group.group),
        place: stored.place,
        last: stored
            .history
            .first()
            .and_then(|last| Found::parse(&last.verdict, last.reason.as_deref())),
    }
}

/// Explains a name for a list written now; the published one may be older. `denied` is the line of
/// the operator's deny-list that covers it.
pub fn explain(
    host: &Host,
    entry: Entry<'_>,
    denied: Option<&Listed>,
    now: Timestamp,
    calendar: Calendar,
) -> Explanation {
    let reason = entry.reason(denied, now, calendar);
    let last = match entry {
        Entry::Known(stored) => facts(stored).last,
        Entry::Waiting(_) | Entry::Forgotten | Entry::Unknown => None,
    };
    let site = of_site(&reason, last);
    let explanation = Explanation {
        listed: reason.is_listed(),
        site,
        owners_words: words::for_owner(&reason, site),
        why: sentence(
            &reason,
            Details {
                host,
                entry,
                denied,
                now,
                calendar,
            },
        ),
        ..bare(host, entry.state())
    };
    match entry {
        Entry::Known(stored) => Explanation {
            // A denied host is not checked, whatever its row says.
            next_check: stored
                .record
                .due
                .filter(|_due| denied.is_none())
                .map(rfc3339),
            ..of_stored(stored, explanation)
        },
        Entry::Waiting(waiter) => Explanation {
            since: Some(rfc3339(seconds(waiter.first_named_s))),
            ..explanation
        },
        Entry::Forgotten | Entry::Unknown => explanation,
    }
}

fn of_stored(stored: &Stored, explanation: Explanation) -> Explanation {
    let record = &stored.record;
    let last = stored.history.first();
    Explanation {
        since: Some(rfc3339(record.since)),
        group: stored
            .group
            .as_ref()
            .filter(|group| group.group.is_held() || group.group.decision != Decision::None)
            .map(|group| format!("{}: {}", group.domain, groups::in_words(group))),
        verdict: last.map(|entry| entry.verdict.clone()),
        reason: last.and_then(bare_reason),
        detail: last.and_then(|entry| entry.reason.clone()),
        software: record.instance.software.clone(),
        version: record.instance.version.clone(),
        open_registrations: record.instance.open_registrations,
        variant: record.instance.variant.clone(),
        last_alive: record.last_alive.map(rfc3339),
        last_checked: record.last_checked.map(rfc3339),
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
        ..explanation
    }
}

fn bare(host: &Host, state: &str) -> Explanation {
    Explanation {
        host: host.clone(),
        state: state.to_owned(),
        since: None,
        listed: false,
        why: String::new(),
        site: words::UNKNOWN,
        owners_words: words::UNKNOWN,
        group: None,
        evidence: None,
        verdict: None,
        reason: None,
        detail: None,
        software: None,
        version: None,
        open_registrations: None,
        variant: None,
        last_alive: None,
        last_checked: None,
        next_check: None,
        in_flight: false,
        peers: None,
        walk: None,
        only_way: None,
        note: None,
        history: Vec::new(),
    }
}

/// The site's answer for a reason, with the advice for the last check if that is more specific.
fn of_site(reason: &Reason<'_>, last: Option<Found>) -> Words {
    let Some(why) = Why::of(reason) else {
        return words::UNKNOWN;
    };
    let advice = last.map(words::of_found).map(|found| found.advice);
    let answer = words::of_why(why);
    match advice.filter(|advice| words::found_tells_more(why) && !advice.is_empty()) {
        Some(advice) => Words { advice, ..answer },
        None => answer,
    }
}

/// The last step of a check that was ordered, in a sentence.
pub fn end_in_words(step: &str) -> String {
    let Some(verdict) = step.strip_prefix("verdict: ") else {
        return step.to_owned();
    };
    let (verdict, counts) = match verdict.strip_suffix(COUNTS_LATER) {
        Some(verdict) => (verdict, " It counts once other hosts have responded."),
        None => (verdict, ""),
    };
    let (word, reason) = match verdict.split_once(' ') {
        Some((word, reason)) => (word, Some(reason)),
        None => (verdict, None),
    };
    format!("{}{counts}", past_in_words(word, reason))
}

/// A past verdict in a sentence, the same as on the site, followed by its other recorded details.
///
/// A verdict of another version, for which the site has no sentence, is shown in its own words.
pub fn past_in_words(verdict: &str, reason: Option<&str>) -> String {
    let Some(found) = Found::parse(verdict, reason) else {
        return format!("{verdict} {}", reason.unwrap_or_default())
            .trim_end()
            .to_owned();
    };
    let kept = match found {
        // The sentence replaces the reason's first word.
        Found::Dead(_) => {
            reason.and_then(|reason| reason.split_once([' ', ',']).map(|(_, kept)| kept.trim()))
        }
        Found::Alive | Found::Moved | Found::OptedOut | Found::Gone | Found::Refused(_) => reason,
    };
    match kept {
        Some(kept) if !kept.is_empty() => format!("{} ({kept})", words::of_found(found).says),
        Some(_) | None => words::of_found(found).says.to_owned(),
    }
}

/// What the owner can do about the last verdict; `None` if there is nothing to do.
pub fn advice(verdict: &str, reason: Option<&str>) -> Option<&'static str> {
    let advice = words::of_found(Found::parse(verdict, reason)?).advice;
    (!advice.is_empty()).then_some(advice)
}

/// The first word of an entry's reason, without details such as a status or a target.
pub fn bare_reason(entry: &transition::Entry) -> Option<String> {
    let text = entry.reason.as_ref()?;
    text.split([' ', ',']).next().map(str::to_owned)
}

fn registrations(are_open: bool) -> &'static str {
    if are_open { "open" } else { "closed" }
}

fn seconds(seconds: u64) -> Timestamp {
    let ms = i64::try_from(seconds)
        .unwrap_or(i64::MAX)
        .saturating_mul(1000);
    Timestamp(ms)
}

#[cfg(test)]
mod tests {
    use census::group::{Group, Place};
    use census::state::{OptedOutBy, State};
    use kit::NOW;
    use store::StoredGroup;

    use super::*;

    fn stored(state: State, decision: Decision) -> Stored {
        let group = StoredGroup {
            domain: "a.example".to_owned(),
            group: Group {
                hosts: 1,
                is_over: true,
                decision,
                ..Group::default()
            },
            reason: Some("a farm".to_owned()),
            ..StoredGroup::default()
        };
        Stored {
            record: kit::record(state),
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

    fn known(stored: &Stored, denied: Option<&Listed>) -> Explanation {
        let host = &stored.record.host;
        explain(host, Entry::Known(stored), denied, NOW, Calendar::REAL)
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
    fn a_checks_end_is_a_sentence() {
        let later = format!("verdict: gone{COUNTS_LATER}");
        let counts = "It answered 410 Gone. It counts once other hosts have responded.";
        for (step, expect) in [
            ("verdict: alive a 1", "It answered as an instance. (a 1)"),
            (later.as_str(), counts),
            ("deferred: no verdict", "deferred: no verdict"),
        ] {
            assert_eq!(end_in_words(step), expect);
        }
    }

    #[test]
    fn what_a_host_says_about_registrations_is_shown_and_nothing_if_it_does_not() {
        for (said, json, expect) in [
            (Some(true), "true", Some("  sign-up     open")),
            (Some(false), "false", Some("  sign-up     closed")),
            (None, "null", None),
        ] {
            let mut stored = stored(State::Alive, Decision::Allow);
            stored.record.instance.open_registrations = said;
            let explained = known(&stored, None);
            let text = explained.text();
            let line = text.lines().find(|line| line.contains("sign-up"));
            assert_eq!(line, expect);
            let value = serde_json::to_string(&explained).unwrap();
            let member = format!(r#""open_registrations":{json}"#);
            assert!(value.contains(&member), "{value}");
        }
    }

    /// The operator can't get the host listed by repairing it; an owner's wish comes before other
    /// people's decisions.
    #[test]
    fn a_denied_group_is_why_whatever_else_is_wrong_with_the_host() {
        let robots = State::OptedOut {
            by: OptedOutBy::Robots,
        };
        for (state, decision, expect) in [
            (State::Dead, Decision::Deny, "denies its group"),
            (State::Dead, Decision::None, "has not answered"),
            (
                State::Discovered,
                Decision::None,
                "its group `a.example` has 1 host",
            ),
            (robots, Decision::Deny, "robots.txt"),
        ] {
            let explained = known(&stored(state, decision), None);
            assert!(explained.why.contains(expect), "{}", explained.why);
        }
    }

    #[test]
    fn a_denied_host_is_asked_no_more_and_the_line_is_told() {
        let stored = stored(State::Discovered, Decision::Allow);
        let free = known(&stored, None);
        assert_eq!(free.next_check, Some(rfc3339(NOW)));
        assert!(free.why.ends_with("its check is due now"), "{}", free.why);
        let list = b"a.example # it floods";
        let list = DomainList::parse(list, std::path::Path::new("deny.txt")).unwrap();
        let denied = known(&stored, list.covers_text("a.example").as_ref());
        assert_eq!(denied.next_check, None);
        assert!(
            denied.why.contains("below it: it floods;"),
            "{}",
            denied.why
        );
    }
}
