//! Something of ours does not work, and nothing is checked until it does (invariant I5).
//!
//! In: faults that reach further than one check, faults that hit one check after the other, verdicts that were written. Out: whether checks may
//! start and how many, and when to look whether it works again. Pure: the time is handed in.
//!
//! Some trouble is not seen by asking the parts: an engine that answers and starts nothing, a checker image that is broken, a disk that has room
//! for a small row and not for a large one. So an outage that its parts say is over is *on trial* until a verdict has been written: few checks
//! start meanwhile, and when they fail, the outage goes on with the pause that it had.

use std::time::Duration;

use census::time::Timestamp;

/// First pause before looking again.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// Longest pause: an engine that was restarted is found again within a minute.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Checks in a row that failed on our side, without one verdict written between: then it is no
/// chance. Half of all hosts in league are two thirds of all checks, since who faults is asked
/// twice ([`crate::blame::faults::Attribution`]): they come to it once in some three thousand
/// checks. What they gain is seconds, since the first verdict ends it.
const FAULTS_IN_A_ROW_MAX: u32 = 20;

/// The same on trial, where the suspicion is there already.
const FAULTS_ON_TRIAL_MAX: u32 = 2;

/// Checks at once on trial. Some hosts don't answer, and a trial must not depend on one of them.
const ROOM_ON_TRIAL: u32 = 4;

/// A trial in which nothing failed for this long is over, even when no verdict was written: there may be nobody left who lives.
const TRIAL_MAX: Duration = Duration::from_secs(600);

/// The present outage, if there is one.
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
    /// It came back on trial at least once.
    relapsed: bool,
}

/// By what an outage was noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// A part said so, or did not answer.
    Told,
    /// Nothing but failed checks shows it: one that works shows the contrary.
    Counted,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Nothing is checked; look again then.
    On { look_at: Timestamp },
    /// Its parts work as far as they say, since then.
    Trial { since: Timestamp },
}

/// What a failure of ours means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begun {
    /// It is the beginning of an outage.
    News,
    /// The outage was not over.
    Relapse,
    /// The first time that an outage which seemed over was not.
    FirstRelapse,
    /// It is part of what is known.
    Known,
}

impl Outage {
    /// Something fails that every check needs.
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

    /// A check failed on our side. Gives how many in a row it takes to call it an outage, when this one does.
    pub(crate) fn fault(&mut self) -> Option<u32> {
        let most = match self.current.as_ref().map(|current| current.phase) {
            Some(Phase::On { .. }) => return None,
            Some(Phase::Trial { .. }) => FAULTS_ON_TRIAL_MAX,
            None => FAULTS_IN_A_ROW_MAX,
        };
        self.in_a_row = self.in_a_row.saturating_add(1);
        (self.in_a_row >= most).then_some(self.in_a_row)
    }

    /// A verdict was written: the whole path works. Gives how long the outage lasted that this ends, unless it was said to be over already.
    pub(crate) fn works(&mut self, now: Timestamp) -> Option<Duration> {
        self.in_a_row = 0;
        let current = self.current.take_if(|current| match current.phase {
            Phase::Trial { .. } => true,
            // What a part says stands: this one was on its way when the outage began.
            Phase::On { .. } => current.seen == Seen::Counted,
        })?;
        let was_said_to_be_over = matches!(current.phase, Phase::Trial { .. }) && !current.relapsed;
        (!was_said_to_be_over).then(|| now.since(current.since))
    }

    /// It still fails: look again later.
    pub(crate) fn goes_on(&mut self, what: String, now: Timestamp) {
        if let Some(current) = &mut self.current {
            current.what = what;
            current.wait_longer(now);
        }
    }

    /// Its parts work again: a few checks will show. Gives how long they did not, unless that was said already.
    pub(crate) fn parts_work(&mut self, now: Timestamp) -> Option<Duration> {
        let current = self.current.as_mut()?;
        current.phase = Phase::Trial { since: now };
        (!current.relapsed).then(|| now.since(current.since))
    }

    /// Whether there is one, on or on trial.
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

    /// Whether it was noticed by failed checks alone, and no check has come to a verdict since.
    pub(crate) fn is_counted(&self) -> bool {
        self.current
            .as_ref()
            .is_some_and(|current| current.seen == Seen::Counted)
    }

    /// How many checks may be under way at once.
    pub(crate) fn room(&self, ordinary: u32) -> u32 {
        match self.current.as_ref().map(|current| current.phase) {
            None => ordinary,
            Some(Phase::On { .. }) => 0,
            Some(Phase::Trial { .. }) => ordinary.min(ROOM_ON_TRIAL),
        }
    }

    /// Whether it is time to look if it works again. A clock that was set back does not put it off.
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

    /// What does not work and since when. An outage that came back is one until a check has shown that it is over.
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
