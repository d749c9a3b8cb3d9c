//! Invariants, checked at every step: the first that is broken ends the run.
//!
//! In: what the census did. Out: nothing, or what it did that it must never do. Refused: nothing. It keeps books of its own, beside those of the store, and
//! believes none of its words.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use census::state::{OptedOutBy, State};
use census::time::{Calendar, Jitter, Timestamp};
use protocol::Host;
use store::{Stored, Taken};
use thiserror::Error;

/// Hosts of one registered domain that may be listed while nobody has decided about it: the daemon's ordinary threshold.
pub const GROUP_THRESHOLD: u32 = 10;

/// What must never happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Rule {
    /// Two checks of one host are under way.
    #[error("is in flight already")]
    TwoInFlight,
    /// A host is checked whose next time has not moved on, so that a crash would make it loop.
    #[error("is checked before its next time has moved on")]
    NotMovedOn,
    /// Somebody who opted out by word of mouth is asked.
    #[error("is asked although its owner opted it out")]
    AskedDespiteWord,
    /// Somebody whose robots.txt asks us to stay away is asked within a week of that.
    #[error("is asked within a week of its robots.txt's refusal")]
    AskedTooSoon,
    /// Somebody is listed who has not lived for longer than the list allows.
    #[error("is listed although it has not lived for 14 days")]
    ListedTooLong,
    /// More of a group are listed than may be without a decision.
    #[error("is listed although its group is held")]
    ListedThoughHeld,
    /// A host is no longer there, and was not forgotten by the rules.
    #[error("was lost")]
    Lost,
    /// More was picked than there was room for.
    #[error("were picked, which is more than there was room for")]
    PickedTooMany,
    /// The engine started more than it can.
    #[error("containers were started, which is more than the engine can")]
    StartedTooMany,
}

/// An invariant that was broken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("step {step}, {hours} h after the start: {subject} {rule}")]
pub struct Broken {
    /// Which one.
    pub rule: Rule,
    /// By whom.
    pub subject: String,
    /// The step of the run.
    pub step: u64,
    /// Hours of the run.
    pub hours: u64,
}

/// The books.
#[derive(Debug)]
pub(crate) struct Guard {
    start: Timestamp,
    now: Timestamp,
    step: u64,
    in_flight: HashSet<Host>,
    words: HashSet<Host>,
    /// When robots.txt last refused.
    refused: HashMap<Host, Timestamp>,
    known: u64,
}

impl Guard {
    /// Nothing has happened yet.
    pub(crate) fn new(start: Timestamp) -> Self {
        Self {
            start,
            now: start,
            step: 0,
            in_flight: HashSet::new(),
            words: HashSet::new(),
            refused: HashMap::new(),
            known: 0,
        }
    }

    /// Another step begins.
    pub(crate) fn step(&mut self, now: Timestamp) {
        self.now = now;
        self.step += 1;
    }

    /// Steps so far.
    pub(crate) fn steps(&self) -> u64 {
        self.step
    }

    /// So many were picked, of so many for whom there was room.
    ///
    /// # Errors
    /// [`Rule::PickedTooMany`].
    pub(crate) fn picked(&self, count: usize, room: u32) -> Result<(), Broken> {
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        self.hold(count <= room, Rule::PickedTooMany, || count.to_string())
    }

    /// A host was taken, and is in flight from now on.
    ///
    /// # Errors
    /// A rule about whom to ask, and when.
    pub(crate) fn taken(&mut self, taken: &Taken) -> Result<(), Broken> {
        let host = &taken.record.host;
        let name = || host.to_string();
        let is_new = self.in_flight.insert(host.clone());
        self.hold(is_new, Rule::TwoInFlight, name)?;
        self.hold(!self.words.contains(host), Rule::AskedDespiteWord, name)?;
        let moved_on = taken.record.due.is_some_and(|due| due > self.now);
        self.hold(moved_on, Rule::NotMovedOn, name)?;
        let week = Calendar::REAL.week(Jitter(0));
        let refused = self.refused.get(host);
        let is_early = refused.is_some_and(|at| self.now.since(*at) < week);
        self.hold(!is_early, Rule::AskedTooSoon, name)
    }

