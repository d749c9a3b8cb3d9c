//! Dumps of a small census, one after the other.

mod damage;
mod examples;
mod gaps;
mod programs;
mod properties;
mod schema;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::path::Path;

use files::Disk;
use publish::{Cancel, Tree};

use super::limits::{DAY_FILE_BYTES_MAX, SECTIONS_A_DAY_MAX};
use super::*;
use crate::error::DumpError;
use crate::feed::About;
use crate::paths::CHANGES_FOLDER;
use crate::row::{ListedRow, ListedState, Moment};

/// 2026-11-22T00:00:00Z
const MIDNIGHT: i64 = 1_795_305_600;
const HOUR: i64 = 60 * 60;
const DAY: i64 = 24 * HOUR;

fn at(seconds: i64) -> Moment {
    Moment::from_milliseconds(seconds * 1000)
}

fn about() -> About {
    About {
        title: "What changed".to_owned(),
        licence: "CC0-1.0".to_owned(),
        seed: "census.example".to_owned(),
        home_url: None,
        folder_url: None,
    }
}

/// What the census knows about a host in these tests.
#[derive(Debug, Clone, PartialEq)]
enum Known {
    Listed(ListedRow),
    Not(Standing),
}

struct World {
    folder: tempfile::TempDir,
    hosts: BTreeMap<String, Known>,
    published: Option<Vec<ListedRow>>,
}

impl World {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            hosts: BTreeMap::new(),
            published: None,
        }
    }

    fn folder(&self) -> std::path::PathBuf {
        publish::current(self.folder.path()).join(CHANGES_FOLDER)
    }

    fn list(&mut self, host: &str, version: &str) {
        let instance = ListedRow {
            first_seen: at(MIDNIGHT),
            last_alive: at(MIDNIGHT),
            instance: kit::software("mastodon", version),
            ..ListedRow::example(host)
        };
        self.hosts.insert(host.to_owned(), Known::Listed(instance));
    }

    /// Changes what a listed host says about registrations.
    fn register(&mut self, host: &str, open: Option<bool>) {
        match self.hosts.get_mut(host) {
            Some(Known::Listed(row)) => row.instance.open_registrations = open,
            other => panic!("{host} is {other:?}"),
        }
    }

    fn set(&mut self, host: &str, standing: Standing) {
        self.hosts.insert(host.to_owned(), Known::Not(standing));
    }

    fn rows(&self) -> Vec<ListedRow> {
        self.hosts
            .values()
            .filter_map(|known| match known {
                Known::Listed(instance) => Some(instance.clone()),
                Known::Not(_) => None,
            })
            .collect()
    }

    fn standing(&self, host: &str) -> Standing {
        match self.hosts.get(host) {
            Some(Known::Listed(_)) => Standing::Listed,
            Some(Known::Not(standing)) => standing.clone(),
            None => Standing::Died,
        }
    }

    fn has_left(&self, host: &str) -> bool {
        self.standing(host) == Standing::Withdrawn
    }

    fn former(&self) -> Option<impl Iterator<Item = Result<ListedRow, Infallible>> + use<>> {
        self.published.clone().map(|rows| rows.into_iter().map(Ok))
    }

    fn tree(&self) -> Tree {
        let disk = Disk::hooked(|_call| Ok(()));
        Tree::begin(disk, self.folder.path(), &Cancel::default()).unwrap()
    }

    /// Publishes the changes to the present list, but not the list.
    fn publish_changes(&self, seconds: i64) -> WrittenChanges {
        let tree = self.tree();
        let written = write_changes(
            &tree,
            &about(),
            at(seconds),
            self.former(),
            self.rows().into_iter().map(Ok::<_, DumpError>),
            |host| Ok(self.standing(host)),
            |host| {
                // Ninety days can name two million hosts, so listed hosts must not cost a look-up.
                assert_ne!(self.standing(host), Standing::Listed, "{host}");
                Ok(self.has_left(host))
            },
        )
        .unwrap();
        tree.publish().unwrap();
        written
    }

    fn publish(&mut self, seconds: i64) -> Outcome {
        let outcome = self.publish_changes(seconds).outcome;
        self.published = Some(self.rows());
        outcome
    }

    /// Whether no file in the folder needs rewriting.
    fn is_current(&self, seconds: i64) -> bool {
        let has_left = |host: &str| Ok::<_, DumpError>(self.has_left(host));
        is_current(&self.folder(), at(seconds), has_left).unwrap()
    }

    fn mirror(&self) -> Mirror {
        Mirror::new(self.published.clone().unwrap().into_iter().map(Row::from))
    }

    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        files(&self.folder())
    }

    fn day(&self, day: &str) -> Vec<Section> {
        crate::line::parse(&self.files()[&format!("{day}.ndjson")]).unwrap()
    }

    fn last_changes(&self) -> Vec<Change> {
        let files = self.files();
        let newest = day_files(&files).last().unwrap();
        crate::line::parse(newest).unwrap().pop().unwrap().changes
    }

    /// Files that name a host, compressed or not.
    fn names(&self, host: &str) -> Vec<String> {
        self.files()
            .into_iter()
            .filter(|(name, bytes)| String::from_utf8_lossy(&as_read(name, bytes)).contains(host))
            .map(|(name, _)| name)
            .collect()
    }

    /// Each file has a compressed companion with the same content, and there are no other
    /// compressed files.
    #[track_caller]
    fn assert_packed(&self) {
        let files = self.files();
        let (packed, plain): (Vec<_>, Vec<_>) = files.iter().partition(|(name, _)| is_packed(name));
        assert_eq!(packed.len(), plain.len(), "{:?}", files.keys());
        for (name, bytes) in plain {
            let name = format!("{name}.gz");
            assert!(as_read(&name, &files[&name]) == *bytes, "{name}");
        }
    }
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, std::fs::read(entry.path()).unwrap())
        })
        .collect()
}

fn is_packed(name: &str) -> bool {
    name.ends_with(".gz")
}

fn as_read(name: &str, bytes: &[u8]) -> Vec<u8> {
    if is_packed(name) {
        let mut plain = Vec::new();
        let mut packed = flate2::read::GzDecoder::new(bytes);
        io::Read::read_to_end(&mut packed, &mut plain).unwrap();
        plain
    } else {
        bytes.to_vec()
    }
}

fn day_files(files: &BTreeMap<String, Vec<u8>>) -> impl Iterator<Item = &[u8]> {
    files
        .iter()
        .filter(|(name, _)| name.ends_with(".ndjson") && !name.starts_with('.'))
        .map(|(_, bytes)| bytes.as_slice())
}

fn follow(mirror: &mut Mirror, files: &BTreeMap<String, Vec<u8>>) -> Result<(), Gap> {
    mirror.follow(day_files(files))
}

fn held(mirror: &Mirror) -> Vec<Row> {
    mirror.rows().cloned().collect()
}
