//! Rows of the store as the console is shown them.

use ::console::wire::{
    self, DecisionId, GroupPage, GroupRow, LINES_MAX, Member, PastDecision, ROWS_MAX, WaitingName,
};
use admission::{Room, Waiter};
use census::group::Decision;
use census::state::{OptedOutBy, State};
use census::time::{Timestamp, rfc3339};
use protocol::limits::TEXT_BYTES_MAX;
use store::{About, Decided, HostDecision, LoggedDecision, Members, Stored, StoredGroup, Which};

use crate::names::groups::{decision_words, wildcards};

/// The first [`ROWS_MAX`] rows, and whether there are more.
pub(super) fn page<T>(mut rows: impl Iterator<Item = T>) -> (Vec<T>, bool) {
    let limit = usize::try_from(ROWS_MAX).unwrap_or(usize::MAX);
    let page = rows.by_ref().take(limit).collect();
    (page, rows.next().is_some())
}

/// A text's lines, bounded.
pub(super) fn lines(text: &str) -> Vec<String> {
    let lines = text.lines().take(LINES_MAX);
    lines
        .map(|line| protocol::escaped(line.as_bytes(), TEXT_BYTES_MAX))
        .collect()
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
    let wildcard = wildcards::in_words(&stored.wildcard);
    let wildcard = wildcard.trim_start_matches("; ");
    GroupRow {
        domain: stored.domain.clone(),
        hosts: stored.group.hosts,
        held_back: stored.held_back,
        decision,
        reason: stored.reason.clone(),
        wildcard: (!wildcard.is_empty()).then(|| wildcard.to_owned()),
    }
}

/// A group's page. A domain without hosts and decisions has one too: it can be decided about.
pub(super) fn group_page(
    domain: String,
    stored: Option<&StoredGroup>,
    members: Members,
    decisions: Vec<Decided>,
) -> GroupPage {
    let row = stored.map_or(
        GroupRow {
            domain,
            hosts: 0,
            held_back: 0,
            decision: None,
            reason: None,
            wildcard: None,
        },
        group,
    );
    let newest = members.newest.into_iter().map(|member| Member {
        name: member.name,
        state: member.state,
        first_seen: rfc3339(member.first_seen),
        software: member.software,
        held_back: member.held_back,
    });
    let came = members.came.into_iter().map(|(day, hosts)| {
        let day: String = rfc3339(day).chars().take(DATE_CHARACTERS).collect();
        (day, hosts)
    });
    let decisions = decisions.into_iter().map(|decided| PastDecision {
        at: rfc3339(decided.at),
        decision: decision_words(decided.decision),
        reason: decided.reason,
        who: decided.who,
    });
    GroupPage {
        row,
        newest: newest.collect(),
        states: members.states,
        software: members.software,
        came: came.collect(),
        decisions: decisions.collect(),
    }
}

/// Of a moment, `2026-11-26`.
const DATE_CHARACTERS: usize = 10;

pub(super) fn waiting((name, waiter): (String, Waiter)) -> WaitingName {
    let why = match waiter.room {
        Room::Rule => "the admission rules had no room for its domain or submitter",
        Room::Source => "its source had named too many new names that day",
        Room::SharedSuffix => "too many new names came below its shared suffix that day",
        Room::Total => "the day's total of new names was reached",
    };
    WaitingName {
        name,
        why: why.to_owned(),
        first_named: rfc3339(seconds(waiter.first_named_s)),
        last_named: rfc3339(seconds(waiter.last_named_s)),
        named_by: waiter.named_by.0.count_ones(),
    }
}

/// Whether a moderator took the host out.
pub(super) fn is_taken_out(stored: Option<&Stored>) -> bool {
    let by = OptedOutBy::Moderator;
    stored.is_some_and(|stored| stored.record.state == State::OptedOut { by })
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
