//! Plots of a run over its days, as SVG files.
//!
//! A run with a single sample has plots without lines.

use std::path::Path;

use anyhow::Context as _;
use chart::{Chart, Values};

use crate::measure::Sample;
use crate::report::Report;

/// A line: its label, and its value in a sample.
type Line = (&'static str, fn(&Sample) -> f64);

/// A plot: its file, its title with the unit, its lines.
const PLOTS: [(&str, &str, &[Line]); 4] = [
    (
        "coverage.svg",
        "Living hosts seen in time, %",
        &[
            ("within 29 h", |sample| sample.within_day * 100.0),
            ("within 31 h", |sample| sample.within_day_and_jitter * 100.0),
            ("within 48 h", |sample| sample.within_two_days * 100.0),
        ],
    ),
    (
        "list.svg",
        "The list, hosts",
        &[
            ("listed, wrongly", |sample| f64::from(sample.listed_wrongly)),
            ("living, not listed", |sample| f64::from(sample.missing)),
            ("invented, listed", |sample| f64::from(sample.invented)),
        ],
    ),
    (
        "checks.svg",
        "Checks so far, thousands",
        &[
            ("all", |sample| sample.checks as f64 / 1e3),
            ("of the dead, known to be", |sample| {
                sample.wasted as f64 / 1e3
            }),
        ],
    ),
    (
        "database.svg",
        "The database with its log, MB, and rows, thousands",
        &[
            ("MB", |sample| sample.bytes as f64 / 1e6),
            ("rows", |sample| sample.rows as f64 / 1e3),
        ],
    ),
];

/// Writes all plots of a run, and its table, into a folder, which is created if missing.
///
/// # Errors
/// Fails if a file can't be written.
pub fn write(report: &Report, folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("no folder {}", folder.display()))?;
    let put = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("can't write {}", path.display()))
    };
    for (name, title, lines) in PLOTS {
        put(name, plot(title, lines, &report.samples)?)?;
    }
    put("table.md", report.table())
}

fn plot(title: &str, lines: &[Line], samples: &[Sample]) -> anyhow::Result<String> {
    let drawn = lines.iter().map(|(label, of)| chart::Line {
        label,
        points: samples
            .iter()
            .map(|sample| (sample.day, of(sample)))
            .collect(),
    });
    let chart = Chart {
        title,
        across: "days",
        values: Values::Closely,
        target: None,
        lines: drawn.collect(),
    };
    chart.svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Sample> {
        (0..20)
            .map(|day| Sample {
                day: f64::from(day),
                within_day: 0.98,
                within_day_and_jitter: 1.0,
                within_two_days: 1.0,
                checks: 1000,
                ..Sample::default()
            })
            .collect()
    }

    #[test]
    fn each_plot_has_its_title_and_its_lines() {
        for (file, title, lines) in PLOTS {
            let svg = plot(title, lines, &samples()).unwrap();
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
            assert!(svg.contains(title), "{file}");
            for (label, _) in lines {
                assert!(svg.contains(label), "{file}: {label}");
            }
            assert!(svg.matches("<polyline").count() >= lines.len(), "{file}");
        }
    }

    #[test]
    fn a_run_without_samples_is_no_panic() {
        for (_, title, lines) in PLOTS {
            plot(title, lines, &[]).unwrap();
        }
    }
}
