use census::time::Timestamp;
use kit::labelled;
use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::{OpenError, Store, open, open_read_only};

fn path(dir: &TempDir) -> PathBuf {
    dir.path().join("census.db")
}

async fn add(store: &Store, name: &str) {
    let added = store
        .writer()
        .add_now(vec![labelled(name)], Timestamp(1))
        .await;
    added.unwrap();
}

fn knows(path: &Path, name: &str) -> bool {
    let reader = open_read_only(path).unwrap();
    reader.record(&labelled(name)).unwrap().is_some()
}

/// A backup of the database in this folder, as bytes.
fn backed_up(dir: &TempDir) -> Vec<u8> {
    let mut backup = Vec::new();
    backup_into(&path(dir), &mut backup).unwrap();
    backup
}

fn put_back(dir: &TempDir, backup: &[u8]) -> Result<Restored, CopyError> {
    restore(&path(dir), &mut &*backup)
}

/// A new folder, a database in it, and a name in that.
async fn begun(name: &str) -> (TempDir, Store) {
    let dir = TempDir::new().unwrap();
    let store = open(&path(&dir)).unwrap();
    add(&store, name).await;
    (dir, store)
}

/// A copy of the database and its log, as a power cut leaves them.
fn cut_off(dir: &TempDir) -> TempDir {
    let cut = TempDir::new().unwrap();
    for end in ["", "-wal"] {
        fs::copy(with(&path(dir), end), with(&path(&cut), end)).unwrap();
    }
    cut
}

fn half_made(dir: &TempDir) -> Vec<String> {
    let mut names = copy::names(&path(dir));
    names.retain(|name| name.starts_with('.'));
    names
}

#[tokio::test]
async fn a_backup_of_a_database_in_use_is_whole_and_can_be_put_back() {
    let (dir, store) = begun("before").await;
    let kept = dir.path().join("monday.db");
    let copied = backup(&path(&dir), &kept).unwrap();
    let streamed = backed_up(&dir);
    assert_eq!(copied.bytes, fs::metadata(&kept).unwrap().len());
    assert_eq!(fs::read(&kept).unwrap(), streamed);
    assert_eq!(half_made(&dir), Vec::<String>::new());
    add(&store, "after").await;
    // Refused while another process writes.
    let refused = put_back(&dir, &streamed).unwrap_err();
    assert!(
        matches!(&refused, CopyError::Open(open) if matches!(**open, OpenError::InUse { .. })),
        "{refused:?}"
    );
    store.close();

    let restored = put_back(&dir, &streamed).unwrap();
    assert_eq!(restored.copied, copied);
    assert!(knows(&path(&dir), "before") && !knows(&path(&dir), "after"));
    assert!(knows(&aside(&path(&dir), 1), "after"));
    // The restored file is an ordinary database that takes writes.
    let store = open(&path(&dir)).unwrap();
    add(&store, "later").await;
    let damage = store.reader().unwrap().damage().unwrap();
    assert_eq!(damage, Vec::<String>::new());
}

/// State after a power cut: the last verdicts are in the log only, and SQLite would apply it to any
/// file that replaces the database.
#[tokio::test]
async fn the_log_of_the_database_that_is_replaced_goes_with_it() {
    let (dir, store) = begun("before").await;
    let backup = backed_up(&dir);
    add(&store, "after").await;
    let cut = cut_off(&dir);
    store.close();
    put_back(&cut, &backup).unwrap();
    assert!(knows(&path(&cut), "before") && !knows(&path(&cut), "after"));
    let reader = open_read_only(&path(&cut)).unwrap();
    assert_eq!(reader.damage().unwrap(), Vec::<String>::new());
    assert!(knows(&aside(&path(&cut), 1), "after"));
}

/// Invariant I6: until the backup is in its place, the old database has everything that was ever
/// acknowledged.
#[tokio::test]
async fn a_restore_that_is_cut_off_loses_nothing() {
    let (dir, store) = begun("after").await;
    let cut = cut_off(&dir);
    store.close();
    fold_log_in(&path(&cut), &Tuning::default());
    assert!(put_aside(&path(&cut), &aside(&path(&cut), 1)).unwrap());
    assert!(knows(&path(&cut), "after"));
}

#[tokio::test]
async fn a_backup_is_put_where_there_is_no_database() {
    let (dir, _store) = begun("before").await;
    let backup = backed_up(&dir);
    let new = TempDir::new().unwrap();
    let restored = put_back(&new, &backup).unwrap();
    assert_eq!(restored.replaced, None);
    assert!(knows(&path(&new), "before"));
    assert!(!aside(&path(&new), 1).exists());
}

