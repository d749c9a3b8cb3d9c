//! The report of a run that reads something from a host instead of checking it: what the modes
//! share.
//!
//! Takes lines of stdout, how the container ended and the gateway's account. Rejects everything
//! outside a mode's order: `hello`, the mode's own events, `done`. After the first breach nothing
//! of the run counts. No result is a verdict.

use protocol::container::End;
use protocol::egress::{Account, FailedSide};
use protocol::limits::PROTOCOL_VERSION;
use protocol::{Event, parse_line};

use crate::check::Breach;
use crate::fault::ReportFault;

/// What is particular to a mode.
pub trait Reading {
    type Outcome;

    /// Whether only a run with its `done` reported everything.
    const ENDS_WITH_DONE: bool = false;

    /// Takes an event between `hello` and `done`. Returns whether it was the last one.
    ///
    /// # Errors
    /// The event is of another mode, not in its place, or brings more than was asked for.
    fn take(&mut self, event: Event) -> Result<bool, Breach>;

    /// Whether any of it is an answer of the host.
    fn is_answered(&self) -> bool;

    /// The result of a run that reported everything.
    fn read(self, account: &Account) -> Self::Outcome;

    /// The result of a run that came to nothing because of what the host sent.
    fn failed(why: Failure) -> Self::Outcome;
}

/// Why a run came to nothing, through no fault of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Its container broke the rules. `None`: it asked for another host, or without TLS.
    Breach(Option<Breach>),
    /// It was killed, out of memory, or crashed.
    Ended(Option<End>),
}

/// The events of a run, up to the first breach.
#[derive(Debug)]
pub struct Run<R> {
    reading: R,
    progress: Progress,
    breach: Option<Breach>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Nothing,
    Hello,
    Reported,
    Done,
}

impl<R: Reading> Run<R> {
    pub fn new(reading: R) -> Self {
        Self {
            reading,
            progress: Progress::Nothing,
            breach: None,
        }
    }

    /// Takes the next line.
    pub fn accept(&mut self, line: &[u8]) -> Result<(), Breach> {
        use Progress::{Done, Hello, Nothing, Reported};
        let Some(event) = event_of(line, self.progress != Nothing)? else {
            self.progress = Hello;
            return Ok(());
        };
        self.progress = match (self.progress, event) {
            (Reported, Event::Done { .. }) => Done,
            (Hello, event) => match self.reading.take(event)? {
                true => Reported,
                false => Hello,
            },
            (Nothing | Reported | Done, _) => return Err(Breach::OutOfOrder),
        };
        Ok(())
    }

    /// Records the breach that ended the run.
    pub fn broken_by(&mut self, breach: Breach) {
        self.breach = Some(breach);
    }

    /// The breach that ended the run, if one did.
    pub fn breach(&self) -> Option<&Breach> {
        self.breach.as_ref()
    }

    /// The result, from the events, how the container ended (`None` if we ended it for a breach),
    /// and the gateway's account.
    ///
    /// # Errors
    /// A fault, if one of the three shows that the failure was ours. Nothing of the run is kept
    /// then.
    pub fn conclude(
        self,
        end: Option<End>,
        account: &Account,
        stderr: &str,
    ) -> Result<R::Outcome, ReportFault> {
        if self.progress == Progress::Nothing {
            return Err(ReportFault::no_hello(end, stderr));
        }
        if self.breach.is_some() || account.sni_refused > 0 {
            return Ok(R::failed(Failure::Breach(self.breach)));
        }
        let is_reported = match self.progress {
            Progress::Done => true,
            Progress::Reported => !R::ENDS_WITH_DONE,
            Progress::Nothing | Progress::Hello => false,
        };
        let is_answered = self.reading.is_answered();
        if !is_answered && (!account.up || account.failed == FailedSide::Gateway) {
            return Err(ReportFault::NetworkLost);
        }
        if !is_reported {
            return match end {
                Some(end) if end.exit_code == 0 => Err(ReportFault::OutputLost),
                end => Ok(R::failed(Failure::Ended(end))),
            };
        }
        if is_answered && account.connections == 0 {
            return Err(ReportFault::NoConnection);
        }
        Ok(self.reading.read(account))
    }
}

/// The event of a line, or `None` for the `hello` that comes first.
///
/// # Errors
/// It is no event, is out of bounds, or is not this protocol's `hello` though it is the first.
pub(crate) fn event_of(line: &[u8], has_begun: bool) -> Result<Option<Event>, Breach> {
    let event: Event = parse_line(line).map_err(|_why_does_not_matter| match has_begun {
        true => Breach::NotAnEvent,
        false => Breach::NoHello,
    })?;
    if !event.is_within_bounds() {
        return Err(Breach::OutOfBounds);
    }
    match event {
        event if has_begun => Ok(Some(event)),
        Event::Hello { protocol, .. } if protocol == PROTOCOL_VERSION => Ok(None),
        _ => Err(Breach::NoHello),
    }
}

/// A run with these lines, up to the first breach.
#[cfg(test)]
pub(crate) fn feed<R: Reading>(reading: R, lines: &[&str]) -> Run<R> {
    let mut run = Run::new(reading);
    for line in lines {
        if let Err(breach) = run.accept(line.as_bytes()) {
            run.broken_by(breach);
            break;
        }
    }
    run
}
