//! Steps 5 and 6 of 7: host record and verdict to `transition`, its change to the writer, never split over two transactions.
//!
//! In: a verdict that is not in doubt, and the record that was taken when its check began. Out: the host's row and its history, acknowledged by the
//! store, and perhaps a candidate. While a host is in flight nothing else changes its row, save an opt-out or a hold by word of mouth: the
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
    // Before the verdict: a crash between the two has the host asked again, and the other way round its target would be lost.
    if let Some(target) = change.candidate.take()
        && let Err(error) = tools.learn(vec![target.clone()], &record.host).await
    {
        // The verdict is worth more than the name, which comes in when somebody else names it.
        tracing::warn!(host = %record.host, %target, %error, "its target could not be let in");
    }
    let settled = tools.writer.settle(change).await?;
    if settled.overruled {
        tracing::info!(host = %record.host, "somebody opted it out while it was checked: the verdict changed nothing");
    }
    Ok(())
}
