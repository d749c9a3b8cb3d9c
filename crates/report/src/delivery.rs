//! Turns the lines of a run in delivery mode into an outcome for each message, or a fault of ours.
//!
//! Takes lines of stdout, how the container ended and the gateway's account. Rejects everything
//! outside the order of delivery mode: `hello`, a `posted` or `unposted` for each message in their
//! order, `done`. Events of other modes are a breach here, and these are a breach there. After the
//! first breach nothing of the run counts.

use protocol::container::End;
use protocol::egress::{Account, FailedSide};
use protocol::{DeliveryOrder, Event, MessageOutcome, UnpostedReason};

use crate::check::Breach;
use crate::fault::ReportFault;
use crate::run::RunReport;

/// The events of a run, up to the first breach.
#[derive(Debug)]
pub struct DeliveryReport {
    messages: usize,
    progress: Progress,
    outcomes: Vec<MessageOutcome>,
    breach: Option<Breach>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Nothing,
    Hello,
    Done,
}

/// The result of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// An outcome for each message, in the same order.
    Ended(Vec<MessageOutcome>),
    /// The container broke off or broke the rules: any message may have arrived.
    Failed,
}

impl DeliveryReport {
    /// An empty report of a run for this order.
    pub fn new(order: &DeliveryOrder) -> Self {
        Self {
            messages: order.messages().len(),
            progress: Progress::Nothing,
            outcomes: Vec::new(),
            breach: None,
        }
    }

    fn take(&mut self, message: u32, outcome: MessageOutcome) -> Result<(), Breach> {
        let next = self.outcomes.len();
        let is_next = usize::try_from(message).is_ok_and(|message| message == next);
        let is_stopped = self.outcomes.last().is_some_and(was_not_sent);
        if !is_next || next >= self.messages || (is_stopped && !was_not_sent(&outcome)) {
            return Err(Breach::OutOfOrder);
        }
        self.outcomes.push(outcome);
        Ok(())
    }
}

fn was_not_sent(outcome: &MessageOutcome) -> bool {
    matches!(
        outcome,
        MessageOutcome::Unposted {
            reason: UnpostedReason::NotSent
        }
    )
}

fn is_answered(outcome: &MessageOutcome) -> bool {
    matches!(outcome, MessageOutcome::Answered { .. })
}

impl RunReport for DeliveryReport {
    fn has_begun(&self) -> bool {
        self.progress != Progress::Nothing
    }

    fn broken_by(&mut self, breach: Breach) {
        self.breach = Some(breach);
    }

    fn breach(&self) -> Option<&Breach> {
        self.breach.as_ref()
    }

    fn step(&mut self, event: Event) -> Result<(), Breach> {
        use Progress::{Done, Hello, Nothing};
        match (self.progress, event) {
            (Nothing, Event::Hello { protocol, .. })
                if protocol == protocol::limits::PROTOCOL_VERSION =>
            {
                self.progress = Hello;
                Ok(())
            }
            (Nothing, _) => Err(Breach::NoHello),
            (
                Hello,
                Event::Posted {
                    message,
                    status,
                    retry_after_s,
                },
            ) => self.take(
                message,
                MessageOutcome::Answered {
                    status,
                    retry_after_s,
                },
            ),
            (Hello, Event::Unposted { message, reason }) => {
                self.take(message, MessageOutcome::Unposted { reason })
            }
            (Hello, Event::Done { .. }) if self.outcomes.len() == self.messages => {
                self.progress = Done;
                Ok(())
            }
            (Hello | Done, _) => Err(Breach::OutOfOrder),
        }
    }
}

/// The result of a run, from its events, how the container ended (`None` if we ended it for a
/// breach), and the gateway's account.
///
/// # Errors
/// A fault, if one of the three shows that the failure was ours.
pub fn conclude(
    report: DeliveryReport,
    end: Option<End>,
    account: &Account,
    stderr: &str,
) -> Result<Delivery, ReportFault> {
    if report.progress == Progress::Nothing {
        return Err(ReportFault::NoHello {
            exit_code: end.map_or(0, |end| end.exit_code),
            stderr: stderr.to_owned(),
        });
    }
    if report.breach.is_some() || account.sni_refused > 0 {
        return Ok(Delivery::Failed);
    }
    let has_answers = report.outcomes.iter().any(is_answered);
    if !has_answers && (!account.up || account.failed == FailedSide::Gateway) {
        return Err(ReportFault::NetworkLost);
    }
    match report.progress {
        Progress::Done if has_answers && account.connections == 0 => Err(ReportFault::NoConnection),
        Progress::Done => Ok(Delivery::Ended(report.outcomes)),
        Progress::Nothing | Progress::Hello if end.is_some_and(|end| end.exit_code == 0) => {
            Err(ReportFault::OutputLost)
        }
        // Killed, out of memory, or crashed: what the host sent caused it.
        Progress::Nothing | Progress::Hello => Ok(Delivery::Failed),
    }
}

#[cfg(test)]
mod tests;
