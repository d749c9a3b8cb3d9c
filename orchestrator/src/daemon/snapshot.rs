//! The loop's state as `status` and `health` show it.

mod ill;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use census::time::Timestamp;
use scheduler::blame::blackout::NoSuccess;
use scheduler::slots::concurrency::Pressure;
use scheduler::{Limit, Snapshot};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::admit::gate::GateView;
use crate::ground::meters::Meters;

pub(super) use ill::Trouble;
pub use ill::troubles;

/// Period over which the rate of checks is measured.
const RATE_OVER: Duration = Duration::from_secs(300);

/// Ends within this time are counted together.
const SECOND: Duration = Duration::from_secs(1);

/// Entries kept for the rate: one for each second of its period, and some extra that a set clock
/// may add.
const SECONDS_MAX: usize = 400;

/// Shared between the loop and those who read its state.
#[derive(Debug)]
pub struct Live {
    inner: Mutex<Inner>,
    meters: Arc<Meters>,
}

#[derive(Debug)]
struct Inner {
    state: LiveState,
    /// When the loop last completed a round, by a clock that stands still while the machine sleeps.
    round_at: Instant,
    ends: VecDeque<Second>,
    /// What the machine lacks, if it does.
    pressed: Option<&'static str>,
}

/// Checks that ended in one second.
#[derive(Debug, Clone, Copy)]
struct Second {
    begins: Timestamp,
    ends: u32,
}

/// The loop's state at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveState {
    /// When the daemon started, in ms since 1970.
    pub started_ms: i64,
    /// When this state was read, in ms since 1970: the daemon's clock may differ from the
    /// machine's.
    pub now_ms: i64,
    /// When the loop last completed a round, in ms since 1970.
    pub last_round_ms: i64,
    /// How long that is ago, without the time in which the machine slept.
    pub still_s: u64,
    /// When the daemon started, the machine woke up or its clock was set, in ms since 1970.
    pub resumed_ms: i64,
    /// Hosts being checked or written.
    pub in_flight: u64,
    pub pace: Box<Pace>,
    /// Failures that wait for confirmation.
    pub waiting: u64,
    /// Checks that ended in the last five minutes, per second.
    pub checks_per_second: f64,
    /// Checks that ended since the start, by verdict (or `fault`).
    pub ended: BTreeMap<String, u64>,
    /// Which part of ours fails, and since when in ms since 1970.
    pub outage: Option<(String, i64)>,
    /// Set while failures accumulate and no check succeeds: most likely the cause is ours.
    pub blackout: Option<NoSuccess>,
    /// Which of two ways out does not work, what is wrong, and since when in ms since 1970.
    #[serde(default)]
    pub ill_ways: Vec<(String, String, i64)>,
    /// Whether a list or pages are being published.
    pub is_publishing: bool,
    /// When the last list was published, in ms since 1970.
    pub listed_ms: Option<i64>,
    /// What was wrong with the last dump, if anything.
    pub dump_trouble: Option<String>,
    /// Whether it was held back because it lost too many names.
    pub is_held_back: bool,
    /// What seems wrong with the machine's clock, if anything.
    pub clock_trouble: Option<String>,
    /// Admitted names, and the rules in force.
    pub admission: Option<Box<GateView>>,
}

impl LiveState {
    /// Whether the daemon has no more urgent work than walks. Unknown before the loop's first
    /// round, so `false`.
    pub fn is_quiet(&self) -> bool {
        let is_up = self.last_round_ms != 0;
        is_up && self.outage.is_none() && self.blackout.is_none() && !self.is_publishing
    }
}

/// The limits that follow from the machine and its load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// Containers that may run at once now.
    pub checks_allowed: u32,
    /// Lower bound of `checks_allowed`.
    pub checks_min: u32,
    /// Upper bound of `checks_allowed`.
    pub checks_max: u32,
    pub checks_running: u32,
    /// Why no more run: `checks_max`, `memory`, `processor`, `engine`, `dials`, `paces`, `demand`.
    pub limited_by: String,
    /// Most hosts opened per second.
    pub starts_per_second: f64,
    /// Hosts being opened or checked, by class.
    pub under_way: BTreeMap<String, u32>,
}

impl Live {
    /// For a daemon that starts now and counts with these meters.
    pub fn new(now: Timestamp, meters: Arc<Meters>) -> Self {
        let state = LiveState {
            started_ms: now.0,
            resumed_ms: now.0,
            ..LiveState::default()
        };
        let inner = Inner {
            state,
            round_at: Instant::now(),
            ends: VecDeque::new(),
            pressed: None,
        };
        Self {
            inner: Mutex::new(inner),
            meters,
        }
    }

