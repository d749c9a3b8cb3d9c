use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use files::Disk;

use super::*;

static LONG: [u8; 200_000] = [7; 200_000];

struct Public(tempfile::TempDir);

impl Public {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn begin(&self, before: impl Fn(&str) -> io::Result<()> + Send + Sync + 'static) -> Tree {
        Tree::begin(Disk::hooked(before), self.path(), &Cancel::default()).unwrap()
    }

    fn publish(&self, files: &[(&str, &[u8])]) {
        let tree = self.begin(|_call| Ok(()));
        for (place, bytes) in files {
            tree.write(place, bytes).unwrap();
        }
        tree.publish().unwrap();
    }

    fn at(&self, place: &str) -> PathBuf {
        current(self.path()).join(place)
    }

    /// Time and inode of a published file; the time is made older, so that a new one differs.
    fn aged(&self, place: &str) -> (SystemTime, u64) {
        let then = self.found(place).0 - Duration::from_secs(100);
        Disk::SYSTEM.set_modified(&self.at(place), then).unwrap();
        self.found(place)
    }

    fn found(&self, place: &str) -> (SystemTime, u64) {
        let found = fs::metadata(self.at(place)).unwrap();
        (found.modified().unwrap(), found.ino())
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.path()).unwrap();
        let mut names: Vec<_> = names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// A web server's `ETag` is made of a file's time and size.
#[test]
fn equal_files_are_linked_and_others_are_new() {
    let public = Public::new();
    let mut other = LONG;
    other[LONG.len() - 1] = 8;
    public.publish(&[
        ("sub/same", &LONG),
        ("kept", b"x"),
        ("other", &LONG),
        ("gone", b"x"),
    ]);
    let [same, kept, old] = ["sub/same", "kept", "other"].map(|place| public.aged(place));
    let tree = public.begin(|_call| Ok(()));
    tree.write("sub/same", &LONG).unwrap();
    tree.write("other", &other).unwrap();
    assert!(tree.keep("kept").unwrap());
    assert!(!tree.keep("nowhere").unwrap() && !tree.keep("sub").unwrap());
    tree.publish().unwrap();
    assert_eq!(public.found("sub/same"), same);
    assert_eq!(public.found("kept"), kept);
    assert_ne!(public.found("other").0, old.0);
    assert_eq!(fs::read(public.at("other")).unwrap(), other);
    assert!(!public.at("gone").exists() && !public.at(".same").exists());
    let link = fs::read_link(current(public.path())).unwrap();
    assert!(link.is_relative(), "{link:?}");
    assert_eq!(public.names(), ["current", link.to_str().unwrap()]);
}

#[test]
fn a_disk_without_links_gets_copies_of_the_same_age() {
    let public = Public::new();
    public.publish(&[("same", &LONG), ("kept", b"x")]);
    let [same, kept] = ["same", "kept"].map(|place| public.aged(place).0);
    let tree = public.begin(|call| match call {
        "link" => Err(io::ErrorKind::PermissionDenied.into()),
        _ => Ok(()),
    });
    tree.write("same", &LONG).unwrap();
    tree.keep_where(|place| place == "kept").unwrap();
    tree.publish().unwrap();
    assert_eq!(public.found("same").0, same);
    assert_eq!(public.found("kept").0, kept);
}

#[test] // S62
fn tree_is_on_disk_before_the_link_and_link_before_removals() {
    let public = Public::new();
    public.publish(&[("a", b"old")]);
    let calls = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&calls);
    let tree = public.begin(move |call| {
        record.lock().unwrap().push(call.to_owned());
        Ok(())
    });
    tree.write("sub/a", b"new").unwrap();
    tree.publish().unwrap();
    let expect = "list make_folder make_folder create write sync_all remove symlink rename \
                  sync_folder list sync_folder remove_all";
    assert_eq!(calls.lock().unwrap().join(" "), expect);
}

#[test]
fn a_dropped_or_cancelled_tree_leaves_the_former_one() {
    let public = Public::new();
    public.publish(&[("a", b"old")]);
    let names = public.names();
    drop(public.begin(|_call| Ok(())));
    let cancel = Cancel::default();
    let tree = Tree::begin(Disk::hooked(|_call| Ok(())), public.path(), &cancel).unwrap();
    tree.write("a", b"new").unwrap();
    cancel.cancel();
    assert!(matches!(tree.create("b"), Err(TreeError::Cancelled)));
    assert!(matches!(tree.publish(), Err(TreeError::Cancelled)));
    assert_eq!(fs::read(public.at("a")).unwrap(), b"old");
    assert_eq!(public.names(), names);
}

#[test]
fn everybody_may_read_and_only_the_owner_may_write() {
    let public = Public::new();
    public.publish(&[("a/b/c", b"x")]);
    let mode = |place: &str| {
        let found = fs::metadata(public.at(place)).unwrap();
        found.permissions().mode() & 0o7777
    };
    assert_eq!(
        ["", "a", "a/b", "a/b/c"].map(mode),
        [0o755, 0o755, 0o755, 0o644]
    );
}

#[test]
fn what_a_crash_left_is_cleared_and_nothing_else() {
    let public = Public::new();
    public.publish(&[("a", b"x")]);
    let names = public.names();
    // A process that is killed runs no destructors.
    std::mem::forget(public.begin(|_call| Ok(())));
    for file in [".nodes.json.0.new", "robots.txt", ".htaccess"] {
        fs::write(public.path().join(file), "x").unwrap();
    }
    assert_eq!(tidy(public.path()).unwrap(), 2);
    assert_eq!(tidy(public.path()).unwrap(), 0);
    let mut all = [names, vec![".htaccess".to_owned(), "robots.txt".to_owned()]].concat();
    all.sort();
    assert_eq!(public.names(), all);
    for missing in ["missing", "robots.txt"] {
        let error = tidy(&public.path().join(missing)).unwrap_err();
        assert!(matches!(error, TreeError::NoFolder { .. }), "{error}");
    }
}

/// What earlier versions published is served until the next tree replaces it, whatever call of its
/// move is the last one.
#[test]
fn the_former_layout_becomes_a_tree_after_a_crash_too() {
    const PLACES: [&str; 4] = [
        "nodes.json",
        "nodes.json.gz",
        "why/index.json",
        "data/index.json",
    ];
    let stopped_at = |calls: usize| {
        let public = Public::new();
        for place in PLACES.iter().chain(&["data/.a.new", "own.html"]) {
            let path = public.path().join(place);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let left = Mutex::new(calls);
        let disk = Disk::hooked(move |_call| {
            let mut left = left.lock().unwrap();
            *left = left.checked_sub(1).ok_or(io::ErrorKind::Other)?;
            Ok(())
        });
        let is_done = place::adopt(&disk, public.path()).is_ok();
        tidy(public.path()).unwrap();
        assert_eq!(public.names(), ["current", "own.html", "tree.former"]);
        assert!(
            PLACES.iter().all(|place| public.at(place).is_file()),
            "{calls}"
        );
        let tree = public.begin(|_call| Ok(()));
        tree.keep_where(|_place| true).unwrap();
        tree.publish().unwrap();
        assert!(PLACES.iter().all(|place| public.at(place).is_file()));
        assert!(!public.at("data/.a.new").exists());
        // After a downgrade.
        fs::create_dir(public.path().join("data")).unwrap();
        fs::write(public.path().join("data/index.json"), "x").unwrap();
        tidy(public.path()).unwrap();
        assert_eq!(public.names().len(), 3);
        is_done
    };
    let calls = (0..20).position(stopped_at).unwrap();
    assert!(calls > 8, "{calls}");
}
