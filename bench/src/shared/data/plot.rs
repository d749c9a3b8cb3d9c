//! The plots: their names in the file of points, and how they are drawn.

use chart::{Chart, Values};
use clap::ValueEnum;

use super::Line;

/// A plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Plot {
    /// Checks a second of both sides, by checks in flight.
    PathRate,
    /// The whole path's figures, times the bare client's.
    PathRatio,
    /// What a check costs the database, against the fewest rows.
    CostToSmallest,
    /// A census's memory.
    MemoryOverRows,
    /// Checks a second of a long census.
    SoakRate,
    /// The orchestrator's memory meanwhile.
    SoakMemory,
}

/// How a plot is drawn.
struct Look {
    title: &'static str,
    across: &'static str,
    values: Values,
    target: Option<(&'static str, f64)>,
}

impl Plot {
    /// Its name in the file of points, and the name of its SVG file.
    pub fn name(self) -> &'static str {
        match self {
            Self::PathRate => "path-rate",
            Self::PathRatio => "path-ratio",
            Self::CostToSmallest => "cost-to-smallest",
            Self::MemoryOverRows => "memory-over-rows",
            Self::SoakRate => "soak-rate",
            Self::SoakMemory => "soak-memory",
        }
    }

    /// The plot with these lines.
    pub fn chart(self, lines: &[Line]) -> Chart<'_> {
        let look = self.look();
        let lines = lines.iter().map(|line| chart::Line {
            label: &line.label,
            points: line.points.clone(),
        });
        Chart {
            title: look.title,
            across: look.across,
            values: look.values,
            target: look.target,
            lines: lines.collect(),
        }
    }

    fn look(self) -> Look {
        let from_zero = |title, across, target| Look {
            title,
            across,
            values: Values::FromZero,
            target,
        };
        let in_flight = "checks in flight";
        match self {
            Self::PathRate => from_zero("Checks a second", in_flight, None),
            Self::PathRatio => from_zero(
                "The whole path, times the bare client",
                in_flight,
                Some(("target, checks/s: 0.90 or more", 0.90)),
            ),
            Self::CostToSmallest => from_zero(
                "What a check costs the database, times that with the fewest rows",
                "rows",
                Some(("target: 1.20 or less", 1.20)),
            ),
            Self::MemoryOverRows => from_zero(
                "Memory of a process that has the census open, MiB",
                "rows",
                Some(("target at 1 000 000 rows: 200", 200.0)),
            ),
            Self::SoakRate => from_zero("Soak: checks a second in containers", "minute", None),
            Self::SoakMemory => from_zero(
                "Soak: memory of the orchestrator, MiB",
                "minute",
                Some(("target: 200 or less", 200.0)),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use chart::LABEL_CHARS_MAX;

    use super::*;

    /// Otherwise the reader would reject what benchmarks write.
    #[test]
    fn each_plot_is_found_by_its_name() {
        for plot in Plot::value_variants() {
            assert_eq!(Plot::from_str(plot.name(), false), Ok(*plot));
        }
    }

    #[test]
    fn targets_fit_into_the_legend() {
        for plot in Plot::value_variants() {
            if let Some((label, _)) = plot.look().target {
                assert!(label.chars().count() <= LABEL_CHARS_MAX, "{label}");
            }
        }
    }
}
