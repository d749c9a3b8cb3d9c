use kit::numbered;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use census::time::Timestamp;
use rusqlite_migration::M;
use tempfile::TempDir;

use super::*;
use crate::db::migrate::{self, SCHEMA, SCHEMA_VERSION, Schema};
use crate::open::{open_read_only_tuned, open_tuned};

const HOSTS: usize = 40;

const OLD: i64 = SCHEMA_VERSION;

const NEW: i64 = OLD + 2;

static NEWER: LazyLock<Schema> = LazyLock::new(|| {
    Schema::with_further(vec![
        M::up("ALTER TABLE hosts ADD COLUMN colour TEXT NOT NULL DEFAULT 'green'"),
        M::up_with_hook(
            "CREATE TABLE colours (name TEXT PRIMARY KEY); UPDATE hosts SET colour = 'blue'",
            |step: &rusqlite::Transaction<'_>| {
                // Writes uncommitted pages to the file before the crash.
                step.cache_flush()?;
                crash("in the last step");
                Ok(())
            },
        ),
    ])
});

fn newer() -> Tuning {
    Tuning {
        schema: &NEWER,
        at: |moment| crash(&format!("{moment:?}")),
        ..Tuning::default()
    }
}

/// The moment of a crash, the database's folder, and the folder that receives its files as they are
/// at that moment.
struct Crash {
    moment: &'static str,
    folder: PathBuf,
    left: PathBuf,
}

thread_local! {
    static CRASH: RefCell<Option<Crash>> = const { RefCell::new(None) };
}

/// Copies the files as `kill -9` would leave them, without any destructor. A child process that
/// ends itself is no alternative: starting it would share other tests' locks with it for a moment.
fn crash(moment: &str) {
    CRASH.with_borrow(|crash| {
        let Some(crash) = crash.as_ref().filter(|crash| crash.moment == moment) else {
            return;
        };
        for entry in std::fs::read_dir(&crash.folder).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), crash.left.join(entry.file_name())).unwrap();
        }
    });
}

fn path(dir: &TempDir) -> PathBuf {
    dir.path().join("census.db")
}

async fn older_census() -> TempDir {
    let dir = TempDir::new().unwrap();
    let store = open_tuned(&path(&dir), Tuning::default()).unwrap();
    let hosts = (0..HOSTS).map(numbered).collect();
    store.writer().add_now(hosts, Timestamp(1)).await.unwrap();
    store.close();
    dir
}

/// Every row as text: it must be the same in a copy.
fn rows(path: &Path, columns: &str) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    let sql = format!("SELECT {columns} FROM hosts ORDER BY id");
    let mut statement = connection.prepare(&sql).unwrap();
    statement
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

fn version(path: &Path) -> i64 {
    migrate::version(&Connection::open(path).unwrap()).unwrap()
}

fn names(dir: &TempDir) -> Vec<String> {
    let mut names = copy::names(&path(dir));
    names.retain(|name| !name.ends_with(".lock"));
    names.sort();
    names
}

fn copy_name(schema: i64) -> String {
    format!("census.db.schema-{schema}")
}

const ROW: &str = "name || state || since || due || first_seen";

#[tokio::test]
async fn an_older_database_is_migrated_and_a_whole_copy_of_it_kept() {
    let dir = older_census().await;
    let before = rows(&path(&dir), ROW);
    open_tuned(&path(&dir), newer()).unwrap().close();

    assert_eq!(version(&path(&dir)), NEW);
    assert_eq!(rows(&path(&dir), ROW), before);
    let colours = rows(&path(&dir), "colour");
    assert_eq!(colours, vec!["blue"; HOSTS], "not every step was taken");
    assert_eq!(names(&dir), ["census.db", &copy_name(OLD)]);
    let copy = place(&path(&dir), OLD);
    assert_eq!(version(&copy), SCHEMA.version());
    assert_eq!(rows(&copy, ROW), before);
    // The previous version opens the copy and finds everything.
    let reader = open_read_only_tuned(&copy, &SCHEMA).unwrap();
    assert_eq!(reader.damage().unwrap(), Vec::<String>::new());
    assert_eq!(reader.counts().unwrap().hosts, before.len() as u64);
}

