//! The engines of a first day, by what a check costs.

use std::time::Duration;

/// An engine, by what a check costs: processor time as measured with hosts 150 ms away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Engine {
    /// Docker 28: 10.6 checks a second of two processors that are a sixth idle.
    Docker28,
    /// Docker 20.10 with fuse-overlayfs: 7.1 checks a second.
    Docker20,
}

impl Engine {
    pub(crate) fn cost(self) -> Duration {
        match self {
            Self::Docker28 => Duration::from_millis(158),
            Self::Docker20 => Duration::from_millis(280),
        }
    }

    /// Hours within which the living should be listed.
    pub(crate) fn hours(self) -> u32 {
        match self {
            Self::Docker28 => 3,
            Self::Docker20 => 4,
        }
    }
}
