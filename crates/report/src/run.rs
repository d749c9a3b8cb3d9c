//! Shared by the reports of runs that read something from a host instead of checking it.

use protocol::{Event, parse_line};

use crate::check::Breach;

/// The report of such a run, up to the last event.
pub trait RunReport {
    /// Whether its `hello` has arrived.
    fn has_begun(&self) -> bool;

    /// Takes an event that is within its bounds.
    fn step(&mut self, event: Event) -> Result<(), Breach>;

    /// Records the breach that ended the run.
    fn broken_by(&mut self, breach: Breach);

    /// The breach that ended the run, if one did.
    fn breach(&self) -> Option<&Breach>;

    fn accept(&mut self, line: &[u8]) -> Result<(), Breach> {
        let event: Event =
            parse_line(line).map_err(|_why_does_not_matter| match self.has_begun() {
                true => Breach::NotAnEvent,
                false => Breach::NoHello,
            })?;
        if !event.is_within_bounds() {
            return Err(Breach::OutOfBounds);
        }
        self.step(event)
    }
}
