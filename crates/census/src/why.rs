//! Why a host is listed or is not: the only code that decides it.
//!
//! Takes what is known about a name, and returns one [`Reason`]. `fedicensus explain` renders it as
//! a sentence for the operator, the site as a word for everybody. Whether a host is listed at all
//! is decided by [`is_listed`] and [`Group::lists`]; a test compares the reasons with both.

use protocol::{DeadReason, Host, Wall};
use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};

use crate::group::{Decision, Group, Place};
use crate::listing::is_listed;
use crate::state::{Before, OptedOutBy, Record, State};
use crate::time::{Calendar, Timestamp};

#[derive(Debug, Clone, Copy)]
pub enum Subject<'s> {
    Known(&'s Record, Facts<'s>),
    /// A name for which there was no room.
    Waiting,
    /// A host that never answered in a year.
    Forgotten,
    /// A name that the census has never heard of.
    Unknown,
}

/// Facts outside a host's record that matter for listing.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'f> {
    /// Whether the row of its move's target is Alive.
    pub target_is_alive: bool,
    /// Its group. `None` until it is grouped.
    pub group: Option<&'f Group>,
    pub place: Place,
    /// The result of its last check.
    pub last: Option<Found>,
}

/// Whether the operator's deny-list covers a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    Yes,
    /// The deny-list does not cover it.
    No,
}

/// Why a host is listed or is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason<'r> {
    /// Listed: its last check found an instance.
    Alive,
    /// Listed: it was alive lately, and refused our last check.
    AliveRefusing,
    /// Listed: it was alive lately, and its last checks failed.
    Failing {
        count: u32,
    },
    /// Listed: it redirects to a host that is not alive itself.
    MovingToNobody {
        target: &'r Host,
    },
    /// The operator's deny-list covers it.
    Denied,
    OptedOut {
        by: OptedOutBy,
    },
    /// Its name is no longer valid.
    Parked,
    GroupDenied,
    /// Its group is over the threshold, and there is no decision about it.
    GroupHeld {
        hosts: u64,
    },
    /// Another crawler found it alive, and no check of ours has yet. Only former versions imported
    /// such hosts.
    Imported,
    /// It asks not to appear in statistics, or we could not learn whether it does.
    Hidden,
    /// A server is there, and has refused all checks so far.
    RefusesSoFar,
    NeverJudged {
        due: Option<Timestamp>,
    },
    /// It answered 410.
    Gone,
    /// It has not answered as an instance for too long.
    Dead {
        /// Why its last check failed. `None` if the check did not fail.
        reason: Option<DeadReason>,
    },
    /// It redirects permanently to another host.
    Moved {
        target: &'r Host,
    },
    /// It redirects to a host that is alive itself.
    MovedToListed {
        target: &'r Host,
    },
    /// None of its checks has found an instance.
    NeverAlive,
    /// It was off the list before its checks failed or it redirected, and has not been alive since.
    NotAliveAgain {
        before: Before,
    },
    /// It was alive too long ago (invariant I11).
    Stale {
        last_alive: Timestamp,
    },
    /// [`Subject::Waiting`]
    Waiting,
    /// [`Subject::Forgotten`]
    Forgotten,
    /// [`Subject::Unknown`]
    Unknown,
}

/// Why a name is on a list that is written at `now`, or is not.
///
/// The operator's deny-list takes precedence over everything. The owner's wishes and decisions
/// about this host take precedence over its group. The group takes precedence over everything that
/// the owner could repair, since a repaired host of a denied group still stays off.
pub fn reason<'s>(
    subject: Subject<'s>,
    denied: Denied,
    now: Timestamp,
    calendar: Calendar,
) -> Reason<'s> {
    if denied == Denied::Yes {
        return Reason::Denied;
    }
    match subject {
        Subject::Known(record, facts) => of_record(record, facts, now, calendar),
        Subject::Waiting => Reason::Waiting,
        Subject::Forgotten => Reason::Forgotten,
        Subject::Unknown => Reason::Unknown,
    }
}

impl Reason<'_> {
    /// Whether it is a reason to be listed.
    pub fn is_listed(&self) -> bool {
        match self {
            Self::Alive
            | Self::AliveRefusing
            | Self::Failing { .. }
            | Self::MovingToNobody { .. } => true,
            Self::Denied
            | Self::OptedOut { .. }
            | Self::Parked
            | Self::GroupDenied
            | Self::GroupHeld { .. }
            | Self::Imported
            | Self::Hidden
            | Self::RefusesSoFar
            | Self::NeverJudged { .. }
            | Self::Gone
            | Self::Dead { .. }
            | Self::Moved { .. }
            | Self::MovedToListed { .. }
            | Self::NeverAlive
            | Self::NotAliveAgain { .. }
            | Self::Stale { .. }
            | Self::Waiting
            | Self::Forgotten
            | Self::Unknown => false,
        }
    }

    /// Whether the host must be removed from earlier published files, not only from the next list
    /// (invariant I7).
    pub fn is_withdrawal(&self) -> bool {
        match self {
            Self::Denied
            | Self::OptedOut { .. }
            | Self::Parked
            | Self::GroupDenied
            | Self::GroupHeld { .. }
            | Self::Imported
            | Self::Hidden
            | Self::Gone => true,
            Self::Alive
            | Self::AliveRefusing
            | Self::Failing { .. }
            | Self::MovingToNobody { .. }
            | Self::RefusesSoFar
            | Self::NeverJudged { .. }
            | Self::Dead { .. }
            | Self::Moved { .. }
            | Self::MovedToListed { .. }
            | Self::NeverAlive
            | Self::NotAliveAgain { .. }
            | Self::Stale { .. }
            | Self::Waiting
            | Self::Forgotten
            | Self::Unknown => false,
        }
    }
}

