//! Outages: a part of ours does not work, and no host is checked until it does (invariant I5).
//!
//! It takes faults that affect more than one check, faults in consecutive checks, and written
//! verdicts. It returns whether checks may start and how many, and when to test the parts again.
//! Pure: the caller passes the time.
//!
//! Some problems don't show in the parts' status: an engine that answers and starts nothing, a
//! broken checker image, a disk with space for a small row and not for a large one. An outage that
//! is over according to its parts is therefore *on trial* until a verdict has been written. Few
//! checks start during the trial. If they fail, the outage continues with the same pause as before.

use std::time::Duration;

use census::time::Timestamp;

/// First pause before the parts are tested again.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// Longest pause. A restarted engine is found again within a minute.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Failed checks in a row on our side, without a written verdict in between, that can't be chance.
/// If half of all hosts collude, they cause two thirds of all checks, because a faulting host is
/// checked twice ([`crate::blame::faults::Attribution`]). They reach this number about once in
/// three thousand checks. They gain only seconds by that, because the first verdict ends the
/// outage.
const FAULTS_IN_A_ROW_MAX: u32 = 20;

/// The same number during a trial, where an outage is already suspected.
const FAULTS_ON_TRIAL_MAX: u32 = 2;

/// Checks in parallel during a trial. Some hosts don't answer, and a trial must not depend on one
/// of them.
const ROOM_ON_TRIAL: u32 = 4;

/// A trial without failures ends after this time even without a written verdict: there may be no
/// responding host left.
const TRIAL_MAX: Duration = Duration::from_secs(600);

/// The current outage, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    current: Option<Current>,
    /// Faults since the last verdict was written.
    in_a_row: u32,
}

#[derive(Debug)]
struct Current {
    what: String,
    since: Timestamp,
    pause: Duration,
    phase: Phase,
    seen: Seen,
    /// It came back during a trial at least once.
    relapsed: bool,
}

/// How an outage was noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// A part reported it, or did not answer.
    Told,
    /// Failed checks alone show it. One successful check disproves it.
    Counted,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// No check starts. The parts are tested again at `look_at`.
    On { look_at: Timestamp },
    /// The parts report since this time that they work.
    Trial { since: Timestamp },
}

/// What a failure of ours means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begun {
    News,
    /// The outage was not over.
    Relapse,
    /// The outage was not over, for the first time.
    FirstRelapse,
    /// The failure belongs to a known outage.
    Known,
}

impl Outage {
    /// Records a failure of something that every check needs.
    pub(crate) fn begin(&mut self, what: String, seen: Seen, now: Timestamp) -> Begun {
        self.in_a_row = 0;
        let Some(current) = &mut self.current else {
            self.current = Some(Current {
                what,
                since: now,
                pause: PAUSE_MIN,
                phase: Phase::On {
                    look_at: now.plus(PAUSE_MIN),
                },
                seen,
                relapsed: false,
            });
            return Begun::News;
        };
        let Phase::Trial { .. } = current.phase else {
            return Begun::Known;
        };
        current.what = what;
        current.seen = seen;
        current.wait_longer(now);
        if std::mem::replace(&mut current.relapsed, true) {
            Begun::Relapse
        } else {
            Begun::FirstRelapse
        }
    }

    /// Records a failed check on our side. If this makes it an outage, returns the number of
    /// failures in a row.
    pub(crate) fn fault(&mut self) -> Option<u32> {
        let most = match self.current.as_ref().map(|current| current.phase) {
            Some(Phase::On { .. }) => return None,
            Some(Phase::Trial { .. }) => FAULTS_ON_TRIAL_MAX,
            None => FAULTS_IN_A_ROW_MAX,
        };
        self.in_a_row = self.in_a_row.saturating_add(1);
        (self.in_a_row >= most).then_some(self.in_a_row)
    }

    /// Records a written verdict: the whole path works. Returns the length of the outage that this
    /// ends, unless its end was already reported.
    pub(crate) fn works(&mut self, now: Timestamp) -> Option<Duration> {
        self.in_a_row = 0;
        let current = self.current.take_if(|current| match current.phase {
            Phase::Trial { .. } => true,
            // A part's own report outweighs a verdict that was on its way when the outage began.
            Phase::On { .. } => current.seen == Seen::Counted,
        })?;
        let was_said_to_be_over = matches!(current.phase, Phase::Trial { .. }) && !current.relapsed;
        (!was_said_to_be_over).then(|| now.since(current.since))
    }

    /// Records that it still fails. The next test follows after a longer pause.
    pub(crate) fn goes_on(&mut self, what: String, now: Timestamp) {
        if let Some(current) = &mut self.current {
            current.what = what;
            current.wait_longer(now);
        }
    }

    /// Records that the parts work again. A few checks have to confirm it. Returns how long the
    /// parts failed, unless that was already reported.
    pub(crate) fn parts_work(&mut self, now: Timestamp) -> Option<Duration> {
        let current = self.current.as_mut()?;
        current.phase = Phase::Trial { since: now };
        (!current.relapsed).then(|| now.since(current.since))
    }

    /// Whether there is an outage, on trial or not.
    pub(crate) fn is_any(&self) -> bool {
        self.current.is_some()
    }

    /// Whether no check may start.
    pub(crate) fn is_on(&self) -> bool {
        matches!(
            &self.current,
            Some(Current {
                phase: Phase::On { .. },
                ..
            })
        )
    }

    /// Whether failed checks alone showed it, and no check has reached a verdict since.
    pub(crate) fn is_counted(&self) -> bool {
        self.current
            .as_ref()
            .is_some_and(|current| current.seen == Seen::Counted)
    }

    /// Checks that may be in progress at once.
    pub(crate) fn room(&self, ordinary: u32) -> u32 {
        match self.current.as_ref().map(|current| current.phase) {
            None => ordinary,
            Some(Phase::On { .. }) => 0,
            Some(Phase::Trial { .. }) => ordinary.min(ROOM_ON_TRIAL),
        }
    }

    /// Whether the parts should be tested now. Setting the clock back does not delay this.
    pub(crate) fn wants_look(&mut self, now: Timestamp) -> bool {
        match self.current.as_ref().map(|current| current.phase) {
            None => false,
            Some(Phase::On { look_at }) => now >= look_at || look_at > now.plus(PAUSE_MAX),
            Some(Phase::Trial { since }) => {
                if now.since(since) >= TRIAL_MAX || since > now {
                    self.current = None;
                }
                false
            }
        }
    }

    /// What does not work, and since when. An outage that came back is reported until a check has
    /// shown that it is over.
    pub(crate) fn describe(&self) -> Option<(String, Timestamp)> {
        self.current
            .as_ref()
            .filter(|current| self.is_on() || current.relapsed)
            .map(|current| (current.what.clone(), current.since))
    }
}

impl Current {
    fn wait_longer(&mut self, now: Timestamp) {
        self.pause = self.pause.saturating_mul(2).min(PAUSE_MAX);
        self.phase = Phase::On {
            look_at: now.plus(self.pause),
        };
    }
}

#[cfg(test)]
mod tests;
