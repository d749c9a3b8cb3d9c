//! `software.json`: the number of listed instances by software and by version. For the counts of a
//! day, also versions with their variants.
//!
//! Takes the number of rows of each version and variant, one software after the other. Keeps the
//! most common software, each with its most common versions, and only totals for the rest. Memory
//! is bounded, whatever hosts call their software.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::{self, BufReader, Read};
use std::path::Path;

use census::version::{VersionHosts, minor};
use serde::{Deserialize, Serialize};
use store::{
    MINORS_A_DAY_MAX, SOFTWARE_A_DAY_MAX, SoftwareVersions, VERSIONS_A_DAY_MAX, VersionCount,
};

use super::index::SCHEMA_VERSION;
use crate::error::DumpError;
use publish::TreeError;

/// Its path in the public folder.
pub(crate) const SOFTWARE_PLACE: &str = "data/software.json";

/// Software listed by name. A few hundred are known; invented names beyond the bound are counted
/// among the others.
pub const SOFTWARE_MAX: usize = 1000;

/// Versions listed per software. With this number for each software, and names of 128 bytes, they
/// take 20 MB at most.
pub const VERSIONS_MAX: usize = 100;

/// Minor versions of one software that are counted; more are certainly invented. With names of 128
/// bytes they take 1 MB, and the versions that are kept for the day's counts 0.5 MB.
const MINORS_COUNTED_MAX: usize = 4096;

