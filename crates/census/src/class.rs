//! The class of a due host, so that many hosts of one kind do not delay the others.
//!
//! The class depends on the host's record and on whether its last checks gave a verdict. Every host
//! has exactly one class. The store has the same rule as SQL, in the column that begins its index
//! of due hosts; a test there compares the two.

use crate::state::{Before, Record, State};

/// A kind of due hosts with its own share of the slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// The host could lose its place on the list: Alive, or Dying or Moving and Alive before.
    Living,
    /// The host was named and never tried.
    New,
    /// The host is checked daily, could not lose a place on the list, and was tried: its first
    /// checks failed or gave no verdict.
    Retry,
    /// The host is checked weekly or less often: dead, moved or opted out by robots.txt. Parked
    /// hosts count here and are never due.
    Dead,
}

/// Whether a check of the host has ended without a verdict since its last one: it was postponed,
/// faulted or interrupted. An imported host counts as tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    /// No check ended without a verdict.
    Never,
    /// At least one check ended without a verdict.
    InVain,
}

impl Class {
    /// All classes. The first goes first if nothing else decides.
    pub const ALL: [Self; 4] = [Self::Living, Self::New, Self::Retry, Self::Dead];

    /// The class of a host.
    pub fn of(record: &Record, tried: Tried) -> Self {
        match (&record.state, tried) {
            (State::Alive, _)
            | (
                State::Dying {
                    before: Before::Alive,
                    ..
                }
                | State::Moving {
                    before: Before::Alive,
                    ..
                },
                _,
            ) => Self::Living,
            (State::Discovered, Tried::Never) => Self::New,
            (State::Discovered, Tried::InVain)
            | (State::Dying { .. } | State::Moving { .. }, _) => Self::Retry,
            (State::Dead | State::Moved { .. } | State::OptedOut { .. } | State::Parked, _) => {
                Self::Dead
            }
        }
    }

    /// Its number in the database, 0 to 3, in the order of [`Class::ALL`].
    pub fn number(self) -> i64 {
        match self {
            Self::Living => 0,
            Self::New => 1,
            Self::Retry => 2,
            Self::Dead => 3,
        }
    }

    /// Its name in lower case, as in `status`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Living => "living",
            Self::New => "new",
            Self::Retry => "retry",
            Self::Dead => "dead",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerClass<T> {
    /// Value of [`Class::Living`].
    pub living: T,
    /// Value of [`Class::New`].
    pub new: T,
    /// Value of [`Class::Retry`].
    pub retry: T,
    /// Value of [`Class::Dead`].
    pub dead: T,
}

impl<T> PerClass<T> {
    pub fn each(mut of: impl FnMut(Class) -> T) -> Self {
        Self {
            living: of(Class::Living),
            new: of(Class::New),
            retry: of(Class::Retry),
            dead: of(Class::Dead),
        }
    }

    pub fn of(&self, class: Class) -> &T {
        match class {
            Class::Living => &self.living,
            Class::New => &self.new,
            Class::Retry => &self.retry,
            Class::Dead => &self.dead,
        }
    }

    /// The value of a class, mutable.
    pub fn of_mut(&mut self, class: Class) -> &mut T {
        match class {
            Class::Living => &mut self.living,
            Class::New => &mut self.new,
            Class::Retry => &mut self.retry,
            Class::Dead => &mut self.dead,
        }
    }
}

impl PerClass<u32> {
    /// The sum over all classes.
    pub fn sum(&self) -> u32 {
        Class::ALL
            .iter()
            .fold(0, |sum: u32, class| sum.saturating_add(*self.of(*class)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use protocol::Host;

    use super::*;
    use crate::listing::is_listed;
    use crate::state::OptedOutBy;
    use crate::time::{Calendar, Jitter, Timestamp};

    const NOW: Timestamp = Timestamp(1_700_000_000_000);

    fn states() -> impl Strategy<Value = State> {
        let before = prop::sample::select(vec![
            Before::Discovered,
            Before::Alive,
            Before::Dead,
            Before::Moved,
        ]);
        let target = || Host::parse("b.example").unwrap();
        prop_oneof![
            Just(State::Discovered),
            Just(State::Alive),
            Just(State::Dead),
            (before.clone(), 1_u32..9, any::<bool>()).prop_map(|(before, count, gone)| {
                State::Dying {
                    before,
                    count,
                    gone,
                    gone_last: false,
                }
            }),
            (before, 1_u32..9).prop_map(move |(before, count)| State::Moving {
                before,
                count,
                target: target(),
            }),
            Just(State::Moved { target: target() }),
            Just(State::OptedOut {
                by: OptedOutBy::Robots
            }),
            Just(State::Parked),
        ]
    }

    prop_compose! {
        fn records()(state in states(), hidden: bool, lived: bool, doublings in 0..3_u8) -> Record {
            let host = Host::parse("a.example").unwrap();
            Record {
                state,
                hidden,
                doublings,
                last_alive: lived.then_some(NOW),
                ..Record::discovered(host, NOW, NOW)
            }
        }
    }

    fn tries() -> impl Strategy<Value = Tried> {
        prop::sample::select(vec![Tried::Never, Tried::InVain])
    }

    proptest! {
        /// Otherwise many hosts of another class could delay its checks until it drops off the
        /// list.
        #[test]
        fn whoever_is_listed_is_among_the_living_whatever_became_of_its_checks(record in records(), tried in tries()) {
            if is_listed(&record, false, NOW, Calendar::REAL) {
                prop_assert_eq!(Class::of(&record, tried), Class::Living);
            }
        }

        /// A backlog of hosts with rare checks must not delay hosts with daily checks.
        #[test]
        fn nobody_who_is_asked_weekly_shares_a_class_with_who_is_asked_daily(record in records(), tried in tries()) {
            let interval = crate::schedule::ordinary_interval(&record.state, record.doublings, crate::schedule::Which::Later, Jitter(0), Calendar::REAL);
            let is_seldom = interval.is_none_or(|interval| interval > Calendar::REAL.day(Jitter(u32::MAX)));
            prop_assert_eq!(Class::of(&record, tried) == Class::Dead, is_seldom);
        }

        /// Hosts that come back repeatedly never precede one that was not checked at all.
        #[test]
        fn a_name_is_new_until_it_is_tried_and_never_again(record in records()) {
            prop_assert_ne!(Class::of(&record, Tried::InVain), Class::New);
            let is_new = Class::of(&record, Tried::Never) == Class::New;
            prop_assert_eq!(is_new, record.state == State::Discovered);
        }
    }

    #[test]
    fn what_is_written_for_a_class_is_read_for_it() {
        let mut counts = PerClass::each(Class::number);
        for (number, class) in Class::ALL.into_iter().enumerate() {
            assert_eq!(*counts.of(class), i64::try_from(number).unwrap());
            *counts.of_mut(class) += 10;
            assert_eq!(*counts.of(class), 10 + class.number());
        }
    }
}