    /// What the row of a host says that was just taken.
    ///
    /// # Errors
    /// [`Rule::NotMovedOn`]; [`Rule::Lost`] when there is none.
    pub(crate) fn row(&self, host: &Host, row: Option<&Stored>) -> Result<(), Broken> {
        let name = || host.to_string();
        self.hold(row.is_some(), Rule::Lost, name)?;
        let is_marked = row.is_some_and(|row| row.in_flight && row.record.due > Some(self.now));
        self.hold(is_marked, Rule::NotMovedOn, name)
    }

    /// A host is no longer in flight.
    pub(crate) fn ended(&mut self, host: &Host) {
        self.in_flight.remove(host);
    }

    /// A host was opted out by word of mouth, and the store says that it knows.
    pub(crate) fn word(&mut self, host: Host) {
        self.words.insert(host);
    }

    /// A verdict was settled; the host is in this state now.
    pub(crate) fn settled(&mut self, host: &Host, state: &State, is_refusal: bool) {
        let by_robots = State::OptedOut {
            by: OptedOutBy::Robots,
        };
        if *state != by_robots {
            self.refused.remove(host);
        } else if is_refusal {
            self.refused.insert(host.clone(), self.now);
        }
    }

    /// A host is listed that last lived then, by its row and by our own book.
    ///
    /// # Errors
    /// [`Rule::ListedTooLong`].
    pub(crate) fn listed(
        &self,
        host: &str,
        by_row: Timestamp,
        by_book: Option<Timestamp>,
    ) -> Result<(), Broken> {
        let since = self.now.minus(Calendar::REAL.unlisted_after());
        let lived = by_row >= since && by_book.is_none_or(|at| at >= since);
        self.hold(lived, Rule::ListedTooLong, || host.to_owned())
    }

    /// So many of a group are listed that nobody has decided about.
    ///
    /// # Errors
    /// [`Rule::ListedThoughHeld`].
    pub(crate) fn group(&self, domain: &str, listed: u32) -> Result<(), Broken> {
        self.hold(listed <= GROUP_THRESHOLD, Rule::ListedThoughHeld, || {
            format!("one of {listed} below {domain}")
        })
    }

    /// So many hosts have rows, so many were forgotten by the rules since the start, and so many have come in by our own book. Rows may be more: nobody
    /// keeps a book of invented names.
    ///
    /// # Errors
    /// [`Rule::Lost`].
    pub(crate) fn known(&mut self, rows: u64, forgotten: u64, by_book: u64) -> Result<(), Broken> {
        let least = self.known.max(by_book);
        self.hold(rows + forgotten >= least, Rule::Lost, || {
            format!(
                "one of {least} hosts, {forgotten} of whom were forgotten and {rows} have rows,"
            )
        })?;
        self.known = rows + forgotten;
        Ok(())
    }

    /// A host that was known is still there, or was forgotten.
    ///
    /// # Errors
    /// [`Rule::Lost`].
    pub(crate) fn is_there(&self, host: &Host, is_there: bool) -> Result<(), Broken> {
        self.hold(is_there, Rule::Lost, || host.to_string())
    }

    /// So many containers were started since the start, by an engine of this capacity a second and with so many that it starts at once.
    ///
    /// # Errors
    /// [`Rule::StartedTooMany`].
    pub(crate) fn started(
        &self,
        containers: u64,
        capacity: f64,
        at_once: f64,
    ) -> Result<(), Broken> {
        let most = self.elapsed().as_secs_f64() * capacity + at_once;
        // A thousandth for what sums of fractions lose.
        let is_less = containers as f64 <= most * 1.001 + 0.001;
        self.hold(is_less, Rule::StartedTooMany, || containers.to_string())
    }

    fn elapsed(&self) -> Duration {
        self.now.since(self.start)
    }

    fn hold(
        &self,
        holds: bool,
        rule: Rule,
        subject: impl FnOnce() -> String,
    ) -> Result<(), Broken> {
        if holds {
            return Ok(());
        }
        Err(Broken {
            rule,
            subject: subject(),
            step: self.step,
            hours: self.elapsed().as_secs() / 3600,
        })
    }
}

#[cfg(test)]
mod tests {
    use census::state::Record;

    use census::class::Class;

    use super::*;

    const START: Timestamp = Timestamp(1_800_000_000_000);
    const HOUR: Duration = Duration::from_secs(3600);

    fn host(name: &str) -> Host {
        Host::parse(name).unwrap()
    }

    fn taken(name: &str, due: Timestamp) -> Taken {
        Taken {
            record: Record::discovered(host(name), START, due),
            interruptions: 0,
            faults: 0,
            class: Class::New,
        }
    }

