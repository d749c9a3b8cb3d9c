//! Measures the census's quality: how often each host was seen, which checks were useless, how
//! accurate the list is.
//!
//! It compares what the census did with the truth, and decides nothing.

use std::time::Duration;

use census::state::{Record, StateName};
use census::time::Timestamp;

use crate::world::truth::{Now, Truth};

/// Time within which each responding host should be seen.
pub const DAY: Duration = Duration::from_secs(29 * 3600);

/// The same time with the largest jitter.
pub const DAY_AND_JITTER: Duration = Duration::from_secs(31 * 3600);

/// Longest time for which a responding host should be unseen.
pub const TWO_DAYS: Duration = Duration::from_secs(48 * 3600);

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counts {
    pub checks: u64,
    /// Checks of hosts that were dead and known to be dead.
    pub wasted: u64,
    pub invented: u64,
    /// Checks that found a responding host alive, without canaries.
    pub lived: u64,
    pub settled: u64,
    /// Failures that may have been ours: checked again within seconds.
    pub asked_again: u64,
    /// Failures without a witness: checked again within the hour.
    pub unconfirmed: u64,
    pub canaries: u64,
    /// Checks that were deferred to their turn.
    pub put_off: u64,
    /// Checks that failed on our side: without a network, or broken off.
    pub ours: u64,
    pub forgotten: u64,
    /// Owners' opt-outs through the operator.
    pub words: u64,
}

/// The census's knowledge of a host, by our own records.
#[derive(Debug, Clone, Copy)]
struct View {
    known: Option<Timestamp>,
    seen: Option<Timestamp>,
    daily: Option<Timestamp>,
}

impl View {
    const NONE: Self = Self {
        known: None,
        seen: None,
        daily: None,
    };
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    pub day: f64,
    pub listed: u32,
    /// Listed names that did not belong there: down, dead, moved, or opted out since their last
    /// check.
    pub listed_wrongly: u32,
    pub invented: u32,
    /// Hosts that belong on the list, known or not.
    pub living: u32,
    /// Those that are not on it.
    pub missing: u32,
    /// Of the responding hosts that could have been seen within [`DAY`], the fraction that was.
    pub within_day: f64,
    /// The same within [`DAY_AND_JITTER`].
    pub within_day_and_jitter: f64,
    /// The same within [`TWO_DAYS`].
    pub within_two_days: f64,
    pub checks: u64,
    pub rows: u64,
    /// Bytes of the database with its log.
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OnList {
    pub(crate) listed: u32,
    /// Names of the world's hosts that belong there.
    pub(crate) rightly: u32,
    pub(crate) invented: u32,
}

#[derive(Debug)]
pub(crate) struct Measure {
    start: Timestamp,
    views: Vec<View>,
    known: u64,
    pub(crate) counts: Counts,
    pub(crate) samples: Vec<Sample>,
    /// The longest time for which a responding host, known and checked daily, was not seen.
    pub(crate) longest: Duration,
}

impl Measure {
    pub(crate) fn new(start: Timestamp) -> Self {
        Self {
            start,
            views: Vec::new(),
            known: 0,
            counts: Counts::default(),
            samples: Vec::new(),
            longest: Duration::ZERO,
        }
    }

    /// Records that a host's name was added. Returns whether it is new.
    pub(crate) fn knows(&mut self, number: u32, now: Timestamp) -> bool {
        let view = self.view(number);
        let is_news = view.known.is_none();
        if is_news {
            view.known = Some(now);
            view.daily = Some(now);
            self.known += 1;
        }
        is_news
    }

    /// Records that a host was known at the start, and last found alive then.
    pub(crate) fn imported(&mut self, record: &Record, number: u32) {
        let (start, is_daily) = (self.start, is_asked_daily(record.state.name()));
        self.known += 1;
        *self.view(number) = View {
            known: Some(start),
            seen: record.last_alive,
            daily: is_daily.then_some(start),
        };
    }

