//! How many containers may run at once: found by what the engine does.
//!
//! In: how long starts took, failures of the engine, pressure on the machine, and the time. Out: a
//! number between two bounds. Refused: to follow a single sample. Pure: the time is handed in.
//!
//! Additive increase, multiplicative decrease, as congestion is avoided on networks: who finds the engine well asks a little more of it, who finds it
//! slow or failing a good deal less. A start is *slow* when it takes twice as long as is usual with as many under way: more at once take longer by
//! nature, so each doubling of their number has a usual time of its own. It follows slowly, so a machine that becomes slower for good is accepted in
//! the end. Rejected: going by load alone, which on a busy machine says nothing about the engine; a fixed number, which is right for one machine.

use std::time::Duration;

use census::time::Timestamp;

/// Samples that are judged together.
const WINDOW: usize = 5;

/// Slow starts among them that count: most of them.
const SLOW_MIN: usize = 3;

/// Failures of the engine among them that count: one may be chance.
const FAILED_MIN: usize = 2;

/// A start is slow when it takes so many times as long as is usual.
const SLOW_FACTOR: u32 = 2;

/// And at least so much longer: a check takes seconds, and processes that wait for their turn make a noise of that size.
const NOISE: Duration = Duration::from_millis(200);

/// A start that takes longer is slow whatever is usual: a sixth of the time that a whole check has.
const START_MAX: Duration = Duration::from_secs(10);

/// Of this many parts the number of containers loses one when it is too large, and one at least.
const BACK_OFF_PART: u32 = 4;

/// After a decrease the number stays for this long: what was started before ends meanwhile.
const SETTLE: Duration = Duration::from_secs(5);

/// While the machine is tight the number does not grow; each word of it counts for this long.
const HIGH_FOR: Duration = Duration::from_secs(10);

/// A machine that is overloaded takes a decrease at most so often: load averages lag by half a minute.
const EASE_EVERY: Duration = Duration::from_secs(30);

/// What is usual rises by this part of itself with a sample above it: doubled after some 45.
const RISE_PART: u32 = 64;

/// And by this at least: nothing would come of a part of nothing.
const RISE_MIN: Duration = Duration::from_millis(1);

/// And falls by this part of the difference with one below it.
const FALL_PART: u32 = 8;

/// Doublings of the number under way that have a usual time of their own: 1, 2 to 3, 4 to 7 … 64.
const DOUBLINGS: usize = 7;

/// Between which bounds the number lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Containers at once at least, 1 or more.
    pub least: u32,
    /// Containers at once at most.
    pub most: u32,
}

/// How hard the machine is pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pressure {
    /// There is room for more.
    Low,
    /// As much as it should take.
    High,
    /// Too much.
    Overloaded,
}

/// A container that gave its first output.
#[derive(Debug, Clone, Copy)]
pub struct Started {
    /// From asking for it to that.
    pub took: Duration,
    /// Containers under way when it was asked for, itself among them.
    pub in_progress: u32,
    /// When it was asked for.
    pub asked: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sample {
    /// As usual; whether all places were taken.
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
    /// Starts that were asked for before this belong to a former limit.
    since: Timestamp,
    /// No growth before this.
    stays_until: Timestamp,
    /// No decrease for pressure before this.
    eased_until: Timestamp,
}

impl Concurrency {
    /// Begins with the least: a machine that has just come up has other work. It takes five starts to allow one more.
    pub fn new(bounds: Bounds, now: Timestamp) -> Self {
        let least = bounds.least.clamp(1, bounds.most.max(1));
        let most = bounds.most.max(least);
        Self {
            bounds: Bounds { least, most },
            allowed: least,
            usual: [None; DOUBLINGS],
            window: Vec::with_capacity(WINDOW),
            since: now,
            stays_until: now,
            eased_until: now,
        }
    }

    /// Containers that may run at once.
    pub fn allowed(&self) -> u32 {
        self.allowed
    }

    /// Between which bounds that lies.
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

    /// The engine failed at a container that was asked for at `asked`.
    pub fn failed(&mut self, asked: Timestamp, now: Timestamp) {
        if asked >= self.since {
            self.judge(Sample::Failed, now);
        }
    }

    /// The clock was set: moments of before are worth nothing.
    pub fn clock_was_set(&mut self, now: Timestamp) {
        (self.since, self.stays_until, self.eased_until) = (now, now, now);
    }

    /// The machine was looked at.
    pub fn pressure(&mut self, pressure: Pressure, now: Timestamp) {
        match pressure {
            Pressure::Low => {}
            Pressure::High => self.stay(now, HIGH_FOR),
            Pressure::Overloaded => {
                self.stay(now, HIGH_FOR);
                if now >= self.eased_until {
                    self.eased_until = now.plus(EASE_EVERY);
                    self.back_off(now);
                }
            }
        }
    }

    fn judge(&mut self, sample: Sample, now: Timestamp) {
        self.window.push(sample);
        let count = |kind| self.window.iter().filter(|seen| **seen == kind).count();
        if count(Sample::Slow) >= SLOW_MIN || count(Sample::Failed) >= FAILED_MIN {
            self.back_off(now);
            return;
        }
        if self.window.len() < WINDOW {
            return;
        }
        // Who does not use what is allowed has not shown that more would do.
        if count(Sample::Well { full: true }) > 0 && now >= self.stays_until {
            self.allowed = self.allowed.saturating_add(1).min(self.bounds.most);
        }
        self.window.clear();
    }

    fn back_off(&mut self, now: Timestamp) {
        let less = (self.allowed / BACK_OFF_PART).max(1);
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

    /// Where so many were never under way, what half as many take twice over: more than that is no gain.
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
