//! What the loop counts while it runs. The counters are atomics, so their readers never hold it up.
//!
//! They count from the start of the process, and `status` shows them too. Nothing here fails or
//! waits.

use std::collections::BTreeMap;
use std::time::Duration;

use census::state::Verdict;
use census::time::Timestamp;
use prometheus::core::Collector;
use prometheus::proto::MetricFamily;
use prometheus::{Gauge, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts};
use protocol::container::End;
use protocol::egress::{Account, Deferral, Way};
use protocol::{PeersOutcome, WalkOutcome};

use super::labels::{self, DEAD, Dumped, EndedAs, NO_REASON, Phase};
use super::{Metric, table};
use crate::ground::fault::Fault;

/// Bounds of durations in seconds. A pace defers within milliseconds, and an ordinary check takes
/// one to five seconds. 60 are a check's own time limit, and 330 the longest check, with the wait
/// for a slot and the engine's time.
const SECONDS: [f64; 13] = [
    0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 60.0, 120.0, 330.0,
];

/// The word of a fault in `status`, next to those of verdicts.
const FAULT: &str = "fault";

/// The counters, one set per process.
#[derive(Debug)]
pub struct Meters {
    verdicts: IntCounterVec,
    faults: IntCounterVec,
    deferrals: IntCounterVec,
    offline: IntCounter,
    unconfirmed: IntCounter,
    ways: IntCounterVec,
    last_alive: Gauge,
    checks: HistogramVec,
    phases: HistogramVec,
    dumps: IntCounterVec,
    dump_held_back: IntGauge,
    dump_failed: IntGauge,
    lookups: IntCounter,
    connections: IntCounter,
    bytes: IntCounterVec,
    killed: IntCounterVec,
    out_of_memory: IntCounter,
    peers_lists: IntCounterVec,
    walks: IntCounterVec,
    walk_names: IntCounterVec,
}

impl Default for Meters {
    /// All counters at 0, for all label values: a counter that appears with its first event has no
    /// increase that an alert could see.
    fn default() -> Self {
        let meters = Self {
            verdicts: counters(&table::VERDICTS),
            faults: counters(&table::FAULTS),
            deferrals: counters(&table::DEFERRALS),
            offline: counter(&table::OFFLINE),
            unconfirmed: counter(&table::UNCONFIRMED),
            ways: counters(&table::WAYS),
            last_alive: made(Gauge::with_opts(options(&table::LAST_ALIVE))),
            checks: durations(&table::CHECK_DURATION),
            phases: durations(&table::PHASE_DURATION),
            dumps: counters(&table::DUMPS),
            dump_held_back: made(IntGauge::with_opts(options(&table::DUMP_HELD_BACK))),
            dump_failed: made(IntGauge::with_opts(options(&table::DUMP_FAILED))),
            lookups: counter(&table::GATEWAY_LOOKUPS),
            connections: counter(&table::GATEWAY_CONNECTIONS),
            bytes: counters(&table::GATEWAY_BYTES),
            killed: counters(&table::CONTAINERS_KILLED),
            out_of_memory: counter(&table::CONTAINERS_OUT_OF_MEMORY),
            peers_lists: counters(&table::PEERS_LISTS),
            walks: counters(&table::WALKS),
            walk_names: counters(&table::WALK_NAMES),
        };
        meters.begin();
        meters
    }
}

impl Meters {
    fn begin(&self) {
        for verdict in labels::VERDICTS {
            self.verdicts.with_label_values(&[verdict, NO_REASON]);
        }
        for reason in labels::REASONS {
            let reason = reason.as_str().to_owned();
            self.verdicts.with_label_values(&[DEAD, &reason]);
        }
        for kind in labels::FAULTS {
            self.faults.with_label_values(&[kind]);
        }
        for why in labels::DEFERRALS {
            self.deferrals.with_label_values(&[labels::deferral(why)]);
        }
        for ended in EndedAs::ALL {
            self.checks.with_label_values(&[ended.as_str()]);
            for way in Way::ALL {
                self.ways.with_label_values(&[way.as_str(), ended.as_str()]);
            }
        }
        for phase in Phase::ALL {
            self.phases.with_label_values(&[phase.as_str()]);
        }
        for outcome in Dumped::ALL {
            self.dumps.with_label_values(&[outcome.as_str()]);
        }
        for direction in labels::DIRECTIONS {
            self.bytes.with_label_values(&[direction]);
        }
        for why in labels::KILLED {
            self.killed.with_label_values(&[labels::killed(why)]);
        }
        for outcome in PeersOutcome::ALL {
            self.peers_lists.with_label_values(&[outcome.as_str()]);
        }
        for outcome in WalkOutcome::ALL {
            self.walks.with_label_values(&[outcome.as_str()]);
        }
        for known in labels::KNOWN {
            self.walk_names.with_label_values(&[known]);
        }
    }

    /// Counts a check that ended in a verdict.
    pub fn verdict(&self, verdict: &Verdict, now: Timestamp) {
        let word = labels::verdict(verdict);
        self.verdicts
            .with_label_values(&[word, &labels::reason(verdict)])
            .inc();
        if matches!(verdict, Verdict::Alive(_)) {
            self.last_alive.set(now.0 as f64 / 1000.0);
        }
    }

    /// Counts a check by the way out that it took.
    pub fn way(&self, way: Way, ended: EndedAs) {
        self.ways
            .with_label_values(&[way.as_str(), ended.as_str()])
            .inc();
    }

