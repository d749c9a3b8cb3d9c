//! What the census is worth: who was seen how often, which checks were for nothing, how true the list is.
//!
//! In: what the census did, beside what really is. Out: numbers. Refused: nothing. It decides nothing.

use std::time::Duration;

use census::state::{Record, StateName};
use census::time::Timestamp;

use crate::world::truth::{CANARIES, Now, Truth};

/// Within this each living host should be seen.
pub const DAY: Duration = Duration::from_secs(29 * 3600);

/// The same with the most that chance adds.
pub const DAY_AND_JITTER: Duration = Duration::from_secs(31 * 3600);

/// Nobody should be unseen for longer.
pub const TWO_DAYS: Duration = Duration::from_secs(48 * 3600);

/// What is counted of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counts {
    /// Hosts taken for a check.
    pub checks: u64,
    /// Of them, those that had been found dead and were dead.
    pub wasted: u64,
    /// Of the wasted, those that cost a container.
    pub wasted_containers: u64,
    /// Of the checks, those of invented names.
    pub invented: u64,
    /// Living hosts found alive, canaries left out.
    pub lived: u64,
    /// Verdicts settled.
    pub settled: u64,
    /// Failures of whom nobody could say whether it was them: asked again within seconds.
    pub asked_again: u64,
    /// Failures that found no witness: asked again within the hour.
    pub unconfirmed: u64,
    /// Canaries asked for.
    pub canaries: u64,
    /// Checks that were put off, out of turn.
    pub put_off: u64,
    /// Checks that ended on our side: without network, or broken off.
    pub ours: u64,
    /// Hosts forgotten by the rules.
    pub forgotten: u64,
    /// Owners' opt-outs by word of mouth.
    pub words: u64,
}

/// What the census knows of a host, by our own book.
#[derive(Debug, Clone, Copy)]
struct View {
    /// When its name came in.
    known: Option<Timestamp>,
    /// When it was last found alive.
    seen: Option<Timestamp>,
    /// Since when it is asked daily.
    daily: Option<Timestamp>,
}

impl View {
    const NONE: Self = Self {
        known: None,
        seen: None,
        daily: None,
    };
}

/// How it stood at a moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// Days since the start.
    pub day: f64,
    /// Names on the list.
    pub listed: u32,
    /// Of them, those that did not belong there: down, dead, moved, or opted out since they were last asked.
    pub listed_wrongly: u32,
    /// Invented names on the list.
    pub invented: u32,
    /// Hosts that belong on the list, known or not.
    pub living: u32,
    /// Of them, those that are not on it.
    pub missing: u32,
    /// Of the living who could have been seen within [`DAY`], the share that was.
    pub within_day: f64,
    /// The same within [`DAY_AND_JITTER`].
    pub within_day_and_jitter: f64,
    /// The same within [`TWO_DAYS`].
    pub within_two_days: f64,
    /// Checks so far.
    pub checks: u64,
    /// Wasted ones so far.
    pub wasted: u64,
    /// Rows.
    pub rows: u64,
    /// Bytes of the database with its log.
    pub bytes: u64,
}

/// What is on the list.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OnList {
    /// Names.
    pub(crate) listed: u32,
    /// Of them, hosts of the world that belong there.
    pub(crate) rightly: u32,
    /// Of them, invented ones.
    pub(crate) invented: u32,
}

/// The book.
#[derive(Debug)]
pub(crate) struct Measure {
    start: Timestamp,
    views: Vec<View>,
    /// How many of them are known.
    known: u64,
    /// What was counted.
    pub(crate) counts: Counts,
    /// How it stood, by time.
    pub(crate) samples: Vec<Sample>,
    /// The longest that a living host, known and asked daily, was not seen.
    pub(crate) longest: Duration,
}

impl Measure {
    /// An empty book.
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

    /// A host's name has come in. Gives whether that is news.
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

    /// A host was known already at the start, and last found alive then.
    pub(crate) fn imported(&mut self, record: &Record, number: u32) {
        let (start, is_daily) = (self.start, is_asked_daily(record.state.name()));
        self.known += 1;
        *self.view(number) = View {
            known: Some(start),
            seen: record.last_alive,
            daily: is_daily.then_some(start),
        };
    }

    /// How many hosts' names have come in.
    pub(crate) fn known(&self) -> u64 {
        self.known
    }

    /// Whether a host's name has come in.
    pub(crate) fn is_known(&self, number: u32) -> bool {
        self.get(number).is_some_and(|view| view.known.is_some())
    }

    /// When a host was last found alive, by this book.
    pub(crate) fn seen(&self, number: u32) -> Option<Timestamp> {
        self.get(number)?.seen
    }

    /// A verdict about a host was settled: this is its record now.
    pub(crate) fn settled(&mut self, number: u32, record: &Record, truth: &Truth, now: Timestamp) {
        self.counts.settled += 1;
        let lived = record.last_alive == Some(now);
        if lived && truth.belongs(number) {
            // Canaries are asked out of turn.
            self.counts.lived += u64::from(number >= CANARIES);
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

    /// A host was taken for a check by this record.
    pub(crate) fn taken(&mut self, number: u32, record: &Record, truth: &Truth) {
        let is_dead =
            matches!(truth.being(number), Some(being) if matches!(being.now, Now::Dead(_)));
        if is_dead && record.state.name() == StateName::Dead {
            self.counts.wasted += 1;
        }
    }

    /// Counts how it stands, of the list that was just read.
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
            wasted: self.counts.wasted,
            rows,
            bytes,
        });
    }

    /// For how long a host has lived unseen that is known and asked daily.
    fn unseen_for(&self, number: u32, truth: &Truth, now: Timestamp) -> Option<Duration> {
        let could = self.could_be_seen_for(number, truth, now)?;
        let unseen = self.seen(number).map(|seen| now.since(seen));
        Some(unseen.map_or(could, |unseen| unseen.min(could)))
    }

    /// For how long a living host could have been seen: it lived, was known and was asked daily.
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

/// Whether hosts in this state are asked daily.
fn is_asked_daily(state: StateName) -> bool {
    match state {
        StateName::Discovered | StateName::Alive | StateName::Dying | StateName::Moving => true,
        StateName::Dead | StateName::Moved | StateName::OptedOut | StateName::Parked => false,
    }
}

#[cfg(test)]
mod tests {
    use census::state::State;

    use super::*;
    use crate::world::World;
    use crate::world::names::Name;

    const START: Timestamp = Timestamp(1_800_000_000_000);
    const HOUR: Duration = Duration::from_secs(3600);

    /// Three canaries, who live whatever happens.
    fn world() -> (Truth, Measure) {
        let truth = Truth::new(World::named("all-living").unwrap(), 3, 1, START);
        (truth, Measure::new(START))
    }

    fn record(number: u32, state: State, seen: Option<Timestamp>) -> Record {
        let host = Name::Host(number).host().unwrap();
        Record {
            state,
            last_alive: seen,
            ..Record::discovered(host, START, START)
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
    fn whoever_is_asked_weekly_is_not_missed_daily() {
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
        let world = World {
            living: 0.0,
            ..World::named("default").unwrap()
        };
        let truth = Truth::new(world, 1, 1, START);
        let mut measure = Measure::new(START);
        measure.taken(0, &record(0, State::Discovered, None), &truth);
        assert_eq!(measure.counts.wasted, 0);
        measure.taken(0, &record(0, State::Dead, None), &truth);
        assert_eq!(measure.counts.wasted, 1);
    }
}
