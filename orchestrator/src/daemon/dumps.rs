//! Step 7 of 7 as the loop sees it: when the list is written, and who waits for it.

use std::time::Duration;

use census::time::Timestamp;
use dump::Force;
use store::StoreError;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::Daemon;
use crate::publish::{PublishError, publish};

/// A dump that failed is tried again after this.
const AGAIN_AFTER: Duration = Duration::from_secs(300);

/// A census that has published no name yet grows fast: its first pause between dumps, which doubles up to the ordinary interval.
const YOUNG_PAUSE: Duration = Duration::from_secs(300);

type Answer = oneshot::Sender<Result<u64, String>>;

/// Dumps under way and asked for.
#[derive(Debug)]
pub(super) struct Dumps {
    pub(super) running: JoinSet<Result<u64, PublishError>>,
    pub(super) next: Timestamp,
    /// Waits for the one under way.
    waiters: Vec<Answer>,
    /// Asked for while another was under way, whose snapshot may be too old: made when that one ends.
    queued: Option<(Force, Vec<Answer>)>,
    young_pause: Option<Duration>,
    /// What the last one failed of, so that the same is not said every time.
    trouble: Option<String>,
}

impl Dumps {
    /// The first one is due at once; `published` says how many names the last one of a former life held.
    pub(super) fn new(now: Timestamp, published: Option<u64>) -> Self {
        let young = published.unwrap_or(0) == 0;
        Self {
            running: JoinSet::new(),
            next: now,
            waiters: Vec::new(),
            queued: None,
            young_pause: young.then_some(YOUNG_PAUSE),
            trouble: None,
        }
    }

    fn pause(&mut self, ordinary: Duration) -> Duration {
        match self.young_pause {
            Some(pause) if pause < ordinary => {
                self.young_pause = Some(pause.saturating_mul(2));
                pause
            }
            Some(_) | None => ordinary,
        }
    }
}

impl Daemon {
    /// Publishes now; when a dump is being written already, another one after it.
    pub(super) fn order_dump(&mut self, force: Force, answer: Option<Answer>) {
        if self.dumps.running.is_empty() {
            self.dumps.waiters.extend(answer);
            self.start_dump(force);
            return;
        }
        let (queued_force, waiters) = self.dumps.queued.get_or_insert((Force::No, Vec::new()));
        if force == Force::Yes {
            *queued_force = Force::Yes;
        }
        waiters.extend(answer);
    }

    pub(super) fn start_dump(&mut self, force: Force) {
        if !self.dumps.running.is_empty() {
            return;
        }
        let now = self.tools.now();
        let ordinary = self.tools.calendar.dump_interval(self.tools.dice.jitter());
        self.dumps.next = now.plus(self.dumps.pause(ordinary));
        let (directory, calendar) = (self.config.public_dir.clone(), self.tools.calendar);
        let reader = self.store.reader();
        let writer = self.tools.writer.clone();
        let terms = self.tools.door.terms();
        self.dumps.running.spawn(async move {
            let reader = reader?;
            let published = tokio::task::spawn_blocking(move || {
                publish(&reader, &directory, now, calendar, &terms.deny, force)
            });
            let names = published.await.map_err(|_panicked| StoreError::Closed)??;
            writer
                .record_dump(now, names)
                .await
                .map_err(PublishError::Unrecorded)?;
            Ok(names)
        });
    }

    pub(super) fn dumped(&mut self, outcome: Result<u64, PublishError>) {
        let now = self.tools.now();
        let outcome = match outcome {
            Ok(names) => {
                tracing::info!(names, "published");
                self.dumps.trouble = None;
                Ok(names)
            }
            Err(error) => {
                let what = error.to_string();
                // Its numbers change from one to the next.
                let kind = match &error {
                    PublishError::HeldBack(_) => "held back".to_owned(),
                    PublishError::Store(_)
                    | PublishError::Unrecorded(_)
                    | PublishError::Dump(_)
                    | PublishError::Half(_) => what.clone(),
                };
                if self.dumps.trouble.as_ref() != Some(&kind) {
                    tracing::error!(
                        what,
                        "the dump did not end well; it is tried again, and the same is not said again"
                    );
                }
                self.dumps.trouble = Some(kind);
                self.dumps.next = self.dumps.next.min(now.plus(AGAIN_AFTER));
                Err(what)
            }
        };
        self.live.dumped(&outcome);
        for waiter in self.dumps.waiters.drain(..) {
            // Who asked may have gone away.
            waiter.send(outcome.clone()).ok();
        }
        if let Some((force, waiters)) = self.dumps.queued.take() {
            self.dumps.waiters = waiters;
            self.start_dump(force);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_young_census_publishes_often_at_first_and_an_old_one_does_not() {
        let ordinary = Duration::from_secs(6 * 3600);
        let mut young = Dumps::new(Timestamp(0), Some(0));
        let pauses: Vec<_> = (0..9)
            .map(|_| young.pause(ordinary).as_secs() / 60)
            .collect();
        assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 360, 360]);
        assert_eq!(Dumps::new(Timestamp(0), Some(9)).pause(ordinary), ordinary);
    }
}
