//! The page: the counters, and the content of `status` at the moment of the scrape.
//!
//! A metric that is read at the scrape is declared here, and its value is put on the page below.
//!
//! A part that does not answer within [`ANSWER_WITHIN`] is reported as down.

use std::sync::Arc;
use std::time::Duration;

use census::class::Class;
use census::time::Timestamp;
use gateway::GatewayClient;
use launcher::LauncherClient;
use prometheus::TextEncoder;
use prometheus::proto::{Counter, Gauge, LabelPair, Metric as Sample, MetricFamily, MetricType};
use protocol::egress::Way;

use super::Surveyor;
use super::survey::{LastSurvey, Survey};
use crate::check::services::Services;
use crate::daemon::{LiveState, troubles};
use crate::ground::meters::table::{self, metrics};
use crate::ground::meters::{Kind, Meters, Metric, labels};
use crate::serve::control::Handler;

metrics! {
    BUILD_INFO: Gauge "fedicensus_build_info" ["version"] "1, with the daemon's version as its label.";
    START_TIME: Gauge "fedicensus_start_time_seconds" [] "Start of the daemon in seconds since 1970, by its own clock.";
    MEMORY: Gauge "fedicensus_memory_bytes" [] "Resident memory of the daemon.";
    LAST_ROUND: Gauge "fedicensus_last_round_timestamp_seconds" [] "Last round of the daemon's loop, which takes a second.";
    OUTAGE: Gauge "fedicensus_outage" [] "1 while something that every check needs does not work and no host is checked; `status` names it.";
    BLACKOUT: Gauge "fedicensus_blackout" [] "1 while checks fail one after the other and none succeeds, most likely through our own fault.";
    WAY_ILL: Gauge "fedicensus_way_ill" ["way"] "1 while one of two ways out does not work and checks take the other one.";
    ILL: Gauge "fedicensus_ill" [] "1 while something is wrong for which `health` fails; `status` names it.";
    CLOCK_TROUBLE: Gauge "fedicensus_clock_trouble" [] "1 while the daemon does not trust the machine's clock.";

    HOSTS: Gauge "fedicensus_hosts" ["state"] "Hosts by state.";
    HOSTS_HIDDEN: Gauge "fedicensus_hosts_hidden" [] "Hosts that asked, when they last answered as an instance, to be left out of statistics, in any state.";
    HOSTS_OPTED_OUT: Gauge "fedicensus_hosts_opted_out" ["by"] "Hosts that opted out, by who asked for it.";
    HOSTS_ONE_WAY: Gauge "fedicensus_hosts_one_way" ["way"] "Hosts that respond by this one of two ways out and fail by the other.";
    HOSTS_DUE: Gauge "fedicensus_hosts_due" [] "Hosts that are due and not in flight.";
    OVERDUE: Gauge "fedicensus_overdue_seconds" [] "Time since the host that has waited longest became due.";
    HOSTS_HELD_BACK: Gauge "fedicensus_hosts_held_back" [] "Hosts of held groups that wait; they share a few checks a day and are not listed.";
    GROUPS_HELD: Gauge "fedicensus_groups_held" [] "Groups over the threshold without a decision.";
    GROUPS_DENIED: Gauge "fedicensus_groups_denied" [] "Groups that the operator denies.";
    SOURCES: Gauge "fedicensus_sources" [] "Public lists that were ever read.";
    SOURCES_PAUSED: Gauge "fedicensus_sources_paused" [] "Public lists that are not read until the operator resumes them.";
    SURVEY_AGE: Gauge "fedicensus_survey_age_seconds" [] "Age of all figures that are read from the database and the disks.";
    SURVEY_DURATION: Gauge "fedicensus_survey_duration_seconds" [] "Time that reading them took.";
    SURVEY_FAILURES: Counter "fedicensus_survey_failures_total" [] "Times that they could not be read.";

    IN_FLIGHT: Gauge "fedicensus_checks_in_flight" [] "Hosts being checked or written.";
    CHECKS_ALLOWED: Gauge "fedicensus_checks_allowed" [] "Containers that may run at once now, by what the engine and the machine sustain.";
    CHECKS_ALLOWED_MAX: Gauge "fedicensus_checks_allowed_max" [] "Upper limit of that: setting `checks_max`.";
    CHECKS_LIMITED: Gauge "fedicensus_checks_limited" ["by"] "1, with what keeps more containers from running as its label: `checks_max`, `memory`, `processor`, `engine`, `dials`, `paces`, or `demand` if no more hosts are due.";
    STARTS_ALLOWED: Gauge "fedicensus_starts_per_second_max" [] "Hosts that are opened a second at most, by the load.";
    UNDER_WAY: Gauge "fedicensus_checks_under_way" ["class"] "Hosts being opened or checked, by class.";
    WAITING: Gauge "fedicensus_failures_waiting" [] "Failures that wait for confirmation.";

    NAMES_WAITING: Gauge "fedicensus_names_waiting" [] "Names that wait for room.";
    WINDOW_NAMES: Gauge "fedicensus_window_names" ["outcome"] "New names in the current window of a day, by outcome.";

    DUMP_TIME: Gauge "fedicensus_dump_timestamp_seconds" [] "Last publication of the list; 0: never.";
    DUMP_NAMES: Gauge "fedicensus_dump_names" [] "Names in that list.";

    GATEWAY_UP: Gauge "fedicensus_gateway_up" [] "1 if the gateway answers.";
    GATEWAY_FAMILY_UP: Gauge "fedicensus_gateway_family_up" ["family"] "1 if the gateway has a route for this address family.";
    GATEWAY_OPEN: Gauge "fedicensus_gateway_open" [] "Hosts that are open to a check now.";
    GATEWAY_OPENS: Counter "fedicensus_gateway_opens_total" [] "Requests to open a host, since the gateway's start.";
    GATEWAY_DIALS: Counter "fedicensus_gateway_dials_total" [] "Dials since the gateway's start.";

    LAUNCHER_UP: Gauge "fedicensus_launcher_up" [] "1 if the launcher answers.";
    LAUNCHER_UNFIT: Gauge "fedicensus_launcher_unfit" [] "1 while no check can run: the engine does not answer, or does not enforce a limit.";
    LAUNCHER_WARNINGS: Gauge "fedicensus_launcher_warnings" [] "Optional limits that the probe found missing.";
    LAUNCHER_RUNNING: Gauge "fedicensus_launcher_running" [] "Containers that run now.";
    LAUNCHER_LAUNCHES: Counter "fedicensus_launcher_launches_total" [] "Containers started, since the launcher's start.";
    LAUNCHER_REAPED: Counter "fedicensus_launcher_reaped_total" [] "Containers of an earlier run that the reaper removed.";

    DATABASE_SIZE: Gauge "fedicensus_database_size_bytes" [] "Size of the database file.";
    WAL_SIZE: Gauge "fedicensus_wal_size_bytes" [] "Size of its write-ahead log.";
    DISK_FREE: Gauge "fedicensus_disk_free_bytes" ["directory"] "Free room on the disk of this directory.";
    DISK_SIZE: Gauge "fedicensus_disk_size_bytes" ["directory"] "Size of that disk.";
}