/// Schema of the oldest databases in use.
const OLDEST: usize = 4;

#[test]
fn the_oldest_database_in_use_opens_with_all_its_rows() {
    let dir = TempDir::new().unwrap();
    let mut former = Connection::open(path(&dir)).unwrap();
    Schema::of_first(OLDEST).to_latest(&mut former).unwrap();
    let filled = "INSERT INTO hosts (name, state, since, software, first_seen, last_alive, due, alive_count, open_registrations) \
         VALUES ('n1.example', 'alive', 1, 'mastodon', 1, 2, 3, 4, 1); \
         INSERT INTO dumps (at, names) VALUES (1, 5)";
    former.execute_batch(filled).unwrap();
    drop(former);
    let before = rows(&path(&dir), ROW);

    let store = open_tuned(&path(&dir), Tuning::default()).unwrap();
    assert_eq!(version(&path(&dir)), SCHEMA_VERSION);
    assert_eq!(rows(&path(&dir), ROW), before);
    let reader = store.reader().unwrap();
    assert_eq!(reader.damage().unwrap(), Vec::<String>::new());
    assert_eq!(reader.counts().unwrap().hosts, 1);
    assert_eq!(reader.last_full_dump().unwrap(), Some(5));
    drop(reader);
    store.close();
}

#[test]
fn a_new_database_and_one_that_is_up_to_date_are_not_copied() {
    let dir = TempDir::new().unwrap();
    for _ in 0..2 {
        open_tuned(&path(&dir), newer()).unwrap().close();
        assert_eq!(names(&dir), ["census.db"]);
    }
}

#[tokio::test]
async fn an_older_program_refuses_a_newer_database_names_the_copy_and_writes_nothing() {
    let dir = older_census().await;
    let store = open_tuned(&path(&dir), newer()).unwrap();
    // Copied before it is closed, so that there is a log that opening could checkpoint.
    let added = vec![numbered(1000)];
    store.writer().add_now(added, Timestamp(2)).await.unwrap();
    let other = TempDir::new().unwrap();
    for name in names(&dir) {
        std::fs::copy(dir.path().join(&name), other.path().join(&name)).unwrap();
    }
    store.close();
    let bytes = |end| std::fs::read(other.path().join(format!("census.db{end}"))).unwrap();
    let of_copy = format!(".schema-{OLD}");
    let before = (bytes(""), bytes("-wal"), bytes(&of_copy));
    assert!(!before.1.is_empty());

    let refused = open_tuned(&path(&other), Tuning::default()).unwrap_err();
    let said = refused.to_string();
    assert!(
        matches!(
            &refused,
            OpenError::Newer { found: NEW, known: OLD, copy: Some(copy), .. } if *copy == place(&path(&other), OLD)
        ),
        "{refused:?}"
    );
    assert!(said.contains(&copy_name(OLD)), "{said}");
    let reading = open_read_only_tuned(&path(&other), &SCHEMA);
    assert!(matches!(reading, Err(OpenError::Newer { .. })));
    assert!(before == (bytes(""), bytes("-wal"), bytes(&of_copy)));
    // The newer program still works with it.
    open_tuned(&path(&other), newer()).unwrap().close();
    assert_eq!(rows(&path(&other), ROW).len(), HOSTS + 1);
}

#[tokio::test]
async fn a_reader_of_a_newer_program_does_not_migrate() {
    let dir = older_census().await;
    let refused = open_read_only_tuned(&path(&dir), &NEWER).unwrap_err();
    let OpenError::Older { found, known, .. } = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((found, known), (OLD, NEW));
    assert_eq!(version(&path(&dir)), OLD);
    assert!(!place(&path(&dir), OLD).exists());
}

