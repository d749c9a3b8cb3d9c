//! Counters of the census: names, kinds, labels and help in one place.
//!
//! All label values are constants of this program. No name of a host, a source or a software is a
//! label: otherwise anyone who invents host names could fill the memory of the metrics' reader.

pub mod counts;
pub mod labels;
pub mod table;

pub use self::counts::Meters;

/// Prometheus's type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only increases, and starts at 0 with its part.
    Counter,
    Gauge,
    /// Durations, counted by their length.
    Histogram,
}

impl Kind {
    /// The word of the text format.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// One metric. The end of its name is its unit: seconds, bytes, or a count of what the name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}
