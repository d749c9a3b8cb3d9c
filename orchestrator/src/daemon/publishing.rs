//! Step 7 of 7: publishes lists and pages, and answers the operators who requested a publication.

use std::time::Duration;

use dump::Force;
use scheduler::Event;
use scheduler::publication::{Extent, PublishAgain};
use tokio::time::Instant;

use super::snapshot::{Trouble, troubles};
use super::state::{Answer, Daemon, nothing_made};
use crate::ground::meters::labels::Dumped;
use crate::publish::pages::About;
use crate::publish::round::{Done, Round};
use crate::publish::{Occasion, PublishError};

/// Shortest time between pages that are made only because they name another trouble. A trouble that
/// comes and goes must not keep a processor busy.
const SHOWN_EVERY: Duration = Duration::from_mins(1);

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
        let trouble = self.trouble();
        let about = About {
            trouble: trouble.as_ref().map(Trouble::to_string),
            ..self.config.about()
        };
        self.publishing.extent = Some(extent);
        self.publishing.shown = trouble.map(|trouble| trouble.label);
        let publisher = self.publisher.clone();
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

    /// The worst trouble, but not that of the clock, by which pages could be older than their list.
    fn trouble(&self) -> Option<Trouble> {
        let live = self.live.state(self.services.now());
        troubles(&live).into_iter().next()
    }

    /// Has the pages made again if they name another trouble than there is.
    pub(super) fn show_trouble(&mut self) {
        let label = self.trouble().map(|trouble| trouble.label);
        let last = self.publishing.shown_at;
        let is_soon = last.is_some_and(|last| last.elapsed() < SHOWN_EVERY);
        let clock = self.services.clock.trouble();
        if label == self.publishing.shown || is_soon || clock.is_some() {
            return;
        }
        self.publishing.shown_at = Some(Instant::now());
        self.handle(Event::PagesOutdated);
    }

    pub(super) fn published(&mut self, done: Done) -> Event {
        let outcome = done.names.as_ref().err().map(PublishError::outcome);
        self.services
            .meters
            .dump(outcome.unwrap_or(Dumped::Published));
        let (again, has_pages, has_names) = (again(&done), done.has_pages, done.has_names);
        let is_held_back = matches!(done.names, Err(PublishError::HeldBack(_)));
        let outcome = match done.names {
            Ok(names) => {
                if self.publishing.extent == Some(Extent::Pages) {
                    tracing::debug!("pages published");
                } else {
                    tracing::info!(names, "published");
                    self.live.listed(self.services.now());
                }
                self.publishing.trouble = None;
                Ok(names)
            }
            Err(error) => {
                self.log_trouble(&error);
                Err(error.to_string())
            }
        };
        self.live.dumped(outcome.clone().err(), is_held_back);
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