    /// Number of hosts whose names were added.
    pub(crate) fn known(&self) -> u64 {
        self.known
    }

    /// Whether a host's name was added.
    pub(crate) fn is_known(&self, number: u32) -> bool {
        self.get(number).is_some_and(|view| view.known.is_some())
    }

    /// When a host was last found alive, by these records.
    pub(crate) fn seen(&self, number: u32) -> Option<Timestamp> {
        self.get(number)?.seen
    }

    /// Records a committed verdict about a host, with its new record.
    pub(crate) fn settled(&mut self, number: u32, record: &Record, truth: &Truth, now: Timestamp) {
        self.counts.settled += 1;
        let lived = record.last_alive == Some(now);
        if lived && truth.belongs(number) {
            // Canaries are checked out of turn.
            self.counts.lived += u64::from(!truth.is_seed(number));
            let gap = self.unseen_for(number, truth, now);
            self.longest = self.longest.max(gap.unwrap_or_default());
        }
        let is_daily = is_asked_daily(record.state.name());
        let view = self.view(number);
        if lived {
            view.seen = Some(now);
        }
        view.daily = is_daily.then_some(view.daily.unwrap_or(now));
    }

    /// Records that a host was taken for a check, with its record.
    pub(crate) fn taken(&mut self, number: u32, record: &Record, truth: &Truth) {
        let is_dead =
            matches!(truth.being(number), Some(being) if matches!(being.now, Now::Dead(_)));
        if is_dead && record.state.name() == StateName::Dead {
            self.counts.wasted += 1;
        }
    }

    /// Adds a sample for the list that was just read.
    pub(crate) fn sample(
        &mut self,
        truth: &Truth,
        list: OnList,
        rows: u64,
        bytes: u64,
        now: Timestamp,
    ) {
        let mut within = [
            (DAY, 0_u32, 0_u32),
            (DAY_AND_JITTER, 0, 0),
            (TWO_DAYS, 0, 0),
        ];
        for number in 0..truth.count() {
            let Some(unseen) = self.unseen_for(number, truth, now) else {
                continue;
            };
            self.longest = self.longest.max(unseen);
            let Some(could) = self.could_be_seen_for(number, truth, now) else {
                continue;
            };
            for (span, could_be, was) in &mut within {
                if could >= *span {
                    *could_be += 1;
                    *was += u32::from(unseen <= *span);
                }
            }
        }
        let [day, jitter, two] = within.map(|(_, could_be, was)| match could_be {
            0 => 1.0,
            some => f64::from(was) / f64::from(some),
        });
        self.samples.push(Sample {
            day: now.since(self.start).as_secs_f64() / 86_400.0,
            listed: list.listed,
            listed_wrongly: list.listed - list.rightly - list.invented,
            invented: list.invented,
            living: truth.living(),
            missing: truth.living().saturating_sub(list.rightly),
            within_day: day,
            within_day_and_jitter: jitter,
            within_two_days: two,
            checks: self.counts.checks,
            rows,
            bytes,
        });
    }

    /// How long a known host that is checked daily has responded without being seen.
    fn unseen_for(&self, number: u32, truth: &Truth, now: Timestamp) -> Option<Duration> {
        let could = self.could_be_seen_for(number, truth, now)?;
        let unseen = self.seen(number).map(|seen| now.since(seen));
        Some(unseen.map_or(could, |unseen| unseen.min(could)))
    }

    /// How long a responding host could have been seen: it responded, was known and was checked
    /// daily.
    fn could_be_seen_for(&self, number: u32, truth: &Truth, now: Timestamp) -> Option<Duration> {
        if !truth.belongs(number) {
            return None;
        }
        let up = truth.being(number)?.since;
        let view = self.get(number)?;
        let since = view.known?.max(view.daily?).max(up);
        Some(now.since(since))
    }

