//! Step 7 of 7: publishes lists and pages, and answers the operators who requested a publication.

use std::time::Duration;

use dump::Force;
use scheduler::Event;
use scheduler::publication::{Extent, PublishAgain};

use super::state::{Answer, Daemon, nothing_made};
use crate::ground::meters::labels::Dumped;
use crate::publish::round::{Done, Round};
use crate::publish::{Occasion, PublishError};

impl Daemon {
    pub(super) fn publish_now(&mut self, force: Force, answer: Answer) {
        self.publishing.queued.push(answer);
        let force = match force {
            Force::No => scheduler::publication::Force::No,
            Force::Yes => scheduler::publication::Force::Yes,
        };
        self.handle(Event::PublishAsked(force));
    }

    pub(super) fn publish(&mut self, extent: Extent, force: scheduler::publication::Force) {
        if extent == Extent::Full {
            let queued = std::mem::take(&mut self.publishing.queued);
            self.publishing.waiters.extend(queued);
        }
        let force = match force {
            scheduler::publication::Force::No => Force::No,
            scheduler::publication::Force::Yes => Force::Yes,
        };
        let now = self.services.now();
        let (publisher, about) = (self.config.publisher(), self.config.about());
        let calendar = self.services.calendar;
        let reader = self.store.reader();
        let writer = self.services.writer.clone();
        let terms = self.services.gate.terms();
        let salt = self.services.random.salt();
        let cancel = self.publishing.cancel.clone();
        self.live.dumps();
        self.publishing.running.spawn_blocking(move || {
            let reader = match reader {
                Ok(reader) => reader,
                Err(error) => return nothing_made(error),
            };
            let occasion = Occasion {
                now,
                calendar,
                deny: &terms.deny,
                force,
                cancel: &cancel,
            };
            let round = Round {
                publisher: &publisher,
                about: &about,
                reader: &reader,
                writer: &writer,
                occasion,
                salt,
            };
            round.make(extent)
        });
    }

    pub(super) fn published(&mut self, done: Done) -> Event {
        let outcome = done.names.as_ref().err().map(PublishError::outcome);
        self.services
            .meters
            .dump(outcome.unwrap_or(Dumped::Published));
        let (again, has_pages, has_names) = (again(&done), done.has_pages, done.has_names);
        let outcome = match done.names {
            Ok(names) => {
                tracing::info!(names, "published");
                self.publishing.trouble = None;
                Ok(names)
            }
            Err(error) => {
                self.log_trouble(&error);
                Err(error.to_string())
            }
        };
        self.live.dumped(&outcome);
        for waiter in self.publishing.waiters.drain(..) {
            // The operator's command may have ended.
            waiter.send(outcome.clone()).ok();
        }
        Event::Published {
            again,
            has_pages,
            has_names,
            interval: self.ordinary_pause(),
        }
    }

    fn log_trouble(&mut self, error: &PublishError) {
        let what = error.to_string();
        // The numbers in the message of a list that is held back change from one try to the next.
        let kind = match error {
            PublishError::HeldBack(_) => "held back".to_owned(),
            PublishError::Store(_)
            | PublishError::Unrecorded(_)
            | PublishError::Dump(_)
            | PublishError::ReadBack(_)
            | PublishError::Unsigned(_)
            | PublishError::Pages(_)
            | PublishError::Swap(_) => what.clone(),
        };
        if self.publishing.trouble.as_ref() != Some(&kind) {
            tracing::error!(
                what,
                "the list could not be published; the census tries again and does not log the same error again"
            );
        }
        self.publishing.trouble = Some(kind);
    }

    fn ordinary_pause(&self) -> Duration {
        self.services
            .calendar
            .dump_interval(self.services.random.jitter())
    }
}

fn again(done: &Done) -> PublishAgain {
    match &done.names {
        Ok(_names) => PublishAgain::Nothing,
        Err(PublishError::Pages(_)) => PublishAgain::Pages,
        // All that can be published without a key is published: another try would only make mirrors
        // fetch it again.
        Err(PublishError::Unsigned(_)) if done.has_pages => PublishAgain::Nothing,
        Err(PublishError::Unsigned(_)) => PublishAgain::Pages,
        Err(
            PublishError::Store(_)
            | PublishError::Unrecorded(_)
            | PublishError::Dump(_)
            | PublishError::ReadBack(_)
            | PublishError::HeldBack(_)
            | PublishError::Swap(_),
        ) => PublishAgain::Everything,
    }
}
