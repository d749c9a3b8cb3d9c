//! Tasks of the running checks.

use std::collections::HashMap;

use scheduler::event::{CheckNumber, CheckOutcome};
use tokio::task::{AbortHandle, Id, JoinSet};

use crate::check::Check;
use crate::ground::fault::Fault;

#[derive(Debug, Default)]
pub(super) struct Running {
    tasks: JoinSet<(Box<Check>, Result<CheckOutcome, Fault>)>,
    aborts: HashMap<CheckNumber, AbortHandle>,
    numbers: HashMap<Id, CheckNumber>,
}

/// A check whose task has ended.
#[derive(Debug)]
pub(super) enum Finished {
    Ended(Box<Check>, Result<CheckOutcome, Fault>),
    Panicked(CheckNumber),
}

impl Running {
    pub(super) fn start(
        &mut self,
        number: CheckNumber,
        task: impl Future<Output = (Box<Check>, Result<CheckOutcome, Fault>)> + Send + 'static,
    ) {
        let abort = self.tasks.spawn(task);
        self.numbers.insert(abort.id(), number);
        self.aborts.insert(number, abort);
    }

    /// Ends a check, its container and its egress.
    pub(super) fn abort(&mut self, number: CheckNumber) {
        if let Some(abort) = self.aborts.remove(&number) {
            abort.abort();
        }
    }

    /// The next check that ends; `None` if none runs. The inner `None` is a check that was aborted.
    pub(super) async fn next(&mut self) -> Option<Option<Finished>> {
        let joined = self.tasks.join_next_with_id().await?;
        let id = joined
            .as_ref()
            .map_or_else(tokio::task::JoinError::id, |(id, _)| *id);
        let number = self.numbers.remove(&id);
        if let Some(number) = number {
            self.aborts.remove(&number);
        }
        Some(match joined {
            Ok((_, (check, ended))) => Some(Finished::Ended(check, ended)),
            Err(error) if error.is_cancelled() => None,
            Err(_panic) => number.map(Finished::Panicked),
        })
    }

    pub(super) fn has(&self, number: CheckNumber) -> bool {
        self.aborts.contains_key(&number)
    }

    pub(super) async fn end_all(&mut self) {
        self.tasks.shutdown().await;
    }
}
