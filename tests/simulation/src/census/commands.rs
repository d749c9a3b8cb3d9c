//! Carries out the scheduler's commands on the store and the simulated parts.

use census::class::PerClass;
use census::time::Timestamp;
use orchestrator::daemon::read_demand;
use scheduler::Event;
use scheduler::command::{CanaryTurn, Command, Notice, Released};
use scheduler::event::{SlotHolder, Trigger};
use scheduler::publication::PublishAgain;
use store::StoreError;

use super::Census;
use super::writes::Commit;
use crate::plan::{Failure, Sabotage};
use crate::world::network::Shows;

impl Census {
    pub(super) async fn carry_out(
        &mut self,
        command: Command,
        now: Timestamp,
    ) -> Result<(), Failure> {
        match command {
            Command::CountDue { most, with_load } => self.count_due(most, with_load, now)?,
            Command::Take { wanted } => self.take(wanted, now).await?,
            Command::TakeCanary(turn) => self.take_canary(turn, now).await?,
            Command::Start(start) => self.start(start, now)?,
            Command::GrantSlot(SlotHolder::Check(check)) => self.starting.push_back(check),
            Command::TurnAway(SlotHolder::Check(check)) => self.turned_away(check),
            // The simulation has no readings of lists or proofs.
            Command::GrantSlot(SlotHolder::Reading(_))
            | Command::TurnAway(SlotHolder::Reading(_)) => {}
            Command::Abort { check } => {
                self.checks.remove(&check);
                self.starting.retain(|other| *other != check);
                self.ends.retain(|(_, other)| *other != check);
            }
            Command::CommitVerdict { record, verdict } => {
                self.commits.push(Commit { record, verdict });
            }
            Command::Release(release) => {
                match &release.why {
                    Released::FailedOnce(_) => self.measure.counts.asked_again += 1,
                    Released::Unconfirmed(_) => self.measure.counts.unconfirmed += 1,
                    Released::Deferred(_) => self.measure.counts.put_off += 1,
                    Released::Offline | Released::Fault(_) => self.measure.counts.ours += 1,
                    Released::CountedFault(_)
                    | Released::HitOthers(_)
                    | Released::OptedOut
                    | Released::StoreFailed
                    | Released::NotAdmitted(_) => {}
                }
                self.releases.push(release);
            }
            Command::AskParts => {
                let has_network = self.network.fails_at(now) != Some(Shows::Told);
                let status = has_network
                    .then_some(())
                    .ok_or_else(|| "the gateway has no network".to_owned());
                self.events.push_back(Event::PartStatus(status));
            }
            Command::Publish { .. } => {
                self.read_the_list(now)?;
                let services = &self.stage.services;
                let interval = services.calendar.dump_interval(services.random.jitter());
                self.events.push_back(Event::Published {
                    again: PublishAgain::Nothing,
                    has_pages: true,
                    has_names: true,
                    interval,
                });
            }
            Command::Report(notice) => match notice {
                Notice::BlackoutBegan(_) => self.told += 1,
                Notice::CanaryAsked { .. } => self.measure.counts.canaries += 1,
                Notice::OutageBegan(_)
                | Notice::OutageRelapsed(_)
                | Notice::OutageOver { .. }
                | Notice::BlackoutOver(_) => {}
            },
        }
        Ok(())
    }

    fn count_due(&mut self, most: u32, with_load: bool, now: Timestamp) -> Result<(), Failure> {
        let calendar = self.stage.services.calendar;
        let demand = read_demand(&self.stage.reader, now, most, with_load, calendar)?;
        self.events.push_back(demand);
        Ok(())
    }

    async fn take(&mut self, wanted: PerClass<u32>, now: Timestamp) -> Result<(), Failure> {
        let room = wanted.sum();
        let greedy = if self.does(Sabotage::PickTooMany) {
            PerClass::each(|class| *wanted.of(class) + 5)
        } else {
            wanted
        };
        let services = &self.stage.services;
        let jitters = services.random.jitters(greedy.sum());
        let taking = services
            .writer
            .take_due(now, greedy, jitters, services.calendar);
        let taken = taking.await?;
        self.guard.picked(taken.len(), room)?;
        if let Some(first) = taken.first() {
            let row = self.stage.reader.record(&first.record.host)?;
            self.guard.row(&first.record.host, row.as_ref())?;
        }
        let mut hosts = Vec::new();
        for taken in taken {
            self.sabotage_the_taken(&taken, now).await?;
            hosts.push(self.taken(taken, now)?);
        }
        self.events.push_back(Event::Taken {
            hosts,
            not_admitted: Vec::new(),
        });
        Ok(())
    }

    async fn take_canary(&mut self, turn: CanaryTurn, now: Timestamp) -> Result<(), Failure> {
        let CanaryTurn { host, wish, left } = turn;
        let services = &self.stage.services;
        let jitter = services.random.jitter();
        let taken = services
            .writer
            .take_one(&host, now, jitter, services.calendar);
        let event = match taken.await {
            Ok(Some(taken)) => Event::TakenOne {
                taken: self.taken(taken, now)?,
                trigger: Trigger::Canary(wish),
            },
            Ok(None) | Err(StoreError::InFlight { .. } | StoreError::NeverAsked { .. }) => {
                Event::CanaryRefused { wish, left }
            }
            Err(error) => return Err(error.into()),
        };
        self.events.push_back(event);
        Ok(())
    }
}
