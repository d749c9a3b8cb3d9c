//! How fast hosts are opened: as fast as the census needs, and no faster.
//!
//! It takes the number of overdue hosts, the number that come due soon, and the time, and returns
//! how many may be opened now. It never saves up more than a second's starts. Pure: the caller
//! passes the time.
//!
//! First checks are spread over a day, intervals have a jitter, and checks that a crash interrupted
//! are repeated within the hour, so the load is normally even. After hours without checks, all
//! hosts that came due in that time are overdue at once. The backlog is spread over `HORIZON`, so
//! that neither our resolver nor hosters of thousands of instances get all of it within minutes.
//! The rate also stays within what the gateway may dial. Which hosts have an address is known only
//! after the look-up, so the sustainable rate is found by trial.

use std::time::Duration;

use census::time::{Calendar, Timestamp};

/// Overdue checks are caught up within this time, as far as slots and paces allow. An hour is a
/// thirtieth of the interval of living hosts, and the time within which interrupted hosts are
/// checked again.
const HORIZON: Duration = Duration::from_secs(3600);

/// Hosts that come due within this time are the ordinary load: long enough that chance evens out,
/// and soon.
pub const AHEAD: Duration = Duration::from_secs(600);

/// Interval between two measurements. The load changes over minutes.
pub const MEASURE_EVERY: Duration = Duration::from_secs(10);

/// Most hosts that are counted, overdue or upcoming: sixty a second, more than an engine on one
/// machine can do. A measurement therefore takes some milliseconds, whatever the backlog.
pub const COUNTED_MAX: u32 = 200_000;

/// Most starts per second: the highest dial rate that the gateway's settings allow.
const RATE_MAX: f64 = 1000.0;

/// Starts are released in portions of this length, so that one write marks a whole portion as in
/// flight.
pub const PORTION: Duration = Duration::from_millis(50);

/// If the gateway has no dial to spare, the rate falls to this fraction. Nobody knows beforehand
/// which hosts have an address, so the sustainable rate is found by trial.
const LOWERED_TO: f64 = 0.9;

/// Shortest time between two such reductions: as long as a host waits for its dial, so that earlier
/// starts have ended.
const LOWER_EVERY: Duration = Duration::from_secs(1);

/// With each measurement the bound rises by this factor, until no dial is to spare again.
const RAISED_TO: f64 = 1.1;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Hosts that are due already.
    pub late: u32,
    /// Hosts that come due within `AHEAD`, by the calendar.
    pub coming: u32,
}

#[derive(Debug)]
pub struct StartRate {
    /// Least starts per second.
    least: f64,
    /// Starts per second that the load needs.
    needed: f64,
    /// Starts per second that the gateway's dials have sustained.
    sustainable: f64,
    lowered: Option<Timestamp>,
    /// Starts that may happen now.
    ready: f64,
    at: Timestamp,
}

impl StartRate {
    /// Starts at the least rate, with one portion ready: a restart of the daemon is no reason for
    /// more.
    pub fn new(least: u32, now: Timestamp) -> Self {
        let least = f64::from(least.max(1)).min(RATE_MAX);
        Self {
            least,
            needed: least,
            sustainable: RATE_MAX,
            lowered: None,
            ready: portion(least),
            at: now,
        }
    }

    /// The clock was set: earlier times are no longer comparable.
    pub fn clock_was_set(&mut self, now: Timestamp) {
        self.at = now;
        self.lowered = None;
    }

    /// Uses this load from now on.
    pub fn measured(&mut self, load: Load, calendar: Calendar, now: Timestamp) {
        self.refill(now);
        let a_second = |count: u32, over| {
            let over: Duration = calendar.shortened(over);
            f64::from(count) / over.as_secs_f64().max(PORTION.as_secs_f64())
        };
        let needed = a_second(load.coming, AHEAD) + a_second(load.late, HORIZON);
        self.needed = needed.clamp(self.least, RATE_MAX);
        self.sustainable = (self.sustainable * RAISED_TO).min(RATE_MAX);
        self.ready = self.ready.min(self.full());
    }