/// All metrics of the page, in its order.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    ALL.iter().chain(table::ALL)
}

/// Longest wait for the gateway and the launcher, which are asked concurrently. Prometheus allows
/// ten seconds for a scrape.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// The sources of the page, which are those of `status`.
#[derive(Debug)]
pub struct Source {
    handler: Handler,
    gateway: GatewayClient,
    launcher: LauncherClient,
    meters: Arc<Meters>,
    surveyor: Surveyor,
}

struct Scrape {
    live: LiveState,
    gateway: Option<gateway::control::Status>,
    launcher: Option<launcher::wire::Status>,
    last_survey: LastSurvey,
}

impl Source {
    /// Uses the handler that serves commands, the clients of the parts, and a survey.
    pub fn new(handler: Handler, services: &Services, surveyor: Surveyor) -> Self {
        Self {
            handler,
            gateway: services.gateway.clone(),
            launcher: services.launcher.clone(),
            meters: services.meters.clone(),
            surveyor,
        }
    }

    /// Renders the page.
    ///
    /// # Errors
    /// It can't be written in the text format, which is a bug of ours.
    pub async fn page(&self) -> anyhow::Result<String> {
        let (gateway, launcher, last_survey) = tokio::join!(
            tokio::time::timeout(ANSWER_WITHIN, self.gateway.status()),
            tokio::time::timeout(ANSWER_WITHIN, self.launcher.status()),
            self.surveyor.last(),
        );
        let scrape = Scrape {
            live: self.handler.live().map_err(anyhow::Error::msg)?,
            gateway: gateway.ok().and_then(Result::ok),
            launcher: launcher.ok().and_then(Result::ok),
            last_survey,
        };
        let mut sheet = Sheet(self.meters.families());
        put_loop(&mut sheet, &scrape.live);
        put_parts(&mut sheet, &scrape);
        put_survey(&mut sheet, &scrape.last_survey);
        Ok(sheet.text()?)
    }
}

