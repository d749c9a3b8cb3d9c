//! How many containers may run at once, derived from the engine's behaviour.
//!
//! It takes start times, engine failures, the machine's pressure and the time, and returns a number
//! between two bounds. A single sample never changes it. Pure: the caller passes the time.
//!
//! It uses additive increase and multiplicative decrease, like congestion control on networks: a
//! healthy engine gets slightly more work, a slow or failing one much less. A start is *slow* if it
//! takes twice as long as usual with the same number in progress. More starts at once naturally
//! take longer, so each doubling of their number has its own usual time. The usual time adapts
//! slowly, so a permanently slower machine is accepted in the end. Rejected: load averages alone,
//! which on a busy machine say nothing about the engine; a fixed number, which is right for one
//! machine only.

use std::time::Duration;

use census::time::Timestamp;

/// Samples that are judged together for failures. For slow starts it is as many of these as hold
/// all that may run at once: starts that were in progress together are slow together, so fewer
/// would be one chance event.
const WINDOW: usize = 5;

/// Engine failures among them that cause a decrease: one may be chance.
const FAILED_MIN: usize = 2;

/// A start is slow if it takes this many times as long as usual.
const SLOW_FACTOR: u32 = 2;

/// It must also take this much longer: a check takes seconds, and processes that wait for a
/// processor cause variations of this size.
const NOISE: Duration = Duration::from_millis(200);

/// A start that takes longer is always slow: a sixth of a check's whole time.
const START_MAX: Duration = Duration::from_secs(10);

/// A decrease because of the engine removes the number divided by this, at least one.
const BACK_OFF_PART: u32 = 4;

/// A decrease because of the machine: a smaller step, since it was measured and not guessed, and
/// since a larger one leaves processors idle until the number has grown again.
const EASE_PART: u32 = 8;

/// After a decrease the number does not grow for this long, so that earlier starts can end.
const SETTLE: Duration = Duration::from_secs(5);

/// While the pressure is high, the number does not grow. Each such measurement counts for this
/// long.
const HIGH_FOR: Duration = Duration::from_secs(10);

/// Shortest time between two decreases because of an overloaded machine: the time over which its
/// processors are observed.
const EASE_EVERY: Duration = Duration::from_secs(10);

/// A sample above the usual time raises it by the usual time divided by this: it doubles after
/// about 45.
const RISE_PART: u32 = 64;

/// Least increase: a fraction of zero would be zero.
const RISE_MIN: Duration = Duration::from_millis(1);

/// A sample below the usual time lowers it by the difference divided by this.
const FALL_PART: u32 = 8;

/// Doublings of the number in progress, each with its own usual time: 1, 2 to 3, 4 to 7 … 64.
const DOUBLINGS: usize = 7;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Fewest containers at once, 1 or more.
    pub least: u32,
    pub most: u32,
}

/// How busy the machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pressure {
    Low,
    /// The machine has as much work as it should.
    High,
    /// The machine has too much work.
    Overloaded,
}

/// A container that gave its first output.
#[derive(Debug, Clone, Copy)]
pub struct Started {
    /// Time from its request to its first output.
    pub took: Duration,
    /// Containers in progress at its request, including itself.
    pub in_progress: u32,
    pub asked: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sample {
    /// The start took the usual time. `full` if all slots were in use.
    Well {
        full: bool,
    },
    Slow,
    Failed,
}

/// How many containers may run at once.
#[derive(Debug)]
pub struct Concurrency {
    bounds: Bounds,
    allowed: u32,
    usual: [Option<Duration>; DOUBLINGS],
    window: Vec<Sample>,
    /// Starts that were requested before this belong to an earlier limit.
    since: Timestamp,
    stays_until: Timestamp,
    /// No decrease for pressure before this.
    eased_until: Timestamp,
}

impl Concurrency {
    /// Begins with the least: a machine that has just booted has other work. A window of starts
    /// raises the number by one.
    pub fn new(bounds: Bounds, now: Timestamp) -> Self {
        let least = bounds.least.clamp(1, bounds.most.max(1));
        let most = bounds.most.max(least);
        Self {
            bounds: Bounds { least, most },
            allowed: least,
            usual: [None; DOUBLINGS],
            window: Vec::new(),
            since: now,
            stays_until: now,
            eased_until: now,
        }
    }

