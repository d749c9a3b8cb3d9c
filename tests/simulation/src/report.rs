//! The result of a run, as a table in Markdown.
//!
//! For the same seed the results of the world and the rules are the same. The cost to this machine
//! is in a separate table.

use std::fmt::Write as _;
use std::time::Duration;

use crate::measure::{Counts, DAY, Sample};
use crate::plan::Plan;

#[derive(Debug, Clone)]
pub struct Report {
    pub plan: Plan,
    pub counts: Counts,
    /// The longest time for which a responding host, known and checked daily, was not seen.
    pub longest: Duration,
    pub samples: Vec<Sample>,
    pub containers: u64,
    /// Hosts of the world at the end, known or not.
    pub beings: u32,
    /// Names that wait for room at the end.
    pub waiting: u64,
    pub outages: usize,
    /// How often a blackout was reported.
    pub told: u64,
    pub cost: Cost,
}

#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Time to create the first database.
    pub set_up: Duration,
    /// Time of the run itself.
    pub took: Duration,
    /// Bytes of the database when it was closed.
    pub bytes: u64,
    pub steps: u64,
}

/// Mean and worst value of a number over time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub mean: f64,
    pub worst: f64,
}

impl Report {
    /// The fraction of responding hosts that were seen within a span, which `of` reads from a
    /// sample: mean and lowest.
    pub fn coverage(&self, of: impl Fn(&Sample) -> f64) -> Spread {
        let shares = || self.samples.iter().map(&of);
        Spread {
            mean: mean(shares()),
            worst: shares().fold(1.0, f64::min),
        }
    }

    /// The fraction of the list that did not belong there, without invented names: mean and
    /// highest.
    pub fn wrong(&self) -> Spread {
        highest(self.samples.iter().map(|sample| {
            let honest = sample.listed.saturating_sub(sample.invented);
            share(sample.listed_wrongly, honest)
        }))
    }

    /// The fraction of responding hosts that were not on the list: mean and highest.
    pub fn missing(&self) -> Spread {
        highest(
            self.samples
                .iter()
                .map(|sample| share(sample.missing, sample.living)),
        )
    }

    /// Checks per second that found a responding host alive, divided by what these hosts need or
    /// what the engine can do, whichever is less.
    pub fn living_share(&self) -> f64 {
        let living = mean(self.samples.iter().map(|sample| f64::from(sample.living)));
        let need = living / DAY.as_secs_f64();
        self.counts.lived as f64 / self.seconds() / need.min(self.plan.capacity)
    }

    /// Checks of hosts that were dead and known to be dead, as a fraction of all checks.
    pub fn wasted(&self) -> f64 {
        self.counts.wasted as f64 / (self.counts.checks.max(1)) as f64
    }

    fn seconds(&self) -> f64 {
        f64::from(self.plan.days) * 86_400.0
    }

    /// All tables in Markdown: the results, then the cost.
    pub fn table(&self) -> String {
        format!("{}\n{}", self.world_table(), self.cost_table())
    }

    /// The results, which are the same for the same plan.
    pub fn world_table(&self) -> String {
        let mut rows = self.rows_of_the_run();
        rows.extend(self.rows_of_coverage());
        rows.extend(self.rows_of_checks());
        rows.extend(self.rows_of_names());
        in_markdown("what became of it", &rows)
    }

    fn rows_of_the_run(&self) -> Vec<(&'static str, String)> {
        let Plan {
            world,
            hosts,
            days,
            seed,
            capacity,
            ..
        } = &self.plan;
        vec![
            ("world", format!("`{}`: {}", world.name, world.about)),
            ("seed", seed.to_string()),
            ("hosts at the start, days", format!("{hosts}, {days}")),
            (
                "the engine's containers a second, and what the world needs at its start",
                format!("{capacity:.3}, {:.3}", world.need(*hosts)),
            ),
        ]
    }

    fn rows_of_coverage(&self) -> Vec<(&'static str, String)> {
        let within = |of: fn(&Sample) -> f64| {
            let Spread { mean, worst } = self.coverage(of);
            format!("{}, {}", percent(mean), percent(worst))
        };
        let spread = |Spread { mean, worst }| format!("{}, {}", percent(mean), percent(worst));
        vec![
            (
                "living hosts seen within 29 h: mean, lowest",
                within(|sample| sample.within_day),
            ),
            (
                "within 31 h, which is 29 h and the most that chance adds",
                within(|sample| sample.within_day_and_jitter),
            ),
            ("within 48 h", within(|sample| sample.within_two_days)),
            (
                "longest that one was not seen",
                format!("{:.1} h", self.longest.as_secs_f64() / 3600.0),
            ),
            (
                "of the list, dead or otherwise wrong: mean, highest",
                spread(self.wrong()),
            ),
            (
                "of the living, not on the list: mean, highest",
                spread(self.missing()),
            ),
            (
                "checks that found one alive, to what the living need or the engine can",
                percent(self.living_share()),
            ),
        ]
    }