#[tokio::test]
async fn a_crash_at_any_moment_of_an_upgrade_loses_nothing_and_the_next_start_goes_on() {
    // The moment, and the schema that the crash leaves.
    for (moment, left) in [
        ("Copied", OLD),
        ("Kept", OLD),
        ("in the last step", OLD),
        ("Migrated", NEW),
    ] {
        let (dir, after) = (older_census().await, TempDir::new().unwrap());
        let before = rows(&path(&dir), ROW);
        CRASH.set(Some(Crash {
            moment,
            folder: dir.path().to_owned(),
            left: after.path().to_owned(),
        }));
        open_tuned(&path(&dir), newer()).unwrap().close();
        CRASH.set(None);

        assert_eq!(version(&path(&after)), left, "{moment}");
        assert_eq!(rows(&path(&after), ROW), before, "{moment}");
        let copy = place(&path(&after), OLD);
        assert_eq!(copy.exists(), moment != "Copied", "{moment}");

        open_tuned(&path(&after), newer()).unwrap().close();
        assert_eq!(version(&path(&after)), NEW, "{moment}");
        assert_eq!(rows(&path(&after), ROW), before, "{moment}");
        assert_eq!(rows(&path(&after), "colour"), vec!["blue"; HOSTS]);
        // The copy of the original database is there in any case, and no incomplete file is.
        assert_eq!(rows(&copy, ROW), before, "{moment}");
        assert_eq!(version(&copy), OLD, "{moment}");
        assert_eq!(names(&after), ["census.db", &copy_name(OLD)]);
    }
}

#[tokio::test]
async fn a_step_that_fails_leaves_the_database_as_it_was_and_the_copy_beside_it() {
    static FAILS: LazyLock<Schema> = LazyLock::new(|| {
        Schema::with_further(vec![M::up(
            "UPDATE hosts SET since = 0; INSERT INTO no_such_table VALUES (1)",
        )])
    });
    let dir = older_census().await;
    let before = rows(&path(&dir), ROW);
    let fails = Tuning {
        schema: &FAILS,
        ..Tuning::default()
    };
    for _ in 0..2 {
        let refused = open_tuned(&path(&dir), fails).unwrap_err();
        let failed = matches!(refused, OpenError::Migration { .. });
        assert!(failed, "{refused:?}");
        assert_eq!(rows(&path(&dir), ROW), before);
        assert_eq!(rows(&place(&path(&dir), OLD), ROW), before);
    }
    // The previous version still works with the database.
    open_tuned(&path(&dir), Tuning::default()).unwrap().close();
}

#[tokio::test]
async fn without_a_copy_no_step_is_taken() {
    let dir = older_census().await;
    // A directory in the copy's place can't be written, even if root runs the test.
    std::fs::create_dir(place(&path(&dir), OLD)).unwrap();
    let refused = open_tuned(&path(&dir), newer()).unwrap_err();
    let OpenError::Copy { from, to, .. } = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((from, to), (OLD, NEW));
    assert_eq!(version(&path(&dir)), OLD);
    assert_eq!(names(&dir), ["census.db", &copy_name(OLD)]);
}

#[tokio::test]
async fn copies_of_the_last_two_schemas_are_kept() {
    let dir = TempDir::new().unwrap();
    let copies = |dir| {
        let names = names(dir).into_iter();
        names
            .filter(|name| name.contains("schema"))
            .collect::<BTreeSet<_>>()
    };
    open_tuned(&path(&dir), Tuning::default()).unwrap().close();
    for steps in 1..=4 {
        let further = (0..steps)
            .map(|n| M::up(format!("CREATE TABLE t{n} (id INTEGER PRIMARY KEY)").leak()))
            .collect();
        let tuning = Tuning {
            schema: Box::leak(Box::new(Schema::with_further(further))),
            ..Tuning::default()
        };
        open_tuned(&path(&dir), tuning).unwrap().close();
        assert!(copies(&dir).len() <= COPIES_KEPT, "{:?}", copies(&dir));
    }
    let last = BTreeSet::from([copy_name(NEW), copy_name(NEW + 1)]);
    assert_eq!(copies(&dir), last);
    assert_eq!(usable_copy(&path(&dir), NEW), Some(place(&path(&dir), NEW)));
    assert_eq!(usable_copy(&path(&dir), OLD), None);
}
