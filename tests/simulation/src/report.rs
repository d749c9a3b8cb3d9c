//! The result of a run, as a table in Markdown.
//!
//! For the same seed the results of the world and the rules are the same. The cost to this machine
//! is in a separate table.

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

    pub fn checks_a_verdict(&self) -> f64 {
        self.counts.checks as f64 / self.counts.settled.max(1) as f64
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
        let Plan {
            world,
            hosts,
            days,
            seed,
            ..
        } = &self.plan;
        let spread = |Spread { mean, worst }| format!("{}, {}", percent(mean), percent(worst));
        let within = |of: fn(&Sample) -> f64| spread(self.coverage(of));
        format!(
            "\
| what became of it | |
|---|---|
| world | `{}`: {} |
| seed | {seed} |
| hosts at the start, days | {hosts}, {days} |
| the engine's containers a second, and what the world needs at its start | {:.3}, {:.3} |
| living hosts seen within 29 h: mean, lowest | {} |
| within 31 h, which is 29 h and the most that chance adds | {} |
| within 48 h | {} |
| longest that one was not seen | {:.1} h |
| of the list, dead or otherwise wrong: mean, highest | {} |
| of the living, not on the list: mean, highest | {} |
| checks that found one alive, to what the living need or the engine can | {} |
{}",
            world.name,
            world.about,
            self.plan.capacity,
            world.need(*hosts),
            within(|sample| sample.within_day),
            within(|sample| sample.within_day_and_jitter),
            within(|sample| sample.within_two_days),
            self.longest.as_secs_f64() / 3600.0,
            spread(self.wrong()),
            spread(self.missing()),
            percent(self.living_share()),
            self.counts_table(),
        )
    }

    fn counts_table(&self) -> String {
        let counts = &self.counts;
        let ends = |of: fn(&Sample) -> u64| {
            let at = |sample: Option<&Sample>| sample.map_or(0, of);
            format!("{}, {}", at(self.samples.first()), at(self.samples.last()))
        };
        let of_checks = |part: u64| percent(part as f64 / counts.checks.max(1) as f64);
        format!(
            "\
| checks, a second of the world's time | {}, {:.3} |
| of them, through a container | {} |
| of them, of hosts dead and known to be dead | {} ({}) |
| of them, of invented names | {} ({}) |
| failures asked again at once, within the hour | {}, {} |
| checks for each verdict | {:.3} |
| canaries asked for | {} |
| checks put off, broken off or without network | {}, {} |
| outages of our network, silences reported | {}, {} |
| living hosts at the start, in the end | {} |
| listed | {} |
| of them, invented names | {} |
| rows | {} |
| hosts that there were, forgotten, waiting in the end | {}, {}, {} |
| opted out by word of mouth | {} |
",
            counts.checks,
            counts.checks as f64 / self.seconds(),
            self.containers,
            counts.wasted,
            of_checks(counts.wasted),
            counts.invented,
            of_checks(counts.invented),
            counts.asked_again,
            counts.unconfirmed,
            self.checks_a_verdict(),
            counts.canaries,
            counts.put_off,
            counts.ours,
            self.outages,
            self.told,
            ends(|sample| u64::from(sample.living)),
            ends(|sample| u64::from(sample.listed)),
            ends(|sample| u64::from(sample.invented)),
            ends(|sample| sample.rows),
            self.beings,
            counts.forgotten,
            self.waiting,
            counts.words,
        )
    }

    pub fn cost_table(&self) -> String {
        let Cost {
            set_up,
            took,
            bytes,
            steps,
        } = self.cost;
        let first = self.samples.first().map_or(0, |sample| sample.bytes) as f64 / 1e6;
        let rows = self.samples.last().map_or(1, |sample| sample.rows.max(1));
        let seconds = took.as_secs_f64().max(1e-9);
        let checks = self.counts.checks as f64 / seconds;
        let times = self.seconds() / seconds;
        let set_up = set_up.as_secs_f64();
        let (megabytes, a_row) = (bytes as f64 / 1e6, bytes as f64 / rows as f64);
        format!(
            "\
| what it cost | |
|---|---|
| database at the start with its log, closed in the end | {first:.1} MB, {megabytes:.1} MB |
| bytes a row in the end | {a_row:.0} |
| making it | {set_up:.1} s |
| wall time | {seconds:.1} s: {times:.0} times as fast |
| checks simulated a second | {checks:.0} |
| moments gone through | {steps} |
"
        )
    }
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
}