#[derive(Debug, Serialize)]
pub(crate) struct SoftwareFile {
    schema_version: u32,
    instances: u64,
    software: Vec<SoftwareCount>,
    other_software: Others,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct SoftwareCount {
    software: Option<String>,
    instances: u64,
    versions: Vec<VersionsCount>,
    other_versions: Others,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct VersionsCount {
    version: Option<String>,
    instances: u64,
}

/// The entries that are not listed by name.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
struct Others {
    count: u64,
    instances: u64,
}

/// The most common entries. Of equally common ones, those with the first name.
#[derive(Debug)]
struct Top<T> {
    max: usize,
    /// The least common one first.
    heap: BinaryHeap<Reverse<Ranked<T>>>,
    others: Others,
}

#[derive(Debug)]
struct Ranked<T> {
    instances: u64,
    name: Option<String>,
    what: T,
}

impl<T> Ranked<T> {
    fn new(instances: u64, name: Option<String>, what: T) -> Self {
        Self {
            instances,
            name,
            what,
        }
    }

    fn key(&self) -> (u64, Reverse<&Option<String>>) {
        (self.instances, Reverse(&self.name))
    }
}

impl<T> PartialEq for Ranked<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Ranked<T> {}

impl<T> PartialOrd for Ranked<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Ranked<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl<T> Top<T> {
    fn new(max: usize) -> Self {
        Self {
            max,
            heap: BinaryHeap::new(),
            others: Others::default(),
        }
    }

    fn push(&mut self, ranked: Ranked<T>) {
        self.heap.push(Reverse(ranked));
        if self.heap.len() > self.max
            && let Some(Reverse(least)) = self.heap.pop()
        {
            self.others.count += 1;
            self.others.instances += least.instances;
        }
    }

    /// The most common one first, and the rest.
    fn finish<U>(self, make: impl Fn(Ranked<T>) -> U) -> (Vec<U>, Others) {
        let ranked = self.heap.into_sorted_vec();
        let named = ranked.into_iter().map(|Reverse(ranked)| make(ranked));
        (named.collect(), self.others)
    }
}

/// Counts while rows are visited.
#[derive(Debug)]
pub(crate) struct Counter {
    instances: u64,
    top: Top<(Vec<VersionsCount>, Others)>,
    /// Of software whose name is known.
    of_day: Top<SoftwareVersions>,
    current: Option<Current>,
}

/// The software whose versions are being counted.
#[derive(Debug)]
struct Current {
    name: Option<String>,
    instances: u64,
    versions: Top<()>,
    /// The version whose variants are being counted.
    version: Option<Ranked<()>>,
    /// Versions by variant.
    pairs: Top<Option<String>>,
    minors: HashMap<String, u64>,
}

/// Bytes of the file that are read: at most a thousand kinds of software with a hundred versions
/// each, and names of 128 bytes that escaping makes six times as long.
const FILE_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// The file's totals, without versions.
#[derive(Debug, PartialEq, Eq)]
pub struct SoftwareTotals {
    /// Number of all listed instances.
    pub instances: u64,
    /// Number of instances per software, the most frequent first. Leaves out instances of unknown
    /// software.
    pub most_frequent: Vec<(String, u64)>,
}

/// The totals in a tree's `folder`. `None` if there are none that can be read.
pub fn standing_software(folder: &Path) -> Result<Option<SoftwareTotals>, DumpError> {
    #[derive(Deserialize)]
    struct File {
        instances: u64,
        software: Vec<Total>,
    }
    #[derive(Deserialize)]
    struct Total {
        software: Option<String>,
        instances: u64,
    }
    let path = folder.join(SOFTWARE_PLACE);
    let file = match std::fs::File::open(&path) {
        Ok(file) => BufReader::new(file.take(FILE_BYTES_MAX)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(TreeError::from_io(folder, &path, "reading", error).into()),
    };
    let read: Option<File> = serde_json::from_reader(file).ok();
    Ok(read.map(|file| SoftwareTotals {
        instances: file.instances,
        most_frequent: file
            .software
            .into_iter()
            .filter_map(|total| Some((total.software?, total.instances)))
            .collect(),
    }))
}

impl SoftwareFile {
    /// The software in the file, the most common first; `None` for unknown software.
    pub(crate) fn ranking(&self) -> Vec<Option<String>> {
        let counts = self.software.iter();
        counts.map(|count| count.software.clone()).collect()
    }
}

impl Counter {
    pub(crate) fn new() -> Self {
        Self {
            instances: 0,
            top: Top::new(SOFTWARE_MAX),
            of_day: Top::new(SOFTWARE_A_DAY_MAX),
            current: None,
        }
    }

    /// Adds a count. All versions of a software must come in a row, and all variants of a version.
    pub(crate) fn push(&mut self, count: VersionCount<'_>) {
        self.instances += count.instances;
        let is_same = |current: &Current| current.name.as_deref() == count.software;
        if !self.current.as_ref().is_some_and(is_same) {
            self.end_current();
        }
        self.current
            .get_or_insert_with(|| Current::new(count.software))
            .push(count);
    }

    fn end_current(&mut self) {
        let Some(mut current) = self.current.take() else {
            return;
        };
        current.end_version(None);
        let instances = current.instances;
        if let Some(name) = &current.name {
            let versions = of_day(name.clone(), current.pairs, current.minors);
            let name = Some(name.clone());
            self.of_day.push(Ranked::new(instances, name, versions));
        }
        let what = current.versions.finish(|ranked| VersionsCount {
            version: ranked.name,
            instances: ranked.instances,
        });
        self.top.push(Ranked::new(instances, current.name, what));
    }

    /// The file, and the versions of the most common software.
    pub(crate) fn finish(mut self) -> (SoftwareFile, Vec<SoftwareVersions>) {
        self.end_current();
        let (software, other_software) = self.top.finish(|ranked| {
            let (versions, other_versions) = ranked.what;
            SoftwareCount {
                software: ranked.name,
                instances: ranked.instances,
                versions,
                other_versions,
            }
        });
        let file = SoftwareFile {
            schema_version: SCHEMA_VERSION,
            instances: self.instances,
            software,
            other_software,
        };
        (file, self.of_day.finish(|ranked| ranked.what).0)
    }
}

impl Current {
    fn new(name: Option<&str>) -> Self {
        Self {
            name: name.map(str::to_owned),
            instances: 0,
            versions: Top::new(VERSIONS_MAX),
            version: None,
            pairs: Top::new(VERSIONS_A_DAY_MAX),
            minors: HashMap::new(),
        }
    }

    fn push(&mut self, count: VersionCount<'_>) {
        let (instances, name) = (count.instances, count.version.map(str::to_owned));
        self.instances += instances;
        match self.version.as_mut().filter(|last| last.name == name) {
            Some(last) => last.instances += instances,
            None => self.end_version(Some(Ranked::new(instances, name.clone(), ()))),
        }
        let variant = count.variant.map(str::to_owned);
        self.pairs.push(Ranked::new(instances, name, variant));
        let minor = count.version.map(minor).unwrap_or_default();
        if let Some(sum) = self.minors.get_mut(minor) {
            *sum += instances;
        } else if self.minors.len() < MINORS_COUNTED_MAX && !minor.is_empty() {
            self.minors.insert(minor.to_owned(), instances);
        }
    }

    fn end_version(&mut self, next: Option<Ranked<()>>) {
        if let Some(ended) = std::mem::replace(&mut self.version, next) {
            self.versions.push(ended);
        }
    }
}

fn of_day(
    software: String,
    pairs: Top<Option<String>>,
    minors: HashMap<String, u64>,
) -> SoftwareVersions {
    let (mut versions, others) = pairs.finish(|ranked| VersionHosts {
        version: ranked.name,
        variant: ranked.what,
        hosts: ranked.instances,
    });
    versions.extend(VersionHosts::rest(others.instances));
    let mut top = Top::new(MINORS_A_DAY_MAX);
    for (minor, instances) in minors {
        top.push(Ranked::new(instances, Some(minor), ()));
    }
    let (minors, _others) =
        top.finish(|ranked| (ranked.name.unwrap_or_default(), ranked.instances));
    SoftwareVersions {
        software,
        versions,
        minors,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    type Counted<'c> = (Option<&'c str>, Option<&'c str>, u64);

    fn counted(counts: &[Counted<'_>]) -> serde_json::Value {
        let counts = counts.iter();
        let counts = counts.map(|(software, version, count)| (*software, *version, None, *count));
        serde_json::to_value(finished(counts).0).unwrap()
    }

    fn finished<'c>(
        counts: impl Iterator<Item = (Option<&'c str>, Option<&'c str>, Option<&'c str>, u64)>,
    ) -> (SoftwareFile, Vec<SoftwareVersions>) {
        let mut counter = Counter::new();
        for (software, version, variant, instances) in counts {
            counter.push(VersionCount {
                software,
                version,
                variant,
                instances,
            });
        }
        counter.finish()
    }

    #[test]
    fn variants_are_counted_apart_for_the_day_and_not_in_the_file() {
        let named = [
            (None, None, 1),
            (Some("4.10.0"), None, 2),
            (Some("4.5.1"), None, 3),
            (Some("4.5.1"), Some("glitch"), 4),
            (Some("4.5.2"), Some("glitch"), 2),
        ];
        let rare = (0..VERSIONS_A_DAY_MAX).map(|n| format!("z{n:02}"));
        let rare: Vec<_> = rare.collect();
        let rare = rare.iter().map(|version| (Some(version.as_str()), None, 1));
        let all = named.into_iter().chain(rare);
        let all = all.map(|(version, variant, count)| (Some("a"), version, variant, count));
        let unknown = (None, Some("4.5.1"), None, 99);
        let (file, versions) = finished([unknown].into_iter().chain(all));
        let file = serde_json::to_value(file).unwrap();
        let first = &file["software"][1]["versions"][0];
        assert_eq!(first, &json!({"version": "4.5.1", "instances": 7}));
        let [of_a] = &versions[..] else {
            panic!("{versions:?}");
        };
        let pairs = of_a.versions.iter();
        let pairs = pairs.map(|of| (of.version.as_deref(), of.variant.as_deref(), of.hosts));
        let pairs: Vec<_> = pairs.collect();
        let expect = [named[3], named[2], named[1], named[4], named[0]];
        assert_eq!(pairs[..5], expect);
        assert_eq!(pairs.len(), VERSIONS_A_DAY_MAX + 1);
        assert_eq!(pairs.last(), Some(&(None, Some("(rest)"), 5)));
        let minors = &of_a.minors[..2];
        assert_eq!(minors, [("4.5".to_owned(), 9), ("4.10".to_owned(), 2)]);
    }

    #[test]
    fn the_most_common_comes_first_and_all_are_counted() {
        let none = json!({"count": 0, "instances": 0});
        let expect = json!({
            "schema_version": 1,
            "instances": 9,
            "software": [
                {"software": "mastodon", "instances": 5, "versions": [
                    {"version": "4.4.0", "instances": 3},
                    {"version": null, "instances": 1},
                    {"version": "4.3.0", "instances": 1},
                ], "other_versions": none},
                {"software": null, "instances": 2, "versions": [{"version": null, "instances": 2}], "other_versions": none},
                {"software": "akkoma", "instances": 2, "versions": [{"version": "3", "instances": 2}], "other_versions": none},
            ],
            "other_software": none,
        });
        let found = counted(&[
            (None, None, 2),
            (Some("akkoma"), Some("3"), 2),
            (Some("mastodon"), None, 1),
            (Some("mastodon"), Some("4.3.0"), 1),
            (Some("mastodon"), Some("4.4.0"), 3),
        ]);
        assert_eq!(found, expect);
        assert_eq!(counted(&[])["software"], json!([]));
    }

    /// Invented names can't displace the common ones.
    #[test]
    fn what_is_made_up_is_counted_among_the_others() {
        let names: Vec<String> = (0..SOFTWARE_MAX * 3).map(|n| format!("{n:06}")).collect();
        let counts = names.iter().map(|name| (Some(name.as_str()), None, 1));
        let mut counts: Vec<_> = counts.collect();
        counts.push((Some("mastodon"), None, 2));
        for version in &names {
            counts.push((Some("misskey"), Some(version.as_str()), 1));
        }
        let found = counted(&counts);
        let many = u64::try_from(names.len()).unwrap();
        assert_eq!(found["instances"], 2 * many + 2);
        let named = found["software"].as_array().unwrap();
        assert_eq!(named.len(), SOFTWARE_MAX);
        assert_eq!(named[0]["software"], "misskey");
        assert_eq!(named[0]["versions"].as_array().unwrap().len(), VERSIONS_MAX);
        let others = |left: u64| json!({"count": left, "instances": left});
        let left = many - u64::try_from(VERSIONS_MAX).unwrap();
        assert_eq!(named[0]["other_versions"], others(left));
        assert_eq!(named[1]["software"], "mastodon");
        let left = many + 2 - u64::try_from(SOFTWARE_MAX).unwrap();
        assert_eq!(found["other_software"], others(left));
    }
}
