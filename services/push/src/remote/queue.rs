//! Which push service gets its next messages, and when. No I/O, clock or randomness.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use census::backoff::{Answer, Backoff};
use census::time::{Jitter, Timestamp};
use protocol::{Host, MessageOutcome};

use super::outcome::AttemptResult;

/// Position in a service's messages, which are read in the order of endpoints and subscriptions.
pub type Cursor = (String, i64);

#[derive(Debug, Clone, Default)]
pub struct Queue {
    waiting: BTreeMap<Host, Waiting>,
}

#[derive(Debug, Clone, Default)]
struct Waiting {
    left: u64,
    /// `None`: the first messages come next.
    cursor: Option<Cursor>,
    backoff: Backoff,
    /// Our own side has no slot for it before this time.
    not_before: Timestamp,
    last: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Post messages to this host: those after the cursor.
    Post(Host, Option<Cursor>),
    Wait(Timestamp),
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt<'a> {
    /// A container ran: an outcome for each message.
    Ran(&'a [MessageOutcome]),
    /// The host could not be reached, or the container failed.
    Failed,
    /// There was no slot, or our own side failed. This implies nothing about the host.
    NotNow(Duration),
}

impl Queue {
    /// Replaces the numbers of waiting messages per host. Hosts with a pause are remembered.
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
        // Hosts without messages, which may get some before their pause is over.
        former.retain(|_, waiting| waiting.backoff.is_paused(now));
        for (host, kept) in former {
            let waiting = Waiting { left: 0, ..kept };
            self.waiting.insert(host, waiting);
        }
    }

    /// The next step. Hosts that answered the last request come first, then those that never got
    /// one: invented names delay nobody. Among equals, the host with the oldest request comes
    /// first, then the one with most messages.
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

    /// Records an attempt's result. `settled` messages no longer wait, and the next ones come after
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
                let is_settled =
                    |outcome: &&MessageOutcome| AttemptResult::of(outcome) != AttemptResult::Later;
                let settled = outcomes.iter().filter(is_settled).count();
                let settled = u64::try_from(settled).unwrap_or(u64::MAX);
                // One stays until a read finds none.
                waiting.left = waiting.left.saturating_sub(settled).max(1);
                waiting.cursor = cursor;
                match outcomes.iter().find_map(pause) {
                    Some(stated) => (Answer::Unresponsive, stated),
                    // Errors of some messages imply nothing about the others.
                    None if settled > 0 => (Answer::Answered, None),
                    None => (Answer::Unresponsive, None),
                }
            }
        };
        waiting.last = Some(now);
        waiting.backoff = waiting.backoff.after(answer, stated, now, Some(jitter));
    }

    /// No message comes after the cursor. Unsettled ones before it come next; without a cursor,
    /// none is left.
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

/// The pause that a push service requests; the inner value is `None` if it gives no duration.
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