    /// A guard at its first step.
    fn guard() -> Guard {
        let mut guard = Guard::new(START);
        guard.step(START);
        guard
    }

    fn rule<T: std::fmt::Debug>(outcome: Result<T, Broken>) -> Rule {
        outcome.unwrap_err().rule
    }

    #[test]
    fn a_host_in_flight_is_not_taken_again_before_it_ended() {
        let mut guard = guard();
        let taken = taken("a.example", START.plus(HOUR));
        guard.taken(&taken).unwrap();
        assert_eq!(rule(guard.taken(&taken)), Rule::TwoInFlight);
        guard.ended(&taken.record.host);
        guard.taken(&taken).unwrap();
    }

    #[test]
    fn a_next_time_has_to_lie_ahead() {
        let mut guard = guard();
        assert_eq!(
            rule(guard.taken(&taken("a.example", START))),
            Rule::NotMovedOn
        );
        assert_eq!(rule(guard.row(&host("b.example"), None)), Rule::Lost);
    }

    #[test]
    fn whoever_opted_out_by_word_of_mouth_is_never_taken() {
        let mut guard = guard();
        guard.word(host("a.example"));
        guard.step(START.plus(HOUR * 9999));
        let late = taken("a.example", START.plus(HOUR * 10_000));
        assert_eq!(rule(guard.taken(&late)), Rule::AskedDespiteWord);
    }

    #[test]
    fn whoever_refuses_by_robots_is_left_alone_for_a_week() {
        let mut guard = guard();
        let state = State::OptedOut {
            by: OptedOutBy::Robots,
        };
        guard.settled(&host("a.example"), &state, true);
        guard.step(START.plus(HOUR * 155));
        let early = taken("a.example", START.plus(HOUR * 999));
        assert_eq!(rule(guard.taken(&early)), Rule::AskedTooSoon);
        guard.ended(&early.record.host);
        guard.step(START.plus(HOUR * 156));
        guard.taken(&early).unwrap();
        guard.ended(&early.record.host);
        // It is silent, which is no refusal: its own next check may follow at once.
        guard.settled(&early.record.host, &state, false);
        guard.taken(&early).unwrap();
    }

    #[test]
    fn nobody_is_listed_for_longer_than_14_days_by_either_book() {
        let guard = guard();
        let (lately, long_ago) = (START.minus(HOUR * 335), START.minus(HOUR * 337));
        guard.listed("a.example", lately, Some(lately)).unwrap();
        guard.listed("a.example", lately, None).unwrap();
        for (row, book) in [(long_ago, lately), (lately, long_ago)] {
            let listed = guard.listed("a.example", row, Some(book));
            assert_eq!(rule(listed), Rule::ListedTooLong);
        }
    }

    #[test]
    fn no_more_of_a_group_are_listed_than_its_threshold() {
        let guard = guard();
        guard.group("farm.example", GROUP_THRESHOLD).unwrap();
        let over = guard.group("farm.example", GROUP_THRESHOLD + 1);
        assert_eq!(rule(over), Rule::ListedThoughHeld);
    }

    #[test]
    fn hosts_go_only_by_being_forgotten() {
        let mut guard = guard();
        guard.known(10, 0, 10).unwrap();
        guard.known(8, 2, 10).unwrap();
        guard.known(9, 2, 10).unwrap();
        assert_eq!(rule(guard.known(8, 2, 10)), Rule::Lost);
        assert_eq!(
            rule(guard.known(9, 2, 12)),
            Rule::Lost,
            "a newcomer hides no loss"
        );
        assert_eq!(rule(guard.is_there(&host("a.example"), false)), Rule::Lost);
    }

    #[test]
    fn no_more_is_picked_or_started_than_there_is_room_for() {
        let mut guard = guard();
        guard.picked(3, 3).unwrap();
        assert_eq!(rule(guard.picked(4, 3)), Rule::PickedTooMany);
        guard.step(START.plus(HOUR));
        guard.started(37, 0.01, 1.0).unwrap();
        assert_eq!(rule(guard.started(38, 0.01, 1.0)), Rule::StartedTooMany);
    }

    #[test]
    fn what_was_broken_says_by_whom_and_when() {
        let mut guard = guard();
        guard.step(START.plus(HOUR * 30));
        let broken = guard.picked(4, 3).unwrap_err();
        assert_eq!(
            broken.to_string(),
            "step 2, 30 h after the start: 4 were picked, which is more than there was room for"
        );
    }
}
