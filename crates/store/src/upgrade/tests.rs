use std::cell::RefCell;
use std::path::Path;
use std::sync::LazyLock;

use census::time::Timestamp;
use protocol::Host;
use rusqlite_migration::M;
use tempfile::TempDir;

use super::*;
use crate::migrate::{self, SCHEMA, Schema};
use crate::open::{open_read_only_tuned, open_tuned};

const HOSTS: usize = 40;

/// A version to come: two steps more.
static NEWER: LazyLock<Schema> = LazyLock::new(|| {
    Schema::with_further(vec![
        M::up("ALTER TABLE hosts ADD COLUMN colour TEXT NOT NULL DEFAULT 'green'"),
        M::up_with_hook(
            "CREATE TABLE colours (name TEXT PRIMARY KEY); UPDATE hosts SET colour = 'blue'",
            |step: &rusqlite::Transaction<'_>| {
                // So that what is not committed yet is in the file already.
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

/// The moment of a crash, the folder whose files it leaves as they are then, and the one that they are found in afterwards.
struct Crash {
    moment: &'static str,
    folder: PathBuf,
    left: PathBuf,
}

thread_local! {
    static CRASH: RefCell<Option<Crash>> = const { RefCell::new(None) };
}

/// What `kill -9` would leave: the files at this moment, without any destructor. Not a process that ends itself: starting it would lend the locks of
/// other tests to it for a moment.
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

fn host(n: usize) -> Host {
    Host::parse(&format!("n{n}.example")).unwrap()
}

/// An older census with rows.
async fn older_census(path: &Path) {
    let store = open_tuned(path, Tuning::default()).unwrap();
    let hosts = (0..HOSTS).map(host).collect();
    store.writer().add_now(hosts, Timestamp(1)).await.unwrap();
    store.close();
}

/// Every row of a table, as text: what must be the same in a copy.
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

const ROW: &str = "name || state || since || due || first_seen";

#[tokio::test]
async fn an_older_database_is_migrated_and_a_whole_copy_of_it_kept() {
    let dir = TempDir::new().unwrap();
    older_census(&path(&dir)).await;
    let before = rows(&path(&dir), ROW);
    open_tuned(&path(&dir), newer()).unwrap().close();

    assert_eq!(version(&path(&dir)), 11);
    assert_eq!(rows(&path(&dir), ROW), before);
    assert_eq!(
        rows(&path(&dir), "colour"),
        vec!["blue"; HOSTS],
        "not every step was taken"
    );
    assert_eq!(names(&dir), ["census.db", "census.db.schema-9"]);
    let copy = place(&path(&dir), 9);
    assert_eq!(version(&copy), SCHEMA.version());
    assert_eq!(rows(&copy, ROW), before);
    // The version before opens it, and finds everything.
    let reader = open_read_only_tuned(&copy, &SCHEMA).unwrap();
    assert_eq!(reader.damage().unwrap(), Vec::<String>::new());
    assert_eq!(reader.counts().unwrap().hosts, before.len() as u64);
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
    let dir = TempDir::new().unwrap();
    older_census(&path(&dir)).await;
    let store = open_tuned(&path(&dir), newer()).unwrap();
    // Not closed before it is copied: so there is a log that opening it could move.
    store
        .writer()
        .add_now(vec![host(1000)], Timestamp(2))
        .await
        .unwrap();
    let other = TempDir::new().unwrap();
    for name in names(&dir) {
        std::fs::copy(dir.path().join(&name), other.path().join(&name)).unwrap();
    }
    store.close();
    let bytes = |end| std::fs::read(other.path().join(format!("census.db{end}"))).unwrap();
    let before = (bytes(""), bytes("-wal"), bytes(".schema-9"));
    assert!(!before.1.is_empty());

    let refused = open_tuned(&path(&other), Tuning::default()).unwrap_err();
    let said = refused.to_string();
    assert!(
        matches!(
            &refused,
            OpenError::Newer { found: 11, known: 9, copy: Some(copy), .. } if *copy == place(&path(&other), 9)
        ),
        "{refused:?}"
    );
    assert!(said.contains("census.db.schema-9"), "{said}");
    assert!(matches!(
        open_read_only_tuned(&path(&other), &SCHEMA),
        Err(OpenError::Newer { .. })
    ));
    assert!(before == (bytes(""), bytes("-wal"), bytes(".schema-9")));
    // And the newer program goes on with it.
    open_tuned(&path(&other), newer()).unwrap().close();
    assert_eq!(rows(&path(&other), ROW).len(), HOSTS + 1);
}

#[tokio::test]
async fn a_reader_of_a_newer_program_does_not_migrate() {
    let dir = TempDir::new().unwrap();
    older_census(&path(&dir)).await;
    let refused = open_read_only_tuned(&path(&dir), &NEWER).unwrap_err();
    assert!(
        matches!(
            refused,
            OpenError::Older {
                found: 9,
                known: 11,
                ..
            }
        ),
        "{refused:?}"
    );
    assert_eq!(version(&path(&dir)), 9);
    assert!(!place(&path(&dir), 9).exists());
}

#[tokio::test]
async fn a_crash_at_any_moment_of_an_upgrade_loses_nothing_and_the_next_start_goes_on() {
    // The moment, and the schema that the crash leaves.
    for (moment, left) in [
        ("Copied", 9),
        ("Kept", 9),
        ("in the last step", 9),
        ("Migrated", 11),
    ] {
        let (dir, after) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        older_census(&path(&dir)).await;
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
        let copy = place(&path(&after), 9);
        assert_eq!(copy.exists(), moment != "Copied", "{moment}");

        open_tuned(&path(&after), newer()).unwrap().close();
        assert_eq!(version(&path(&after)), 11, "{moment}");
        assert_eq!(rows(&path(&after), ROW), before, "{moment}");
        assert_eq!(rows(&path(&after), "colour"), vec!["blue"; HOSTS]);
        // The copy of where the upgrade began is there whatever happened; nothing half-made is.
        assert_eq!(rows(&copy, ROW), before, "{moment}");
        assert_eq!(version(&copy), 9, "{moment}");
        assert_eq!(names(&after), ["census.db", "census.db.schema-9"]);
    }
}

#[tokio::test]
async fn a_step_that_fails_leaves_the_database_as_it_was_and_the_copy_beside_it() {
    static FAILS: LazyLock<Schema> = LazyLock::new(|| {
        Schema::with_further(vec![M::up(
            "UPDATE hosts SET since = 0; INSERT INTO no_such_table VALUES (1)",
        )])
    });
    let dir = TempDir::new().unwrap();
    older_census(&path(&dir)).await;
    let before = rows(&path(&dir), ROW);
    let fails = Tuning {
        schema: &FAILS,
        ..Tuning::default()
    };
    for _ in 0..2 {
        let refused = open_tuned(&path(&dir), fails).unwrap_err();
        assert!(
            matches!(refused, OpenError::Migration { .. }),
            "{refused:?}"
        );
        assert_eq!(rows(&path(&dir), ROW), before);
        assert_eq!(rows(&place(&path(&dir), 9), ROW), before);
    }
    // The version before goes on as if nothing had been.
    open_tuned(&path(&dir), Tuning::default()).unwrap().close();
}

#[tokio::test]
async fn without_a_copy_no_step_is_taken() {
    let dir = TempDir::new().unwrap();
    older_census(&path(&dir)).await;
    // A directory in the copy's place, whoever runs the test.
    std::fs::create_dir(place(&path(&dir), 9)).unwrap();
    let refused = open_tuned(&path(&dir), newer()).unwrap_err();
    assert!(
        matches!(
            refused,
            OpenError::Copy {
                from: 9,
                to: 11,
                ..
            }
        ),
        "{refused:?}"
    );
    assert_eq!(version(&path(&dir)), 9);
    assert_eq!(names(&dir), ["census.db", "census.db.schema-9"]);
}

#[tokio::test]
async fn copies_of_the_last_two_schemas_are_kept() {
    let dir = TempDir::new().unwrap();
    let copies = |dir| {
        names(dir)
            .into_iter()
            .filter(|name| name.contains("schema"))
            .collect::<Vec<_>>()
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
    assert_eq!(copies(&dir), ["census.db.schema-11", "census.db.schema-12"]);
    assert_eq!(usable_copy(&path(&dir), 11), Some(place(&path(&dir), 11)));
    assert_eq!(usable_copy(&path(&dir), 9), None);
}

/// The steps of this program that are not the first: a census of before the admission rules goes on with them.
#[tokio::test]
async fn a_census_of_before_the_rules_gets_their_tables_and_a_key_of_its_own() {
    let mut keys = std::collections::BTreeSet::new();
    for _ in 0..2 {
        let dir = TempDir::new().unwrap();
        let first = include_str!("../../../../migrations/0001_hosts.sql");
        let connection = Connection::open(path(&dir)).unwrap();
        connection.execute_batch(first).unwrap();
        connection
            .execute_batch(
                "INSERT INTO hosts (name, state, since, first_seen, due) VALUES ('a.example', 'discovered', 1, 1, 1); PRAGMA user_version = 1",
            )
            .unwrap();
        drop(connection);
        let store = open_tuned(&path(&dir), Tuning::default()).unwrap();
        let remembered = store.writer().remembered().await.unwrap();
        assert!(remembered.counters.is_empty() && remembered.waiting.is_empty());
        assert_eq!(remembered.window_start_s, None);
        keys.insert(remembered.hash_key.0);
        assert_eq!(store.reader().unwrap().counts().unwrap().hosts, 1);
        store.close();
        assert_eq!(version(&place(&path(&dir), 1)), 1);
    }
    assert_eq!(keys.len(), 2, "chance chooses the key");
}

/// A census of before the groups: nobody loses its place for having been there first.
#[tokio::test]
async fn a_census_of_before_the_groups_is_grouped_and_whoever_lived_keeps_its_place() {
    let dir = TempDir::new().unwrap();
    let connection = Connection::open(path(&dir)).unwrap();
    for step in [
        include_str!("../../../../migrations/0001_hosts.sql"),
        include_str!("../../../../migrations/0002_admission.sql"),
        "PRAGMA user_version = 2",
    ] {
        connection.execute_batch(step).unwrap();
    }
    for n in 0..30 {
        let lived = if n < 20 { "1" } else { "NULL" };
        connection
            .execute_batch(&format!(
                "INSERT INTO hosts (name, state, since, first_seen, last_alive, due) VALUES ('n{n}.farm.example', 'alive', 1, 1, {lived}, 1)"
            ))
            .unwrap();
    }
    drop(connection);
    let store = open_tuned(&path(&dir), Tuning::default()).unwrap();
    assert_eq!(version(&place(&path(&dir), 2)), 2);
    let listed = |store: &crate::Store| {
        let calendar = census::time::Calendar::REAL;
        let reader = store.reader().unwrap();
        let none = |_row: crate::Listed<'_>| Ok::<(), crate::StoreError>(());
        reader.listed(Timestamp(2), calendar, none).unwrap()
    };
    assert_eq!(listed(&store), 20);
    let names = std::sync::Arc::new(admission::Names {
        suffixes: admission::Suffixes::compiled(),
        reserved: admission::Reserved::AllowInLab,
    });
    store.writer().group_new(names, 0).await.unwrap();
    let group = store.reader().unwrap().group("farm.example").unwrap();
    let group = group.unwrap();
    assert!(group.group.is_held());
    assert_eq!((group.group.hosts, group.held_back), (30, 10));
    assert_eq!(listed(&store), 20);
    assert_eq!(
        store.reader().unwrap().damage().unwrap(),
        Vec::<String>::new()
    );
}

/// A census of before the look at wildcards: every group that is held is looked at, and nothing is known of it yet.
#[tokio::test]
async fn a_census_of_before_the_wildcards_keeps_its_groups_and_decisions() {
    let dir = TempDir::new().unwrap();
    let connection = Connection::open(path(&dir)).unwrap();
    for step in [
        include_str!("../../../../migrations/0001_hosts.sql"),
        include_str!("../../../../migrations/0002_admission.sql"),
        include_str!("../../../../migrations/0003_groups.sql"),
        include_str!("../../../../migrations/0004_sources.sql"),
        "INSERT INTO groups (domain) VALUES ('farm.example');
         INSERT INTO groups (domain, decision, reason, decided_at) VALUES ('hoster.example', 'allow', 'a hoster', 1);
         PRAGMA user_version = 4",
    ] {
        connection.execute_batch(step).unwrap();
    }
    for n in 0..24 {
        let domain = ["farm", "hoster"][n % 2];
        connection
            .execute_batch(&format!(
                "INSERT INTO hosts (name, state, since, first_seen, due, group_id) \
                 SELECT 'n{n}.' || domain, 'discovered', 1, 1, 1, id FROM groups WHERE domain = '{domain}.example'"
            ))
            .unwrap();
    }
    drop(connection);
    let store = open_tuned(&path(&dir), Tuning::default()).unwrap();
    assert_eq!(version(&place(&path(&dir), 4)), 4);
    let calendar = census::time::Calendar::REAL;
    let writer = store.writer();
    let due = writer.groups_not_looked_at(Timestamp(2), calendar, 10);
    assert_eq!(due.await.unwrap(), ["farm.example"]);
    let reader = store.reader().unwrap();
    let hoster = reader.group("hoster.example").unwrap().unwrap();
    assert_eq!(hoster.reason.as_deref(), Some("a hoster"));
    assert_eq!(hoster.wildcard, crate::WildcardLook::default());
    assert_eq!(reader.held().unwrap().groups, 1);
    assert_eq!(reader.damage().unwrap(), Vec::<String>::new());
}

/// A census of before the classes: each of its hosts is of one, and who is due is found among them.
#[tokio::test]
async fn a_census_of_before_the_classes_loses_nobody_who_is_due() {
    let dir = TempDir::new().unwrap();
    let connection = Connection::open(path(&dir)).unwrap();
    for step in [
        include_str!("../../../../migrations/0001_hosts.sql"),
        include_str!("../../../../migrations/0002_admission.sql"),
        include_str!("../../../../migrations/0003_groups.sql"),
        include_str!("../../../../migrations/0004_sources.sql"),
        include_str!("../../../../migrations/0005_wildcards.sql"),
        include_str!("../../../../migrations/0006_published_columns.sql"),
        include_str!("../../../../migrations/0007_days.sql"),
        "INSERT INTO hosts (name, state, since, first_seen, due, state_before, count, last_note) VALUES
             ('living.example', 'dying', 1, 1, 4, 'alive', 1, NULL),
             ('new.example', 'discovered', 1, 1, 3, NULL, 0, NULL),
             ('retry.example', 'discovered', 1, 1, 2, NULL, 0, 'put off'),
             ('dead.example', 'dead', 1, 1, 1, NULL, 0, NULL);
         INSERT INTO hosts (name, state, since, first_seen, due, in_flight) VALUES ('in-flight.example', 'alive', 1, 1, 1, 1);
         PRAGMA user_version = 7",
    ] {
        connection.execute_batch(step).unwrap();
    }
    drop(connection);
    let store = open_tuned(&path(&dir), Tuning::default()).unwrap();
    assert_eq!(version(&place(&path(&dir), 7)), 7);
    let reader = store.reader().unwrap();
    assert_eq!(reader.damage().unwrap(), Vec::<String>::new());
    assert_eq!(reader.due(Timestamp(9)).unwrap(), 4);
    assert_eq!(reader.next_due().unwrap(), Some(Timestamp(1)));
    let wanted = census::class::PerClass::each(|_class| 9);
    let (jitters, calendar) = (
        vec![census::time::Jitter(1); 9],
        census::time::Calendar::REAL,
    );
    let taken = store
        .writer()
        .take_due(Timestamp(9), wanted, jitters, calendar)
        .await;
    let taken = taken.unwrap();
    assert_eq!(taken.len(), 4);
    for taken in taken {
        let name = taken.record.host.to_string();
        assert_eq!(name, format!("{}.example", taken.class.as_str()));
    }
}
