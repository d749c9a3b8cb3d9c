//! A limiter's counters, and its page for Prometheus.
//!
//! The names are those of Anansi's limiter, so that its dashboards fit. Waiting and computing are
//! measured separately, because the whole call always takes its constant time.

use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::call::{Status, Times};

/// Upper bounds of the histograms' buckets, in milliseconds: a hash takes about 50 to 500.
const BUCKETS_MS: [u64; 9] = [1, 10, 25, 50, 100, 250, 500, 1000, 2500];

/// The status of a computation that ran and failed itself.
const ERROR: &str = "error";

/// Counters and histograms since the start.
#[derive(Debug, Default)]
pub struct Metrics {
    counts: Mutex<Counts>,
}

/// The counters of a login limiter.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct LoginCounts {
    /// Right passwords.
    pub verify_successes: u64,
    /// Wrong passwords, and computations that failed.
    pub verify_failures: u64,
    /// Bans that began.
    pub banned_ips: u64,
    /// Bans that a clean-up found ended.
    pub unbanned_ips: u64,
    /// Locks that began.
    pub locked_users: u64,
    /// Locks that a clean-up found ended.
    pub unlocked_users: u64,
}

impl LoginCounts {
    pub(crate) fn verified(&mut self, is_right: bool) {
        let count = match is_right {
            true => &mut self.verify_successes,
            false => &mut self.verify_failures,
        };
        *count = count.saturating_add(1);
    }
}

#[derive(Debug, Default)]
struct Counts {
    /// In the order of [`Status::ALL`].
    ended: [u64; Status::ALL.len()],
    errors: u64,
    overruns: u64,
    whole: Summary,
    waited: Histogram,
    worked: Histogram,
    login: LoginCounts,
}

#[derive(Debug, Default)]
struct Summary {
    count: u64,
    sum: Duration,
}

#[derive(Debug, Default)]
struct Histogram {
    below: [u64; BUCKETS_MS.len()],
    all: Summary,
}

impl Summary {
    fn observe(&mut self, time: Duration) {
        self.count = self.count.saturating_add(1);
        self.sum = self.sum.saturating_add(time);
    }
}

impl Histogram {
    fn observe(&mut self, time: Duration) {
        for (below, bound) in self.below.iter_mut().zip(BUCKETS_MS) {
            if time <= Duration::from_millis(bound) {
                *below = below.saturating_add(1);
            }
        }
        self.all.observe(time);
    }

    fn write(&self, page: &mut String, name: &str, help: &str) {
        head(page, name, "histogram", help);
        for (bound, below) in BUCKETS_MS.iter().zip(self.below) {
            let le = Duration::from_millis(*bound).as_secs_f64();
            line(page, &format!("{name}_bucket{{le=\"{le}\"}}"), below);
        }
        line(
            page,
            &format!("{name}_bucket{{le=\"+Inf\"}}"),
            self.all.count,
        );
        total(page, name, &self.all);
    }
}

impl Counts {
    fn write_ended(&self, page: &mut String) {
        let failures = "limiter_compute_failures";
        head(
            page,
            failures,
            "counter",
            "Calls whose computation did not run, or failed.",
        );
        let mut successes = 0;
        for (status, ended) in Status::ALL.iter().zip(self.ended) {
            match status {
                Status::Ran => successes = ended,
                _ => failed(page, failures, status.as_str(), ended),
            }
        }
        failed(page, failures, ERROR, self.errors);
        for (name, count, help) in [
            (
                "limiter_compute_successes",
                successes,
                "Calls whose computation ran.",
            ),
            (
                "limiter_overruns_total",
                self.overruns,
                "Calls that took longer than the constant time.",
            ),
        ] {
            head(page, name, "counter", help);
            line(page, name, count);
        }
    }
}

impl LoginCounts {
    fn write(&self, page: &mut String) {
        for (name, count, help) in [
            (
                "verify_successes",
                self.verify_successes,
                "Right passwords.",
            ),
            (
                "verify_failures",
                self.verify_failures,
                "Wrong passwords, and failed computations.",
            ),
            ("banned_ips_total", self.banned_ips, "Bans of addresses."),
            ("unbanned_ips_total", self.unbanned_ips, "Bans that ended."),
            ("locked_users_total", self.locked_users, "Locks of users."),
            (
                "unlocked_users_total",
                self.unlocked_users,
                "Locks that ended.",
            ),
        ] {
            let name = format!("login_rate_limiter_{name}");
            head(page, &name, "counter", help);
            line(page, &name, count);
        }
    }
}

impl Metrics {
    /// Records a call that took its constant time.
    pub(crate) fn computed(&self, status: Status, failed: bool, times: Times) {
        let mut counts = self.counts();
        if failed {
            counts.errors = counts.errors.saturating_add(1);
        } else {
            count(&mut counts.ended, status);
        }
        let whole = times.exited.saturating_duration_since(times.entered);
        counts.whole.observe(whole);
    }

    /// Records a call whose computation exceeded the constant time.
    pub(crate) fn overran(&self) {
        let mut counts = self.counts();
        counts.overruns = counts.overruns.saturating_add(1);
    }

    pub(crate) fn answered_at_once(&self, status: Status) {
        count(&mut self.counts().ended, status);
    }

    pub(crate) fn worked(&self, waited: Duration, worked: Duration) {
        let mut counts = self.counts();
        counts.waited.observe(waited);
        counts.worked.observe(worked);
    }

    pub(crate) fn login(&self, change: impl FnOnce(&mut LoginCounts)) {
        change(&mut self.counts().login);
    }

    /// Number of calls with this status.
    pub fn ended(&self, status: Status) -> u64 {
        let counts = self.counts();
        let mut all = Status::ALL.iter().zip(counts.ended);
        all.find(|(of, _)| **of == status)
            .map_or(0, |(_, count)| count)
    }

    /// Number of computations that ran and failed themselves.
    pub fn errors(&self) -> u64 {
        self.counts().errors
    }

    /// The counters of logins.
    pub fn login_counts(&self) -> LoginCounts {
        self.counts().login
    }

    /// The page in Prometheus' text format.
    pub fn page(&self) -> String {
        let counts = self.counts();
        let mut page = String::new();
        let whole = "limiter_compute_duration_seconds";
        head(
            &mut page,
            whole,
            "summary",
            "Time of whole calls, the constant time among it.",
        );
        total(&mut page, whole, &counts.whole);
        let help = "Time until a computation could run.";
        counts.waited.write(&mut page, "limiter_wait_seconds", help);
        counts
            .worked
            .write(&mut page, "limiter_work_seconds", "Time of computations.");
        counts.write_ended(&mut page);
        counts.login.write(&mut page);
        page
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count(ended: &mut [u64; Status::ALL.len()], status: Status) {
    for (of, count) in Status::ALL.iter().zip(ended) {
        if *of == status {
            *count = count.saturating_add(1);
        }
    }
}

// Writing to a string can't fail.

fn head(page: &mut String, name: &str, kind: &str, help: &str) {
    writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}").ok();
}

fn line(page: &mut String, name: &str, value: u64) {
    writeln!(page, "{name} {value}").ok();
}

fn failed(page: &mut String, name: &str, status: &str, count: u64) {
    line(page, &format!("{name}{{final_status=\"{status}\"}}"), count);
}

fn total(page: &mut String, name: &str, summary: &Summary) {
    writeln!(page, "{name}_sum {}", summary.sum.as_secs_f64()).ok();
    line(page, &format!("{name}_count"), summary.count);
}