/// An operator who restores the wrong backup first still has the original database.
#[tokio::test]
async fn each_database_that_is_replaced_is_kept_until_there_are_too_many() {
    let dir = TempDir::new().unwrap();
    let store = open(&path(&dir)).unwrap();
    let backup = backed_up(&dir);
    add(&store, "first").await;
    store.close();
    for number in 1..=REPLACED_MAX {
        let restored = put_back(&dir, &backup).unwrap();
        assert_eq!(restored.replaced, Some(aside(&path(&dir), number)));
        assert!(knows(&aside(&path(&dir), 1), "first"));
        assert!(!knows(&path(&dir), "first"));
    }
    let store = open(&path(&dir)).unwrap();
    add(&store, "last").await;
    store.close();
    let refuse = || {
        let refused = put_back(&dir, &backup).unwrap_err();
        let too_many = matches!(refused, CopyError::KeptTooMany { .. });
        assert!(too_many, "{refused:?}");
    };
    refuse();
    assert!(knows(&path(&dir), "last"));
    assert!(knows(&aside(&path(&dir), 1), "first"));
    assert_eq!(half_made(&dir), Vec::<String>::new());
    // One free name is enough, and a leftover log makes a name unusable.
    fs::remove_file(aside(&path(&dir), 2)).unwrap();
    fs::write(with(&aside(&path(&dir), 2), "-wal"), "a log's rest").unwrap();
    refuse();
    fs::remove_file(with(&aside(&path(&dir), 2), "-wal")).unwrap();
    put_back(&dir, &backup).unwrap();
    assert!(knows(&aside(&path(&dir), 2), "last"));
}

#[test]
fn nothing_is_written_over() {
    let dir = TempDir::new().unwrap();
    open(&path(&dir)).unwrap().close();
    let letter = dir.path().join("letter");
    fs::write(&letter, "Dear aunt").unwrap();
    let refused = backup(&path(&dir), &letter).unwrap_err();
    assert!(matches!(refused, CopyError::Exists { .. }), "{refused:?}");
    assert_eq!(fs::read_to_string(&letter).unwrap(), "Dear aunt");
    let nowhere = dir.path().join("nowhere").join("backup");
    let refused = backup(&path(&dir), &nowhere).unwrap_err();
    let unwritable = matches!(refused, CopyError::Unwritable { .. });
    assert!(unwritable, "{refused:?}");
    let missing = backup(&dir.path().join("missing.db"), &nowhere).unwrap_err();
    assert!(matches!(missing, CopyError::Open(_)), "{missing:?}");
}

#[tokio::test]
async fn what_is_damaged_cut_off_newer_or_no_census_is_not_put_back() {
    let (dir, store) = begun("before").await;
    let good = backed_up(&dir);
    store.close();
    let before = fs::read(path(&dir)).unwrap();
    let refuse = |bytes: &[u8]| {
        let refused = put_back(&dir, bytes).unwrap_err();
        assert_eq!(fs::read(path(&dir)).unwrap(), before);
        assert_eq!(half_made(&dir), Vec::<String>::new());
        assert!(!aside(&path(&dir), 1).exists());
        refused
    };
    for left in [good.len() - 1, good.len() - 4096, 8192, 4096] {
        let refused = refuse(&good[..left]);
        let damaged = matches!(refused, CopyError::Damaged(_));
        assert!(damaged, "{left}: {refused:?}");
    }
    let mut spoilt = good.clone();
    let len = spoilt.len();
    spoilt[len / 2..len / 2 + 4096].fill(0xA5);
    let refused = refuse(&spoilt);
    assert!(matches!(refused, CopyError::Damaged(_)), "{refused:?}");
    for no_census in [&b""[..], b"Dear aunt", &[b'a'; 10_000]] {
        let refused = refuse(no_census);
        assert!(matches!(refused, CopyError::NotACensus), "{refused:?}");
    }
    let newer = dir.path().join("newer.db");
    fs::write(&newer, &good).unwrap();
    let connection = Connection::open(&newer).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let refused = refuse(&fs::read(&newer).unwrap());
    let newer = matches!(refused, CopyError::Newer { found: 99, .. });
    assert!(newer, "{refused:?}");
}

#[test]
fn what_a_crash_left_of_a_copy_is_cleared_and_one_in_the_making_is_not() {
    let dir = TempDir::new().unwrap();
    let name = ".fedicensus-copy.0123456789abcdef.new";
    let left = ["", "-journal"].map(|end| dir.path().join(format!("{name}{end}")));
    for left in &left {
        fs::write(left, "SQLite format 3").unwrap();
    }
    let other = dir.path().join(".hidden");
    fs::write(&other, "somebody's").unwrap();
    let mut making = TemporaryFile::new(&path(&dir)).unwrap();
    making.file().write_all(b"SQLite").unwrap();
    open(&path(&dir)).unwrap().close();
    assert!(!left.iter().any(|left| left.exists()));
    assert!(other.exists());
    assert_eq!(half_made(&dir).len(), 2);
    // A full disk leaves what SQLite could not undo.
    let mut names = half_made(&dir).into_iter();
    let copy = names.find(|name| name.ends_with(".new"));
    let journal = dir.path().join(format!("{}-journal", copy.unwrap()));
    fs::write(&journal, "SQLite").unwrap();
    drop(making);
    assert!(!fs::exists(journal).unwrap());
}
