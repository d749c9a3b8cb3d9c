//! The one place where the simulation has the store pick what is due.

use orchestrator::tools::Tools;
use store::{StoreError, Taken};

/// Takes the hosts that are due, at most `room`, as `orchestrator/src/due.rs` does each time round the daemon's loop.
///
/// The daemon asks again within a second when nothing is due; the simulation knows when somebody is due next, and goes there.
pub(crate) async fn pick(tools: &Tools, room: u32) -> Result<Vec<Taken>, StoreError> {
    let jitters = tools.dice.jitters(room);
    tools
        .writer
        .take_due(tools.now(), room, jitters, tools.calendar)
        .await
}
