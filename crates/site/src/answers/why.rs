//! The reason codes of an answer, for which the pages have sentences.
//!
//! `census::why` decides why a host is listed or not. A [`Why`] is that reason without private
//! parts: it names no other host and no decision's author, and one code covers all withheld hosts.
//! Only the owner and the operator may read those.

use census::state::StateName;
pub use census::why::Found;
use census::why::Reason;

/// Makes an enum whose values each have one code, known to the shards, the pages and the scripts.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $value:ident => $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$doc])* $value,)*
        }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$value,)*];

            /// The code in the shards.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)*
                }
            }
        }
    };
}

words! {
    /// Why a host is listed or not.
    Why {
        Lives => "lives",
        /// Listed: it was alive recently, and refused the last request.
        LivesRefusing => "lives_refusing",
        /// Listed: it was alive recently, and its last checks failed.
        Failing => "failing",
        /// Listed: it redirects to a host that is not alive itself.
        MovingToNobody => "moving_to_nobody",
        /// Still listed, but will leave the next list: the current list is older than the latest
        /// facts.
        LeavesNext => "leaves_next",
        /// Not listed yet, but will be on the next list: the current list is older than the latest
        /// facts.
        NextList => "next_list",
        /// It opted out, hides, is denied or is parked. One answer for all, so that it does not
        /// reveal whether the owner or the operator decided.
        Withheld => "withheld",
        /// Another crawler reports that it was alive; no check of ours has confirmed that yet.
        TakenOver => "taken_over",
        /// A server is there and has refused every request so far.
        RefusesSoFar => "refuses_so_far",
        NeverJudged => "never_judged",
        /// It answered 410.
        Gone => "gone",
        /// It has not answered as an instance for too long.
        Dead => "dead",
        /// It redirects permanently to another host.
        Moved => "moved",
        /// It redirects to a host that is listed instead.
        MovedToListed => "moved_to_listed",
        /// It has never been found alive.
        NeverAlive => "never_alive",
        /// It was off the list before its last checks, or was last alive over 14 days ago. One code
        /// for both: the first case alone could reveal that an owner withdrew an opt-out.
        Stale => "stale",
        /// Its group is larger than the limit for automatic admission.
        GroupHeld => "group_held",
        Waiting => "waiting",
    }
}

/// A host's state, or that it waits, or that it is withheld.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// It is in the database, in this state.
    Known(StateName),
    /// It is known by name and waits for admission.
    Waiting,
    /// The answer does not reveal its state.
    Withheld,
}

impl Place {
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

    /// The code in the shards.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Known(state) => state.as_str(),
            Self::Waiting => "waiting",
            Self::Withheld => "withheld",
        }
    }
}

impl Why {
    /// The code for a reason; `None` for names that have no entry on the pages.
    pub fn of(reason: &Reason<'_>) -> Option<Self> {
        let why = match reason {
            Reason::Alive => Self::Lives,
            Reason::AliveRefusing => Self::LivesRefusing,
            Reason::Failing { .. } => Self::Failing,
            Reason::MovingToNobody { .. } => Self::MovingToNobody,
            Reason::Denied
            | Reason::OptedOut { .. }
            | Reason::Parked
            | Reason::GroupDenied
            | Reason::Hidden => Self::Withheld,
            Reason::GroupHeld { .. } => Self::GroupHeld,
            Reason::Imported => Self::TakenOver,
            Reason::RefusesSoFar => Self::RefusesSoFar,
            Reason::NeverJudged { .. } => Self::NeverJudged,
            Reason::Gone => Self::Gone,
            Reason::Dead { .. } => Self::Dead,
            Reason::Moved { .. } => Self::Moved,
            Reason::MovedToListed { .. } => Self::MovedToListed,
            Reason::NeverAlive => Self::NeverAlive,
            Reason::NotAliveAgain { .. } | Reason::Stale { .. } => Self::Stale,
            Reason::Waiting => Self::Waiting,
            Reason::Forgotten | Reason::Unknown => return None,
        };
        Some(why)
    }

    /// Whether a host with this reason is listed.
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

#[cfg(test)]
mod tests;
