//! The fault table: what failed in a census, for how long, and with what result (invariant I5).
//!
//! A test begins a [`Watch`] over hosts while nothing is wrong, plays its fault, and calls
//! [`Watch::over`]. Then [`Watch::recovers`] waits, judges and writes the row. Tests that judge
//! themselves write a [`Row`]. Each row is a separate file, because tests run concurrently and in
//! several programs; `target/tables/faults.md` is rebuilt from all of them each time.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use store::Stored;
use tokio::time::Instant;

use crate::World;
use crate::tables::{directory, join};

/// Verdicts that the store keeps per host.
const HISTORY_MAX: usize = 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub fault: String,
    pub lasted: Duration,
    /// Hosts whose state changed because of it.
    pub states_changed_wrongly: usize,
    /// Verdicts that existed before and are missing now.
    pub verdicts_lost: usize,
    pub recovered: bool,
}

impl Row {
    /// Writes the row into the table, and fails if the row shows harm. Failed rows are written as
    /// well.
    pub fn settle(&self) -> anyhow::Result<()> {
        write(&directory()?, self)?;
        if self.states_changed_wrongly > 0 || self.verdicts_lost > 0 || !self.recovered {
            bail!("harm done: {self:?}");
        }
        Ok(())
    }

    fn line(&self) -> String {
        format!(
            "| {} | {:.1} s | {} | {} | {} |\n",
            self.fault,
            self.lasted.as_secs_f64(),
            self.states_changed_wrongly,
            self.verdicts_lost,
            if self.recovered { "yes" } else { "NO" }
        )
    }
}

/// Hosts as they were before a fault.
#[derive(Debug)]
pub struct Watch {
    fault: String,
    began: Instant,
    lasted: Option<Duration>,
    before: BTreeMap<String, Stored>,
    /// Number of `alive` verdicts of each host at the fault's end; until then, at its beginning.
    lived_by_its_end: BTreeMap<String, u32>,
}

impl Watch {
    /// Remembers everything known about `names`; the fault begins now.
    pub fn begin(
        world: &World,
        fault: &str,
        names: impl IntoIterator<Item = String>,
    ) -> anyhow::Result<Self> {
        let (mut before, mut lived) = (BTreeMap::new(), BTreeMap::new());
        for name in names {
            let stored = world.host(&name)?.with_context(|| name.clone())?;
            lived.insert(name.clone(), stored.record.alive_count);
            before.insert(name, stored);
        }
        if before.is_empty() {
            bail!("nobody to watch during: {fault}");
        }
        Ok(Self {
            fault: fault.to_owned(),
            began: Instant::now(),
            lasted: None,
            before,
            lived_by_its_end: lived,
        })
    }

    /// Hosts that have another state than before, or got a verdict of another kind since, each with
    /// a description.
    pub fn wronged(&self, world: &World) -> anyhow::Result<Vec<String>> {
        self.each(world, wrong)
    }

    /// Hosts of which a verdict is missing.
    pub fn lost(&self, world: &World) -> anyhow::Result<Vec<String>> {
        self.each(world, loss)
    }

    pub fn over(&mut self, world: &World) -> anyhow::Result<()> {
        self.lasted = Some(self.began.elapsed());
        for name in self.before.keys() {
            let stored = world.host(name)?.with_context(|| name.clone())?;
            self.lived_by_its_end
                .insert(name.clone(), stored.record.alive_count);
        }
        Ok(())
    }

    /// Waits until every host was found alive since the end of the fault, and writes the row. A
    /// fault that is not over must let every host be found alive while it lasts.
    ///
    /// # Errors
    /// A host was wronged, a verdict was lost, or work did not continue in time.
    pub async fn recovers(self, world: &World, within: Duration) -> anyhow::Result<()> {
        let waited = world
            .until("everybody has lived again", within, |world| {
                self.all_lived_since(world)
            })
            .await;
        let (wronged, lost) = (self.wronged(world)?, self.lost(world)?);
        let settled = Row {
            fault: self.fault,
            lasted: self.lasted.unwrap_or_else(|| self.began.elapsed()),
            states_changed_wrongly: wronged.len(),
            verdicts_lost: lost.len(),
            recovered: waited.is_ok(),
        }
        .settle();
        waited?;
        settled.with_context(|| format!("wronged: {wronged:#?}, lost: {lost:#?}"))
    }

    fn all_lived_since(&self, world: &World) -> anyhow::Result<bool> {
        for (name, count) in &self.lived_by_its_end {
            let stored = world.host(name)?.with_context(|| name.clone())?;
            if stored.record.alive_count <= *count {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn each(
        &self,
        world: &World,
        judge: impl Fn(&Stored, &Stored) -> Option<String>,
    ) -> anyhow::Result<Vec<String>> {
        let mut found = Vec::new();
        for (name, before) in &self.before {
            let text = match world.host(name)? {
                Some(after) => judge(before, &after),
                None => Some("it is gone altogether".to_owned()),
            };
            found.extend(text.map(|text| format!("{name}: {text}")));
        }
        Ok(found)
    }
}

/// Number of verdicts after the newest of `before`; all of them if that one has been displaced.
fn newer(before: &Stored, after: &Stored) -> usize {
    before
        .history
        .first()
        .and_then(|newest| after.history.iter().position(|entry| entry == newest))
        .unwrap_or(after.history.len())
}

fn wrong(before: &Stored, after: &Stored) -> Option<String> {
    let (was, is) = (before.record.state.name(), after.record.state.name());
    let ordinary = before.history.first().map(|entry| entry.verdict.as_str());
    let odd = after
        .history
        .iter()
        .take(newer(before, after))
        .find(|entry| ordinary.is_some_and(|verdict| verdict != entry.verdict));
    (was != is || odd.is_some()).then(|| format!("{was:?} became {is:?}, {odd:?}"))
}

fn loss(before: &Stored, after: &Stored) -> Option<String> {
    let kept = after
        .history
        .get(newer(before, after)..)
        .unwrap_or_default();
    let full = after.history.len() >= HISTORY_MAX;
    let whole = before.history.starts_with(kept) && (full || kept.len() == before.history.len());
    let counted = after.record.alive_count >= before.record.alive_count;
    (!whole || !counted).then(|| format!("{:?} became {:?}", before.history, after.history))
}

fn write(tables: &Path, row: &Row) -> anyhow::Result<()> {
    let name: String = row
        .fault
        .chars()
        .map(|letter| {
            if letter.is_alphanumeric() {
                letter
            } else {
                '-'
            }
        })
        .collect();
    let head = "| fault | how long | states changed wrongly | verdicts lost | recovered without help |\n|---|---|---|---|---|\n";
    join(tables, "faults", head, &name, &row.line())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(fault: &str) -> Row {
        Row {
            fault: fault.to_owned(),
            lasted: Duration::from_millis(2500),
            states_changed_wrongly: 0,
            verdicts_lost: 0,
            recovered: true,
        }
    }

    #[test]
    fn each_fault_has_one_row_and_the_latest_word() {
        let tables = tempfile::tempdir().unwrap();
        for fault in ["no network", "DNS: dead", "no network"] {
            write(tables.path(), &row(fault)).unwrap();
        }
        let text = std::fs::read_to_string(tables.path().join("faults.md")).unwrap();
        let lines: Vec<_> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "| DNS: dead | 2.5 s | 0 | 0 | yes |",
                "| no network | 2.5 s | 0 | 0 | yes |"
            ]
        );
    }
}
