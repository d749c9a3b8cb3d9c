//! Step 7 of 7 as the loop sees it: when the list is written, and who waits for it.

use std::pin::pin;
use std::time::Duration;

use census::time::Timestamp;
use dump::{Force, Stop};
use store::StoreError;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Daemon;
use crate::places::Places;
use crate::publish::round::{Done, Extent, Round};
use crate::publish::{Occasion, PublishError};

/// A dump that failed is tried again after this, and so are pages alone: of a list that is out, nothing else is made anew.
const AGAIN_AFTER: Duration = Duration::from_secs(300);

/// A census that has published no name yet grows fast: its first pause between dumps, which doubles up to the ordinary interval.
const YOUNG_PAUSE: Duration = Duration::from_secs(300);

/// A dump of so few names that it is made within this needs no way.
const CHECKS_MAKE_WAY_AFTER: Duration = Duration::from_secs(2);

/// While a dump is made, checks have fewer places, so that it gets a processor where they keep all of them busy: readers wait for it, and checks catch
/// up. For so long at most: a million names take less than a minute then, and a disk that hangs must not hold up the census.
const CHECKS_MAKE_WAY_FOR: Duration = Duration::from_secs(120);

type Answer = oneshot::Sender<Result<u64, String>>;

/// Dumps under way and asked for.
#[derive(Debug)]
pub(super) struct Dumps {
    pub(super) running: JoinSet<Done>,
    next: Timestamp,
    /// When pages that failed are tried again, without the list.
    pages_next: Option<Timestamp>,
    /// Until when the pages that stand need not be made anew for a list that is held back; nothing when they are not those of the set that stands.
    pages_fresh_until: Option<Timestamp>,
    /// Said when the daemon ends, which else waits for the one under way.
    pub(super) stop: Stop,
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
            pages_next: None,
            pages_fresh_until: None,
            stop: Stop::default(),
            waiters: Vec::new(),
            queued: None,
            young_pause: young.then_some(YOUNG_PAUSE),
            trouble: None,
        }
    }

    /// Moments of another clock are worth nothing. `ordinary` is the pause between dumps.
    pub(super) fn clock_was_set(&mut self, now: Timestamp, ordinary: Duration) {
        let latest = now.plus(ordinary);
        self.next = self.next.min(latest);
        self.pages_next = self.pages_next.map(|next| next.min(latest));
        self.pages_fresh_until = None;
    }

    /// What has to be made by itself now, if anything.
    fn due(&self, now: Timestamp) -> Option<Extent> {
        if now >= self.next {
            let is_fresh = self.pages_fresh_until.is_some_and(|until| now < until);
            return Some(if is_fresh {
                Extent::ListFirst
            } else {
                Extent::Whole
            });
        }
        self.pages_next
            .is_some_and(|next| now >= next)
            .then_some(Extent::Pages)
    }

    /// When what failed is tried again, and what is said to be fresh.
    fn plan(&mut self, done: &Done, now: Timestamp, ordinary: Duration) {
        let again = now.plus(AGAIN_AFTER);
        self.pages_next = None;
        match &done.names {
            Ok(_names) => {}
            Err(PublishError::Pages(_)) => self.pages_next = Some(again),
            // All that can go out without a key is out: more of the same would only have mirrors take it again.
            Err(PublishError::Unsigned(_)) => {
                self.pages_next = (!done.has_pages).then_some(again);
            }
            Err(
                PublishError::Store(_)
                | PublishError::Unrecorded(_)
                | PublishError::Dump(_)
                | PublishError::ReadBack(_)
                | PublishError::HeldBack(_)
                | PublishError::Half(_),
            ) => self.next = self.next.min(again),
        }
        if !done.has_pages {
            self.pages_fresh_until = None;
        } else if self.pages_fresh_until.is_none_or(|until| now >= until) {
            self.pages_fresh_until = Some(now.plus(ordinary));
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
            self.start_dump(force, Extent::Whole);
            return;
        }
        let (queued_force, waiters) = self.dumps.queued.get_or_insert((Force::No, Vec::new()));
        if force == Force::Yes {
            *queued_force = Force::Yes;
        }
        waiters.extend(answer);
    }

    /// Publishes what is due.
    pub(super) fn publish_due(&mut self, now: Timestamp) {
        if let Some(extent) = self.dumps.due(now) {
            self.start_dump(Force::No, extent);
        }
    }

    fn start_dump(&mut self, force: Force, extent: Extent) {
        if !self.dumps.running.is_empty() {
            return;
        }
        let now = self.tools.now();
        if extent != Extent::Pages {
            let ordinary = self.tools.calendar.dump_interval(self.tools.dice.jitter());
            self.dumps.next = now.plus(self.dumps.pause(ordinary));
        }
        let (publisher, about) = (self.config.publisher(), self.config.about());
        let calendar = self.tools.calendar;
        let reader = self.store.reader();
        let writer = self.tools.writer.clone();
        let terms = self.tools.door.terms();
        let salt = self.tools.dice.salt();
        let (stop, places) = (self.dumps.stop.clone(), self.tools.places.clone());
        self.dumps.running.spawn(async move {
            let reader = match reader {
                Ok(reader) => reader,
                Err(error) => return nothing_made(error),
            };
            let made = tokio::task::spawn_blocking(move || {
                let occasion = Occasion {
                    now,
                    calendar,
                    deny: &terms.deny,
                    force,
                    stop: &stop,
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
            given_way(&places, made)
                .await
                .unwrap_or_else(|_panicked| nothing_made(StoreError::Closed))
        });
    }

    pub(super) fn dumped(&mut self, done: Done) {
        let ordinary = self.tools.calendar.dump_interval(self.tools.dice.jitter());
        self.dumps.plan(&done, self.tools.now(), ordinary);
        self.tools.meters.dump(&done.names);
        let outcome = match done.names {
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
                    | PublishError::ReadBack(_)
                    | PublishError::Unsigned(_)
                    | PublishError::Pages(_)
                    | PublishError::Half(_) => what.clone(),
                };
                if self.dumps.trouble.as_ref() != Some(&kind) {
                    tracing::error!(
                        what,
                        "the dump did not end well; it is tried again, and the same is not said again"
                    );
                }
                self.dumps.trouble = Some(kind);
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
            self.start_dump(force, Extent::Whole);
        }
    }
}

/// Waits for what is being made while checks make way for it, as long as they do.
async fn given_way<T>(places: &Places, made: impl Future<Output = T>) -> T {
    let mut made = pin!(made);
    if let Ok(made) = timeout(CHECKS_MAKE_WAY_AFTER, &mut made).await {
        return made;
    }
    let way = places.make_way();
    if let Ok(made) = timeout(CHECKS_MAKE_WAY_FOR, &mut made).await {
        return made;
    }
    drop(way);
    made.await
}

fn nothing_made(error: StoreError) -> Done {
    Done {
        names: Err(error.into()),
        has_pages: false,
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

    #[tokio::test(start_paused = true)]
    async fn checks_make_way_for_a_dump_and_not_for_one_that_hangs() {
        let places = &Places::fixed(8);
        let allowed = || places.allowed().0;
        let made = |after| async move {
            tokio::time::sleep(after).await;
            allowed()
        };
        let soon = CHECKS_MAKE_WAY_AFTER / 2;
        assert_eq!(given_way(places, made(soon)).await, 8, "no way is needed");
        let later = CHECKS_MAKE_WAY_AFTER * 2;
        assert_eq!(given_way(places, made(later)).await, 2);
        assert_eq!(allowed(), 8);
        let both = CHECKS_MAKE_WAY_AFTER + CHECKS_MAKE_WAY_FOR;
        let second = Duration::from_secs(1);
        let hangs = timeout(
            both + second * 2,
            given_way(places, std::future::pending::<()>()),
        );
        let (hangs, (during, after)) = tokio::join!(hangs, async {
            (made(both - second).await, made(second * 2).await)
        });
        assert!(hangs.is_err());
        assert_eq!((during, after), (2, 8));
    }

    const ORDINARY: Duration = Duration::from_secs(6 * 3600);

    fn done(names: Result<u64, PublishError>, has_pages: bool) -> Done {
        Done { names, has_pages }
    }

    fn held_back() -> Result<u64, PublishError> {
        let guarded = dump::guard(Some(100), 1, Force::No);
        Err(guarded.unwrap_err().into())
    }

    fn minutes(minutes: u64) -> Timestamp {
        Timestamp(0).plus(Duration::from_secs(60 * minutes))
    }

    /// Each list is a new signed set, which every mirror fetches.
    #[test]
    fn pages_that_failed_alone_are_tried_again_alone() {
        let mut dumps = Dumps::new(minutes(0), Some(9));
        dumps.next = minutes(360);
        let pages = PublishError::Pages(StoreError::Closed.into());
        dumps.plan(&done(Err(pages), false), minutes(1), ORDINARY);
        let due = [5, 6, 359, 360].map(|at| dumps.due(minutes(at)));
        let (pages, whole) = (Some(Extent::Pages), Some(Extent::Whole));
        assert_eq!(due, [None, pages, pages, whole]);
        dumps.plan(&done(Ok(9), true), minutes(7), ORDINARY);
        assert_eq!(dumps.due(minutes(359)), None);
        assert!(dumps.due(minutes(360)).is_some());
    }

    #[test]
    fn a_list_that_is_held_back_is_tried_often_and_its_pages_are_made_once_in_an_ordinary_pause() {
        let mut dumps = Dumps::new(minutes(0), Some(9));
        assert_eq!(dumps.due(minutes(0)), Some(Extent::Whole));
        dumps.next = minutes(360);
        dumps.plan(&done(held_back(), true), minutes(1), ORDINARY);
        let due = [5, 6].map(|at| dumps.due(minutes(at)));
        assert_eq!(due, [None, Some(Extent::ListFirst)]);
        for at in [6, 200, 360] {
            dumps.plan(&done(held_back(), true), minutes(at), ORDINARY);
            assert_eq!(dumps.due(minutes(at + 5)) == Some(Extent::Whole), at == 360);
        }
        dumps.plan(&done(held_back(), true), minutes(365), ORDINARY);
        assert_eq!(dumps.due(minutes(700)), Some(Extent::ListFirst));
        dumps.plan(&done(held_back(), false), minutes(700), ORDINARY);
        assert_eq!(dumps.due(minutes(705)), Some(Extent::Whole));
    }

    #[test]
    fn after_the_clock_was_set_nothing_waits_longer_than_an_ordinary_pause() {
        let mut dumps = Dumps::new(minutes(9000), Some(9));
        dumps.plan(&done(held_back(), true), minutes(9000), ORDINARY);
        dumps.clock_was_set(minutes(0), ORDINARY);
        assert_eq!(dumps.due(minutes(360)), Some(Extent::Whole));
    }
}
