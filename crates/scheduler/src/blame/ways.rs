//! The ways out of the census, one or two: what fails by each, whether it works, and which one a
//! check takes.
//!
//! Who answers from anywhere is up, so with two ways a failure counts only after the host has
//! failed by both ([`Doubts`]). Checks take the ways in turn, because each needs witnesses of its
//! own. While one way is ill, nothing that fails by it counts, and checks take the other one.

use std::hash::RandomState;
use std::time::Duration;

use census::time::Timestamp;
use protocol::Host;
use protocol::egress::Way;

use crate::blame::blackout::{Blackout, NoSuccess, Scope};
use crate::blame::doubt::Doubts;

/// While no check succeeds by one way, one check after these times shows whether it works again:
/// after a tenth of the time that it has been ill. Each is a visit more.
const TRY_AFTER_MIN: Duration = Duration::from_secs(10);
const TRY_AFTER_MAX: Duration = Duration::from_mins(5);

/// Trouble that a check met lasts at least this long: a gateway that can't open may still report
/// that it works, and each check that takes its way is late by seconds.
pub(crate) const MET_TROUBLE_FOR: Duration = Duration::from_secs(60);

/// A way out, as `status` and the metrics show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WayState {
    pub way: Way,
    /// What does not work, and since when.
    pub ill: Option<(String, Timestamp)>,
}

#[derive(Debug)]
pub(crate) struct Ways<T> {
    first: Side<T>,
    second: Option<Side<T>>,
    /// The way of the last check that could take either.
    turn: Way,
}

/// One way out.
#[derive(Debug)]
pub(crate) struct Side<T> {
    pub(crate) doubts: Doubts<T>,
    pub(crate) blackout: Blackout,
    pub(crate) trouble: Option<Trouble>,
    /// Since when it is ill, if that was reported.
    pub(crate) reported: Option<Timestamp>,
    /// When a check last took it while no check succeeded by it.
    pub(crate) tried: Timestamp,
}

/// Its gateway does not answer, or says what does not work.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) what: String,
    pub(crate) since: Timestamp,
    pub(crate) until: Timestamp,
}

impl<T> Side<T> {
    fn new(now: Timestamp, key: RandomState) -> Self {
        Self {
            doubts: Doubts::new(now, key),
            blackout: Blackout::default(),
            trouble: None,
            reported: None,
            tried: now,
        }
    }

    pub(crate) fn is_ill(&self) -> bool {
        !self.works()
    }

    fn works(&self) -> bool {
        self.trouble.is_none() && !self.blackout.is_total()
    }

    fn ill(&self) -> Option<(String, Timestamp)> {
        let trouble = self.trouble.as_ref();
        let trouble = trouble.map(|trouble| (trouble.what.clone(), trouble.since));
        trouble.or_else(|| {
            let total = self
                .blackout
                .describe()
                .filter(|_| self.blackout.is_total());
            total.map(|no_success| (no_success.to_string(), Timestamp(no_success.since_ms)))
        })
    }

    fn is_tried(&mut self, now: Timestamp) -> bool {
        let ill = self
            .blackout
            .since()
            .map_or(Duration::ZERO, |at| now.since(at));
        let after = (ill / 10).clamp(TRY_AFTER_MIN, TRY_AFTER_MAX);
        let is_tried = self.trouble.is_none() && now.since(self.tried) >= after;
        if is_tried {
            self.tried = now;
        }
        is_tried
    }
}

impl<T> Ways<T> {
    pub(crate) fn new(has_second: bool, now: Timestamp, key: RandomState) -> Self {
        Self {
            second: has_second.then(|| Side::new(now, key.clone())),
            first: Side::new(now, key),
            turn: Way::Second,
        }
    }

    pub(crate) fn are_two(&self) -> bool {
        self.second.is_some()
    }

    pub(crate) fn side(&mut self, way: Way) -> &mut Side<T> {
        match (way, &mut self.second) {
            (Way::Second, Some(second)) => second,
            (Way::First | Way::Second, _) => &mut self.first,
        }
    }

