//! Why a host is listed or is not, as one of a few words that the pages have sentences for.
//!
//! Makes a [`Why`] of a host's record and of what others say of it: its group, the operator, its
//! target. The order is that of `fedicensus explain`, which shows the operator more. Anybody may
//! read a `Why`, so it names no other host and nobody who decided.

use census::listing::is_listed;
use census::state::{Record, State, StateName};
use census::time::{Calendar, Timestamp};
pub use census::why::Found;

/// Makes an enum whose values each have one word, known to the shards, the pages and the scripts.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $value:ident => $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$doc])* $value,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$value,)*];

            /// Its word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)*
                }
            }
        }
    };
}

words! {
    /// Why a host is listed or is not.
    Why {
        /// Listed: it lives.
        Lives => "lives",
        /// Listed: it lived lately, and refused to talk to us the last time.
        LivesRefusing => "lives_refusing",
        /// Listed: it lived lately, and its last checks failed.
        Failing => "failing",
        /// Listed: it redirects to a host that does not live itself.
        MovingToNobody => "moving_to_nobody",
        /// Listed still, and not by what is known of it now: the list that stands is older.
        LeavesNext => "leaves_next",
        /// Not listed yet, though it would be by what is known of it now: the list that stands is older.
        NextList => "next_list",
        /// It opted out, hides, is denied or is parked. One answer for all, so that it does not
        /// tell who asked to be left out from whom the operator keeps out.
        Withheld => "withheld",
        /// Another crawler says that it lived, and no check of ours does yet.
        TakenOver => "taken_over",
        /// Somebody is there and has refused to talk to us so far.
        RefusesSoFar => "refuses_so_far",
        /// It was never judged.
        NeverJudged => "never_judged",
        /// It answered 410.
        Gone => "gone",
        /// It has not answered as an instance for too long.
        Dead => "dead",
        /// It redirects to another host for good.
        Moved => "moved",
        /// It redirects to a host that is listed instead.
        MovedToListed => "moved_to_listed",
        /// It has not come out alive yet.
        NeverAlive => "never_alive",
        /// It last came out alive over 14 days ago.
        Stale => "stale",
        /// Its group is larger than what is taken without a look.
        GroupHeld => "group_held",
        /// It had no room yet.
        Waiting => "waiting",
    }
}

/// A host's state, the step before all states, or no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The census has a row of it.
    Known(StateName),
    /// It was named, and had no room.
    Waiting,
    /// It is not told.
    Withheld,
}

impl Place {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Known(StateName::Discovered),
        Self::Known(StateName::Alive),
        Self::Known(StateName::Dying),
        Self::Known(StateName::Dead),
        Self::Known(StateName::Moving),
        Self::Known(StateName::Moved),
        Self::Waiting,
        Self::Withheld,
    ];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Known(state) => state.as_str(),
            Self::Waiting => "waiting",
            Self::Withheld => "withheld",
        }
    }
}

/// What the group of a host says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupSays {
    /// Nothing against listing it (`census::group::Group::lists`).
    Lists,
    /// The operator denied the group.
    Denies,
    /// The group is held, and this host has no place of its own in it.
    Holds,
}

/// Whether the operator's deny-list covers a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// It does.
    Yes,
    /// It does not.
    No,
}

/// What stands outside a host's record and counts for whether it is listed.
#[derive(Debug, Clone, Copy)]
pub struct Others {
    /// Whether the row of its move's target is Alive.
    pub target_is_alive: bool,
    /// What its group says.
    pub group: GroupSays,
    /// What the operator says.
    pub denied: Denied,
}

impl Why {
    /// Why a host with this record is listed at `now`, or is not.
    pub fn of(record: &Record, others: Others, now: Timestamp, calendar: Calendar) -> Self {
        if others.denied == Denied::Yes {
            return Self::Withheld;
        }
        let would_be_listed = is_listed(record, others.target_is_alive, now, calendar);
        if others.group.decides(record, would_be_listed) {
            match others.group {
                GroupSays::Lists => {}
                GroupSays::Denies => return Self::Withheld,
                GroupSays::Holds => return Self::GroupHeld,
            }
        }
        if would_be_listed {
            return Self::listed(record);
        }
        match &record.state {
            State::OptedOut { .. } | State::Parked => Self::Withheld,
            State::Discovered
            | State::Alive
            | State::Dying { .. }
            | State::Dead
            | State::Moving { .. }
            | State::Moved { .. }
                if record.hidden =>
            {
                if is_taken_over(record) {
                    Self::TakenOver
                } else {
                    Self::Withheld
                }
            }
            State::Discovered if record.refuses => Self::RefusesSoFar,
            State::Discovered => Self::NeverJudged,
            State::Dying { gone: true, .. } => Self::Gone,
            State::Dead => Self::Dead,
            State::Moved { .. } => Self::Moved,
            State::Moving { .. } if others.target_is_alive => Self::MovedToListed,
            State::Alive | State::Dying { .. } | State::Moving { .. } => {
                if record.last_alive.is_none() {
                    Self::NeverAlive
                } else {
                    Self::Stale
                }
            }
        }
    }

    fn listed(record: &Record) -> Self {
        match &record.state {
            State::Dying { .. } => Self::Failing,
            State::Moving { .. } => Self::MovingToNobody,
            State::Discovered
            | State::Alive
            | State::Dead
            | State::Moved { .. }
            | State::OptedOut { .. }
            | State::Parked => {
                if record.refuses {
                    Self::LivesRefusing
                } else {
                    Self::Lives
                }
            }
        }
    }

    /// Whether it is a reason to be listed.
    pub fn is_listed(self) -> bool {
        match self {
            Self::Lives
            | Self::LivesRefusing
            | Self::Failing
            | Self::MovingToNobody
            | Self::LeavesNext => true,
            Self::NextList
            | Self::Withheld
            | Self::TakenOver
            | Self::RefusesSoFar
            | Self::NeverJudged
            | Self::Gone
            | Self::Dead
            | Self::Moved
            | Self::MovedToListed
            | Self::NeverAlive
            | Self::Stale
            | Self::GroupHeld
            | Self::Waiting => false,
        }
    }
}

impl GroupSays {
    /// Whether this, before all that is known of the host itself, is why it is not listed.
    pub fn decides(self, record: &Record, would_be_listed: bool) -> bool {
        // Whatever else is mended, it stays off; but no wish of an owner, and no decision about this
        // one host, is hidden behind its group's.
        if matches!(record.state, State::OptedOut { .. } | State::Parked) {
            return false;
        }
        match self {
            Self::Lists => false,
            Self::Holds => would_be_listed || is_waiting(record) || is_taken_over(record),
            Self::Denies => !record.hidden || is_taken_over(record),
        }
    }
}

/// Whether it is hidden because another crawler's word alone says that it lived (`census::adopted`).
pub fn is_taken_over(record: &Record) -> bool {
    record.hidden && record.alive_count == 0
}

/// Whether nothing is known of it that its group would not explain.
fn is_waiting(record: &Record) -> bool {
    matches!(record.state, State::Discovered | State::Dying { .. }) && record.last_alive.is_none()
}

#[cfg(test)]
mod tests;