fn of_record<'r>(
    record: &'r Record,
    facts: Facts<'_>,
    now: Timestamp,
    calendar: Calendar,
) -> Reason<'r> {
    let would_be_listed = is_listed(record, facts.target_is_alive, now, calendar);
    if let Some(reason) = of_group(record, facts, would_be_listed) {
        return reason;
    }
    if would_be_listed {
        return listed(record);
    }
    match &record.state {
        State::OptedOut { by } => Reason::OptedOut { by: *by },
        State::Parked => Reason::Parked,
        State::Discovered
        | State::Alive
        | State::Dying { .. }
        | State::Dead
        | State::Moving { .. }
        | State::Moved { .. }
            if record.hidden =>
        {
            if is_imported(record) {
                Reason::Imported
            } else {
                Reason::Hidden
            }
        }
        State::Discovered if record.refuses => Reason::RefusesSoFar,
        State::Discovered => Reason::NeverJudged { due: record.due },
        State::Dying { gone: true, .. } => Reason::Gone,
        State::Dead if facts.last == Some(Found::Gone) => Reason::Gone,
        State::Dead => Reason::Dead {
            reason: facts.last.and_then(Found::dead_reason),
        },
        State::Moved { target } => Reason::Moved { target },
        State::Moving { target, .. } if facts.target_is_alive => Reason::MovedToListed { target },
        State::Alive => not_alive_lately(record, Before::Alive, now, calendar),
        State::Dying { before, .. } | State::Moving { before, .. } => {
            not_alive_lately(record, *before, now, calendar)
        }
    }
}

/// The group's reason, if it takes precedence over everything known about the host.
fn of_group<'r>(record: &Record, facts: Facts<'_>, would_be_listed: bool) -> Option<Reason<'r>> {
    let group = facts.group.filter(|group| !group.lists(facts.place))?;
    match &record.state {
        State::OptedOut { .. } | State::Parked => return None,
        State::Discovered
        | State::Alive
        | State::Dying { .. }
        | State::Dead
        | State::Moving { .. }
        | State::Moved { .. } => {}
    }
    match group.decision {
        Decision::Deny => (!record.hidden || is_imported(record)).then_some(Reason::GroupDenied),
        Decision::None | Decision::Allow | Decision::Limit { .. } => {
            let is_first = would_be_listed || is_never_judged(record) || is_imported(record);
            is_first.then_some(Reason::GroupHeld { hosts: group.hosts })
        }
    }
}

fn listed(record: &Record) -> Reason<'_> {
    match &record.state {
        State::Dying { count, .. } => Reason::Failing { count: *count },
        State::Moving { target, .. } => Reason::MovingToNobody { target },
        State::Discovered
        | State::Alive
        | State::Dead
        | State::Moved { .. }
        | State::OptedOut { .. }
        | State::Parked => {
            if record.refuses {
                Reason::AliveRefusing
            } else {
                Reason::Alive
            }
        }
    }
}

/// Why a host with no other reason is not listed: it was not alive lately, or was off the list when
/// its state began.
fn not_alive_lately<'r>(
    record: &Record,
    before: Before,
    now: Timestamp,
    calendar: Calendar,
) -> Reason<'r> {
    match record.last_alive {
        None => Reason::NeverAlive,
        Some(last_alive) if last_alive < now.minus(calendar.unlisted_after()) => {
            Reason::Stale { last_alive }
        }
        Some(_) => Reason::NotAliveAgain { before },
    }
}

/// Whether it is hidden because only another crawler found it alive.
fn is_imported(record: &Record) -> bool {
    record.hidden && record.alive_count == 0
}

/// Whether everything known about it can be explained by its group.
fn is_never_judged(record: &Record) -> bool {
    matches!(record.state, State::Discovered | State::Dying { .. }) && record.last_alive.is_none()
}

/// The result of a check: a verdict without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Alive,
    /// 301 or 308 to another host.
    Moved,
    /// robots.txt asks us to stay away.
    OptedOut,
    /// The answer is 410.
    Gone,
    /// A server refuses to answer, and perhaps what does so in front of it.
    Refused(Option<Wall>),
    Dead(DeadReason),
}

impl Found {
    /// Parses a verdict from the database: its word, and its reason, of which the first word
    /// matters. `None` for words that no version of this program writes.
    pub fn parse(verdict: &str, reason: Option<&str>) -> Option<Self> {
        match verdict {
            "alive" => Some(Self::Alive),
            "moved" => Some(Self::Moved),
            "opted_out" => Some(Self::OptedOut),
            "gone" => Some(Self::Gone),
            "refused" => {
                let wall = reason.and_then(|reason| word(reason.strip_prefix("wall ")?));
                Some(Self::Refused(wall))
            }
            "dead" => word(reason?).map(Self::Dead),
            _ => None,
        }
    }

    fn dead_reason(self) -> Option<DeadReason> {
        match self {
            Self::Dead(reason) => Some(reason),
            Self::Alive | Self::Moved | Self::OptedOut | Self::Gone | Self::Refused(_) => None,
        }
    }
}

/// The first word of `text`, as the wire has it.
fn word<T: DeserializeOwned>(text: &str) -> Option<T> {
    let word = text.split([' ', ',']).next()?;
    let word: StrDeserializer<'_, Error> = word.into_deserializer();
    T::deserialize(word).ok()
}

#[cfg(test)]
mod tests;
