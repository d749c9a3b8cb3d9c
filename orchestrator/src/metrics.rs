//! What the census tells of itself to Prometheus: names, units and help in one place.
//!
//! In: what the loop counts ([`Meters`]), what `status` asks of the loop, the gateway and the launcher, and a survey of the database that is some
//! seconds old ([`Surveyor`]). Out: one page of text at a socket of its own ([`MetricsDoor`]). Refused: labels whose values are not written in this
//! program: no name of a host, a source or a software is ever one, or whoever names hosts could fill the reader's memory.

pub mod door;
pub mod labels;
pub mod meters;
pub mod page;
pub mod survey;
pub mod table;

#[cfg(test)]
mod tests;

pub use self::door::MetricsDoor;
pub use self::meters::Meters;
pub use self::page::Source;
pub use self::survey::Surveyor;

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
