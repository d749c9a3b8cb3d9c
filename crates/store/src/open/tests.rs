use std::path::PathBuf;

use rusqlite::{Connection, StatementStatus};
use tempfile::TempDir;

use super::*;
use crate::db::tuning::WRITER_CACHE_KIB;
use crate::statements;

fn path(dir: &TempDir) -> PathBuf {
    dir.path().join("census.db")
}

#[test]
fn a_database_is_made_from_nothing_and_opens_again() {
    let dir = TempDir::new().unwrap();
    for _ in 0..2 {
        let store = open(&path(&dir)).unwrap();
        let version = store.reader().unwrap().schema_version().unwrap();
        assert_eq!(version, SCHEMA.version());
        store.close();
    }
    let reader = open_read_only(&path(&dir)).unwrap();
    assert_eq!(reader.schema_version().unwrap(), SCHEMA.version());
}

#[test] // S61
fn what_is_committed_is_synced_and_readers_are_not_blocked() {
    let dir = TempDir::new().unwrap();
    let mut connection = read_write(&path(&dir), Tuning::default()).unwrap();
    make_durable(&connection).unwrap();
    SCHEMA.to_latest(&mut connection).unwrap();
    let text =
        |name| connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, String>(0));
    let number =
        |name| connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0));
    assert_eq!(text("journal_mode").unwrap(), "wal");
    assert_eq!(number("synchronous").unwrap(), 2);
    assert_eq!(number("foreign_keys").unwrap(), 1);
    assert_eq!(number("cache_size").unwrap(), -WRITER_CACHE_KIB);
}

#[test]
fn a_second_writer_is_refused_until_the_first_has_closed() {
    let dir = TempDir::new().unwrap();
    let first = open(&path(&dir)).unwrap();
    assert!(matches!(open(&path(&dir)), Err(OpenError::InUse { .. })));
    // Readers are welcome all the while.
    open_read_only(&path(&dir)).unwrap();
    first.close();
    open(&path(&dir)).unwrap();
}

#[test] // S49
fn only_its_owner_may_read_the_database_and_its_log() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = TempDir::new().unwrap();
    let mode = |end: &str| {
        let path = format!("{}{end}", path(&dir).display());
        std::fs::metadata(path).unwrap().mode() & 0o777
    };
    open(&path(&dir)).unwrap().close();
    assert_eq!(mode(""), 0o600);
    let public = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(path(&dir), public).unwrap();
    let _store = open(&path(&dir)).unwrap();
    assert_eq!([mode(""), mode("-wal"), mode("-shm")], [0o600; 3]);
}

#[test]
fn a_path_that_cannot_be_written_is_refused() {
    let dir = TempDir::new().unwrap();
    let missing = dir.path().join("nowhere").join("census.db");
    assert!(matches!(open(&missing), Err(OpenError::Unwritable { .. })));
    // A directory in the database's place can't be written, even if root runs the test.
    std::fs::create_dir(path(&dir)).unwrap();
    let refused = open(&path(&dir));
    assert!(matches!(refused, Err(OpenError::Unwritable { .. })));
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let dir = TempDir::new().unwrap();
    open(&path(&dir)).unwrap().close();
    let other = Connection::open(path(&dir)).unwrap();
    other.pragma_update(None, "user_version", 99).unwrap();
    let refused = open(&path(&dir)).unwrap_err();
    let newer = |error: &OpenError| matches!(error, OpenError::Newer { found: 99, .. });
    assert!(newer(&refused), "{refused:?}");
    assert!(refused.to_string().contains("newer version"), "{refused}");
    let reading = open_read_only(&path(&dir)).unwrap_err();
    assert!(newer(&reading), "{reading:?}");
    assert_eq!(migrate::version(&other), Ok(99));
}

#[test]
fn what_is_no_census_is_refused_and_left_alone() {
    let dir = TempDir::new().unwrap();
    let text = "This is a letter to my aunt. ".repeat(100);
    std::fs::write(path(&dir), &text).unwrap();
    let refused = |opened: Result<(), OpenError>| {
        assert!(matches!(opened, Err(OpenError::NotADatabase { .. })));
    };
    refused(open(&path(&dir)).map(drop));
    refused(open_read_only(&path(&dir)).map(drop));
    assert_eq!(std::fs::read_to_string(path(&dir)).unwrap(), text);
    let bookmarks = dir.path().join("bookmarks.db");
    let other = Connection::open(&bookmarks).unwrap();
    let table = "CREATE TABLE bookmarks (url TEXT)";
    other.execute_batch(table).unwrap();
    drop(other);
    let before = std::fs::read(&bookmarks).unwrap();
    refused(open(&bookmarks).map(drop));
    assert_eq!(std::fs::read(&bookmarks).unwrap(), before);
}

#[test]
fn a_reader_neither_makes_nor_migrates_a_database() {
    let dir = TempDir::new().unwrap();
    let refused = open_read_only(&path(&dir));
    assert!(matches!(refused, Err(OpenError::Missing { .. })));
    assert!(!path(&dir).exists());
    let empty = Connection::open(path(&dir)).unwrap();
    empty.execute_batch("VACUUM").unwrap();
    drop(empty);
    let refused = open_read_only(&path(&dir));
    assert!(matches!(refused, Err(OpenError::Older { found: 0, .. })));
}

#[test]
fn a_database_that_is_moved_or_replaced_while_open_is_missed() {
    let dir = tempfile::tempdir().unwrap();
    let (path, away) = (dir.path().join("census.db"), dir.path().join("away.db"));
    let store = open(&path).unwrap();
    store.location().check().unwrap();
    std::fs::rename(&path, &away).unwrap();
    let gone = store.location().check();
    assert!(matches!(gone, Err(StoreError::Away { .. })), "{gone:?}");
    std::fs::write(&path, "another").unwrap();
    let other = store.location().check();
    let replaced = matches!(other, Err(StoreError::Replaced { .. }));
    assert!(replaced, "{other:?}");
    std::fs::rename(&away, &path).unwrap();
    store.location().check().unwrap();
}

/// Two values for each `?`, for which SQLite would make two plans.
#[test]
fn no_statement_is_compiled_anew_because_another_value_is_bound() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&path(&dir)).unwrap();
    let reader = store.reader().unwrap();
    let writer = read_write(&path(&dir), Tuning::default()).unwrap();
    for connection in [reader.connection(), &writer] {
        let all = statements::ALL.iter();
        for sql in all.filter(|sql| sql.starts_with("SELECT ")) {
            let mut statement = connection.prepare(sql).unwrap();
            for value in [1, 2, 3] {
                let values = vec![value; statement.parameter_count()];
                let mut rows = statement.query(rusqlite::params_from_iter(values)).unwrap();
                while rows.next().unwrap().is_some() {}
            }
            assert_eq!(statement.get_status(StatementStatus::RePrepare), 0, "{sql}");
        }
    }
}
