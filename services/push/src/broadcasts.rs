//! Broadcasts: names with a changing version, for every client that subscribes to them. A client
//! learns only the new version.

use std::collections::{BTreeMap, BTreeSet};

/// Most unknown ids in an answer: clients know a handful of ids.
const UNKNOWN_MAX: usize = 8;

/// All broadcasts, with the order in which they changed.
#[derive(Debug, Clone, Default)]
pub struct Broadcasts {
    by_id: BTreeMap<String, Broadcast>,
    changes: u64,
}

#[derive(Debug, Clone)]
struct Broadcast {
    version: String,
    change: u64,
}

#[derive(Debug, Clone, Default)]
pub struct Subscriptions {
    ids: BTreeSet<String>,
    told: u64,
}

pub type Versions = BTreeMap<String, String>;

impl Broadcasts {
    /// Replaces all broadcasts by the source's current ones. Ids that are missing there are
    /// forgotten.
    pub fn replace(&mut self, versions: Versions) {
        self.by_id.retain(|id, _| versions.contains_key(id));
        for (id, version) in versions {
            let is_known = self
                .by_id
                .get(&id)
                .is_some_and(|known| known.version == version);
            if !is_known {
                self.changes = self.changes.saturating_add(1);
                let change = self.changes;
                self.by_id.insert(id, Broadcast { version, change });
            }
        }
    }

    /// Subscribes a client to broadcasts. Returns the versions that differ from the client's, and
    /// some of the unknown ids.
    pub fn subscribe(
        &self,
        subscriptions: &mut Subscriptions,
        asked: Versions,
    ) -> (Versions, BTreeSet<String>) {
        let (mut changed, mut unknown) = (Versions::new(), BTreeSet::new());
        for (id, version) in asked {
            match self.by_id.get(&id) {
                None if unknown.len() < UNKNOWN_MAX => {
                    unknown.insert(id);
                }
                None => {}
                Some(known) => {
                    if known.version != version {
                        changed.insert(id.clone(), known.version.clone());
                    }
                    subscriptions.ids.insert(id);
                }
            }
        }
        // Keep the counter if there are unsent changes of earlier subscriptions.
        if subscriptions.told == 0 {
            subscriptions.told = self.changes;
        }
        (changed, unknown)
    }

    /// Changes of a client's subscriptions since the last ones that it was sent.
    pub fn news(&self, subscriptions: &mut Subscriptions) -> Versions {
        let news = subscriptions.ids.iter().filter_map(|id| {
            let known = self.by_id.get(id)?;
            (known.change > subscriptions.told).then(|| (id.clone(), known.version.clone()))
        });
        let news = news.collect();
        subscriptions.told = self.changes;
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(pairs: &[(&str, &str)]) -> Versions {
        let owned = |(id, version): &(&str, &str)| ((*id).to_owned(), (*version).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn a_client_learns_what_it_does_not_know_and_what_changes_later_once() {
        let mut broadcasts = Broadcasts::default();
        broadcasts.replace(versions(&[("a", "1"), ("b", "1"), ("c", "1")]));
        let mut mine = Subscriptions::default();
        let asked = versions(&[("a", "0"), ("b", "1"), ("x", "1")]);
        let (changed, unknown) = broadcasts.subscribe(&mut mine, asked);
        assert_eq!(changed, versions(&[("a", "1")]));
        assert_eq!(unknown, BTreeSet::from(["x".to_owned()]));
        assert_eq!(broadcasts.news(&mut mine), Versions::new());
        broadcasts.replace(versions(&[("a", "1"), ("b", "2"), ("c", "2")]));
        assert_eq!(broadcasts.news(&mut mine), versions(&[("b", "2")]));
        assert_eq!(broadcasts.news(&mut mine), Versions::new());
    }

    #[test]
    fn a_later_subscription_keeps_what_was_not_told_yet() {
        let mut broadcasts = Broadcasts::default();
        broadcasts.replace(versions(&[("a", "1"), ("b", "1")]));
        let mut mine = Subscriptions::default();
        broadcasts.subscribe(&mut mine, versions(&[("a", "1")]));
        broadcasts.replace(versions(&[("a", "2"), ("b", "1")]));
        broadcasts.subscribe(&mut mine, versions(&[("b", "1")]));
        assert_eq!(broadcasts.news(&mut mine), versions(&[("a", "2")]));
    }

    #[test]
    fn one_that_is_gone_is_unknown() {
        let mut broadcasts = Broadcasts::default();
        broadcasts.replace(versions(&[("a", "1")]));
        broadcasts.replace(Versions::new());
        let (_, unknown) =
            broadcasts.subscribe(&mut Subscriptions::default(), versions(&[("a", "1")]));
        assert_eq!(unknown.len(), 1);
    }
}