    /// How many checks may start now.
    pub fn ready(&mut self, now: Timestamp) -> u32 {
        self.refill(now);
        // Less than a second's starts, so it fits.
        self.ready as u32
    }

    /// Records that this number of checks started.
    pub fn spend(&mut self, count: u32) {
        self.ready = (self.ready - f64::from(count)).max(0.0);
    }

    /// Records that one of the started checks had no effect outside, so its start is available
    /// again.
    pub fn returned(&mut self) {
        self.ready = (self.ready + 1.0).min(self.full());
    }

    /// Lowers the rate, because more checks started than the gateway may dial. A check without a
    /// dial costs a look-up and two writes for nothing.
    pub fn lower(&mut self, now: Timestamp) {
        self.refill(now);
        let is_recent = |at| now.since(at) < LOWER_EVERY;
        if self.lowered.is_some_and(is_recent) {
            return;
        }
        self.lowered = Some(now);
        self.sustainable = (self.rate() * LOWERED_TO).max(self.least);
        self.ready = self.ready.min(self.full());
    }

    /// Time until a portion is ready.
    pub fn wait(&self) -> Duration {
        let lacking = portion(self.rate()) - self.ready;
        if lacking <= 0.0 {
            return Duration::ZERO;
        }
        // Timestamps count milliseconds: a time that is rounded down would cause repeated wake-ups.
        Duration::from_secs_f64(lacking / self.rate()) + Duration::from_millis(1)
    }

    /// Most starts per second at present.
    pub fn rate(&self) -> f64 {
        self.needed.min(self.sustainable)
    }

