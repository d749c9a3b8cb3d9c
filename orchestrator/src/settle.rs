//! Steps 5 and 6 of 7: host record and verdict to `transition`, its change to the writer, never split over two transactions.
//!
//! In: a verdict that is not in doubt, and the record that was taken when its check began. Out: the host's row, its history and perhaps a
//! candidate, acknowledged by the store. While a host is in flight nothing else changes its row, save an opt-out or a hold by word of mouth: the
//! store looks for those in the same transaction, and they stand (invariant I7).

use census::state::{Record, Verdict};
use census::transition::transition;
use store::StoreError;

use crate::tools::Tools;

/// Settles a verdict about the record's host.
///
/// # Errors
/// When the store does not take it; the host then stays in flight until it is released.
pub async fn settle(record: &Record, verdict: &Verdict, tools: &Tools) -> Result<(), StoreError> {
    let now = tools.now();
    let mut change = transition(record, verdict, now, tools.dice.jitter(), tools.calendar);
    change.candidate = change
        .candidate
        .filter(|candidate| tools.names.admit_host(candidate.clone()).is_ok());
    let candidate_due = now.plus(tools.calendar.first_check(tools.dice.jitter()));
    let settled = tools.writer.settle(change, candidate_due).await?;
    if settled.overruled {
        tracing::info!(host = %record.host, "somebody opted it out while it was checked: the verdict changed nothing");
    }
    Ok(())
}