    pub fn state(&self, now: Timestamp) -> LiveState {
        let mut inner = self.lock();
        let since = now.minus(RATE_OVER);
        inner
            .ends
            .retain(|second| second.begins >= since && second.begins <= now);
        let running = now
            .since(Timestamp(inner.state.started_ms))
            .min(RATE_OVER)
            .max(Duration::from_secs(1));
        let ended = inner.ends.iter().map(|second| second.ends);
        let ended = ended.fold(0, u32::saturating_add);
        inner.state.now_ms = now.0;
        inner.state.still_s = inner.round_at.elapsed().as_secs();
        inner.state.ended = self.meters.ended();
        inner.state.checks_per_second = f64::from(ended) / running.as_secs_f64();
        inner.state.clone()
    }

    /// Counts an ended check for the rate. The meters count its outcome.
    pub(super) fn count(&self, now: Timestamp) {
        let mut inner = self.lock();
        let recent = inner
            .ends
            .back_mut()
            .filter(|second| now >= second.begins && now.since(second.begins) < SECOND);
        match recent {
            Some(second) => second.ends = second.ends.saturating_add(1),
            None => inner.ends.push_back(Second {
                begins: now,
                ends: 1,
            }),
        }
        if inner.ends.len() > SECONDS_MAX {
            inner.ends.pop_front();
        }
    }

    pub(super) fn dumps(&self) {
        self.lock().state.is_publishing = true;
    }

    /// Why a publication failed, if it did, and whether its list was held back.
    pub(super) fn dumped(&self, trouble: Option<String>, is_held_back: bool) {
        let mut inner = self.lock();
        inner.state.is_publishing = false;
        inner.state.dump_trouble = trouble;
        inner.state.is_held_back = is_held_back;
    }

    pub(super) fn listed(&self, at: Timestamp) {
        self.lock().state.listed_ms = Some(at.0);
    }

    /// The machine's pressure, and its cause if it is not low.
    pub(super) fn pressed(&self, pressure: Pressure, cause: &'static str) {
        self.lock().pressed = (pressure != Pressure::Low).then_some(cause);
    }

    /// The machine woke up, or its clock was set.
    pub(super) fn resumed(&self, now: Timestamp) {
        self.lock().state.resumed_ms = now.0;
    }

    pub(super) fn show(&self, now: Timestamp, scheduler: Snapshot) {
        let mut inner = self.lock();
        let pressed = inner.pressed;
        inner.round_at = Instant::now();
        let state = &mut inner.state;
        state.last_round_ms = now.0;
        state.in_flight = u64::try_from(scheduler.in_flight).unwrap_or(u64::MAX);
        *state.pace = Pace {
            checks_allowed: scheduler.containers_allowed,
            checks_min: scheduler.containers.least,
            checks_max: scheduler.containers.most,
            checks_running: scheduler.containers_running,
            limited_by: limited_by(&scheduler, pressed).to_owned(),
            starts_per_second: scheduler.start_rate,
            under_way: scheduler
                .in_progress
                .into_iter()
                .map(|(class, count)| (class.to_owned(), count))
                .collect(),
        };
        state.waiting = u64::try_from(scheduler.waiting).unwrap_or(u64::MAX);
        state.outage = scheduler.outage.map(|(what, since)| (what, since.0));
        state.blackout = scheduler.blackout;
        let ill = scheduler.ways.into_iter().filter_map(|state| {
            let (what, since) = state.ill?;
            Some((state.way.as_str().to_owned(), what, since.0))
        });
        state.ill_ways = ill.collect();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        // These numbers are for display: half an update does no harm.
        self.inner
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Why no more containers run. If hosts wait for slots below the maximum and the machine is not
/// pressed, starts were slow, or the number still grows.
fn limited_by(scheduler: &Snapshot, pressed: Option<&'static str>) -> &'static str {
    match scheduler.limit {
        Limit::Slots if scheduler.containers_allowed >= scheduler.containers.most => "checks_max",
        Limit::Slots => pressed.unwrap_or("engine"),
        Limit::Dials => "dials",
        Limit::Paces => "paces",
        Limit::Due => "demand",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hundreds_of_ends_a_second_are_all_counted() {
        let begin = Timestamp(1_700_000_000_000);
        let live = Live::new(begin, Arc::default());
        for end in 0..150_000 {
            live.count(begin.plus(Duration::from_millis(end * 2)));
        }
        let now = begin.plus(Duration::from_secs(300));
        let rate = live.state(now).checks_per_second;
        assert!((rate - 500.0).abs() < 2.0, "{rate}");
        assert!(live.lock().ends.len() <= SECONDS_MAX);
        let later = live.state(now.plus(RATE_OVER * 2)).checks_per_second;
        assert!(later.abs() < 1e-9, "{later}");
    }

    #[test]
    fn walks_wait_for_outages_and_publications() {
        let quiet = LiveState {
            last_round_ms: 1,
            ..LiveState::default()
        };
        assert!(quiet.is_quiet());
        for busy in [
            LiveState::default(),
            LiveState {
                outage: Some(("gateway".to_owned(), 1)),
                ..quiet.clone()
            },
            LiveState {
                is_publishing: true,
                ..quiet.clone()
            },
        ] {
            assert!(!busy.is_quiet(), "{busy:?}");
        }
    }
}
