//! Versions of one software, reduced to their first two numbers, and which of them is the newest.

use std::collections::HashMap;

use census::version::{minor, numbers};

/// Versions of one software that are counted.
const COUNTED_MAX: usize = 500;

/// Minor versions on a page.
pub(crate) const SHOWN_MAX: usize = 12;

/// A minor version counts as released once this share of the instances runs it, so that a single
/// instance with an invented version does not make all others look outdated.
const RELEASED_SHARE: u64 = 100;

/// The counts while rows arrive.
#[derive(Debug, Default)]
pub(crate) struct Counted(HashMap<String, u64>);

/// The counts of all rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Versions {
    /// The most frequent minor versions, the newest first.
    pub(crate) minors: Vec<(String, u64)>,
    /// Hosts of other or unknown versions.
    pub(crate) others: u64,
    /// The newest minor version, and the number of hosts that run it or a later one.
    pub(crate) newest: Option<(String, u64)>,
}

impl Counted {
    pub(crate) fn add(&mut self, version: &str) {
        if version.is_empty() {
            return;
        }
        let minor = minor(version);
        if let Some(count) = self.0.get_mut(minor) {
            *count = count.saturating_add(1);
        } else if self.0.len() < COUNTED_MAX {
            self.0.insert(minor.to_owned(), 1);
        }
    }

    /// `hosts` is the number of all hosts of the software.
    pub(crate) fn finish(self, hosts: u64) -> Versions {
        let mut minors: Vec<_> = self.0.into_iter().collect();
        minors.sort_unstable_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        let newest = newest(&minors, hosts);
        minors.truncate(SHOWN_MAX);
        let shown = sum(&minors, |_| true);
        minors.sort_by(|one, other| {
            numbers(&other.0)
                .cmp(&numbers(&one.0))
                .then_with(|| one.0.cmp(&other.0))
        });
        Versions {
            minors,
            others: hosts.saturating_sub(shown),
            newest,
        }
    }
}

fn newest(minors: &[(String, u64)], hosts: u64) -> Option<(String, u64)> {
    let is_released = |count: u64| count.saturating_mul(RELEASED_SHARE) >= hosts;
    let (name, newest) = minors
        .iter()
        .filter(|(_, count)| is_released(*count))
        .filter_map(|(name, _)| Some((name, numbers(name)?)))
        .max_by_key(|(_, numbers)| *numbers)?;
    let running = sum(minors, |name| numbers(name) >= Some(newest));
    Some((name.clone(), running))
}

fn sum(minors: &[(String, u64)], is_wanted: impl Fn(&str) -> bool) -> u64 {
    minors
        .iter()
        .filter(|(name, _)| is_wanted(name))
        .fold(0, |sum, (_, count)| sum.saturating_add(*count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(versions: &[(&str, u64)], hosts: u64) -> Versions {
        let mut counted = Counted::default();
        for (version, count) in versions {
            for _ in 0..*count {
                counted.add(version);
            }
        }
        counted.finish(hosts)
    }

    #[test]
    fn the_newest_is_by_number_and_not_by_one_instance_alone() {
        let versions = counted(
            &[("4.9.1", 150), ("4.10.0", 40), ("999.0", 1), ("odd", 3)],
            200,
        );
        assert_eq!(versions.newest, Some(("4.10".to_owned(), 41)));
        let names: Vec<_> = versions
            .minors
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, ["999.0", "4.10", "4.9", "odd"]);
        assert_eq!(versions.others, 6);
    }

    #[test]
    fn without_numbers_none_is_newest() {
        assert_eq!(counted(&[("main", 3)], 3).newest, None);
        assert_eq!(counted(&[], 3).others, 3);
    }
}
