//! When lists and pages are published.

use std::time::Duration;

use census::time::{Calendar, Timestamp};

/// A failed publication is tried again after this. If only the pages failed, only they are made
/// again.
const AGAIN_AFTER: Duration = Duration::from_secs(300);

/// Pauses after the first list that names a host, while a census grows fast. The ordinary pause
/// follows.
const GROWTH_PAUSES: [Duration; 8] = [
    FIRST_PAUSE,
    Duration::from_mins(2),
    Duration::from_mins(5),
    Duration::from_mins(15),
    Duration::from_mins(30),
    Duration::from_hours(1),
    Duration::from_hours(2),
    Duration::from_hours(4),
];

/// Shortest pause between lists. Also between attempts at the first one: the hosts that responded
/// may all be hidden or held.
const FIRST_PAUSE: Duration = Duration::from_mins(1);

/// Longest wait of the first list while the clock lies before the last one. A machine without a
/// clock of its own starts in the past and is set a moment later; a list that is older than the
/// last one makes every mirror download everything. A clock that was wrong when the last list was
/// made must not stop the census.
const EARLIER_MAX: Duration = Duration::from_hours(1);

/// A list that is made within this time is short and needs no throttle.
const THROTTLE_AFTER: Duration = Duration::from_secs(2);

/// Longest time for which fewer checks run while a list is made. The throttle gives the list a
/// processor even if checks keep all of them busy: readers wait for the list, and checks catch up.
/// A million names take less than a minute with it, and a hanging disk must not delay the census
/// for longer.
const THROTTLE_FOR: Duration = Duration::from_secs(120);

/// The last list, made before this process began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastList {
    /// When the first list that named a host was made. `None` if all were empty.
    pub first: Option<Timestamp>,
    pub at: Timestamp,
}

/// How far the sequence of growing pauses is. Its position is the age of the first list that named
/// a host, which the database keeps, so restarts and lists in between don't change it.
#[derive(Debug, Clone, Copy)]
enum Growth {
    /// No list has named a host. The first one follows the first response.
    Awaited {
        /// The earliest next attempt.
        from: Timestamp,
    },
    Since(Timestamp),
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Full,
    /// The list. The pages follow, unless the list is held back and no host had to leave the
    /// current one: then the pages already show the current list, and are recent.
    ListFirst,
    Pages,
}

/// Whether a list that lost too many names is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    No,
    Yes,
}

/// Which part of a publication failed and is tried again soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishAgain {
    Nothing,
    Pages,
    Everything,
}

/// The publication in progress, the next one, and queued requests.
#[derive(Debug)]
pub(crate) struct Publication {
    began: Option<Timestamp>,
    next: Timestamp,
    /// When failed pages are tried again, without the list.
    pages_next: Option<Timestamp>,
    /// Until when the pages are fresh enough if a list is held back. `None` if they don't show the
    /// current list.
    pages_fresh_until: Option<Timestamp>,
    /// Requested during another publication, whose snapshot may be too old. Starts when that one
    /// ends.
    queued: Option<Force>,
    /// How soon a list must follow at most: the first one, and one after a host withdrew.
    within: Option<Duration>,
    growth: Growth,
    calendar: Calendar,
    pub(crate) interval: Duration,
}

impl Publication {
    /// The first publication is due at once, or once the clock has passed the last list.
    pub(crate) fn new(
        now: Timestamp,
        last: Option<LastList>,
        calendar: Calendar,
        interval: Duration,
    ) -> Self {
        let growth = match last.and_then(|last| last.first) {
            None => Growth::Awaited { from: now },
            Some(first) if first <= now => Growth::Since(first),
            // One of the clocks was wrong, so the age is unknown.
            Some(_) => Growth::Over,
        };
        let passed = last.map_or(now, |last| last.at);
        Self {
            began: None,
            next: passed.clamp(now, now.plus(EARLIER_MAX)),
            pages_next: None,
            pages_fresh_until: None,
            queued: None,
            within: Some(EARLIER_MAX),
            growth,
            calendar,
            interval,
        }
    }

