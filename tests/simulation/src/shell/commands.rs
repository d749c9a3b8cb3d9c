//! Carries out the scheduler's commands on the store and the simulated parts.

use std::time::Duration;

use census::class::PerClass;
use gateway::pace::Late;
use orchestrator::daemon::read_demand;
use protocol::egress::{Deferral, Way};
use scheduler::Event;
use scheduler::command::{CanaryTurn, Command, Notice};
use scheduler::event::{SlotHolder, Taken, Trigger};
use scheduler::slots::SLOT_WAIT_MAX;
use store::{DumpRecord, StoreError};

use super::Shell;
use super::checks::Happening;
use super::story::Story;
use crate::world::network::Shows;

/// How long a list of some ten thousand names takes.
const LIST: Duration = Duration::from_secs(2);

impl<S: Story> Shell<S> {
    pub(super) async fn carry_out(&mut self, command: Command) -> anyhow::Result<()> {
        match command {
            Command::CountDue { most, with_load } => {
                let calendar = self.parts.stage.services.calendar;
                let reader = &self.parts.stage.reader;
                let demand = read_demand(reader, self.now, most, with_load, calendar)?;
                self.events.push_back(demand);
            }
            Command::Take { wanted } => self.take(wanted).await?,
            Command::TakeCanary(turn) => self.take_canary(turn).await?,
            Command::Start(start) => self.open_host(start)?,
            Command::GrantSlot(SlotHolder::Check(check)) => {
                let first_output = self.parts.machine.start(self.now);
                self.at(first_output, Happening::FirstOutput(check));
            }
            Command::TurnAway(SlotHolder::Check(check)) => {
                let full = Late {
                    why: Deferral::Full,
                    retry_after: SLOT_WAIT_MAX,
                };
                self.defer(check, full, Duration::ZERO);
            }
            // The simulation has no readings of lists or proofs.
            Command::GrantSlot(SlotHolder::Reading(_))
            | Command::TurnAway(SlotHolder::Reading(_)) => {}
            Command::Abort { check } => {
                self.checks.remove(&check);
            }
            Command::CommitVerdict { record, verdict } => self.commits.push((record, verdict)),
            Command::Release(release) => self.releases.push(release),
            Command::AskParts => {
                let status = |way| match self.parts.network.fails_at(way, self.now) {
                    Some(Shows::Told) => Err("the gateway has no network".to_owned()),
                    Some(Shows::Silent | Shows::Partly) | None => Ok(()),
                };
                if self.parts.has_second_way {
                    let each = Way::ALL.map(|way| Event::WayStatus {
                        way,
                        status: status(way),
                    });
                    self.events.extend(each);
                    self.events.push_back(Event::PartStatus(Ok(())));
                } else {
                    let status = status(Way::First);
                    self.events.push_back(Event::PartStatus(status));
                }
            }
            Command::RememberWay { .. } => {}
            Command::Publish { .. } => self.publish().await?,
            Command::Report(notice) => {
                self.blackouts += u64::from(matches!(notice, Notice::BlackoutBegan(_)));
            }
        }
        Ok(())
    }

    async fn take(&mut self, wanted: PerClass<u32>) -> anyhow::Result<()> {
        let room = wanted.sum();
        let wanted = self.story.takes(wanted);
        let services = &self.parts.stage.services;
        let jitters = services.random.jitters(wanted.sum());
        let mut taken = services
            .writer
            .take_due(self.now, wanted, jitters, services.calendar)
            .await?;
        S::taken(self, &mut taken, room, Trigger::Scheduled).await?;
        self.events.push_back(Event::Taken {
            hosts: taken.into_iter().map(of_store).collect(),
            not_admitted: Vec::new(),
        });
        Ok(())
    }

    async fn take_canary(&mut self, turn: CanaryTurn) -> anyhow::Result<()> {
        let CanaryTurn { host, wish, left } = turn;
        let services = &self.parts.stage.services;
        let jitter = services.random.jitter();
        let taking = services
            .writer
            .take_one(&host, self.now, jitter, services.calendar);
        let event = match taking.await {
            Ok(Some(taken)) => {
                let (mut taken, trigger) = ([taken], Trigger::Canary(wish));
                S::taken(self, &mut taken, 1, trigger).await?;
                let [taken] = taken.map(of_store);
                Event::TakenOne { taken, trigger }
            }
            Ok(None) | Err(StoreError::InFlight { .. } | StoreError::NeverAsked { .. }) => {
                Event::CanaryRefused { wish, left }
            }
            Err(error) => return Err(error.into()),
        };
        self.events.push_back(event);
        Ok(())
    }

    async fn publish(&mut self) -> anyhow::Result<()> {
        let names = S::publish(self).await?;
        let dump = DumpRecord {
            at: self.now,
            names,
            is_full: false,
        };
        let writer = &self.parts.stage.services.writer;
        writer.record_dump(dump).await?;
        self.has_names = names > 0;
        self.at(self.now.plus(LIST), Happening::ListMade);
        Ok(())
    }
}

fn of_store(taken: store::Taken) -> Taken {
    Taken {
        record: Box::new(taken.record),
        class: taken.class,
        faults: taken.faults,
    }
}
