use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::*;

type Calls = Arc<Mutex<Vec<&'static str>>>;

/// The system's disk, which fails at one call, and a record of all of them.
fn failing(fails_at: usize) -> (Disk, Calls) {
    let calls = Calls::default();
    let record = Arc::clone(&calls);
    let disk = Disk::hooked(move |call| {
        let mut calls = record.lock().unwrap();
        calls.push(call);
        match calls.len() == fails_at {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    });
    (disk, calls)
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_is_synced_before_it_is_renamed_and_its_folder_after_that() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, calls) = failing(0);
    let written = write(disk, &folder.path().join("a"), Mode::Public, b"new").unwrap();
    written.put().unwrap();
    assert_eq!(
        *calls.lock().unwrap(),
        ["remove", "create", "sync_file", "rename", "sync_folder"]
    );
}

#[test]
fn a_failure_at_any_call_leaves_the_old_file_or_the_new_one_and_nothing_beside() {
    for fails_at in 1..=5 {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a");
        fs::write(&place, "old").unwrap();
        let put = write(failing(fails_at).0, &place, Mode::Public, b"new").and_then(Written::put);
        assert!(put.is_err(), "{fails_at}");
        let expect = if fails_at < 5 { "old" } else { "new" };
        assert_eq!(fs::read_to_string(&place).unwrap(), expect, "{fails_at}");
        assert_eq!(names(folder.path()), ["a"], "{fails_at}");
    }
}

#[test]
fn what_a_crash_left_is_replaced_and_a_link_there_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (place, other) = (folder.path().join("a"), folder.path().join("other"));
    fs::write(&other, "other").unwrap();
    symlink(&other, folder.path().join(".a.new")).unwrap();
    replace(&place, Mode::Private, b"secret").unwrap();
    assert_eq!(fs::read_to_string(&other).unwrap(), "other");
    assert_eq!(fs::read_to_string(&place).unwrap(), "secret");
    let mode = fs::symlink_metadata(&place).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    assert_eq!(names(folder.path()), ["a", "other"]);
}
