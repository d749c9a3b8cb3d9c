//! Hourly work and work with each list: the gate, groups, farms; the list, and its quality.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::Context as _;
use rand::Rng as _;
use scheduler::Event;

use super::Year;
use crate::measure::OnList;
use crate::plan::Sabotage;
use crate::shell::{Parts, Shell};

/// Random hosts that are looked up in the store with each list, to see whether they still exist.
const LOOKED_FOR: u32 = 20;

/// Names of a farm handed to the gate at once.
const TOGETHER: usize = 5000;

/// The first day on which a farm's names are listed, by which hosts, and in which hours.
const FARM_FROM_DAY: u64 = 2;
const FARM_SERVERS: [u32; 2] = [0, 2];

impl Shell<Year> {
    /// Tries waiting names again, adds farms, and groups new hosts.
    pub(super) async fn round(&mut self) -> anyhow::Result<()> {
        self.list_the_farm().await?;
        let Parts { stage, .. } = &self.parts;
        stage.services.gate.refresh_held().await?;
        stage.services.gate.try_waiting(self.now).await?;
        stage.group().await?;
        for number in std::mem::take(&mut self.story.waiting) {
            let known = self.parts.truth.hosts.host(number);
            if let Some(host) = known.map(|known| known.host.clone()) {
                self.look_for(&host)?;
            }
        }
        // New names may be due before all others.
        self.events.push_back(Event::RowsChanged);
        Ok(())
    }

    /// Each of the servers in league lists all names of the farm at its hour.
    async fn list_the_farm(&self) -> anyhow::Result<()> {
        let Parts { stage, truth, .. } = &self.parts;
        let hours = self.now.since(self.story.plan.start).as_secs() / 3600;
        for server in FARM_SERVERS {
            if hours / 24 < FARM_FROM_DAY || hours % 24 != u64::from(server) {
                continue;
            }
            let by = truth.hosts.host(server).context("a server of the farm")?;
            let names: Vec<u32> = truth.farm().collect();
            for chunk in names.chunks(TOGETHER) {
                let known = chunk.iter().filter_map(|name| truth.hosts.host(*name));
                let hosts = known.map(|known| known.host.clone()).collect();
                stage.services.learn(hosts, &by.host).await?;
            }
        }
        Ok(())
    }

    /// Reads the list as it would be published, checks its names, and measures. Returns the number
    /// of its names.
    pub(super) fn read_the_list(&mut self) -> anyhow::Result<u64> {
        let (now, Parts { stage, truth, .. }) = (self.now, &self.parts);
        let year = &mut self.story;
        let month = Duration::from_secs(30 * 24 * 3600);
        let as_of = if year.plan.does(Sabotage::ListTheOld) {
            now.minus(month)
        } else {
            now
        };
        let (mut list, mut farms) = (OnList::default(), HashMap::<&str, u32>::new());
        stage.reader.listed(as_of, stage.services.calendar, |row| {
            let id = truth.hosts.id(row.host);
            let seen = id.and_then(|id| year.measure.seen(id));
            year.guard.listed(row.host, row.last_alive, seen)?;
            let id = id.with_context(|| format!("{} is not of this world", row.host))?;
            list.listed += 1;
            if let Some(known) = truth.hosts.host(id).filter(|_| truth.farm().contains(&id)) {
                *farms.entry(&known.domain).or_default() += 1;
                list.invented += 1;
            } else {
                list.rightly += u32::from(truth.belongs(id));
            }
            anyhow::Ok(())
        })?;
        for (domain, listed) in farms {
            year.guard.group(domain, listed)?;
        }
        for _ in 0..LOOKED_FOR.min(truth.count()) {
            let number = year.chance.random_range(0..truth.count());
            let known = truth.hosts.host(number);
            let Some(known) = known.filter(|_| year.measure.is_known(number)) else {
                continue;
            };
            let reader = &stage.reader;
            let is_there =
                reader.record(&known.host)?.is_some() || reader.is_forgotten(&known.host)?;
            year.guard.is_there(&known.host, is_there)?;
        }
        year.guard.none_stuck()?;
        let rows = stage.reader.counts()?.hosts;
        let forgotten = year.measure.counts.forgotten;
        let by_book = year.measure.known();
        year.guard.known(rows, forgotten, by_book)?;
        let names = u64::from(list.listed);
        year.measure.sample(truth, list, rows, stage.bytes(), now);
        if let (Some(watch), Some(sample)) = (year.plan.watched_by, year.measure.samples.last()) {
            watch(sample);
        }
        Ok(names)
    }
}
