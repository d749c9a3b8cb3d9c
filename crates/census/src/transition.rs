//! Step 5 of 7: how a verdict changes a host's record.
//!
//! Takes the record from the start of the check, the verdict, the time and a random number. Returns
//! the change: the new row, an entry for its history, a newly learned name, and whether to forget
//! the host. Faults are on our side and never reach this module (invariant I5).
//!
//! A pure function: the same arguments give the same change.

use std::fmt;
use std::time::Duration;

use protocol::{DeadReason, Host, Instance, Private, escaped, is_shown_safely, limits};
use serde::Serialize as _;

use crate::schedule::{Which, clamp_due, ordinary_interval};
use crate::state::{Before, OptedOutBy, Record, State, Verdict};
use crate::time::{Calendar, DOUBLINGS_MAX, Jitter, Timestamp};

/// A host may be dead after more than this number of consecutive failures, and have moved after
/// more than this number of redirects to the same target. Enough time must have passed as well.
const FAILURES_BORNE: u32 = 6;

/// Consecutive failures after which a host that was never alive is dead: nobody would miss it.
const FAILURES_NEVER_ALIVE: u32 = 3;

/// Bytes of an entry's reason: a word, a status and the longest name.
pub const REASON_BYTES_MAX: usize = 300;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub record: Record,
    /// A newly learned name: a move's target, or the target of a temporary redirect or a NodeInfo
    /// link. Never the host itself.
    pub candidate: Option<Host>,
    /// It was never alive for a year: delete the row, and keep only a hash of the name.
    pub forget: bool,
    /// The entry for the host's history.
    pub entry: Entry,
}

/// An entry of a host's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub at: Timestamp,
    /// `alive`, `moved`, `opted_out`, `gone`, `refused` or `dead`.
    pub verdict: String,
    /// The reason, such as `tls`, `status 500` or `moved to b.example`: at most
    /// [`REASON_BYTES_MAX`] bytes.
    pub reason: Option<String>,
}

/// Applies `verdict` to `record`.
///
/// - `change.record` always has the `host` and `first_seen` of `record`
/// - its `since` and `last_alive` are not ahead of `now`, which would keep the host listed, or
///   dying, until then; except at the first verdict after the clock was set back, since the new
///   time may be the wrong one
/// - its `due` is at most [`Calendar::longest`] ahead, and `None` for hosts that are never checked
/// - a host that an owner or a moderator opted out, or that is parked, stays so: the check began
///   earlier (parked hosts only react to a robots.txt opt-out, since an opt-out always counts)
pub fn transition(
    record: &Record,
    verdict: &Verdict,
    now: Timestamp,
    jitter: Jitter,
    calendar: Calendar,
) -> Change {
    let mut change = Change {
        record: record.clone(),
        candidate: None,
        forget: false,
        entry: entry(record, verdict, now),
    };
    change.record.last_checked = Some(now);
    if !is_open_to(&record.state, verdict) {
        change.record.due = None;
        return change;
    }
    let mut step = Step {
        change,
        which: Which::of(record),
        now,
        jitter,
        calendar,
    };
    step.bring_back(record.last_checked);
    step.change.record.refuses = matches!(verdict, Verdict::Refused { .. });
    match verdict {
        Verdict::Alive(instance) => step.alive(instance),
        Verdict::Moved { to } if *to == record.host => step.dead(None),
        Verdict::Moved { to } => step.moved(to),
        Verdict::OptedOut => step.opted_out(),
        Verdict::Gone => step.gone(),
        Verdict::Refused { retry_after_s, .. } => step.refused(*retry_after_s),
        Verdict::Dead { reason, to, .. } => step.dead(learned(*reason, to.as_deref())),
    }
    step.change
}

/// Whether a verdict can change a host in this state.
fn is_open_to(state: &State, verdict: &Verdict) -> bool {
    match state {
        State::OptedOut { by } => *by == OptedOutBy::Robots,
        State::Parked => matches!(verdict, Verdict::OptedOut),
        State::Discovered
        | State::Alive
        | State::Dying { .. }
        | State::Dead
        | State::Moving { .. }
        | State::Moved { .. } => true,
    }
}

/// A change while it is computed.
struct Step {
    change: Change,
    which: Which,
    now: Timestamp,
    jitter: Jitter,
    calendar: Calendar,
}

impl Step {
    /// Times ahead of `now` come from a wrong clock, unless the present one is wrong. A machine
    /// without a battery starts in the past until it learns the time; setting stored times back to
    /// that would make them too old afterwards. So the first verdict after the clock went back
    /// leaves them unchanged, and the second, an interval later, trusts the clock. `first_seen`
    /// stays unchanged, since it is never written twice.
    fn bring_back(&mut self, last_checked: Option<Timestamp>) {
        let (record, now) = (&mut self.change.record, self.now);
        if last_checked <= Some(now) {
            record.since = record.since.min(now);
            record.last_alive = record.last_alive.map(|at| at.min(now));
        }
    }

