//! `software.json`: the number of listed instances by software and by version.
//!
//! Takes the number of rows of each version, one software after the other. Writes the most common
//! software, each with its most common versions, and only totals for the rest. Memory is bounded,
//! whatever hosts call their software.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, BufReader, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use store::VersionCount;

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
    current: Option<Current>,
}

/// The software whose versions are being counted.
#[derive(Debug)]
struct Current {
    name: Option<String>,
    instances: u64,
    versions: Top<()>,
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
            current: None,
        }
    }

    /// Adds a count. All versions of a software must come in a row.
    pub(crate) fn push(&mut self, count: VersionCount<'_>) {
        self.instances += count.instances;
        let is_same = |current: &Current| current.name.as_deref() == count.software;
        if !self.current.as_ref().is_some_and(is_same) {
            self.end_current();
        }
        let current = self.current.get_or_insert_with(|| Current {
            name: count.software.map(str::to_owned),
            instances: 0,
            versions: Top::new(VERSIONS_MAX),
        });
        current.instances += count.instances;
        current.versions.push(Ranked {
            instances: count.instances,
            name: count.version.map(str::to_owned),
            what: (),
        });
    }

    fn end_current(&mut self) {
        let Some(current) = self.current.take() else {
            return;
        };
        let what = current.versions.finish(|ranked| VersionsCount {
            version: ranked.name,
            instances: ranked.instances,
        });
        self.top.push(Ranked {
            instances: current.instances,
            name: current.name,
            what,
        });
    }

    pub(crate) fn finish(mut self) -> SoftwareFile {
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
        SoftwareFile {
            schema_version: SCHEMA_VERSION,
            instances: self.instances,
            software,
            other_software,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn counted(counts: &[(Option<&str>, Option<&str>, u64)]) -> serde_json::Value {
        let mut counter = Counter::new();
        for (software, version, instances) in counts {
            counter.push(VersionCount {
                software: *software,
                version: *version,
                instances: *instances,
            });
        }
        serde_json::to_value(counter.finish()).unwrap()
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
        let mut counts: Vec<_> = names
            .iter()
            .map(|name| (Some(name.as_str()), None, 1))
            .collect();
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
        let left = many - u64::try_from(VERSIONS_MAX).unwrap();
        assert_eq!(
            named[0]["other_versions"],
            json!({"count": left, "instances": left})
        );
        assert_eq!(named[1]["software"], "mastodon");
        let left = many + 2 - u64::try_from(SOFTWARE_MAX).unwrap();
        assert_eq!(
            found["other_software"],
            json!({"count": left, "instances": left})
        );
    }
}
