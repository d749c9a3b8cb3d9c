use std::os::unix::fs::PermissionsExt as _;

use tempfile::TempDir;

use super::*;

/// Tables as the crawler creates them: `OLD` has the time of the last check, `NEW` the state
/// before.
const OLD: &str = "
    CREATE TABLE states(id INTEGER PRIMARY KEY NOT NULL, state TEXT UNIQUE NOT NULL);
    CREATE TABLE instances(id INTEGER PRIMARY KEY NOT NULL, hostname TEXT UNIQUE NOT NULL, state REFERENCES states(id) NOT NULL DEFAULT 0,
        last_check_datetime INTEGER DEFAULT NULL, next_check_datetime INTEGER DEFAULT (strftime('%s', CURRENT_TIMESTAMP)));
    CREATE TABLE dying_state_data(id INTEGER PRIMARY KEY NOT NULL, instance REFERENCES instances(id) NOT NULL UNIQUE,
        dying_since INTEGER NOT NULL, failed_checks_count INTEGER NOT NULL DEFAULT 1);
    CREATE TABLE moving_state_data(id INTEGER PRIMARY KEY NOT NULL, instance REFERENCES instances(id) NOT NULL UNIQUE,
        moving_since INTEGER NOT NULL, redirects_count INTEGER NOT NULL DEFAULT 1, moving_to REFERENCES instances(id) NOT NULL);
    CREATE TABLE moved_state_data(id INTEGER PRIMARY KEY NOT NULL, instance REFERENCES instances(id) NOT NULL UNIQUE,
        moved_to REFERENCES instances(id) NOT NULL);
    PRAGMA foreign_keys = OFF;";

const NEW: &str = "
    ALTER TABLE instances DROP COLUMN last_check_datetime;
    ALTER TABLE dying_state_data ADD COLUMN previous_state REFERENCES states(id);
    ALTER TABLE moving_state_data ADD COLUMN previous_state REFERENCES states(id);";

fn file(sql: &[&str]) -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a % crawler?.db");
    let connection = Connection::open(&path).unwrap();
    for part in sql {
        connection.execute_batch(part).unwrap();
    }
    (dir, path)
}