    fn rows_of_checks(&self) -> Vec<(&'static str, String)> {
        let counts = &self.counts;
        vec![
            (
                "checks, a second of the world's time",
                format!(
                    "{}, {:.3}",
                    counts.checks,
                    counts.checks as f64 / self.seconds()
                ),
            ),
            ("of them, through a container", self.containers.to_string()),
            (
                "of them, of hosts dead and known to be dead",
                format!("{} ({})", counts.wasted, percent(self.wasted())),
            ),
            ("of them, of invented names", counts.invented.to_string()),
            (
                "failures asked again at once, within the hour",
                format!("{}, {}", counts.asked_again, counts.unconfirmed),
            ),
            ("canaries asked for", counts.canaries.to_string()),
            (
                "checks put off, broken off or without network",
                format!("{}, {}", counts.put_off, counts.ours),
            ),
            (
                "outages of our network, silences told of",
                format!("{}, {}", self.outages, self.told),
            ),
        ]
    }

    fn rows_of_names(&self) -> Vec<(&'static str, String)> {
        let ends = |of: fn(&Sample) -> u64| {
            let at = |sample: Option<&Sample>| sample.map_or(0, of);
            format!("{}, {}", at(self.samples.first()), at(self.samples.last()))
        };
        let counts = &self.counts;
        vec![
            (
                "living hosts at the start, in the end",
                ends(|sample| u64::from(sample.living)),
            ),
            ("listed", ends(|sample| u64::from(sample.listed))),
            (
                "of them, invented names",
                ends(|sample| u64::from(sample.invented)),
            ),
            (
                "checks of invented names",
                percent(counts.invented as f64 / counts.checks.max(1) as f64),
            ),
            ("rows", ends(|sample| sample.rows)),
            (
                "hosts that there were, forgotten, waiting in the end",
                format!("{}, {}, {}", self.beings, counts.forgotten, self.waiting),
            ),
            ("opted out by word of mouth", counts.words.to_string()),
        ]
    }

    pub fn cost_table(&self) -> String {
        let Cost {
            set_up,
            took,
            bytes,
            steps,
        } = self.cost;
        let first = self.samples.first().map_or(0, |sample| sample.bytes);
        let rows = self.samples.last().map_or(1, |sample| sample.rows.max(1));
        let seconds = took.as_secs_f64().max(1e-9);
        in_markdown(
            "what it cost",
            &[
                (
                    "database at the start with its log, closed in the end",
                    format!("{:.1} MB, {:.1} MB", megabytes(first), megabytes(bytes)),
                ),
                (
                    "bytes a row in the end",
                    format!("{:.0}", bytes as f64 / rows as f64),
                ),
                ("making it", format!("{:.1} s", set_up.as_secs_f64())),
                (
                    "wall time",
                    format!(
                        "{seconds:.1} s: {:.0} times as fast",
                        self.seconds() / seconds
                    ),
                ),
                (
                    "checks simulated a second",
                    format!("{:.0}", self.counts.checks as f64 / seconds),
                ),
                ("moments gone through", steps.to_string()),
            ],
        )
    }
}

fn in_markdown(head: &str, rows: &[(&str, String)]) -> String {
    let mut text = format!("| {head} | |\n|---|---|\n");
    for (what, value) in rows {
        // Writing to a String can't fail.
        writeln!(text, "| {what} | {value} |").ok();
    }
    text
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        sum += value;
        count += 1.0;
    }
    if count > 0.0 { sum / count } else { 0.0 }
}

fn highest(values: impl Iterator<Item = f64> + Clone) -> Spread {
    Spread {
        mean: mean(values.clone()),
        worst: values.fold(0.0, f64::max),
    }
}

fn share(part: u32, whole: u32) -> f64 {
    if whole == 0 {
        0.0
    } else {
        f64::from(part) / f64::from(whole)
    }
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_extremes_of_nothing_are_no_numbers_out_of_nowhere() {
        assert!(mean(std::iter::empty()).abs() < f64::EPSILON);
        assert!((mean([1.0, 3.0].into_iter()) - 2.0).abs() < f64::EPSILON);
        let spread = highest([0.1, 0.5, 0.3].into_iter());
        assert!((spread.worst - 0.5).abs() < f64::EPSILON);
        assert!((spread.mean - 0.3).abs() < 1e-9);
        assert!(share(3, 0).abs() < f64::EPSILON);
    }

    #[test]
    fn a_table_is_one_in_markdown() {
        let table = in_markdown("what", &[("a", "1".to_owned()), ("b", percent(0.123_45))]);
        assert_eq!(table, "| what | |\n|---|---|\n| a | 1 |\n| b | 12.35 % |\n");
    }
}
