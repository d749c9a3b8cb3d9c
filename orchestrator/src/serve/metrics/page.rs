//! The page: the counters, and the content of `status` at the moment of the scrape.
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

use super::Surveyor;
use super::survey::{Survey, Told};
use crate::check::services::Services;
use crate::daemon::LiveState;
use crate::ground::meters::{Kind, Meters, Metric, labels, table};
use crate::serve::control::Handler;

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

struct Asked {
    live: LiveState,
    gateway: Option<gateway::control::Status>,
    launcher: Option<launcher::wire::Status>,
    told: Told,
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
        let (gateway, launcher, told) = tokio::join!(
            tokio::time::timeout(ANSWER_WITHIN, self.gateway.status()),
            tokio::time::timeout(ANSWER_WITHIN, self.launcher.status()),
            self.surveyor.told(),
        );
        let asked = Asked {
            live: self.handler.live().map_err(anyhow::Error::msg)?,
            gateway: gateway.ok().and_then(Result::ok),
            launcher: launcher.ok().and_then(Result::ok),
            told,
        };
        let mut sheet = Sheet(self.meters.families());
        tell_the_loop(&mut sheet, &asked.live);
        tell_the_parts(&mut sheet, &asked);
        tell_the_survey(&mut sheet, &asked.told);
        Ok(sheet.text()?)
    }
}

fn tell_the_loop(sheet: &mut Sheet, live: &LiveState) {
    let version = env!("CARGO_PKG_VERSION");
    sheet.put(&table::BUILD_INFO, [(version, 1.0)]);
    sheet.one(&table::START_TIME, seconds(Timestamp(live.started_ms)));
    sheet.one(&table::LAST_ROUND, seconds(Timestamp(live.last_round_ms)));
    sheet.one(&table::OUTAGE, truth(live.outage.is_some()));
    sheet.one(&table::BLACKOUT, truth(live.blackout.is_some()));
    sheet.one(&table::CLOCK_TROUBLE, truth(live.clock_trouble.is_some()));
    sheet.one(&table::IN_FLIGHT, live.in_flight as f64);
    sheet.one(&table::CHECKS_ALLOWED, f64::from(live.pace.checks_allowed));
    sheet.one(&table::CHECKS_ALLOWED_MAX, f64::from(live.pace.checks_max));
    sheet.put(&table::CHECKS_LIMITED, [(&*live.pace.limited_by, 1.0)]);
    sheet.one(&table::STARTS_ALLOWED, live.pace.starts_per_second);
    let classes = Class::ALL.map(|class| {
        let count = live.pace.under_way.get(class.as_str());
        (class.as_str(), count.map_or(0.0, |count| f64::from(*count)))
    });
    sheet.put(&table::UNDER_WAY, classes);
    sheet.one(&table::WAITING, live.waiting as f64);
    if let Some(gate) = &live.admission {
        sheet.one(&table::NAMES_WAITING, gate.waiting as f64);
        let outcomes = [
            ("admitted", f64::from(gate.admitted)),
            ("refused", gate.refused as f64),
            ("passed_over", gate.passed_over as f64),
        ];
        sheet.put(&table::WINDOW_NAMES, outcomes);
    }
}

/// A part that is down has no numbers: an old number would look like a new one.
fn tell_the_parts(sheet: &mut Sheet, asked: &Asked) {
    sheet.one(&table::GATEWAY_UP, truth(asked.gateway.is_some()));
    if let Some(gateway) = &asked.gateway {
        let families = labels::FAMILIES.map(|family| {
            let is_up = gateway.families.contains(&family);
            (labels::family(family), truth(is_up))
        });
        sheet.put(&table::GATEWAY_FAMILY_UP, families);
        sheet.one(&table::GATEWAY_OPEN, f64::from(gateway.open));
        sheet.one(&table::GATEWAY_OPENS, gateway.opens_total as f64);
        sheet.one(&table::GATEWAY_DIALS, gateway.dials_total as f64);
    }
    sheet.one(&table::LAUNCHER_UP, truth(asked.launcher.is_some()));
    if let Some(launcher) = &asked.launcher {
        sheet.one(&table::LAUNCHER_UNFIT, truth(launcher.trouble.is_some()));
        sheet.one(&table::LAUNCHER_WARNINGS, launcher.warnings.len() as f64);
        sheet.one(&table::LAUNCHER_RUNNING, f64::from(launcher.running));
        sheet.one(&table::LAUNCHER_LAUNCHES, launcher.launches_total as f64);
        sheet.one(&table::LAUNCHER_REAPED, launcher.reaped_total as f64);
    }
}

fn tell_the_survey(sheet: &mut Sheet, told: &Told) {
    sheet.one(&table::SURVEY_FAILURES, told.failures as f64);
    let Some((survey, age, took)) = &told.survey else {
        return;
    };
    sheet.one(&table::SURVEY_AGE, age.as_secs_f64());
    sheet.one(&table::SURVEY_DURATION, took.as_secs_f64());
    tell_the_hosts(sheet, survey);
    sheet.one(&table::HOSTS_HELD_BACK, survey.held.hosts as f64);
    sheet.one(&table::GROUPS_HELD, survey.held.groups as f64);
    sheet.one(&table::GROUPS_DENIED, survey.held.denied as f64);
    sheet.one(&table::SOURCES, survey.sources as f64);
    sheet.one(&table::SOURCES_PAUSED, survey.paused as f64);
    let dump = survey.last_dump;
    sheet.one(&table::DUMP_TIME, dump.map_or(0.0, |dump| seconds(dump.at)));
    sheet.one(
        &table::DUMP_NAMES,
        dump.map_or(0.0, |dump| dump.names as f64),
    );
    sheet.one(&table::DATABASE_SIZE, survey.database_bytes as f64);
    sheet.one(&table::WAL_SIZE, survey.wal_bytes as f64);
    let disks = || survey.disks.iter();
    let free = disks().map(|(name, free, _)| (*name, *free as f64));
    sheet.put(&table::DISK_FREE, free);
    let size = disks().map(|(name, _, size)| (*name, *size as f64));
    sheet.put(&table::DISK_SIZE, size);
}

fn tell_the_hosts(sheet: &mut Sheet, survey: &Survey) {
    let states = survey.counts.by_state.iter();
    let states = states.map(|(state, count)| (state.as_str(), *count as f64));
    sheet.put(&table::HOSTS, states);
    sheet.one(&table::HOSTS_HIDDEN, survey.counts.hidden as f64);
    let opted_out = labels::OPTED_OUT_BY.map(|by| {
        let found = survey.opted_out.iter().find(|(who, _)| *who == by);
        (by.as_str(), found.map_or(0.0, |(_, count)| *count as f64))
    });
    sheet.put(&table::HOSTS_OPTED_OUT, opted_out);
    sheet.one(&table::HOSTS_DUE, survey.due as f64);
    sheet.one(&table::OVERDUE, survey.overdue.as_secs_f64());
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
        self.0.sort_by_key(|family| {
            table::ALL
                .iter()
                .position(|metric| metric.name == family.name())
        });
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
    fn without_a_survey_its_numbers_are_missing_and_its_failures_told() {
        let mut sheet = Sheet(Vec::new());
        let told = Told {
            survey: None,
            failures: 3,
        };
        tell_the_survey(&mut sheet, &told);
        let text = sheet.text().unwrap();
        let samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(samples, ["fedicensus_survey_failures_total 3"]);
    }
}