    /// Counts a check that failed on our side.
    pub fn fault(&self, fault: &Fault) {
        self.faults.with_label_values(&[labels::fault(fault)]).inc();
    }

    pub fn deferral(&self, why: Deferral) {
        self.deferrals
            .with_label_values(&[labels::deferral(why)])
            .inc();
    }

    /// Counts a check for which the gateway had no network.
    pub fn offline(&self) {
        self.offline.inc();
    }

    /// Counts a failure that was dropped because no check of another host succeeded.
    pub fn unconfirmed(&self) {
        self.unconfirmed.inc();
    }

    /// Records that a check ended, and its duration.
    pub fn check(&self, ended: EndedAs, took: Duration) {
        self.checks
            .with_label_values(&[ended.as_str()])
            .observe(took.as_secs_f64());
    }

    /// Records that a phase of a check ended, and its duration.
    pub fn phase(&self, phase: Phase, took: Duration) {
        self.phases
            .with_label_values(&[phase.as_str()])
            .observe(took.as_secs_f64());
    }

    /// Counts a DNS answer for a check's name.
    pub fn looked_up(&self) {
        self.lookups.inc();
    }

    /// Records that a container ended, and the time since it was requested.
    pub fn container(&self, end: &End, took: Duration) {
        let ran = Duration::from_millis(end.millis);
        self.phase(Phase::Running, ran);
        self.phase(Phase::Launching, took.saturating_sub(ran));
        if end.out_of_memory {
            self.out_of_memory.inc();
        }
        if let Some(why) = end.killed {
            self.killed.with_label_values(&[labels::killed(why)]).inc();
        }
    }

    /// Adds the traffic of a check.
    pub fn account(&self, account: &Account) {
        self.connections.inc_by(u64::from(account.connections));
        self.bytes
            .with_label_values(&["up"])
            .inc_by(account.bytes_up);
        self.bytes
            .with_label_values(&["down"])
            .inc_by(account.bytes_down);
    }

    /// Counts a peers list that ended.
    pub fn peers_list(&self, outcome: PeersOutcome) {
        self.peers_lists
            .with_label_values(&[outcome.as_str()])
            .inc();
    }

    /// Counts a walk, the hosts it named, and how many of them were new.
    pub fn walk(&self, outcome: WalkOutcome, named: usize, new: usize) {
        self.walks.with_label_values(&[outcome.as_str()]).inc();
        for (known, count) in labels::KNOWN
            .into_iter()
            .zip([named.saturating_sub(new), new])
        {
            let count = u64::try_from(count).unwrap_or(u64::MAX);
            self.walk_names.with_label_values(&[known]).inc_by(count);
        }
    }

    /// Counts a dump that ended.
    pub fn dump(&self, dumped: Dumped) {
        self.dumps.with_label_values(&[dumped.as_str()]).inc();
        self.dump_held_back
            .set(i64::from(dumped == Dumped::HeldBack));
        self.dump_failed.set(i64::from(dumped != Dumped::Published));
    }

    /// Checks that ended so far, by verdict, and those that failed on our side.
    pub fn ended(&self) -> BTreeMap<String, u64> {
        let mut ended = BTreeMap::new();
        for family in self.verdicts.collect() {
            for metric in family.get_metric() {
                let mut labels = metric.get_label().iter();
                if let Some(word) = labels.find(|label| label.name() == "verdict") {
                    // Increased by one each time: far below the size at which such a number loses
                    // its last digits.
                    let count = metric.get_counter().get_value() as u64;
                    *ended.entry(word.value().to_owned()).or_default() += count;
                }
            }
        }
        let faults = labels::FAULTS.iter();
        let faults = faults.map(|kind| self.faults.with_label_values(&[kind]).get());
        ended.insert(FAULT.to_owned(), faults.sum());
        ended.retain(|_, count| *count > 0);
        ended
    }

    /// All counters, for the text format.
    pub(crate) fn families(&self) -> Vec<MetricFamily> {
        let all: [&dyn Collector; 20] = [
            &self.verdicts,
            &self.faults,
            &self.deferrals,
            &self.offline,
            &self.unconfirmed,
            &self.ways,
            &self.last_alive,
            &self.checks,
            &self.phases,
            &self.dumps,
            &self.dump_held_back,
            &self.dump_failed,
            &self.lookups,
            &self.connections,
            &self.bytes,
            &self.killed,
            &self.out_of_memory,
            &self.peers_lists,
            &self.walks,
            &self.walk_names,
        ];
        all.iter().flat_map(|meter| meter.collect()).collect()
    }
}

fn options(metric: &Metric) -> Opts {
    Opts::new(metric.name, metric.help)
}

fn counter(metric: &Metric) -> IntCounter {
    made(IntCounter::with_opts(options(metric)))
}

fn counters(metric: &Metric) -> IntCounterVec {
    made(IntCounterVec::new(options(metric), metric.labels))
}

fn durations(metric: &Metric) -> HistogramVec {
    let options = HistogramOpts::new(metric.name, metric.help).buckets(SECONDS.to_vec());
    made(HistogramVec::new(options, metric.labels))
}

#[expect(
    clippy::expect_used,
    reason = "all names, labels and bounds are written in this program: each start and each test makes all of them"
)]
fn made<T>(meter: prometheus::Result<T>) -> T {
    meter.expect("invariant: names, labels and bounds are well-formed")
}