    fn get(&self, number: u32) -> Option<&View> {
        self.views.get(usize::try_from(number).ok()?)
    }

    fn view(&mut self, number: u32) -> &mut View {
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        if self.views.len() <= place {
            self.views.resize(place.saturating_add(1), View::NONE);
        }
        #[expect(
            clippy::indexing_slicing,
            reason = "invariant: it was just made long enough"
        )]
        &mut self.views[place]
    }
}

fn is_asked_daily(state: StateName) -> bool {
    match state {
        StateName::Discovered | StateName::Alive | StateName::Dying | StateName::Moving => true,
        StateName::Dead | StateName::Moved | StateName::OptedOut | StateName::Parked => false,
    }
}

#[cfg(test)]
mod tests {
    use census::state::State;
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    use super::*;
    use crate::world::World;
    use crate::world::known::KnownWorld;

    const START: Timestamp = Timestamp(1_800_000_000_000);
    const HOUR: Duration = Duration::from_secs(3600);

    fn world() -> (Truth, Measure) {
        (truth(3, 1.0), Measure::new(START))
    }

    fn truth(hosts: u32, living: f64) -> Truth {
        let mut chance = StdRng::seed_from_u64(1);
        let hosts = KnownWorld::made(hosts, living, 0.5, &mut chance).unwrap();
        Truth::new(hosts, World::still(), 1, START).unwrap()
    }

    fn record(number: u32, state: State, seen: Option<Timestamp>) -> Record {
        Record {
            state,
            last_alive: seen,
            ..Record::discovered(kit::host(&format!("h{number}.net")), START, START)
        }
    }

    fn sample(truth: &Truth, measure: &mut Measure, hours: u32) -> Sample {
        let list = OnList {
            listed: 4,
            rightly: 1,
            invented: 2,
        };
        measure.sample(truth, list, 9, 9, START.plus(HOUR * hours));
        measure.samples.last().unwrap().clone()
    }

    #[test]
    fn who_is_seen_counts_and_who_is_not_known_does_not() {
        let (truth, mut measure) = world();
        assert!(measure.knows(0, START) && !measure.knows(0, START));
        measure.knows(1, START);
        assert!(
            sample(&truth, &mut measure, 28).within_day > 0.99,
            "nobody could yet"
        );
        let at = START.plus(HOUR * 20);
        measure.settled(0, &record(0, State::Alive, Some(at)), &truth, at);
        let later = sample(&truth, &mut measure, 30);
        assert!((later.within_day - 0.5).abs() < 0.01, "{later:?}");
        assert!(later.within_day_and_jitter > 0.99);
        assert_eq!((later.listed_wrongly, later.missing), (1, 2));
        let later = sample(&truth, &mut measure, 60);
        assert!((later.within_two_days - 0.5).abs() < 0.01);
        assert_eq!(measure.longest, HOUR * 60, "of the one that was never seen");
        assert_eq!(measure.counts.lived, 0, "they are canaries");
    }

    #[test]
    fn host_checked_weekly_is_not_missed_daily() {
        let (truth, mut measure) = world();
        measure.imported(&record(0, State::Dead, None), 0);
        assert!(sample(&truth, &mut measure, 99).within_two_days > 0.99);
        assert_eq!(measure.longest, Duration::ZERO);
        let at = START.plus(HOUR * 100);
        measure.settled(0, &record(0, State::Alive, Some(at)), &truth, at);
        sample(&truth, &mut measure, 120);
        assert_eq!(measure.longest, HOUR * 20);
    }

    #[test]
    fn a_check_is_wasted_on_the_dead_who_were_found_dead() {
        let truth = truth(1, 0.0);
        let mut measure = Measure::new(START);
        measure.taken(0, &record(0, State::Discovered, None), &truth);
        assert_eq!(measure.counts.wasted, 0);
        measure.taken(0, &record(0, State::Dead, None), &truth);
        assert_eq!(measure.counts.wasted, 1);
    }
}
