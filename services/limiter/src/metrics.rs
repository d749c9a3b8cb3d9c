//! A limiter's counters, and its page for Prometheus.
//!
//! The names are those of Anansi's limiter, so that its dashboards fit. Waiting and computing are
//! measured separately, because the whole call always takes its constant time.

use prometheus::core::Collector;
use prometheus::proto::{MetricType, Summary};
use prometheus::{
    Histogram, HistogramOpts, IntCounter, IntCounterVec, Opts, Registry, TextEncoder,
};

use crate::call::{Status, Times};

/// Upper bounds of the histograms' buckets, in seconds: a hash takes about 0.05 to 0.5.
const BUCKETS_S: [f64; 9] = [0.001, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5];

/// The status of a computation that ran and failed itself.
const ERROR: &str = "error";

/// A summary, which the library lacks: a histogram until the page is written.
const WHOLE: &str = "limiter_compute_duration_seconds";

#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    whole: Histogram,
    pub(crate) waited: Histogram,
    pub(crate) worked: Histogram,
    successes: IntCounter,
    failures: IntCounterVec,
    pub(crate) overruns: IntCounter,
    pub(crate) verify_successes: IntCounter,
    pub(crate) verify_failures: IntCounter,
    pub(crate) banned_ips: IntCounter,
    pub(crate) unbanned_ips: IntCounter,
    pub(crate) locked_users: IntCounter,
    pub(crate) unlocked_users: IntCounter,
}

impl Default for Metrics {
    fn default() -> Self {
        let registry = Registry::new();
        let counter = |name, help| registered(&registry, IntCounter::new(name, help));
        let histogram = |name, help| {
            let options = HistogramOpts::new(name, help).buckets(BUCKETS_S.to_vec());
            registered(&registry, Histogram::with_opts(options))
        };
        let failures = Opts::new(
            "limiter_compute_failures",
            "Calls whose computation did not run, or failed.",
        );
        let failures = IntCounterVec::new(failures, &["final_status"]);
        let metrics = Self {
            whole: histogram(WHOLE, "Time of whole calls, the constant time among it."),
            waited: histogram(
                "limiter_wait_seconds",
                "Time until a computation could run.",
            ),
            worked: histogram("limiter_work_seconds", "Time of computations."),
            successes: counter("limiter_compute_successes", "Calls whose computation ran."),
            failures: registered(&registry, failures),
            overruns: counter(
                "limiter_overruns_total",
                "Calls that took longer than the constant time.",
            ),
            verify_successes: counter("login_rate_limiter_verify_successes", "Right passwords."),
            verify_failures: counter(
                "login_rate_limiter_verify_failures",
                "Wrong passwords, and failed computations.",
            ),
            banned_ips: counter("login_rate_limiter_banned_ips_total", "Bans of addresses."),
            unbanned_ips: counter("login_rate_limiter_unbanned_ips_total", "Bans that ended."),
            locked_users: counter("login_rate_limiter_locked_users_total", "Locks of users."),
            unlocked_users: counter(
                "login_rate_limiter_unlocked_users_total",
                "Locks that ended.",
            ),
            registry,
        };
        // A counter that appears with its first event has no increase that an alert could see.
        metrics.errors();
        for status in Status::ALL {
            metrics.ended(status);
        }
        metrics
    }
}

impl Metrics {
    /// Records a call that took its constant time.
    pub(crate) fn computed(&self, status: Status, failed: bool, times: Times) {
        let ended = match failed {
            true => self.errors(),
            false => self.ended(status),
        };
        ended.inc();
        let whole = times.exited.saturating_duration_since(times.entered);
        self.whole.observe(whole.as_secs_f64());
    }

    pub(crate) fn ended(&self, status: Status) -> IntCounter {
        match status {
            Status::Ran => self.successes.clone(),
            _ => self.failures.with_label_values(&[status.as_str()]),
        }
    }

    /// Counts computations that ran and failed themselves.
    pub(crate) fn errors(&self) -> IntCounter {
        self.failures.with_label_values(&[ERROR])
    }

    pub fn page(&self) -> String {
        let mut families = self.registry.gather();
        for family in &mut families {
            if family.name() == WHOLE {
                family.set_field_type(MetricType::SUMMARY);
                for metric in family.mut_metric() {
                    let mut summary = Summary::default();
                    summary.set_sample_sum(metric.get_histogram().get_sample_sum());
                    summary.set_sample_count(metric.get_histogram().get_sample_count());
                    metric.set_summary(summary);
                }
            }
        }
        made(TextEncoder::new().encode_to_string(&families))
    }
}

fn registered<T: Collector + Clone + 'static>(
    registry: &Registry,
    meter: prometheus::Result<T>,
) -> T {
    let meter = made(meter);
    made(registry.register(Box::new(meter.clone())));
    meter
}

#[expect(
    clippy::expect_used,
    reason = "all names, labels and bounds are written in this file: each limiter makes all of them"
)]
fn made<T>(result: prometheus::Result<T>) -> T {
    result.expect("invariant: names, labels and bounds are well-formed")
}
