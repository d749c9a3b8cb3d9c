//! Hourly work and work with each list: the gate, groups, floods; the list, and its quality.

use std::collections::HashMap;
use std::time::Duration;

use census::time::Timestamp;
use rand::Rng as _;
use scheduler::Event;

use super::Census;
use crate::measure::OnList;
use crate::plan::{Failure, Sabotage};
use crate::world::names::{Name, farm};

/// Random hosts that are looked up in the store with each list, to see whether they still exist.
const LOOKED_FOR: u32 = 20;

/// Invented names handed to the gate at once.
const TOGETHER: usize = 5000;

/// Hours of a day, over which a flood's servers are spread.
const HOURS: u32 = 24;

impl Census {
    /// Tries waiting names again, adds floods, and groups new hosts.
    pub(super) async fn round(&mut self, now: Timestamp) -> Result<(), Failure> {
        self.flood(now).await?;
        let services = self.stage.services.clone();
        services.gate.refresh_held().await?;
        services.gate.try_waiting(now).await?;
        self.stage.group().await.map_err(Failure::Other)?;
        for number in std::mem::take(&mut self.waiting) {
            self.look_for(&Name::Host(number).host()?)?;
        }
        // New names may be due before all others.
        self.events.push_back(Event::RowsChanged);
        Ok(())
    }

    async fn flood(&mut self, now: Timestamp) -> Result<(), Failure> {
        let Some(flood) = self.plan.world.flood else {
            return Ok(());
        };
        let hours = now.since(self.plan.start).as_secs() / 3600;
        let day = hours / u64::from(HOURS);
        let (from, days) = (u64::from(flood.from_day), u64::from(flood.days));
        if day < from || day >= from + days {
            return Ok(());
        }
        for server in (0..flood.servers).filter(|server| u64::from(server % HOURS) == hours % 24) {
            let by = Name::Host(server).host()?;
            if flood.farm_only && server % 2 == 1 {
                continue;
            }
            // The farm's servers are in league: all name the same hosts.
            let first = u64::from(server % 2) * u64::from(server) * flood.names;
            let numbers: Vec<u64> = (first..first + flood.names).collect();
            for chunk in numbers.chunks(TOGETHER) {
                let invented = chunk.iter().map(|number| match server % 2 {
                    0 => Name::Farm(*number, domain_of(*number, flood.domains)).host(),
                    _ => Name::Apart(*number).host(),
                });
                let hosts = invented.collect::<Result<Vec<_>, _>>()?;
                self.stage.services.learn(hosts, &by).await?;
            }
        }
        Ok(())
    }

    /// Reads the list as it would be published, checks its names, and measures.
    pub(super) fn read_the_list(&mut self, now: Timestamp) -> Result<(), Failure> {
        let calendar = self.stage.services.calendar;
        let month = Duration::from_secs(30 * 24 * 3600);
        let as_of = if self.does(Sabotage::ListTheOld) {
            now.minus(month)
        } else {
            now
        };
        let mut rows = Vec::new();
        self.stage.reader.listed(as_of, calendar, |row| {
            rows.push((Name::of(row.host), row.last_alive));
            Ok::<(), Failure>(())
        })?;
        let (mut list, mut farms) = (OnList::default(), HashMap::<u32, u32>::new());
        for (name, last_alive) in rows {
            let name = name.ok_or_else(|| Failure::Stranger("a listed host".to_owned()))?;
            let seen = match name {
                Name::Host(number) => {
                    list.rightly += u32::from(self.truth.belongs(number));
                    self.measure.seen(number)
                }
                Name::Farm(_, domain) => {
                    *farms.entry(domain).or_default() += 1;
                    list.invented += 1;
                    None
                }
                Name::Apart(_) => {
                    list.invented += 1;
                    None
                }
            };
            list.listed += 1;
            self.guard.listed(name.host()?.as_str(), last_alive, seen)?;
        }
        for (domain, listed) in farms {
            self.guard.group(&farm(domain), listed)?;
        }
        self.look_for_the_lost()?;
        let counts = self.stage.reader.counts()?;
        let forgotten = self.measure.counts.forgotten;
        let by_book = self.measure.known();
        self.guard.known(counts.hosts, forgotten, by_book)?;
        let bytes = self.stage.bytes();
        self.measure
            .sample(&self.truth, list, counts.hosts, bytes, now);
        if let (Some(watch), Some(sample)) = (self.plan.watched_by, self.measure.samples.last()) {
            watch(sample);
        }
        Ok(())
    }

    fn look_for_the_lost(&mut self) -> Result<(), Failure> {
        for _ in 0..LOOKED_FOR.min(self.truth.count()) {
            let number = self.chance.random_range(0..self.truth.count());
            if !self.measure.is_known(number) {
                continue;
            }
            let host = Name::Host(number).host()?;
            let reader = &self.stage.reader;
            let is_there = reader.record(&host)?.is_some() || reader.is_forgotten(&host)?;
            self.guard.is_there(&host, is_there)?;
        }
        Ok(())
    }
}

/// Which of a farm's registered domains a name is below.
fn domain_of(number: u64, domains: u32) -> u32 {
    let domain = number.checked_rem(u64::from(domains)).unwrap_or(0);
    u32::try_from(domain).unwrap_or(0)
}
