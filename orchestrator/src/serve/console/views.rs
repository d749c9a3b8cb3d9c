//! Converts the store's rows for the console.

use ::console::wire::{
    self, DecisionId, GroupPage, GroupRow, HostPage, LINES_MAX, Labelled, Member, PastDecision,
    ROWS_MAX, WaitingName,
};
use admission::Waiter;
use census::group::Decision;
use census::state::{OptedOutBy, State};
use census::time::{Timestamp, rfc3339};
use store::{About, Decided, HostDecision, LoggedDecision, Members, Stored, StoredGroup, Which};

use crate::admit::gate::why_it_waits;
use crate::groups::decision_words;
use crate::groups::facts::facts;
use crate::inspect::explain::Explanation;
use crate::inspect::state_word;

/// The first [`ROWS_MAX`] rows, and whether there are more.
pub(super) fn page<T>(mut rows: impl Iterator<Item = T>) -> (Vec<T>, bool) {
    let limit = usize::try_from(ROWS_MAX).unwrap_or(usize::MAX);
    let page = rows.by_ref().take(limit).collect();
    (page, rows.next().is_some())
}

/// Most characters of a line: a reason, and the text of `explain` around it.
const LINE_CHARACTERS_MAX: usize = 1000;

/// A text's lines, limited in number and length.
pub(super) fn lines(text: &str) -> Vec<String> {
    text.lines().take(LINES_MAX).map(line).collect()
}

/// A line without control characters, limited in length. Text from outside is escaped already.
pub(super) fn line(text: &str) -> String {
    let characters = text.chars().filter(|character| !character.is_control());
    characters.take(LINE_CHARACTERS_MAX).collect()
}

pub(super) fn which(which: wire::Which) -> Which {
    match which {
        wire::Which::Held => Which::Held,
        wire::Which::Decided => Which::Decided,
    }
}

pub(super) fn group(stored: &StoredGroup) -> GroupRow {
    let decision = stored.decided_at.map(|at| {
        let words = decision_words(stored.group.decision);
        format!("{words} since {}", rfc3339(at))
    });
    GroupRow {
        domain: stored.domain.clone(),
        hosts: stored.group.hosts,
        held_back: stored.held_back,
        decision,
        reason: stored.reason.clone(),
    }
}

fn labelled(pairs: Vec<(&'static str, String)>) -> Vec<Labelled> {
    let pairs = pairs.into_iter();
    let pairs = pairs.map(|(label, text)| (label.to_owned(), line(&text)));
    pairs.collect()
}

/// A group's page. A domain without hosts and decisions has one too, so that it can be decided
/// about.
pub(super) fn group_page(
    domain: String,
    stored: Option<StoredGroup>,
    members: Members,
    decisions: Vec<Decided>,
    now: Timestamp,
) -> GroupPage {
    let stored = stored.unwrap_or(StoredGroup {
        domain,
        ..StoredGroup::default()
    });
    let facts = facts(&stored, &members, now);
    let newest = members.newest.into_iter().map(|member| Member {
        name: member.name,
        state: state_word(&member.state).to_owned(),
        first_seen: rfc3339(member.first_seen),
        software: member.software,
        held_back: member.held_back,
    });
    let decisions = decisions.into_iter().map(|decided| PastDecision {
        at: rfc3339(decided.at),
        decision: decision_words(decided.decision),
        reason: decided.reason,
        who: decided.who,
    });
    GroupPage {
        row: group(&stored),
        facts,
        newest: newest.collect(),
        software: members.software,
        decisions: decisions.collect(),
    }
}

pub(super) fn waiting((name, waiter): (String, Waiter)) -> WaitingName {
    WaitingName {
        name,
        why: why_it_waits(waiter.room).to_owned(),
        first_named: rfc3339(seconds(waiter.first_named_s)),
        last_named: rfc3339(seconds(waiter.last_named_s)),
        named_by: waiter.named_by.0.count_ones(),
    }
}

/// The site's answer for a host, and what moderators may read in addition.
pub(super) fn host_page(explanation: &Explanation, stored: Option<&Stored>) -> HostPage {
    let by = OptedOutBy::Moderator;
    let verdict = match (explanation.listed, explanation.state.as_str()) {
        (true, "dying") => "Listed, and failing",
        (true, "moving") => "Listed, and moving",
        (true, _) => "Listed",
        (false, _) => "Not listed",
    };
    let why = ("why", explanation.why.clone());
    let facts = std::iter::once(why).chain(explanation.facts());
    let past = explanation.history.iter();
    // Owners write to the moderators, who read this page.
    let advice = Some(explanation.site.advice).filter(|advice| !advice.contains("contact below"));
    HostPage {
        host: explanation.host.to_string(),
        group: stored
            .and_then(|stored| stored.group.as_ref())
            .map(|group| group.domain.clone()),
        is_listed: explanation.listed,
        verdict: verdict.to_owned(),
        says: explanation.site.says.to_owned(),
        advice: advice.unwrap_or_default().to_owned(),
        facts: labelled(facts.collect()),
        past: past
            .map(|past| (past.at.clone(), line(&past.in_words())))
            .collect(),
        is_taken_out: stored.is_some_and(|stored| stored.record.state == State::OptedOut { by }),
    }
}

pub(super) fn decision(logged: LoggedDecision) -> wire::Decision {
    let (id, subject, decision) = match logged.about {
        About::Group { domain, decision } => {
            let words = match decision {
                Decision::None => "no decision any more".to_owned(),
                Decision::Allow | Decision::Deny | Decision::Limit { .. } => {
                    decision_words(decision)
                }
            };
            (DecisionId::Group(logged.id), domain, words)
        }
        About::Host { name, decision } => {
            let words = match decision {
                HostDecision::TakeOut => "taken out",
                HostDecision::PutBack => "put back",
            };
            (DecisionId::Host(logged.id), name, words.to_owned())
        }
    };
    wire::Decision {
        id,
        subject,
        at: rfc3339(logged.at),
        decision,
        reason: logged.reason,
        who: logged.who,
        can_be_undone: logged.is_newest,
    }
}

fn seconds(seconds: u64) -> Timestamp {
    let ms = i64::try_from(seconds).unwrap_or(i64::MAX);
    Timestamp(ms.saturating_mul(1000))
}
