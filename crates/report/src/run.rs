//! What reports of runs have in common that read something of a host instead of checking it.

use protocol::{Event, parse_line};

use crate::check::Breach;

/// The report of such a run, as far as its container has said something.
pub trait RunReport {
    /// Whether its `hello` has come.
    fn has_begun(&self) -> bool;

    /// Takes an event that is within its bounds.
    ///
    /// # Errors
    /// When the event does not belong here.
    fn step(&mut self, event: Event) -> Result<(), Breach>;

    /// Notes the breach that ended the run.
    fn broken_by(&mut self, breach: Breach);

    /// The breach that ended the run, if one did.
    fn breach(&self) -> Option<&Breach>;

    /// Takes the next line.
    ///
    /// # Errors
    /// The breach, after which no further line may be given.
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
