//! Which push service gets its next messages, and when: a value without I/O, clock or randomness.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use census::backoff::{Answer, Backoff};
use census::time::{Jitter, Timestamp};
use protocol::{Host, MessageOutcome};

use super::fate::Fate;

/// A service's messages are read in the order of endpoints and subscriptions: after this one.
pub type Cursor = (String, i64);

/// Push services with messages that wait.
#[derive(Debug, Clone, Default)]
pub struct Queue {
    waiting: BTreeMap<Host, Waiting>,
}

#[derive(Debug, Clone, Default)]
struct Waiting {
    /// Messages that are not posted yet.
    left: u64,
    /// The first ones come next if `None`.
    cursor: Option<Cursor>,
    backoff: Backoff,
    /// Our own side has no turn for it before.
    not_before: Timestamp,
    last: Option<Timestamp>,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Post messages to this host: those after the cursor.
    Post(Host, Option<Cursor>),
    /// Wait until this moment.
    Wait(Timestamp),
    /// There is nothing to post.
    Nothing,
}

/// How an attempt to post messages to a host went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt<'a> {
    /// A container ran: an outcome for each message.
    Ran(&'a [MessageOutcome]),
    /// The host could not be reached, or the container failed.
    Failed,
    /// There was no turn, or something of ours failed. This says nothing about the host.
    NotNow(Duration),
}

impl Queue {
    /// Takes over how many messages wait for each host, in place of all before. Hosts that are left
    /// alone for a while are remembered.
    pub fn replace(&mut self, counts: BTreeMap<Host, u64>, now: Timestamp) {
        let mut former = std::mem::take(&mut self.waiting);
        for (host, left) in counts {
            let kept = former.remove(&host).unwrap_or_default();
            let cursor = None;
            let waiting = Waiting {
                left,
                cursor,
                ..kept
            };
            self.waiting.insert(host, waiting);
        }
        // Without messages, but they may get some before their pause is over.
        former.retain(|_, waiting| waiting.backoff.is_paused(now));
        for (host, kept) in former {
            let waiting = Waiting { left: 0, ..kept };
            self.waiting.insert(host, waiting);
        }
    }

    /// What to do now. Hosts that answered the last time come first, then those that were never
    /// asked: names that somebody made up keep nobody waiting. Among equals the one that was asked
    /// longest ago comes first, then the one with most messages.
    pub fn next(&self, now: Timestamp) -> Next {
        let waiting = || self.waiting.iter().filter(|(_, waiting)| waiting.left > 0);
        let rank = |waiting: &Waiting| {
            let failures = waiting.backoff.failures;
            (failures, waiting.last, Reverse(waiting.left))
        };
        let answered_first = |waiting: &Waiting| {
            let is_untried = waiting.last.is_none() && waiting.backoff.failures == 0;
            (waiting.backoff.failures > 0, is_untried, rank(waiting))
        };
        let due = waiting().filter(|(_, waiting)| waiting.due() <= now);
        if let Some((host, first)) = due.min_by_key(|(_, waiting)| answered_first(waiting)) {
            return Next::Post(host.clone(), first.cursor.clone());
        }
        let soonest = waiting().map(|(_, waiting)| waiting.due()).min();
        soonest.map_or(Next::Nothing, Next::Wait)
    }

    /// Notes how an attempt went. `settled` messages no longer wait, and the next ones come after
    /// `cursor`.
    pub fn after(
        &mut self,
        host: &Host,
        attempt: Attempt<'_>,
        cursor: Option<Cursor>,
        now: Timestamp,
        jitter: Jitter,
    ) {
        let Some(waiting) = self.waiting.get_mut(host) else {
            return;
        };
        let (answer, stated) = match attempt {
            Attempt::NotNow(wait) => {
                waiting.not_before = now.plus(wait);
                return;
            }
            Attempt::Failed => (Answer::Unresponsive, None),
            Attempt::Ran(outcomes) => {
                let is_settled = |outcome: &&MessageOutcome| Fate::of(outcome) != Fate::Later;
                let settled = outcomes.iter().filter(is_settled).count();
                let settled = u64::try_from(settled).unwrap_or(u64::MAX);
                // One stays until it is found that there is none.
                waiting.left = waiting.left.saturating_sub(settled).max(1);
                waiting.cursor = cursor;
                match outcomes.iter().find_map(pause) {
                    Some(stated) => (Answer::Unresponsive, stated),
                    // Errors of some messages alone say nothing about the others.
                    None if settled > 0 => (Answer::Answered, None),
                    None => (Answer::Unresponsive, None),
                }
            }
        };
        waiting.last = Some(now);
        waiting.backoff = waiting.backoff.after(answer, stated, now, Some(jitter));
    }

    /// No message comes after the cursor. Those before it that were not settled come next; without
    /// a cursor, none is left.
    pub fn at_end(&mut self, host: &Host) {
        if let Some(waiting) = self.waiting.get_mut(host)
            && waiting.cursor.take().is_none()
        {
            waiting.left = 0;
        }
    }
}

impl Waiting {
    fn due(&self) -> Timestamp {
        let free_at = self.backoff.free_at.unwrap_or_default();
        free_at.max(self.not_before)
    }
}

/// The pause that a push service asks for; the inner value is `None` if it does not say how long.
fn pause(outcome: &MessageOutcome) -> Option<Option<Duration>> {
    match outcome {
        MessageOutcome::Answered {
            status,
            retry_after_s,
        } if *status == 429 || (*status == 503 && retry_after_s.is_some()) => {
            Some(retry_after_s.map(Duration::from_secs))
        }
        MessageOutcome::Answered { .. } | MessageOutcome::Unposted { .. } => None,
    }
}

#[cfg(test)]
mod tests;
