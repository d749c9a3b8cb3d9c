//! A verdict that `explain` has shown must still be there, whatever happens: shown ⊆ kept.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use census::transition::Entry;
use protocol::Host;
use tests::World;

/// Verdicts that the store keeps per host.
const HISTORY_MAX: usize = 10;

/// What was last shown of each host.
#[derive(Debug, Default)]
pub(crate) struct Published {
    hosts: BTreeMap<String, Past>,
    /// Hosts with an undeserved verdict, and verdicts that were shown and are missing now.
    pub(crate) wronged: Vec<String>,
    pub(crate) lost: Vec<String>,
}

#[derive(Debug, Default, Clone)]
struct Past {
    history: Vec<Entry>,
    alive_count: u32,
}

impl Published {
    /// Looks at all of `names`, over a separate connection. Nothing that an earlier look had shown
    /// may be missing, the file must be sound, and no history may hold anything but `alive`.
    pub(crate) fn look(&mut self, world: &World, names: &[String]) -> anyhow::Result<()> {
        let reader = world.reader().context("the database does not open")?;
        let damage = reader.damage()?;
        if !damage.is_empty() {
            bail!("the database is damaged: {damage:#?}");
        }
        for name in names {
            let now = reader.record(&Host::parse(name)?)?.map(|stored| Past {
                history: stored.history,
                alive_count: stored.record.alive_count,
            });
            let now = now.unwrap_or_default();
            let before = self.hosts.insert(name.clone(), now.clone());
            let before = before.unwrap_or_default();
            if now.history.iter().any(|entry| entry.verdict != "alive") {
                self.wronged.push(format!("{name}: {:?}", now.history));
            }
            if !is_kept(&before.history, &now.history) || now.alive_count < before.alive_count {
                self.lost.push(format!("{name}: {before:?} became {now:?}"));
            }
        }
        if !self.wronged.is_empty() || !self.lost.is_empty() {
            bail!("wronged: {:#?}, lost: {:#?}", self.wronged, self.lost);
        }
        Ok(())
    }

    /// Number of `alive` verdicts of each host at the last look.
    pub(crate) fn alive_counts(&self) -> BTreeMap<String, u32> {
        self.hosts
            .iter()
            .map(|(name, past)| (name.clone(), past.alive_count))
            .collect()
    }

    pub(crate) fn verdicts(&self) -> u64 {
        self.hosts
            .values()
            .map(|past| u64::from(past.alive_count))
            .sum()
    }
}

/// Whether the shown verdicts, newest first, are the end of the current ones, except for the
/// oldest, which newer ones may have displaced.
pub(crate) fn is_kept<T: PartialEq>(shown: &[T], now: &[T]) -> bool {
    (0..=now.len()).any(|newer| {
        let kept = now.get(newer..).unwrap_or_default();
        let whole = kept.len() == shown.len() || now.len() == HISTORY_MAX;
        shown.starts_with(kept) && whole
    })
}

#[test]
fn a_verdict_that_is_missing_in_the_middle_or_at_the_end_is_missed() {
    assert!(is_kept::<u8>(&[], &[]));
    assert!(is_kept(&[], &[1]));
    assert!(is_kept(&[2, 1], &[2, 1]));
    assert!(is_kept(&[2, 1], &[4, 3, 2, 1]));
    assert!(is_kept(
        &[10, 9, 8, 7, 6, 5, 4, 3, 2, 1],
        &[11, 10, 9, 8, 7, 6, 5, 4, 3, 2]
    ));
    assert!(!is_kept(&[2, 1], &[1]));
    assert!(!is_kept(&[2, 1], &[3, 1]));
    assert!(!is_kept(&[2, 1], &[3, 2]));
    assert!(!is_kept(&[1], &[]));
}
