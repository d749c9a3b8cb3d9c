//! Invariants broken on purpose, for the tests of the guard.

use std::time::Duration;

use census::group::Decision;
use census::state::{Record, State};
use protocol::Host;
use store::Decided;

use crate::plan::{Plan, Sabotage};
use crate::stage::Stage;
use crate::world::known::FARM;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Breaks an invariant on purpose, before the start.
pub(super) async fn sabotage_the_start(plan: &Plan, stage: &Stage) -> anyhow::Result<()> {
    let (start, writer) = (plan.start, &stage.services.writer);
    let discovered = |days| {
        let stranger = Host::parse("stranger.net")?;
        let seen = start.minus(DAY * days);
        anyhow::Ok(Record::discovered(stranger, seen, start.plus(DAY)))
    };
    if plan.does(Sabotage::ListTheOld) {
        let mut record = discovered(30)?;
        record.state = State::Alive;
        record.last_alive = Some(start.minus(DAY * 20));
        writer.import(vec![record]).await?;
    }
    if plan.does(Sabotage::ForgetQuietly) {
        let mut record = discovered(366)?;
        record.state = State::Dead;
        writer.import(vec![record]).await?;
    }
    if plan.does(Sabotage::AllowTheFarm) {
        let decided = Decided {
            at: start,
            decision: Decision::Allow,
            reason: "a test of the invariant".to_owned(),
            who: "the simulation".to_owned(),
        };
        let calendar = stage.services.calendar;
        writer
            .decide_group(FARM.to_owned(), decided, calendar)
            .await?;
    }
    Ok(())
}
