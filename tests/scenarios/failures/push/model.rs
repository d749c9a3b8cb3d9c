//! What applications were promised, and what clients have seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Seconds of the service's clock count whole: a message that waits for one second waits for less.
const CLOCK_STEP: Duration = Duration::from_secs(1);

/// What somebody tried to send: its outcome may be unknown.
#[derive(Debug, Clone)]
pub(super) struct Try {
    pub(super) user: usize,
    pub(super) channel: usize,
    pub(super) topic: Option<String>,
    pub(super) ttl: Duration,
    pub(super) began: Instant,
    /// Whether the user's client stays away for as long as the process lives: then the message can
    /// only be stored.
    pub(super) is_away: bool,
}

#[derive(Debug)]
struct Promise {
    number: usize,
    made: Try,
    answered: Instant,
}

/// What became of everything, for all tasks.
#[derive(Debug, Clone, Default)]
pub(super) struct Model(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    tries: Vec<Try>,
    promises: BTreeMap<String, Promise>,
    seen: BTreeSet<String>,
    /// Acknowledged, and the service has said so.
    done: BTreeSet<String>,
    /// By user: tries since its client had nothing to read any more.
    waiting: BTreeMap<usize, usize>,
    wrong: Vec<String>,
    redelivered: usize,
}

#[derive(Debug)]
pub(super) struct Totals {
    pub(super) promised: usize,
    pub(super) promised_to_away: usize,
    pub(super) seen: usize,
    pub(super) done: usize,
    pub(super) redelivered: usize,
    pub(super) replaced_or_expired: usize,
    pub(super) lost_in_memory: usize,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} promised, {} of them to clients that were away; {} seen, {} more than once; {} done with; \
             {} replaced or expired, {} lost in memory",
            self.promised,
            self.promised_to_away,
            self.seen,
            self.redelivered,
            self.done,
            self.replaced_or_expired,
            self.lost_in_memory
        )
    }
}

impl Model {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody begins to send. Returns the try's number.
    pub(super) fn begins(&self, made: Try) -> usize {
        let mut inner = self.inner();
        *inner.waiting.entry(made.user).or_default() += 1;
        inner.tries.push(made);
        inner.tries.len() - 1
    }

    /// A try was answered 201.
    pub(super) fn promised(&self, number: usize, version: String) {
        let mut inner = self.inner();
        let made = inner.tries[number].clone();
        let answered = Instant::now();
        let promise = Promise {
            number,
            made,
            answered,
        };
        inner.promises.insert(version, promise);
    }

    /// A client got a message over a connection that it has had since `connected`.
    pub(super) fn sees(&self, user: usize, version: &str, connected: Instant) {
        let mut inner = self.inner();
        if inner.done.contains(version) {
            inner.wrong.push(format!(
                "{version} came again to user {user} after it was done with"
            ));
        }
        if let Some(promise) = inner.promises.get(version) {
            let over = promise.answered + promise.made.ttl + CLOCK_STEP;
            let (owner, is_late) = (promise.made.user, connected > over);
            if owner != user {
                inner
                    .wrong
                    .push(format!("{version} of user {owner} came to user {user}"));
            }
            if is_late {
                inner
                    .wrong
                    .push(format!("{version} came to user {user} after its time"));
            }
        }
        if !inner.seen.insert(version.to_owned()) {
            inner.redelivered += 1;
        }
    }

    /// The service has said that it knows the client's acknowledgements.
    pub(super) fn done(&self, versions: impl Iterator<Item = String>) {
        self.inner().done.extend(versions);
    }

    /// Something that must not happen.
    pub(super) fn wrong(&self, what: String) {
        self.inner().wrong.push(what);
    }

    /// A user's client has read and acknowledged all that there was.
    pub(super) fn drained(&self, user: usize) {
        self.inner().waiting.remove(&user);
    }

    pub(super) fn waiting(&self, user: usize) -> usize {
        self.inner().waiting.get(&user).copied().unwrap_or(0)
    }

    /// Whether more messages than this were promised, one at least to a client that was away, and
    /// more acknowledged.
    pub(super) fn has_more_than(&self, least: usize) -> bool {
        let inner = self.inner();
        let to_away = inner.promises.values().any(|p| p.made.is_away);
        to_away && inner.promises.len() > least && inner.done.len() > least
    }

    /// Promised messages that neither came nor were replaced, and whose time is not over.
    pub(super) fn lost(&self) -> Vec<String> {
        let inner = self.inner();
        let lost = inner.unseen().filter(|(_, _, is_lost)| *is_lost);
        lost.map(|(version, ..)| version.clone()).collect()
    }

    /// What must not have happened, once all clients have read everything.
    ///
    /// `is_stored_first`: every message, and not only those to clients that were away.
    pub(super) fn settle(&self, is_stored_first: bool) -> (Totals, Vec<String>) {
        let mut inner = self.inner();
        let mut wrong = std::mem::take(&mut inner.wrong);
        let mut totals = Totals {
            promised: inner.promises.len(),
            promised_to_away: inner.promises.values().filter(|p| p.made.is_away).count(),
            seen: inner.seen.len(),
            done: inner.done.len(),
            redelivered: inner.redelivered,
            replaced_or_expired: 0,
            lost_in_memory: 0,
        };
        for (version, made, is_lost) in inner.unseen() {
            if !is_lost {
                totals.replaced_or_expired += 1;
            } else if made.is_away || is_stored_first {
                wrong.push(format!("{version} was promised and is lost: {made:?}"));
            } else {
                totals.lost_in_memory += 1;
            }
        }
        (totals, wrong)
    }
}

impl Inner {
    /// Promised messages that did not come, and whether they should have.
    fn unseen(&self) -> impl Iterator<Item = (&String, &Try, bool)> {
        let now = Instant::now();
        let answers = self.promises.values();
        let answered = answers.map(|promise| (promise.number, promise.answered));
        let answered: BTreeMap<usize, Instant> = answered.collect();
        let unseen = |(version, _): &(&String, &Promise)| !self.seen.contains(*version);
        self.promises
            .iter()
            .filter(unseen)
            .map(move |(version, promise)| {
                let made = &promise.made;
                // The service saw it after its begin, and its time is cut to whole seconds.
                let is_over = now + CLOCK_STEP >= made.began + made.ttl;
                let is_lost = !is_over && !self.is_replaced(promise, &answered);
                (version, made, is_lost)
            })
    }

    /// Whether another one with its topic may have come after it.
    fn is_replaced(&self, promise: &Promise, answered: &BTreeMap<usize, Instant>) -> bool {
        let made = &promise.made;
        let place = |made: &Try| (made.user, made.channel, made.topic.clone());
        made.topic.is_some()
            && self.tries.iter().enumerate().any(|(number, other)| {
                let answered = answered.get(&number);
                number != promise.number
                    && place(other) == place(made)
                    && answered.is_none_or(|answered| *answered >= made.began)
            })
    }
}
