//! The set on a real disk, read by independent code.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "all of it is test code: a panic is how it says what it found"
)]

mod columns;
mod round_trip;
mod schemas;
mod set;

use std::collections::BTreeMap;
use std::path::Path;

use dump::{DumpError, ListedRow, ListedState, Moment};
use files::Disk;
use protocol::Instance;
use publish::{Cancel, Tree};

/// The files in a folder and below it, by their paths.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in std::fs::read_dir(inner).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let place = path.strip_prefix(folder).unwrap().to_str().unwrap();
                found.insert(place.to_owned(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn made() -> Moment {
    Moment::from_milliseconds(1_795_000_000_000)
}

fn listed(host: &str) -> ListedRow {
    ListedRow {
        host: host.to_owned(),
        state: ListedState::Alive,
        first_seen: Moment::from_milliseconds(1_700_000_000_000),
        last_alive: Moment::from_milliseconds(1_794_999_999_000),
        instance: Instance {
            open_registrations: Some(false),
            ..kit::software("mastodon", "4.4.0")
        },
    }
}

fn tree(public: &Path, cancel: &Cancel) -> Tree {
    Tree::begin(Disk::hooked(|_call| Ok(())), public, cancel).unwrap()
}

fn draft<'t>(tree: &'t Tree, rows: &[ListedRow]) -> Result<dump::Draft<'t>, DumpError> {
    dump::write(tree, made(), |row| rows.iter().try_for_each(row))
}

fn written(rows: &[ListedRow]) -> BTreeMap<String, Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let tree = tree(folder.path(), &Cancel::default());
    draft(&tree, rows).unwrap().seal().unwrap();
    files(tree.folder())
}
