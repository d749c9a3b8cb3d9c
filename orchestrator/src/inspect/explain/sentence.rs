//! Words a reason for the operator, with the names, numbers and deciders that only the operator may
//! read.

use admission::{Listed, Waiter};
use census::state::{Before, OptedOutBy};
use census::time::{Calendar, Timestamp, rfc3339};
use census::why::Reason;
use protocol::Host;
use store::StoredGroup;

use super::{Entry, seconds};
use crate::groups;

/// What a sentence may name in addition to its reason.
#[derive(Debug, Clone, Copy)]
pub(super) struct Details<'d> {
    pub(super) host: &'d Host,
    pub(super) entry: Entry<'d>,
    pub(super) denied: Option<&'d Listed>,
    pub(super) now: Timestamp,
    pub(super) calendar: Calendar,
}

/// Why a host is listed or not, to follow "because".
pub(super) fn sentence(reason: &Reason<'_>, details: Details<'_>) -> String {
    match reason {
        Reason::Alive => "it responds".to_owned(),
        Reason::AliveRefusing => "it responds, but refused our last request".to_owned(),
        Reason::Failing { count } => failing(*count),
        Reason::MovingToNobody { target } => format!("it redirects to {target}, which does not respond itself"),
        Reason::Denied => details.denied.map(denied).unwrap_or_default(),
        Reason::OptedOut { by } => opted_out(*by).to_owned(),
        Reason::Parked => "its name is no longer valid".to_owned(),
        Reason::GroupDenied | Reason::GroupHeld { .. } => details
            .group()
            .map(|group| groups::why_not(group, details.host))
            .unwrap_or_default(),
        Reason::Imported => "another crawler found that it responded; it is listed after our own check has succeeded and found that it may be shown".to_owned(),
        Reason::Hidden => "it asks to be left out of statistics, or we could not find out whether it does".to_owned(),
        Reason::RefusesSoFar => "a server answers, but has refused our requests so far".to_owned(),
        Reason::NeverJudged { due } => never_judged(*due, details.now),
        Reason::Gone => "it answered 410 Gone".to_owned(),
        Reason::Dead { reason: None } => "it has not answered as an instance for too long".to_owned(),
        Reason::Dead { reason: Some(reason) } => format!("it has not answered as an instance for too long (last reason: {})", reason.as_str()),
        Reason::Moved { target } => format!("it redirects to {target} permanently"),
        Reason::MovedToListed { target } => format!("it redirects to {target}, which is listed instead"),
        Reason::NeverAlive => "no check of it has succeeded yet".to_owned(),
        Reason::NotAliveAgain { before } => not_alive_again(*before),
        Reason::Stale { last_alive } => stale(*last_alive, details.now, details.calendar),
        Reason::Waiting => details.waiter().map(waiting).unwrap_or_default(),
        Reason::Forgotten => "it never answered in a year and was forgotten; `fedicensus add` adds it again".to_owned(),
        Reason::Unknown => "no peers list that we read has named it yet; `fedicensus add` adds it".to_owned(),
    }
}

impl<'d> Details<'d> {
    fn group(&self) -> Option<&'d StoredGroup> {
        match self.entry {
            Entry::Known(stored) => stored.group.as_ref(),
            Entry::Waiting(_) | Entry::Forgotten | Entry::Unknown => None,
        }
    }

    fn waiter(&self) -> Option<&'d Waiter> {
        match self.entry {
            Entry::Waiting(waiter) => Some(waiter),
            Entry::Known(_) | Entry::Forgotten | Entry::Unknown => None,
        }
    }
}

fn failing(count: u32) -> String {
    let failed = match count {
        1 => "one check has failed since".to_owned(),
        _ => format!("{count} checks in a row have failed since"),
    };
    format!("it responded recently; {failed}")
}

fn denied(listed: &Listed) -> String {
    let reason = if listed.reason.is_empty() {
        String::new()
    } else {
        format!(": {}", listed.reason)
    };
    format!(
        "the operator of this census denies `{}` and all names below it{reason}; it is neither checked nor listed until that changes",
        listed.domain
    )
}

fn opted_out(by: OptedOutBy) -> &'static str {
    match by {
        OptedOutBy::Robots => {
            "its robots.txt asks us to stay away; only robots.txt is requested from now on, once a week"
        }
        OptedOutBy::Owner => {
            "its owner opted out; it is never checked again unless the owner takes that back"
        }
        OptedOutBy::Moderator => "a moderator of this census removed it",
    }
}

fn never_judged(due: Option<Timestamp>, now: Timestamp) -> String {
    match due {
        Some(due) if due > now => {
            format!(
                "it has no verdict yet; its check is due at {}",
                rfc3339(due)
            )
        }
        Some(_) => "it has no verdict yet; its check is due now".to_owned(),
        None => "it has no verdict yet".to_owned(),
    }
}

fn not_alive_again(before: Before) -> String {
    let was = match before {
        Before::Discovered => "had no verdict",
        Before::Alive => "responded",
        Before::Dead => "was unreachable",
        Before::Moved => "had moved",
    };
    format!("it {was} before its last checks, and none of these found an instance")
}

fn stale(last_alive: Timestamp, now: Timestamp, calendar: Calendar) -> String {
    let days = now.since(last_alive).as_secs() / 86_400;
    let bound = calendar.unlisted_after().as_secs() / 86_400;
    format!(
        "its last successful check was {days} days ago; hosts are listed for {bound} days after it"
    )
}

fn waiting(waiter: &Waiter) -> String {
    let named_by = match waiter.named_by.count() {
        0 => "only servers of its own domain named it".to_owned(),
        1 => "one source named it".to_owned(),
        many => format!("about {many} sources named it"),
    };
    format!(
        "it waits for room: at the last attempt, {}. {named_by}, last on {}. It is added automatically when there is room, or by `fedicensus add`",
        waiter.room,
        rfc3339(seconds(waiter.last_named_s))
            .get(..10)
            .unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failed_check_is_no_plural() {
        assert!(failing(1).ends_with("one check has failed since"));
        assert!(failing(2).ends_with("2 checks in a row have failed since"));
    }
}
