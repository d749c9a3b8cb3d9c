//! Counters of the census: names, kinds, labels and help in one place.
//!
//! Label values are all written in this program. No name of a host, a source or a software is a
//! label, or anyone who invents host names could fill the reader's memory.

pub mod counts;
pub mod labels;
pub mod table;

pub use self::counts::Meters;

/// What a metric is to Prometheus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Goes up, and begins at 0 with its part.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Durations, counted by how long they were.
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

/// One metric. Its unit is the end of its name: seconds, bytes, or a count of what the name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Name.
    pub name: &'static str,
    /// Kind.
    pub kind: Kind,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// What it is.
    pub help: &'static str,
}