    pub(crate) fn is_in_progress(&self) -> bool {
        self.began.is_some()
    }

    /// Whether fewer checks run now.
    pub(crate) fn throttles(&self, now: Timestamp) -> bool {
        self.began.is_some_and(|began| {
            let lasts = now.since(began);
            lasts >= THROTTLE_AFTER && lasts < THROTTLE_AFTER.saturating_add(THROTTLE_FOR)
        })
    }

    /// When the next one is due.
    pub(crate) fn next(&self) -> Timestamp {
        self.pages_next
            .map_or(self.next, |pages| pages.min(self.next))
    }

    /// A host that may be on the list withdrew. The list that follows is the next one for earlier
    /// withdrawals too. One in progress may name the host and is followed by another.
    pub(crate) fn withdrawn(&mut self, now: Timestamp) {
        let within = self.calendar.withdrawn_within();
        self.within = Some(within);
        self.next = self.next.min(now.plus(within));
    }

    /// The pages say what is no longer so, and are made again at once. If some are in progress, the
    /// caller looks at those first.
    pub(crate) fn pages_outdated(&mut self, now: Timestamp) {
        if self.began.is_none() {
            self.pages_next = Some(now);
        }
    }

    /// Whether no list has named a host yet.
    pub(crate) fn is_first_awaited(&self) -> bool {
        matches!(self.growth, Growth::Awaited { .. })
    }

    /// A host responded, and the store knows. Brings the first list, if it is awaited.
    pub(crate) fn responded(&mut self, now: Timestamp) {
        let pause = self.calendar.shortened(FIRST_PAUSE);
        if let Growth::Awaited { from } = &mut self.growth {
            let at = now.max(*from);
            if at < self.next {
                *from = at.plus(pause);
                self.next = at;
                self.within = Some(pause);
            }
        }
    }

    /// The publication in progress made a list that names a host.
    pub(crate) fn listed(&mut self) {
        if let (Growth::Awaited { .. }, Some(began)) = (self.growth, self.began) {
            self.growth = Growth::Since(began);
            let pause = self.pause(began);
            self.next = self.next.min(began.plus(pause));
        }
    }

    /// The clock was set: earlier times are no longer comparable. A sequence of growing pauses
    /// begins again.
    pub(crate) fn clock_was_set(&mut self, now: Timestamp) {
        self.growth = match self.growth {
            Growth::Awaited { .. } => Growth::Awaited { from: now },
            Growth::Since(_) => Growth::Since(now),
            Growth::Over => Growth::Over,
        };
        let pause = self.pause(now);
        let latest = now.plus(self.within.unwrap_or(pause));
        self.next = self.next.min(latest);
        self.pages_next = self.pages_next.map(|next| next.min(latest));
        self.pages_fresh_until = None;
        self.began = self.began.map(|_| now);
    }

    /// Publishes now, or after the publication in progress.
    pub(crate) fn ask(&mut self, force: Force, now: Timestamp) -> Option<(Extent, Force)> {
        if self.began.is_none() {
            return Some(self.begin(Extent::Full, force, now));
        }
        let queued = self.queued.get_or_insert(Force::No);
        if force == Force::Yes {
            *queued = Force::Yes;
        }
        None
    }

    /// Starts the publication that is due now, if any.
    pub(crate) fn due(&mut self, now: Timestamp) -> Option<(Extent, Force)> {
        if self.began.is_some() {
            return None;
        }
        let extent = self.extent_due(now)?;
        Some(self.begin(extent, Force::No, now))
    }

    fn extent_due(&self, now: Timestamp) -> Option<Extent> {
        if now >= self.next {
            let is_fresh = self.pages_fresh_until.is_some_and(|until| now < until);
            return Some(if is_fresh {
                Extent::ListFirst
            } else {
                Extent::Full
            });
        }
        self.pages_next
            .is_some_and(|next| now >= next)
            .then_some(Extent::Pages)
    }

