use std::cell::{Cell, RefCell};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use super::*;

/// The system's disk, which fails at one call and records all of them.
#[derive(Debug)]
struct FailingDisk {
    calls: RefCell<Vec<&'static str>>,
    fails_at: usize,
    is_dead: Cell<bool>,
}

impl FailingDisk {
    fn new(fails_at: usize) -> Self {
        Self {
            calls: RefCell::default(),
            fails_at,
            is_dead: Cell::new(false),
        }
    }

    fn call(&self, name: &'static str) -> io::Result<()> {
        if self.is_dead.get() {
            return Err(io::ErrorKind::Other.into());
        }
        self.calls.borrow_mut().push(name);
        match self.calls.borrow().len() == self.fails_at {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }
}

impl Disk for &FailingDisk {
    type File = File;
    type Reader = File;

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.call("make_folder")?;
        SystemDisk.make_folder(path)
    }

    fn create(&self, path: &Path, mode: Mode) -> io::Result<File> {
        self.call("create")?;
        SystemDisk.create(path, mode)
    }

    fn open(&self, path: &Path) -> io::Result<(File, u64)> {
        self.call("open")?;
        SystemDisk.open(path)
    }

    fn sync_file(&self, file: &File) -> io::Result<()> {
        self.call("sync_file")?;
        SystemDisk.sync_file(file)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call("rename")?;
        SystemDisk.rename(from, to)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.call("sync_folder")?;
        SystemDisk.sync_folder(folder)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call("remove")?;
        SystemDisk.remove(path)
    }

    fn remove_all(&self, path: &Path) -> io::Result<()> {
        self.call("remove_all")?;
        SystemDisk.remove_all(path)
    }

    fn list(&self, folder: &Path, names_max: usize) -> io::Result<Vec<std::ffi::OsString>> {
        self.call("list")?;
        SystemDisk.list(folder, names_max)
    }
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
    let disk = FailingDisk::new(0);
    let written = write(&disk, &folder.path().join("a"), Mode::Public, b"new").unwrap();
    written.put().unwrap();
    assert_eq!(
        *disk.calls.borrow(),
        ["remove", "create", "sync_file", "rename", "sync_folder"]
    );
}

#[test]
fn a_failure_at_any_call_leaves_the_old_file_or_the_new_one_and_nothing_beside() {
    for fails_at in 1..=5 {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a");
        fs::write(&place, "old").unwrap();
        let disk = FailingDisk::new(fails_at);
        let put = write(&disk, &place, Mode::Public, b"new").and_then(Written::put);
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

#[test]
fn steps_are_taken_in_the_order_of_their_tags_and_a_failed_one_leaves_nothing_beside() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("b")).unwrap();
    fs::write(at("gone"), "x").unwrap();
    let mut waiting = Waiting::new(SystemDisk, ".new");
    for (name, tag) in [("c", 3), ("b", 2), ("a", 1)] {
        let mut file = waiting.create(&at(name), tag).unwrap();
        file.write_all(name.as_bytes()).unwrap();
    }
    waiting.retire(at("gone"), 4);
    waiting.retire(at("never there"), 5);
    waiting.sort_by_key(|tag| *tag);
    let mut taken = Vec::new();
    while let Some(put) = waiting.put_next() {
        taken.push((put.tag, put.doing, put.result.is_ok()));
    }
    let expect = [
        (1, "renaming", true),
        (2, "renaming", false),
        (3, "renaming", true),
        (4, "removing", true),
        (5, "removing", true),
    ];
    assert_eq!(taken, expect);
    assert_eq!(names(folder.path()), ["a", "b", "c"]);
}

/// An `ETag` is made of a file's time and size.
#[test]
fn a_place_with_the_same_bytes_keeps_its_file_and_any_other_is_replaced() {
    const LONG: usize = 200_000;
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("a");
    let put = |bytes: &[u8]| {
        let mut waiting = Waiting::new(SystemDisk, ".new");
        let mut file = waiting.create(&place, ()).unwrap();
        file.write_all(bytes).unwrap();
        waiting.put_next().unwrap().result.unwrap();
        assert_eq!(names(folder.path()), ["a"]);
        assert_eq!(fs::read(&place).unwrap(), bytes);
        File::open(&place).unwrap()
    };
    // The inode number of a closed and deleted file may be reused.
    let number = |file: &File| file.metadata().unwrap().ino();
    let first = put(&[7; LONG]);
    assert_eq!(number(&put(&[7; LONG])), number(&first));
    let mut other = [7; LONG];
    other[LONG - 1] = 8;
    assert_ne!(number(&put(&other)), number(&first));
    assert_ne!(number(&put(b"")), number(&first));
}

#[test]
fn files_that_still_wait_are_removed_when_dropped_and_cleared_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let disk = FailingDisk::new(0);
    let mut waiting = Waiting::new(&disk, ".new");
    waiting.create(&at("a"), ()).unwrap();
    assert!(waiting.create(&at("a"), ()).is_err(), "it waits already");
    let half_made = waiting.create_by(&at("c"), (), |disk, temporary| {
        disk.create(temporary, Mode::Public)?;
        Err::<(), _>(io::Error::from(io::ErrorKind::StorageFull))
    });
    assert!(half_made.is_err());
    assert_eq!((names(folder.path()).len(), waiting.len()), (1, 1));
    waiting.create(&at("b"), ()).unwrap();
    waiting.truncate(1);
    assert_eq!(names(folder.path()).len(), 1);
    drop(waiting);
    assert_eq!(names(folder.path()), Vec::<String>::new());
    let mut waiting = Waiting::new(&disk, ".new");
    waiting.create(&at("a"), ()).unwrap();
    disk.is_dead.set(true);
    drop(waiting);
    fs::create_dir(at(".folder.0.new")).unwrap();
    for kept in ["b.new", ".a.new.kept"] {
        fs::write(at(kept), "").unwrap();
    }
    let cleared = clear(&SystemDisk, folder.path(), |name| name.ends_with(".new"));
    assert_eq!(cleared.unwrap(), 2);
    assert_eq!(names(folder.path()), [".a.new.kept", "b.new"]);
    let missing = clear(&SystemDisk, &at("nowhere"), |_| true);
    assert!(matches!(missing, Err(ClearError::List(_))));
}
