//! The published set on a real disk, read by independent code.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "all of it is test code: a panic is how it says what it found"
)]

mod cancel;
mod columns;
mod round_trip;
mod schemas;
mod set;

use std::collections::BTreeMap;
use std::path::Path;

use dump::{DumpError, ListedRow, ListedState, Moment};
use protocol::Instance;

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

fn draft(folder: &Path, rows: &[ListedRow]) -> Result<dump::Draft, DumpError> {
    dump::write(folder, made(), |row| rows.iter().try_for_each(row))
}

/// Publishes a set of these rows in a folder.
fn publish(folder: &Path, rows: &[ListedRow]) {
    draft(folder, rows)
        .unwrap()
        .seal()
        .unwrap()
        .publish()
        .unwrap();
}

/// The files that are published for these rows.
fn published(rows: &[ListedRow]) -> BTreeMap<String, Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    publish(folder.path(), rows);
    files(folder.path())
}