    fn begin(&mut self, extent: Extent, force: Force, now: Timestamp) -> (Extent, Force) {
        self.began = Some(now);
        if extent != Extent::Pages {
            self.next = now.plus(self.pause(now));
            self.within = None;
        }
        (extent, force)
    }

    /// Ends the publication in progress and returns the queued one. `interval` is the ordinary
    /// pause from now on.
    pub(crate) fn ended(
        &mut self,
        again: PublishAgain,
        has_pages: bool,
        interval: Duration,
        now: Timestamp,
    ) -> Option<(Extent, Force)> {
        self.began = None;
        self.interval = interval;
        let soon = now.plus(AGAIN_AFTER);
        self.pages_next = None;
        match again {
            PublishAgain::Nothing => {}
            PublishAgain::Pages => self.pages_next = Some(soon),
            PublishAgain::Everything => self.next = self.next.min(soon),
        }
        if !has_pages {
            self.pages_fresh_until = None;
        } else if self.pages_fresh_until.is_none_or(|until| now >= until) {
            self.pages_fresh_until = Some(now.plus(interval));
        }
        let force = self.queued.take()?;
        Some(self.begin(Extent::Full, force, now))
    }

    /// The pause after a list that begins now. A list that begins shortly before the next one of
    /// the sequence replaces it.
    fn pause(&mut self, now: Timestamp) -> Duration {
        let Growth::Since(first) = self.growth else {
            return self.interval;
        };
        let age = now.since(first);
        let soon = age.saturating_add(self.calendar.shortened(FIRST_PAUSE) / 2);
        let mut next = Duration::ZERO;
        for pause in GROWTH_PAUSES {
            next = next.saturating_add(self.calendar.shortened(pause));
            if next > soon {
                return next.saturating_sub(age).min(self.interval);
            }
        }
        self.growth = Growth::Over;
        self.interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(6 * 3600);

    fn minutes(minutes: u64) -> Timestamp {
        Timestamp(0).plus(Duration::from_secs(60 * minutes))
    }

    /// A census that starts at this time, with a list made at the beginning of these tests.
    fn starts(now: Timestamp, first: Option<Timestamp>) -> Publication {
        let at = minutes(0);
        Publication::new(now, Some(LastList { first, at }), Calendar::REAL, INTERVAL)
    }

    /// A census that starts at this time and published its first list a week before these tests.
    fn old(now: Timestamp) -> Publication {
        starts(now, Some(minutes(0).minus(Duration::from_hours(168))))
    }

    /// An old census whose first list was published at once.
    fn published() -> Publication {
        let mut publication = old(minutes(0));
        assert_eq!(publication.due(minutes(0)), Some((Extent::Full, Force::No)));
        publication
    }

    /// Publishes lists that name a host whenever one is due, and returns the minutes.
    fn published_at(publication: &mut Publication, from: u64, until: u64) -> Vec<u64> {
        let begins = (from..until).filter(|&minute| {
            let begins = publication.due(minutes(minute)).is_some();
            if begins {
                publication.listed();
                publication.ended(PublishAgain::Nothing, true, INTERVAL, minutes(minute));
            }
            begins
        });
        begins.collect()
    }

    #[test]
    fn outdated_pages_are_made_at_once_and_without_a_list() {
        let mut publication = published();
        publication.pages_outdated(minutes(0));
        assert_eq!(publication.due(minutes(0)), None, "one is in progress");
        publication.ended(PublishAgain::Nothing, true, INTERVAL, minutes(1));
        assert_eq!(publication.due(minutes(2)), None);
        publication.pages_outdated(minutes(2));
        let pages = Some((Extent::Pages, Force::No));
        assert_eq!(publication.due(minutes(2)), pages);
    }

    #[test]
    fn first_list_follows_a_response_and_the_next_ones_soon() {
        let mut young = starts(minutes(0), None);
        assert!(young.due(minutes(0)).is_some(), "pages without a list");
        young.ended(PublishAgain::Nothing, true, INTERVAL, minutes(0));
        assert_eq!(young.extent_due(minutes(359)), None);
        young.responded(minutes(60));
        let lists = published_at(&mut young, 60, 1300);
        let first = [0, 1, 3, 8, 23, 53, 113, 233, 473, 833, 1193];
        assert_eq!(lists, first.map(|after| 60 + after));
        young.responded(minutes(1300));
        assert_eq!(young.extent_due(minutes(1301)), None);
    }

    #[test]
    fn position_among_the_growing_pauses_survives_restarts() {
        let mut again = starts(minutes(30), Some(minutes(0)));
        let lists = published_at(&mut again, 30, 900);
        assert_eq!(lists, [30, 53, 113, 233, 473, 833]);
        for first in [minutes(0), minutes(501)] {
            let mut over = starts(minutes(500), Some(first));
            assert_eq!(published_at(&mut over, 500, 900), [500, 860], "{first:?}");
        }
    }

    /// Such as an instance that asks not to be listed, or one of a held group.
    #[test]
    fn responses_that_bring_no_name_are_tried_once_a_minute() {
        let mut young = starts(minutes(0), None);
        let second = |second: i64| Timestamp(second * 1000);
        let begins = (0..200).filter(|&at| {
            let begins = young.due(second(at)).is_some();
            young.ended(PublishAgain::Nothing, true, INTERVAL, second(at));
            young.responded(second(at));
            begins
        });
        assert_eq!(begins.collect::<Vec<_>>(), [0, 1, 60, 120, 180]);
    }

    #[test]
    fn growing_pauses_begin_again_when_the_clock_was_set() {
        let mut young = starts(minutes(100), Some(minutes(0)));
        assert_eq!(published_at(&mut young, 100, 110), [100]);
        young.clock_was_set(minutes(5));
        assert_eq!(published_at(&mut young, 5, 20), [6, 8, 13]);
    }

    #[test]
    fn growing_pauses_are_divided_in_the_lab() {
        let mut lab = starts(minutes(0), Some(minutes(0)));
        let near = lab.pause(minutes(1).minus(Duration::from_secs(1)));
        assert_eq!(near, Duration::from_secs(121), "it replaces the next one");
        lab.calendar.divisor = 60;
        assert_eq!(lab.pause(minutes(0)), Duration::from_secs(1));
    }

    #[test]
    fn fewer_checks_run_while_a_list_is_made_but_not_for_one_that_hangs() {
        let publication = published();
        let at = |seconds| Timestamp(0).plus(Duration::from_secs(seconds));
        let throttles =
            [0, 1, 2, 60, 121, 122, 9999].map(|second| publication.throttles(at(second)));
        assert_eq!(throttles, [false, false, true, true, true, false, false]);
        let idle = old(minutes(0));
        assert!(!idle.throttles(minutes(1)));
    }

    /// Each list is a new signed set, which every mirror fetches.
    #[test]
    fn pages_that_failed_alone_are_tried_again_alone() {
        let mut publication = published();
        publication.ended(PublishAgain::Pages, false, INTERVAL, minutes(1));
        let due = [5, 6, 359, 360].map(|at| publication.extent_due(minutes(at)));
        let (pages, full) = (Some(Extent::Pages), Some(Extent::Full));
        assert_eq!(due, [None, pages, pages, full]);
        assert_eq!(
            publication.due(minutes(7)),
            Some((Extent::Pages, Force::No))
        );
        publication.ended(PublishAgain::Nothing, true, INTERVAL, minutes(7));
        assert_eq!(publication.extent_due(minutes(359)), None);
    }

    /// A list that is held back is tried again every five minutes; its pages would be the same.
    #[test]
    fn fresh_pages_are_not_made_again_for_a_list_that_is_held_back() {
        let mut publication = published();
        publication.ended(PublishAgain::Everything, true, INTERVAL, minutes(1));
        assert_eq!(publication.extent_due(minutes(5)), None);
        assert_eq!(publication.extent_due(minutes(6)), Some(Extent::ListFirst));
        publication.due(minutes(6));
        publication.ended(PublishAgain::Everything, false, INTERVAL, minutes(6));
        assert_eq!(publication.extent_due(minutes(11)), Some(Extent::Full));
    }

    #[test]
    fn one_that_is_asked_for_while_another_is_in_progress_follows_it() {
        let mut publication = published();
        assert_eq!(publication.ask(Force::Yes, minutes(1)), None);
        assert_eq!(publication.ask(Force::No, minutes(1)), None);
        assert_eq!(publication.due(minutes(400)), None, "one at a time");
        let next = publication.ended(PublishAgain::Nothing, true, INTERVAL, minutes(2));
        assert_eq!(next, Some((Extent::Full, Force::Yes)));
        let next = publication.ended(PublishAgain::Nothing, true, INTERVAL, minutes(3));
        assert_eq!(next, None);
        let asked = publication.ask(Force::No, minutes(4));
        assert_eq!(asked, Some((Extent::Full, Force::No)));
    }

    /// Hosts that opt out all the time cost mirrors at most 144 lists a day.
    #[test] // S65
    fn withdrawals_in_each_minute_share_a_list_every_ten_minutes() {
        let mut publication = published();
        let begins = (1..60).filter(|&minute| {
            let now = minutes(minute);
            publication.withdrawn(now);
            let begins = publication.due(now).is_some();
            publication.ended(PublishAgain::Nothing, true, INTERVAL, now);
            begins
        });
        assert_eq!(begins.collect::<Vec<_>>(), [11, 22, 33, 44, 55]);
    }

    #[test]
    fn a_host_that_withdraws_while_a_list_is_made_brings_another() {
        let mut publication = published();
        publication.withdrawn(minutes(1));
        publication.ended(PublishAgain::Nothing, true, INTERVAL, minutes(2));
        let due = [10, 11].map(|at| publication.extent_due(minutes(at)).is_some());
        assert_eq!(due, [false, true]);
    }

    /// As on a machine without a clock of its own, which starts where it stopped.
    #[test]
    fn a_clock_before_the_last_list_delays_the_next_for_an_hour() {
        let begins = |ago: u64| {
            let now = minutes(0).minus(Duration::from_secs(60 * ago));
            (now, old(now))
        };
        let (now, mut early) = begins(30);
        assert_eq!(early.extent_due(now), None);
        assert_eq!(early.extent_due(minutes(0)), Some(Extent::Full));
        early.clock_was_set(minutes(500));
        assert_eq!(early.extent_due(minutes(500)), Some(Extent::Full));
        let (now, mut wrong) = begins(1_000_000);
        assert_eq!(wrong.next(), now.plus(EARLIER_MAX));
        let past = now.minus(INTERVAL);
        wrong.clock_was_set(past);
        assert_eq!(wrong.next(), past.plus(EARLIER_MAX));
        wrong.withdrawn(past);
        assert_eq!(wrong.next(), past.plus(Calendar::REAL.withdrawn_within()));
    }

    #[test]
    fn a_clock_that_was_set_back_keeps_no_list_for_ever() {
        let mut publication = published();
        publication.ended(PublishAgain::Nothing, true, INTERVAL, minutes(1));
        let past = Timestamp(-1_000_000_000_000);
        publication.clock_was_set(past);
        assert_eq!(publication.next(), past.plus(INTERVAL));
        publication.withdrawn(minutes(1));
        publication.clock_was_set(past);
        assert_eq!(publication.next(), past.plus(Duration::from_secs(600)));
    }
}
