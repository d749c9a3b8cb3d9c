//! What a run in delivery mode reads: an outcome for each message, or none at all.
//!
//! Its order is a `posted` or `unposted` for each message, in their order. Events of other modes
//! are a breach here, and these are a breach there.

use protocol::egress::Account;
use protocol::{DeliveryOrder, Event, MessageOutcome, UnpostedReason};

use crate::check::Breach;
use crate::run::{Failure, Reading};

#[derive(Debug)]
pub struct DeliveryReport {
    messages: usize,
    outcomes: Vec<MessageOutcome>,
}

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
            outcomes: Vec::new(),
        }
    }

    fn take_outcome(&mut self, message: u32, outcome: MessageOutcome) -> Result<bool, Breach> {
        let next = self.outcomes.len();
        let is_next = usize::try_from(message).is_ok_and(|message| message == next);
        let is_stopped = self.outcomes.last().is_some_and(was_not_sent);
        if !is_next || next >= self.messages || (is_stopped && !was_not_sent(&outcome)) {
            return Err(Breach::OutOfOrder);
        }
        self.outcomes.push(outcome);
        Ok(self.outcomes.len() == self.messages)
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

impl Reading for DeliveryReport {
    type Outcome = Delivery;

    const ENDS_WITH_DONE: bool = true;

    fn take(&mut self, event: Event) -> Result<bool, Breach> {
        match event {
            Event::Posted {
                message,
                status,
                retry_after_s,
            } => {
                let outcome = MessageOutcome::Answered {
                    status,
                    retry_after_s,
                };
                self.take_outcome(message, outcome)
            }
            Event::Unposted { message, reason } => {
                self.take_outcome(message, MessageOutcome::Unposted { reason })
            }
            _ => Err(Breach::OutOfOrder),
        }
    }

    fn is_answered(&self) -> bool {
        self.outcomes.iter().any(is_answered)
    }

    fn read(self, _: &Account) -> Delivery {
        Delivery::Ended(self.outcomes)
    }

    fn failed(_: Failure) -> Delivery {
        Delivery::Failed
    }
}

#[cfg(test)]
mod tests;
