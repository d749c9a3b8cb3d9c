//! Invariants broken on purpose, for the tests of the guard.

use std::time::Duration;

use census::group::Decision;
use census::state::{Record, State};
use census::time::Timestamp;
use store::{Decided, Taken};

use super::Census;
use crate::plan::{Failure, Sabotage};
use crate::world::names::{FARM, Name};

const DAY: Duration = Duration::from_secs(24 * 3600);

impl Census {
    /// Breaks an invariant on purpose, after a host was taken.
    pub(super) async fn sabotage_the_taken(
        &self,
        taken: &Taken,
        now: Timestamp,
    ) -> Result<(), Failure> {
        if self.does(Sabotage::ReleaseEarly) {
            let writer = &self.stage.services.writer;
            writer.release(&taken.record.host, now, None).await?;
        }
        Ok(())
    }

    /// Breaks an invariant on purpose, before the start.
    pub(super) async fn sabotage_the_start(&self) -> anyhow::Result<()> {
        let writer = &self.stage.services.writer;
        let start = self.plan.start;
        // No host of the world has this number for years.
        let stranger = Name::Host(self.plan.hosts + 10_000);
        if self.does(Sabotage::ListTheOld) {
            let mut record =
                Record::discovered(stranger.host()?, start.minus(DAY * 30), start.plus(DAY));
            record.state = State::Alive;
            record.last_alive = Some(start.minus(DAY * 20));
            writer.import(vec![record]).await?;
        }
        if self.does(Sabotage::ForgetQuietly) {
            let host = stranger.host()?;
            let mut record = Record::discovered(host, start.minus(DAY * 366), start.plus(DAY));
            record.state = State::Dead;
            writer.import(vec![record]).await?;
        }
        if self.does(Sabotage::AllowTheFarm) {
            let decided = Decided {
                at: start,
                decision: Decision::Allow,
                reason: "a test of the invariant".to_owned(),
                who: "the simulation".to_owned(),
            };
            let farm = FARM.to_owned();
            let calendar = self.stage.services.calendar;
            writer.decide_group(farm, decided, calendar).await?;
        }
        Ok(())
    }
}
