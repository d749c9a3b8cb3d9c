//! How far security fixes have spread: hosts by where their version stands towards a fix.

use std::collections::BTreeMap;

use census::version::{Release, Standing, VersionHosts, standing};
use jiff::civil::Date;

/// The address of the table of all fixes.
pub(crate) const LIST: &str = "/software.html#fixes";

/// The words for the numbers of a [`Tally`].
pub const STANDINGS: [&str; 4] = ["fixed", "behind", "without", "unclear"];

/// Hosts by [`STANDINGS`].
pub type Tally = [u64; 4];

/// A release that fixes a security flaw of a software.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// Names its page and its file: lower-case letters, digits and hyphens.
    pub id: String,
    pub software: String,
    /// When it was released.
    pub date: Date,
    pub title: String,
    /// The public advisory, an address with `https://`.
    pub link: String,
    /// The fixed version of each branch.
    pub fixed: Vec<Release>,
}

/// A fix with its counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spread {
    pub fix: Fix,
    /// All hosts of each counted day, ascending, from the day of the release on.
    pub days: Vec<(Date, Tally)>,
    /// The hosts of the last day by variant, as [`Fix::tallies`] has them.
    pub variants: BTreeMap<String, Tally>,
}

/// Hosts by minor version, the most frequent first.
pub type Minors = Vec<(String, u64)>;

/// What the pages show of versions over time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionHistory {
    /// The newest first.
    pub fixes: Vec<Spread>,
    /// By software, the counts of each day, ascending.
    pub minors: BTreeMap<String, Vec<(Date, Minors)>>,
}

impl Fix {
    /// The address of its page.
    pub(crate) fn path(&self) -> String {
        format!("/fixes/{}.html", self.id)
    }

    /// The path of its numbers from the folder of the published files.
    pub fn csv(&self) -> String {
        format!("fixes/{}.csv", self.id)
    }

    /// Hosts by variant; empty for the software's own versions.
    pub fn tallies(&self, versions: &[VersionHosts]) -> BTreeMap<String, Tally> {
        let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
        for of in versions {
            let version = of.version.as_deref().unwrap_or_default();
            let [fixed, behind, without, unclear] = tallies
                .entry(of.variant.clone().unwrap_or_default())
                .or_default();
            let count = match standing(version, &self.fixed) {
                Standing::Fixed => fixed,
                Standing::Behind => behind,
                Standing::Without => without,
                Standing::Unclear => unclear,
            };
            *count = count.saturating_add(of.hosts);
        }
        tallies
    }
}

/// The sum of several tallies.
pub fn sum<'t>(tallies: impl Iterator<Item = &'t Tally>) -> Tally {
    let mut sum = Tally::default();
    for tally in tallies {
        for (sum, count) in sum.iter_mut().zip(tally) {
            *sum = sum.saturating_add(*count);
        }
    }
    sum
}

/// All hosts of a tally.
pub(crate) fn hosts(tally: &Tally) -> u64 {
    tally.iter().copied().fold(0, u64::saturating_add)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Fixed in three branches of Mastodon.
    pub(crate) fn fix(software: &str) -> Fix {
        let fixed = ["4.5.5", "4.4.12", "4.3.18"];
        Fix {
            id: "cve-1".to_owned(),
            software: software.to_owned(),
            date: jiff::civil::date(2026, 11, 10),
            title: "<Suspended> accounts".to_owned(),
            link: "https://advisories.example/1".to_owned(),
            fixed: fixed.into_iter().filter_map(Release::parse).collect(),
        }
    }

    #[test]
    fn hosts_are_counted_by_variant_and_the_rest_is_unclear() {
        let of = |version: &str, variant: Option<&str>, hosts| VersionHosts {
            version: Some(version.to_owned()),
            variant: variant.map(str::to_owned),
            hosts,
        };
        let mut versions = vec![
            of("4.5.5", None, 8),
            of("4.5.4", None, 4),
            of("4.4.12", Some("glitch"), 2),
            of("4.2.1", Some("glitch"), 1),
            of("main", None, 3),
        ];
        versions.extend(VersionHosts::rest(2));
        let tallies = fix("mastodon").tallies(&versions);
        let expect = [
            ("", [8, 4, 0, 3]),
            ("(rest)", [0, 0, 0, 2]),
            ("glitch", [2, 0, 1, 0]),
        ];
        let expect = expect.map(|(name, of)| (name.to_owned(), of));
        assert_eq!(tallies, BTreeMap::from(expect));
        assert_eq!(sum(tallies.values()), [10, 4, 1, 5]);
    }
}