fn all(path: &Path) -> Vec<Found> {
    let mut file = MinoruFile::open(path).unwrap();
    let mut all = Vec::new();
    loop {
        let page = file.next_page().unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

fn host(name: &str, known: MinoruHost) -> Found {
    Found::Host {
        name: name.to_owned(),
        known,
    }
}

fn known(state: MinoruState) -> MinoruHost {
    MinoruHost {
        state,
        since_s: None,
        count: None,
        state_before: None,
        target: None,
        first_seen_s: None,
        last_checked_s: None,
        next_check_s: Some(9),
    }
}

#[track_caller]
fn refused(path: &Path, says: &str) {
    let error = MinoruFile::open(path).unwrap_err().to_string();
    assert!(error.contains(says), "{error}");
}

#[test]
fn every_state_is_read_with_its_times_and_nothing_of_another_state() {
    let (_dir, path) = file(&[
        OLD,
        "INSERT INTO instances VALUES (1, 'a.example', 0, NULL, 9), (2, 'b.example', 1, 8, 9), (3, 'c.example', 2, 8, 9),
            (4, 'd.example', 3, 8, 9), (5, 'e.example', 4, 8, 9), (6, 'f.example', 5, 8, 9);
         INSERT INTO dying_state_data VALUES (1, 3, 5, 2), (2, 2, 5, 2);
         INSERT INTO moving_state_data VALUES (1, 5, 6, 3, 2), (2, 3, 6, 3, 2);
         INSERT INTO moved_state_data VALUES (1, 6, 1), (2, 4, 1);",
    ]);
    let checked = |state| MinoruHost {
        last_checked_s: Some(8),
        ..known(state)
    };
    let target = |name: &str| Some(name.to_owned());
    let expected = [
        host("a.example", known(MinoruState::Discovered)),
        host("b.example", checked(MinoruState::Alive)),
        host(
            "c.example",
            MinoruHost {
                since_s: Some(5),
                count: Some(2),
                ..checked(MinoruState::Dying)
            },
        ),
        host("d.example", checked(MinoruState::Dead)),
        host(
            "e.example",
            MinoruHost {
                since_s: Some(6),
                count: Some(3),
                target: target("b.example"),
                ..checked(MinoruState::Moving)
            },
        ),
        host(
            "f.example",
            MinoruHost {
                target: target("a.example"),
                ..checked(MinoruState::Moved)
            },
        ),
    ];
    assert_eq!(all(&path), expected);
}

#[test]
fn a_newer_file_has_no_last_check_and_the_state_before() {
    let (_dir, path) = file(&[
        OLD,
        NEW,
        "INSERT INTO instances VALUES (1, 'a.example', 2, 9);
         INSERT INTO dying_state_data VALUES (1, 1, 5, 2, 1);",
    ]);
    let dying = MinoruHost {
        since_s: Some(5),
        count: Some(2),
        state_before: Some(MinoruState::Alive),
        ..known(MinoruState::Dying)
    };
    assert_eq!(all(&path), [host("a.example", dying)]);
}

#[test]
fn what_can_not_be_a_host_is_refused_alone() {
    let (_dir, path) = file(&[
        OLD,
        "INSERT INTO instances VALUES (1, hex(zeroblob(127)), 1, 8, 9), (2, x'61', 1, 8, 9), (3, 'c.example', 6, 8, 9),
            (4, 'd.example', 'alive', 8, 9), (5, CAST(x'ff' AS TEXT), 1, 8, 9), (6, hex(zeroblob(5000000)), 1, 8, 9),
            (7, 'e.example', 1, 'yesterday', 9);",
    ]);
    let all = all(&path);
    let (last, wrong) = all.split_last().unwrap();
    assert_eq!(*last, host("e.example", known(MinoruState::Alive)));
    assert_eq!(wrong.len(), 6);
    for (found, id) in wrong.iter().zip(1..) {
        assert!(
            matches!(found, Found::Refused { row, .. } if *row == id),
            "{found:?}"
        );
    }
}

#[test]
fn pages_miss_nobody() {
    let (_dir, path) = file(&[
        OLD,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10001)
         INSERT INTO instances SELECT i - 7, 'h' || i || '.example', 0, NULL, 9 FROM n;",
    ]);
    assert_eq!(all(&path).len(), 10_001);
}

#[test]
fn another_file_is_refused_with_what_it_lacks() {
    let dir = TempDir::new().unwrap();
    refused(&dir.path().join("none"), "can't read");
    let text = dir.path().join("text");
    std::fs::write(&text, "a.example\n".repeat(200)).unwrap();
    refused(&text, "it is no SQLite database");
    std::fs::write(&text, "").unwrap();
    refused(&text, "it has no table `instances`");
    let (_dir, path) = file(&[OLD, "DROP TABLE moved_state_data;"]);
    refused(&path, "it has no table `moved_state_data`");
    let (_dir, path) = file(&[OLD, "ALTER TABLE dying_state_data DROP COLUMN dying_since;"]);
    refused(
        &path,
        "table `dying_state_data` has no column `dying_since`",
    );
}

#[test]
fn no_view_and_no_generated_column_of_the_file_is_run() {
    let (_dir, path) = file(&[
        OLD,
        "ALTER TABLE instances RENAME TO real; CREATE VIEW instances AS SELECT * FROM real;",
    ]);
    refused(&path, "it has no table `instances`");
    let (_dir, path) = file(&[
        OLD,
        "ALTER TABLE moved_state_data DROP COLUMN moved_to;
         ALTER TABLE moved_state_data ADD COLUMN moved_to AS (abs(-9223372036854775808));",
    ]);
    refused(&path, "table `moved_state_data` has no column `moved_to`");
}

#[test]
fn a_damaged_file_ends_with_an_error() {
    let (_dir, path) = file(&[
        OLD,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
         INSERT INTO instances SELECT i, 'h' || i || '.example', 0, NULL, 9 FROM n;",
    ]);
    let mut bytes = std::fs::read(&path).unwrap();
    let pages = bytes.len() / 4096;
    for byte in &mut bytes[4096 * 8..4096 * (pages - 2)] {
        *byte = 0xa5;
    }
    std::fs::write(&path, bytes).unwrap();
    let read = MinoruFile::open(&path).and_then(|mut file| file.next_page());
    assert!(
        matches!(read, Err(MinoruError::Unreadable { .. })),
        "{read:?}"
    );
}

#[test]
fn what_a_running_crawler_has_only_in_its_log_is_read_and_nothing_is_written() {
    let (_dir, path) = file(&[OLD]);
    let crawler = Connection::open(&path).unwrap();
    crawler
        .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0))
        .unwrap();
    crawler
        .execute_batch(
            "PRAGMA foreign_keys = OFF; INSERT INTO instances VALUES (1, 'a.example', 0, NULL, 9)",
        )
        .unwrap();
    let before = std::fs::read(&path).unwrap();
    assert_eq!(
        all(&path),
        [host("a.example", known(MinoruState::Discovered))]
    );
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_copy_is_read_where_nothing_can_be_written() {
    let (dir, path) = file(&[
        OLD,
        "PRAGMA journal_mode = WAL; INSERT INTO instances VALUES (1, 'a.example', 0, NULL, 9);",
    ]);
    let mode = |mode| {
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o500);
    let found = all(&path);
    mode(0o700);
    assert_eq!(found, [host("a.example", known(MinoruState::Discovered))]);
    let names = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(names, 1, "nothing was put next to it");
}
