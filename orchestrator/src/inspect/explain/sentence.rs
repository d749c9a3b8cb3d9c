//! Words a reason for the operator, with the names, numbers and deciders that only the operator may
//! read.

use admission::{Listed, Waiter};
use census::state::{Before, OptedOutBy};
use census::time::{Calendar, Timestamp, rfc3339};
use census::why::Reason;
use protocol::Host;
use store::StoredGroup;

use super::{Entry, seconds};
use crate::names::groups;

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
        Reason::Alive => "it lives".to_owned(),
        Reason::AliveRefusing => "it lives, though it refused to talk to us the last time".to_owned(),
        Reason::Failing { count } => failing(*count),
        Reason::MovingToNobody { target } => format!("it redirects to {target}, which is not alive itself"),
        Reason::Denied => details.denied.map(denied).unwrap_or_default(),
        Reason::OptedOut { by } => opted_out(*by).to_owned(),
        Reason::Parked => "its name was valid once and no longer is".to_owned(),
        Reason::GroupDenied | Reason::GroupHeld { .. } => details
            .group()
            .map(|group| groups::why_not(group, details.host))
            .unwrap_or_default(),
        Reason::Imported => "another crawler says that it lived; it is listed once a check of ours has found that it lives and may be shown".to_owned(),
        Reason::Hidden => "it asks to be left out of statistics, or we could not learn whether it does".to_owned(),
        Reason::RefusesSoFar => "somebody is there, who has refused to talk to us so far".to_owned(),
        Reason::NeverJudged { due } => never_judged(*due, details.now),
        Reason::Gone => "it answered 410 Gone".to_owned(),
        Reason::Dead { reason: None } => "it has not answered as an instance for too long".to_owned(),
        Reason::Dead { reason: Some(reason) } => format!("it has not answered as an instance for too long (the last time: {})", reason.as_str()),
        Reason::Moved { target } => format!("it redirects to {target} for good"),
        Reason::MovedToListed { target } => format!("it redirects to {target}, which is listed instead"),
        Reason::NeverAlive => "it has not come out alive yet".to_owned(),
        Reason::NotAliveAgain { before } => not_alive_again(*before),
        Reason::Stale { last_alive } => stale(*last_alive, details.now, details.calendar),
        Reason::Waiting => details.waiter().map(waiting).unwrap_or_default(),
        Reason::Forgotten => "it never answered in a year and was given up; `fedicensus add` brings it back".to_owned(),
        Reason::Unknown => "no peers list that we read has named it yet; `fedicensus add` brings it in".to_owned(),
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
    format!("it lived a short while ago; {failed}")
}

fn denied(listed: &Listed) -> String {
    let reason = if listed.reason.is_empty() {
        String::new()
    } else {
        format!(": {}", listed.reason)
    };
    format!(
        "the operator of this census does not let `{}` and what lies below it in{reason}; it is neither asked nor listed while that is so",
        listed.domain
    )
}

fn opted_out(by: OptedOutBy) -> &'static str {
    match by {
        OptedOutBy::Robots => {
            "its robots.txt asks us to stay away; we ask weekly for robots.txt alone whether it still does"
        }
        OptedOutBy::Owner => {
            "its owner asked to be left alone; it is never asked again unless the owner takes that back"
        }
        OptedOutBy::Moderator => "a moderator of this census removed it",
    }
}

fn never_judged(due: Option<Timestamp>, now: Timestamp) -> String {
    match due {
        Some(due) if due > now => {
            format!("it was never judged yet; it is asked at {}", rfc3339(due))
        }
        Some(_) => "it was never judged yet; it is due".to_owned(),
        None => "it was never judged yet".to_owned(),
    }
}

fn not_alive_again(before: Before) -> String {
    let was = match before {
        Before::Discovered => "was never judged",
        Before::Alive => "was alive",
        Before::Dead => "was dead",
        Before::Moved => "had moved",
    };
    format!("it {was} before its last checks, and none of them found an instance")
}

fn stale(last_alive: Timestamp, now: Timestamp, calendar: Calendar) -> String {
    let days = now.since(last_alive).as_secs() / 86_400;
    let bound = calendar.unlisted_after().as_secs() / 86_400;
    format!("it last came out alive {days} days ago; nothing is listed after {bound}")
}

fn waiting(waiter: &Waiter) -> String {
    let named_by = match waiter.named_by.count() {
        0 => "nobody but its own neighbours names it".to_owned(),
        1 => "one source named it".to_owned(),
        many => format!("about {many} sources named it"),
    };
    format!(
        "it waits for room: when it was tried last, {}. {named_by}, the last time on {}. It comes in by itself, or with `fedicensus add`",
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
