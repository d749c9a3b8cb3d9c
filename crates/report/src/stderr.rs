//! A bounded part of what a container printed to stderr.

use protocol::escaped;
use protocol::limits::{STDERR_BYTES_KEPT, STDERR_BYTES_MAX};

use crate::check::Breach;

/// What a container printed to stderr: its first [`STDERR_BYTES_KEPT`] bytes and the total size.
#[derive(Debug, Default)]
pub struct Stderr {
    bytes_total: u64,
    kept: Vec<u8>,
}

impl Stderr {
    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Breach> {
        self.bytes_total = self
            .bytes_total
            .saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let room = STDERR_BYTES_KEPT.saturating_sub(self.kept.len());
        self.kept.extend(bytes.iter().take(room));
        if self.bytes_total > STDERR_BYTES_MAX {
            Err(Breach::StderrFlood)
        } else {
            Ok(())
        }
    }

    /// The kept bytes, escaped and cut to `bytes_max`; empty if the container printed nothing.
    pub fn text(&self, bytes_max: usize) -> String {
        escaped(&self.kept, bytes_max)
    }
}