fn put_loop(sheet: &mut Sheet, live: &LiveState) {
    let version = env!("CARGO_PKG_VERSION");
    sheet.put(&BUILD_INFO, [(version, 1.0)]);
    sheet.one(&START_TIME, seconds(Timestamp(live.started_ms)));
    if let Some(bytes) = resident_bytes() {
        sheet.one(&MEMORY, bytes);
    }
    sheet.one(&LAST_ROUND, seconds(Timestamp(live.last_round_ms)));
    sheet.one(&OUTAGE, truth(live.outage.is_some()));
    sheet.one(&BLACKOUT, truth(live.blackout.is_some()));
    let ways = Way::ALL.map(|way| {
        let is_ill = live.ill_ways.iter().any(|(ill, ..)| ill == way.as_str());
        (way.as_str(), truth(is_ill))
    });
    sheet.put(&WAY_ILL, ways);
    sheet.one(&ILL, truth(!troubles(live).is_empty()));
    sheet.one(&CLOCK_TROUBLE, truth(live.clock_trouble.is_some()));
    sheet.one(&IN_FLIGHT, live.in_flight as f64);
    sheet.one(&CHECKS_ALLOWED, f64::from(live.pace.checks_allowed));
    sheet.one(&CHECKS_ALLOWED_MAX, f64::from(live.pace.checks_max));
    sheet.put(&CHECKS_LIMITED, [(&*live.pace.limited_by, 1.0)]);
    sheet.one(&STARTS_ALLOWED, live.pace.starts_per_second);
    let classes = Class::ALL.map(|class| {
        let count = live.pace.under_way.get(class.as_str());
        (class.as_str(), count.map_or(0.0, |count| f64::from(*count)))
    });
    sheet.put(&UNDER_WAY, classes);
    sheet.one(&WAITING, live.waiting as f64);
    if let Some(gate) = &live.admission {
        sheet.one(&NAMES_WAITING, gate.waiting as f64);
        let outcomes = [
            ("admitted", f64::from(gate.admitted)),
            ("refused", gate.refused as f64),
            ("passed_over", gate.passed_over as f64),
        ];
        sheet.put(&WINDOW_NAMES, outcomes);
    }
}

/// A part that is down has no numbers: an old number would look like a new one.
fn put_parts(sheet: &mut Sheet, scrape: &Scrape) {
    sheet.one(&GATEWAY_UP, truth(scrape.gateway.is_some()));
    if let Some(gateway) = &scrape.gateway {
        let families = labels::FAMILIES.map(|family| {
            let is_up = gateway.families.contains(&family);
            (labels::family(family), truth(is_up))
        });
        sheet.put(&GATEWAY_FAMILY_UP, families);
        sheet.one(&GATEWAY_OPEN, f64::from(gateway.open));
        sheet.one(&GATEWAY_OPENS, gateway.opens_total as f64);
        sheet.one(&GATEWAY_DIALS, gateway.dials_total as f64);
    }
    sheet.one(&LAUNCHER_UP, truth(scrape.launcher.is_some()));
    if let Some(launcher) = &scrape.launcher {
        sheet.one(&LAUNCHER_UNFIT, truth(launcher.trouble.is_some()));
        sheet.one(&LAUNCHER_WARNINGS, launcher.warnings.len() as f64);
        sheet.one(&LAUNCHER_RUNNING, f64::from(launcher.running));
        sheet.one(&LAUNCHER_LAUNCHES, launcher.launches_total as f64);
        sheet.one(&LAUNCHER_REAPED, launcher.reaped_total as f64);
    }
}

fn put_survey(sheet: &mut Sheet, last_survey: &LastSurvey) {
    sheet.one(&SURVEY_FAILURES, last_survey.failures as f64);
    let Some((survey, age, took)) = &last_survey.survey else {
        return;
    };
    sheet.one(&SURVEY_AGE, age.as_secs_f64());
    sheet.one(&SURVEY_DURATION, took.as_secs_f64());
    put_hosts(sheet, survey);
    sheet.one(&HOSTS_HELD_BACK, survey.held.hosts as f64);
    sheet.one(&GROUPS_HELD, survey.held.groups as f64);
    sheet.one(&GROUPS_DENIED, survey.held.denied as f64);
    sheet.one(&SOURCES, survey.sources as f64);
    sheet.one(&SOURCES_PAUSED, survey.paused as f64);
    let dump = survey.last_dump;
    sheet.one(&DUMP_TIME, dump.map_or(0.0, |dump| seconds(dump.at)));
    sheet.one(&DUMP_NAMES, dump.map_or(0.0, |dump| dump.names as f64));
    sheet.one(&DATABASE_SIZE, survey.database_bytes as f64);
    sheet.one(&WAL_SIZE, survey.wal_bytes as f64);
    let disks = || survey.disks.iter();
    let free = disks().map(|(name, free, _)| (*name, *free as f64));
    sheet.put(&DISK_FREE, free);
    let size = disks().map(|(name, _, size)| (*name, *size as f64));
    sheet.put(&DISK_SIZE, size);
}