    fn alive(&mut self, instance: &Instance) {
        let record = &mut self.change.record;
        record.hidden = match instance.private {
            Private::Yes => true,
            Private::No => false,
            // If this could never be learned, the host is treated as private: no host is listed
            // because we don't know.
            Private::Unknown => record.hidden || record.last_alive.is_none(),
        };
        record.instance = Instance {
            private: Private::default(),
            ..instance.clone()
        };
        record.last_alive = record.last_alive.max(Some(self.now));
        record.alive_count = record.alive_count.saturating_add(1);
        record.doublings = 0;
        self.enter(State::Alive);
    }

    fn moved(&mut self, to: &Host) {
        let next = match &self.change.record.state {
            State::OptedOut { .. } => return self.stay_opted_out(None),
            State::Parked => return,
            State::Moved { target } if target == to => return self.stay(),
            State::Moving {
                before,
                count,
                target,
            } if target == to => {
                let (before, count) = (*before, count.saturating_add(1));
                if self.is_borne_out(count) {
                    self.change.record.doublings = 0;
                    return self.enter(State::Moved { target: to.clone() });
                }
                let target = to.clone();
                return self.stay_as(State::Moving {
                    before,
                    count,
                    target,
                });
            }
            State::Discovered => Before::Discovered,
            State::Alive => Before::Alive,
            State::Dead => Before::Dead,
            State::Moved { .. } => Before::Moved,
            State::Dying { before, .. } | State::Moving { before, .. } => *before,
        };
        self.change.candidate = Some(to.clone());
        self.begin(State::Moving {
            before: next,
            count: 1,
            target: to.clone(),
        });
    }

    fn opted_out(&mut self) {
        self.change.record.doublings = 0;
        self.enter(State::OptedOut {
            by: OptedOutBy::Robots,
        });
    }

    fn gone(&mut self) {
        let (before, count) = match &self.change.record.state {
            State::OptedOut { .. } => return self.stay_opted_out(None),
            State::Parked => return,
            State::Dying {
                gone_last: true, ..
            } => {
                self.change.record.doublings = DOUBLINGS_MAX;
                return self.enter(State::Dead);
            }
            State::Dying { before, count, .. } => {
                let (before, count) = (*before, count.saturating_add(1));
                return self.stay_as(State::Dying {
                    before,
                    count,
                    gone: true,
                    gone_last: true,
                });
            }
            State::Discovered => (Before::Discovered, 1),
            State::Alive => (Before::Alive, 1),
            State::Dead => (Before::Dead, 1),
            State::Moved { .. } => (Before::Moved, 1),
            State::Moving { before, .. } => (*before, 1),
        };
        self.begin(State::Dying {
            before,
            count,
            gone: true,
            gone_last: true,
        });
    }

    fn refused(&mut self, retry_after_s: Option<u64>) {
        if let State::OptedOut { .. } = self.change.record.state {
            return self.stay_opted_out(retry_after_s);
        }
        // A refusal between two 410s ends their row; the mark stays.
        if let State::Dying { gone_last, .. } = &mut self.change.record.state {
            *gone_last = false;
        }
        let record = &self.change.record;
        let first_seen = Some(record.first_seen).filter(|at| *at <= self.now);
        let last_word = record.last_alive.max(first_seen).unwrap_or(self.now);
        let is_long_ago = last_word < self.now.minus(self.calendar.unlisted_after());
        if is_long_ago && record.state != State::Dead {
            self.change.record.doublings = 0;
            self.change.record.state = State::Dead;
            self.change.record.since = self.now;
        }
        self.ask_again(retry_after_s);
    }

    fn dead(&mut self, learned: Option<Host>) {
        let before = match &self.change.record.state {
            State::OptedOut { .. } => return self.stay_opted_out(None),
            State::Parked => return,
            State::Dead => return self.still_dead(learned),
            State::Dying {
                before,
                count,
                gone,
                ..
            } => {
                // The 410 mark survives other failures: an instance that is taken down often goes
                // from 410 to no answer, and must not return to the list for that. But two 410s
                // make it dead at once only if no other answer came between them.
                let still_dying = State::Dying {
                    before: *before,
                    count: count.saturating_add(1),
                    gone: *gone,
                    gone_last: false,
                };
                let count = count.saturating_add(1);
                self.learn(learned);
                if self.is_given_up(count) {
                    self.change.record.doublings = 0;
                    return self.enter(State::Dead);
                }
                return self.stay_as(still_dying);
            }
            State::Discovered => Before::Discovered,
            State::Alive => Before::Alive,
            State::Moved { .. } => Before::Moved,
            State::Moving { before, .. } => *before,
        };
        self.learn(learned);
        self.begin(State::Dying {
            before,
            count: 1,
            gone: false,
            gone_last: false,
        });
    }

    fn still_dead(&mut self, learned: Option<Host>) {
        self.learn(learned);
        self.double();
        let record = &self.change.record;
        self.change.forget = record.last_alive.is_none()
            && record.first_seen < self.now.minus(self.calendar.forgotten_after());
        self.stay();
    }