    fn refill(&mut self, now: Timestamp) {
        let passed = now.since(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.ready = (self.ready + passed * self.rate()).min(self.full());
    }

    /// Most starts that are saved up: a second's. Without room, no more accumulate.
    fn full(&self) -> f64 {
        self.rate().max(1.0)
    }
}

fn portion(rate: f64) -> f64 {
    (rate * PORTION.as_secs_f64()).max(1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const REAL: Calendar = Calendar::REAL;

    fn loaded(late: u32, coming: u32) -> (StartRate, Timestamp) {
        let now = Timestamp(1_700_000_000_000);
        let mut starts = StartRate::new(10, now);
        starts.measured(Load { late, coming }, REAL, now);
        (starts, now)
    }

    /// Starts in `seconds` seconds with constant room and due hosts, if called every `step` ms.
    fn started(starts: &mut StartRate, now: Timestamp, seconds: u64, step: u64) -> u32 {
        (0..=seconds * 1000 / step)
            .map(|n| {
                let count = starts.ready(now.plus(Duration::from_millis(n * step)));
                starts.spend(count);
                count
            })
            .sum()
    }

    #[test]
    fn a_small_census_is_checked_at_the_least_rate_and_a_large_one_as_it_needs() {
        assert!((loaded(5, 0).0.rate() - 10.0).abs() < 1e-9);
        // A million living hosts within 29 hours.
        let coming = 1_000_000 * 600 / (29 * 3600);
        let ordinary = loaded(0, coming).0.rate();
        assert!((9.5..=10.0).contains(&ordinary), "{ordinary}");
        // Three lost hours are caught up within one hour, in addition to the ordinary load.
        let late = 1_000_000 * 3 / 29;
        let after = loaded(late, coming).0.rate();
        assert!((38.0..39.0).contains(&after), "{after}");
        assert!((loaded(u32::MAX, u32::MAX).0.rate() - RATE_MAX).abs() < 1e-9);
    }

    #[test]
    fn a_start_of_the_daemon_begins_with_a_portion_and_not_with_all_that_is_late() {
        let (mut starts, now) = loaded(1_000_000, 0);
        assert_eq!(starts.ready(now), 1);
        let first_second = started(&mut starts, now, 1, 10);
        assert!(f64::from(first_second) <= starts.rate() + 1.0);
    }

    #[test]
    fn an_hour_without_room_saves_up_a_second() {
        let (mut starts, now) = loaded(0, 0);
        assert_eq!(starts.ready(now.plus(Duration::from_secs(3600))), 10);
    }

    #[test]
    fn a_start_that_came_to_nothing_is_owed_again_and_saves_up_no_more_than_any() {
        let (mut starts, now) = loaded(0, 0);
        let ready = starts.ready(now);
        starts.spend(ready);
        starts.returned();
        assert_eq!(starts.ready(now), 1);
        (0..99).for_each(|_| starts.returned());
        assert_eq!(starts.ready(now), 10);
    }

    /// A gateway that dials `dials` a second and defers hosts that it can't dial within a second;
    /// all hosts have an address. Returns the starts in the last minute of ten, and how many of
    /// them were deferred.
    fn against_dials(dials: f64) -> (u32, u32) {
        let (mut starts, begin) = loaded(COUNTED_MAX, COUNTED_MAX);
        let (mut waiting, mut started, mut deferred) = (0.0_f64, 0, 0);
        for step in 0..12_000_u64 {
            let now = begin.plus(Duration::from_millis(50 * step));
            if step % 200 == 0 {
                let load = Load {
                    late: COUNTED_MAX,
                    coming: COUNTED_MAX,
                };
                starts.measured(load, REAL, now);
            }
            waiting = (waiting - dials / 20.0).max(0.0);
            let count = starts.ready(now);
            starts.spend(count);
            let late = (waiting + f64::from(count) - dials).max(0.0) as u32;
            waiting += f64::from(count - late.min(count));
            if late > 0 {
                starts.lower(now);
            }
            if step >= 10_800 {
                started += count;
                deferred += late.min(count);
            }
        }
        (started, deferred)
    }

    #[test]
    fn no_more_are_opened_than_can_be_dialled_and_hardly_fewer() {
        for dials in [20.0, 100.0] {
            let (started, deferred) = against_dials(dials);
            let dialled = f64::from(started - deferred) / 60.0;
            assert!(dialled >= dials * 0.85, "{dialled} of {dials}");
            assert!(
                f64::from(deferred) <= f64::from(started) * 0.05,
                "{deferred} of {started}"
            );
        }
        let (started, _) = against_dials(5.0);
        assert!(started >= 600, "the least rate stays: {started}");
    }

    #[test]
    fn intervals_that_the_lab_divides_divide_the_horizon() {
        let now = Timestamp(1_700_000_000_000);
        let mut starts = StartRate::new(10, now);
        let load = Load {
            late: 360,
            coming: 0,
        };
        starts.measured(load, Calendar { divisor: 1000 }, now);
        assert!((starts.rate() - 100.0).abs() < 1e-9, "{}", starts.rate());
    }

    #[test]
    fn whoever_waits_as_told_finds_a_portion() {
        let (mut starts, now) = loaded(0, 600 * 100);
        let ready = starts.ready(now);
        starts.spend(ready);
        let later = now.plus(starts.wait());
        assert_eq!(starts.ready(later), 5, "{:?}", later.since(now));
    }

    proptest! {
        /// No burst, whatever is overdue and however often the function is called; and no lull.
        #[test]
        fn starts_are_steady(late in 0..2_000_000_u32, coming in 0..100_000_u32, seconds in 5..60_u64, step in 1..200_u64) {
            let (mut starts, now) = loaded(late, coming);
            let rate = starts.rate();
            let started = f64::from(started(&mut starts, now, seconds, step));
            let fair = rate * seconds as f64;
            prop_assert!(started <= fair + portion(rate) + 1.0, "{} of {}", started, fair);
            prop_assert!(started >= fair * 0.75 - 2.0, "{} of {}", started, fair);
        }

        #[test]
        fn clocks_that_stand_still_or_go_back_give_nothing(backs in prop::collection::vec(0..10_000_u64, 1..20)) {
            let (mut starts, now) = loaded(0, 0);
            let later = now.plus(Duration::from_secs(100));
            let ready = starts.ready(later);
            starts.spend(ready);
            for back in backs {
                prop_assert_eq!(starts.ready(later.minus(Duration::from_millis(back))), 0);
            }
        }
    }
}