fn put_hosts(sheet: &mut Sheet, survey: &Survey) {
    let states = survey.counts.by_state.iter();
    let states = states.map(|(state, count)| (state.as_str(), *count as f64));
    sheet.put(&HOSTS, states);
    sheet.one(&HOSTS_HIDDEN, survey.counts.hidden as f64);
    let opted_out = labels::OPTED_OUT_BY.map(|by| {
        let found = survey.opted_out.iter().find(|(who, _)| *who == by);
        (by.as_str(), found.map_or(0.0, |(_, count)| *count as f64))
    });
    sheet.put(&HOSTS_OPTED_OUT, opted_out);
    let one_way = survey.one_way.iter();
    let one_way = one_way.map(|(way, count)| (way.as_str(), f64::from(*count)));
    sheet.put(&HOSTS_ONE_WAY, one_way);
    sheet.one(&HOSTS_DUE, survey.due as f64);
    sheet.one(&OVERDUE, survey.overdue.as_secs_f64());
}

/// As in proc(5); `None` without that file.
fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024.0)
}

fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

fn seconds(at: Timestamp) -> f64 {
    at.0 as f64 / 1000.0
}

/// A page that is being written.
struct Sheet(Vec<MetricFamily>);

impl Sheet {
    fn one(&mut self, metric: &Metric, value: f64) {
        self.family(metric, vec![sample(metric.kind, None, value)]);
    }

    /// A metric with one label: its values, and the count for each.
    fn put<'value>(
        &mut self,
        metric: &Metric,
        values: impl IntoIterator<Item = (&'value str, f64)>,
    ) {
        let label = metric.labels.first().copied().unwrap_or_default();
        let samples = values
            .into_iter()
            .map(|(word, value)| sample(metric.kind, Some((label, word)), value));
        let samples = samples.collect();
        self.family(metric, samples);
    }

    /// The text format allows no metric without a sample.
    fn family(&mut self, metric: &Metric, samples: Vec<Sample>) {
        if samples.is_empty() {
            return;
        }
        let mut family = MetricFamily::default();
        family.set_name(metric.name.to_owned());
        family.set_help(metric.help.to_owned());
        family.set_field_type(match metric.kind {
            Kind::Counter => MetricType::COUNTER,
            Kind::Gauge => MetricType::GAUGE,
            Kind::Histogram => MetricType::HISTOGRAM,
        });
        family.set_metric(samples);
        self.0.push(family);
    }

    /// In the order of the table and of the labels' values: the vectors are unordered.
    fn text(mut self) -> prometheus::Result<String> {
        for family in &mut self.0 {
            let values = |sample: &Sample| -> Vec<String> {
                let labels = sample.get_label().iter();
                labels.map(|label| label.value().to_owned()).collect()
            };
            family.mut_metric().sort_by_cached_key(values);
        }
        self.0
            .sort_by_key(|family| all().position(|metric| metric.name == family.name()));
        TextEncoder::new().encode_to_string(&self.0)
    }
}

fn sample(kind: Kind, label: Option<(&str, &str)>, value: f64) -> Sample {
    let mut sample = Sample::default();
    let label = label.map(|(name, value)| {
        let mut pair = LabelPair::default();
        pair.set_name(name.to_owned());
        pair.set_value(value.to_owned());
        pair
    });
    sample.set_label(label.into_iter().collect());
    match kind {
        Kind::Counter => {
            let mut counter = Counter::default();
            counter.set_value(value);
            sample.set_counter(counter);
        }
        // Histograms come from the meters only.
        Kind::Gauge | Kind::Histogram => {
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            sample.set_gauge(gauge);
        }
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_survey_only_its_failures_are_there() {
        let mut sheet = Sheet(Vec::new());
        let last_survey = LastSurvey {
            survey: None,
            failures: 3,
        };
        put_survey(&mut sheet, &last_survey);
        let text = sheet.text().unwrap();
        let samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(samples, ["fedicensus_survey_failures_total 3"]);
    }
}