    /// A failure does not end an opt-out: the host stays opted out and is checked less and less
    /// often. No name is learned from it.
    fn stay_opted_out(&mut self, retry_after_s: Option<u64>) {
        self.double();
        self.ask_again(retry_after_s);
    }

    fn double(&mut self) {
        let doubled = self.change.record.doublings.saturating_add(1);
        self.change.record.doublings = doubled.min(DOUBLINGS_MAX);
    }

    fn is_given_up(&self, count: u32) -> bool {
        if self.change.record.last_alive.is_some() {
            self.is_borne_out(count)
        } else {
            count >= FAILURES_NEVER_ALIVE
        }
    }

    /// Whether something was observed often enough and for long enough. Both are needed: a
    /// week-long outage on our side is one failure, and a host with seven checks in an hour has not
    /// failed for a week.
    fn is_borne_out(&self, count: u32) -> bool {
        let week_ago = self.now.minus(self.calendar.dying_at_least());
        count > FAILURES_BORNE && self.change.record.since < week_ago
    }

    fn learn(&mut self, name: Option<Host>) {
        self.change.candidate = name.filter(|name| *name != self.change.record.host);
    }

    /// Enters `state`. `since` changes only if that is a different state.
    fn enter(&mut self, state: State) {
        if self.change.record.state == state {
            self.stay();
        } else {
            self.begin(state);
        }
    }

    /// Enters `state` as of now, even from a state of the same name.
    fn begin(&mut self, state: State) {
        self.change.record.since = self.now;
        self.stay_as(state);
    }

    /// Updates the data of the same state.
    fn stay_as(&mut self, state: State) {
        self.change.record.state = state;
        self.stay();
    }

    fn stay(&mut self) {
        self.ask_again(None);
    }

    /// Sets the due time: the ordinary interval of the new state, or what `Retry-After` requests,
    /// at most a day more.
    fn ask_again(&mut self, retry_after_s: Option<u64>) {
        let record = &self.change.record;
        let (jitter, calendar) = (self.jitter, self.calendar);
        let ordinary = ordinary_interval(
            &record.state,
            record.doublings,
            self.which,
            jitter,
            calendar,
        );
        self.change.record.due = ordinary.map(|ordinary| {
            let most = ordinary.saturating_add(self.calendar.refused_extra_max());
            let asked_for = Duration::from_secs(retry_after_s.unwrap_or(0)).min(most);
            let due = self.now.plus(ordinary.max(asked_for));
            clamp_due(due, self.now, self.calendar)
        });
    }
}

/// The host name that can be learned from this failure.
fn learned(reason: DeadReason, to: Option<&str>) -> Option<Host> {
    let names_a_host = matches!(
        reason,
        DeadReason::TemporaryRedirect | DeadReason::NodeinfoElsewhere
    );
    to.filter(|_| names_a_host)
        .and_then(|to| Host::parse(to).ok())
}

fn entry(record: &Record, verdict: &Verdict, at: Timestamp) -> Entry {
    let (word, reason) = match verdict {
        Verdict::Alive(_) => ("alive", None),
        // The report rejects it. If it gets here, it is recorded under the name that the report
        // would use.
        Verdict::Moved { to } if *to == record.host => (
            "dead",
            Some(dead_text(DeadReason::RedirectToSelf, None, None)),
        ),
        Verdict::Moved { to } => ("moved", Some(format!("moved to {to}"))),
        Verdict::OptedOut => ("opted_out", None),
        Verdict::Gone => ("gone", Some("status 410".to_owned())),
        Verdict::Refused { retry_after_s, .. } => (
            "refused",
            Some(refused_text(verdict.detail(), *retry_after_s)),
        ),
        Verdict::Dead { reason, status, to } => {
            ("dead", Some(dead_text(*reason, *status, to.as_deref())))
        }
    };
    Entry {
        at,
        verdict: word.to_owned(),
        reason,
    }
}

fn refused_text(detail: String, retry_after_s: Option<u64>) -> String {
    match retry_after_s {
        Some(seconds) => format!("{detail}, retry after {seconds} s"),
        None => detail,
    }
}

fn dead_text(reason: DeadReason, status: Option<u16>, to: Option<&str>) -> String {
    let mut text = match (reason, status) {
        (DeadReason::Status, Some(status)) => format!("status {status}"),
        (reason, Some(status)) => format!("{} (status {status})", Word(reason)),
        (reason, None) => Word(reason).to_string(),
    };
    if let Some(to) = to {
        text.push_str(" to ");
        // It should be escaped already, and escaping is not idempotent, so only unsafe text is
        // escaped again.
        if to.len() <= limits::TEXT_BYTES_MAX.saturating_add(60) && is_shown_safely(to) {
            text.push_str(to);
        } else {
            text.push_str(&escaped(to.as_bytes(), limits::TEXT_BYTES_MAX));
        }
    }
    text
}

/// A reason as in the wire format.
struct Word(DeadReason);

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.serialize(f)
    }
}

#[cfg(test)]
pub(crate) mod properties;
#[cfg(test)]
mod tests;
