//! The one place where the simulation has the store pick what is due.

use census::share::{Room, Shares};
use orchestrator::tools::Tools;
use store::{StoreError, Taken};

/// Takes the hosts whose turn it is, at most `room.free`, as `orchestrator/src/due.rs` does each time round the daemon's loop.
///
/// The daemon asks again within a second when nothing is due; the simulation knows when somebody is due next, and goes there.
pub(crate) async fn pick(
    tools: &Tools,
    room: Room,
    shares: &mut Shares,
) -> Result<Vec<Taken>, StoreError> {
    let jitters = tools.dice.jitters(room.free);
    let taking = tools
        .writer
        .take_due(tools.now(), room, *shares, jitters, tools.calendar);
    let (taken, after) = taking.await?;
    *shares = after;
    Ok(taken)
}