    /// A way, and the other one if there is one that works.
    pub(crate) fn pair(&mut self, way: Way) -> (&mut Side<T>, Option<&mut Side<T>>) {
        let Some(second) = &mut self.second else {
            return (&mut self.first, None);
        };
        let (own, other) = match way {
            Way::First => (&mut self.first, second),
            Way::Second => (second, &mut self.first),
        };
        let works = other.works();
        (own, works.then_some(other))
    }

    pub(crate) fn clock_was_set(&mut self, now: Timestamp) {
        for side in std::iter::once(&mut self.first).chain(&mut self.second) {
            side.doubts.clock_was_set(now);
            side.tried = now;
            if let Some(trouble) = &mut side.trouble {
                trouble.until = now;
            }
        }
    }

    fn sides(&self) -> impl Iterator<Item = (Way, &Side<T>)> {
        let second = self.second.as_ref();
        std::iter::once((Way::First, &self.first)).chain(second.map(|side| (Way::Second, side)))
    }

    pub(crate) fn all(&self) -> &'static [Way] {
        if self.are_two() {
            &Way::ALL
        } else {
            &[Way::First]
        }
    }

    /// The way that the next check of this host takes.
    pub(crate) fn next(&mut self, host: &Host, now: Timestamp) -> Way {
        let Some(second) = &mut self.second else {
            return Way::First;
        };
        let first = &mut self.first;
        match (first.works(), second.works()) {
            (true, false) => return either(second.is_tried(now), Way::Second),
            (false, true) => return either(first.is_tried(now), Way::First),
            (true, true) | (false, false) => {}
        }
        let doubts = [&first.doubts, &second.doubts];
        let [blind, suspect] = [Doubts::is_blind, Doubts::is_suspect]
            .map(|is_so| doubts.map(|doubts| is_so(doubts, host)));
        let [not_first, not_second] = if blind[0] == blind[1] { suspect } else { blind };
        match (not_first, not_second) {
            (true, false) => Way::Second,
            (false, true) => Way::First,
            (true, true) | (false, false) => {
                self.turn = self.turn.other();
                self.turn
            }
        }
    }

    /// Whether this host failed by one of the ways: its name is then looked up afresh.
    pub(crate) fn suspect(&self, host: &Host) -> bool {
        self.sides().any(|(_, side)| side.doubts.is_suspect(host))
    }

    pub(crate) fn waiting(&self) -> usize {
        self.sides().map(|(_, side)| side.doubts.waiting()).sum()
    }

    pub(crate) fn is_any_ill(&self) -> bool {
        self.are_two() && self.sides().any(|(_, side)| !side.works())
    }

    /// The blackout that no way out escapes.
    pub(crate) fn blackout(&self) -> Option<NoSuccess> {
        let others = self.are_two();
        self.sides().find_map(|(way, side)| {
            let escaped = others && self.works(way.other());
            let blackout = side.blackout.describe();
            blackout.filter(|blackout| blackout.scope != Scope::Anywhere || !escaped)
        })
    }

    fn works(&self, way: Way) -> bool {
        self.sides()
            .any(|(other, side)| other == way && side.works())
    }

    /// The state of both; empty if there is only one.
    pub(crate) fn states(&self) -> Vec<WayState> {
        let states = self.sides().map(|(way, side)| WayState {
            way,
            ill: side.ill(),
        });
        states.filter(|_| self.are_two()).collect()
    }

    /// What does not work, if all gateways have trouble.
    pub(crate) fn trouble_of_all(&self) -> Option<String> {
        let mut troubles = self.sides().map(|(_, side)| side.trouble.as_ref());
        let first = troubles.next().flatten()?;
        let all = troubles.all(|trouble| trouble.is_some());
        all.then(|| first.what.clone())
    }
}

/// The ill way if it is tried now, else the other one.
fn either(is_tried: bool, ill: Way) -> Way {
    if is_tried { ill } else { ill.other() }
}