    /// Containers that may run at once.
    pub fn allowed(&self) -> u32 {
        self.allowed
    }

    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// A container gave its first output.
    pub fn started(&mut self, started: Started, now: Timestamp) {
        if started.asked < self.since {
            return;
        }
        let slow = self.is_slow(&started);
        self.learn(&started);
        let full = started.in_progress >= self.allowed;
        let sample = if slow {
            Sample::Slow
        } else {
            Sample::Well { full }
        };
        self.judge(sample, now);
    }

    /// The engine failed to run a container that was requested at `asked`.
    pub fn failed(&mut self, asked: Timestamp, now: Timestamp) {
        if asked >= self.since {
            self.judge(Sample::Failed, now);
        }
    }

    /// The clock was set: earlier times are no longer comparable.
    pub fn clock_was_set(&mut self, now: Timestamp) {
        (self.since, self.stays_until, self.eased_until) = (now, now, now);
    }

    /// The machine's pressure was measured.
    pub fn pressure(&mut self, pressure: Pressure, now: Timestamp) {
        match pressure {
            Pressure::Low => {}
            Pressure::High => self.stay(now, HIGH_FOR),
            Pressure::Overloaded => {
                self.stay(now, HIGH_FOR);
                if now >= self.eased_until {
                    self.eased_until = now.plus(EASE_EVERY);
                    self.back_off(EASE_PART, now);
                }
            }
        }
    }

    fn judge(&mut self, sample: Sample, now: Timestamp) {
        self.window.push(sample);
        let count = |seen: &[Sample], kind| seen.iter().filter(|it| **it == kind).count();
        let latest = self.window.chunks(WINDOW).next_back().unwrap_or_default();
        let round = usize::try_from(self.allowed).unwrap_or_default();
        let round = round.next_multiple_of(WINDOW);
        let most_are_slow = count(&self.window, Sample::Slow) > round / 2;
        if most_are_slow || count(latest, Sample::Failed) >= FAILED_MIN {
            self.back_off(BACK_OFF_PART, now);
            return;
        }
        if self.window.len() < round {
            return;
        }
        // An unused limit is no evidence that a higher one works.
        if count(&self.window, Sample::Well { full: true }) > 0 && now >= self.stays_until {
            self.allowed = self.allowed.saturating_add(1).min(self.bounds.most);
        }
        self.window.clear();
    }

    fn back_off(&mut self, part: u32, now: Timestamp) {
        let less = (self.allowed / part).max(1);
        self.allowed = self.allowed.saturating_sub(less).max(self.bounds.least);
        self.window.clear();
        self.since = now;
        self.stay(now, SETTLE);
    }

    fn stay(&mut self, now: Timestamp, span: Duration) {
        self.stays_until = self.stays_until.max(now.plus(span));
    }

    fn is_slow(&self, started: &Started) -> bool {
        let usual = self.usual_for(doubling(started.in_progress));
        started.took > START_MAX
            || usual.is_some_and(|usual| {
                started.took
                    > usual
                        .saturating_mul(SLOW_FACTOR)
                        .max(usual.saturating_add(NOISE))
            })
    }

    /// If this number was never in progress, expects the time of half the number, doubled: anything
    /// slower is no gain.
    fn usual_for(&self, doubling: usize) -> Option<Duration> {
        let known = self.usual.iter().take(doubling + 1).enumerate().rev();
        let mut known = known.filter_map(|(at, usual)| Some((at, (*usual)?)));
        known
            .next()
            .map(|(at, usual)| usual.saturating_mul(1 << (doubling - at)))
    }

    fn learn(&mut self, started: &Started) {
        let doubling = doubling(started.in_progress);
        let usual = self.usual_for(doubling).unwrap_or(started.took);
        let took = started.took;
        let learned = if took < usual {
            usual - (usual - took) / FALL_PART
        } else {
            usual + (usual / RISE_PART).max(RISE_MIN).min(took - usual)
        };
        if let Some(usual) = self.usual.get_mut(doubling) {
            *usual = Some(learned);
        }
    }
}

fn doubling(in_progress: u32) -> usize {
    let doubling = usize::try_from(in_progress.max(1).ilog2()).unwrap_or(DOUBLINGS);
    doubling.min(DOUBLINGS - 1)
}

#[cfg(test)]
mod tests;
