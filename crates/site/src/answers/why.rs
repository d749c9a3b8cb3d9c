//! The words of an answer, for which the pages have sentences.
//!
//! `census::why` decides why a host is listed or is not; a [`Why`] is that reason without what
//! nobody but its owner and the operator may read: it names no other host, nobody who decided, and
//! one word stands for all that is withheld.

use census::state::StateName;
pub use census::why::Found;
use census::why::Reason;

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
        /// Not listed yet, though it would be by what is known of it now: the list that stands is
        /// older.
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
        /// It was off the list before its last checks, or was last alive over 14 days ago. One word
        /// for both: among others, the first says that an owner took an opt-out back.
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

impl Why {
    /// The word for a reason; `None` for names that the pages have no entry of.
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

#[cfg(test)]
mod tests;
