use kit::{NOW, numbered};
use std::os::unix::fs::FileExt as _;

use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::{Store, open, open_read_only};

const LONG: Duration = Duration::from_secs(60);

/// A census of some hosts in a group. The first is alive and has a verdict.
async fn census() -> (TempDir, Store) {
    let dir = TempDir::new().unwrap();
    let store = open(&dir.path().join("census.db")).unwrap();
    let hosts = (0..200).map(numbered).collect();
    store.writer().add_now(hosts, NOW).await.unwrap();
    break_it(
        &dir,
        "INSERT INTO groups (domain) VALUES ('n0.example'); UPDATE hosts SET group_id = 1, last_alive = 1, state = 'alive' WHERE id = 1; \
         INSERT INTO history (host_id, seq, at, verdict) VALUES (1, 1, 1, 'alive')",
    );
    (dir, store)
}

/// Writes as an `sqlite3` shell would, past all rules.
fn break_it(dir: &TempDir, sql: &str) {
    let connection = Connection::open(dir.path().join("census.db")).unwrap();
    connection.busy_timeout(LONG).unwrap();
    let past_rules = "PRAGMA ignore_check_constraints = on; PRAGMA foreign_keys = off";
    let sql = format!("{past_rules}; {sql}");
    connection.execute_batch(&sql).unwrap();
}

fn look(dir: &TempDir) -> Soundness {
    let reader = open_read_only(&dir.path().join("census.db")).unwrap();
    reader.soundness(Depth::Whole, LONG).unwrap()
}

#[tokio::test]
async fn a_sound_database_has_no_findings_beside_its_writer_and_without() {
    let (dir, store) = census().await;
    let sound = Soundness {
        findings: Vec::new(),
        unfinished: Vec::new(),
    };
    assert_eq!(look(&dir), sound);
    store.close();
    assert_eq!(look(&dir), sound);
    let reader = open_read_only(&dir.path().join("census.db")).unwrap();
    assert_eq!(reader.soundness(Depth::Quick, LONG).unwrap(), sound);
    assert_eq!(reader.damage().unwrap(), Vec::<String>::new());
}

async fn check(sql: &str, expect: &[(&str, Remedy)]) {
    let (dir, _store) = census().await;
    break_it(&dir, sql);
    let found = look(&dir).findings;
    assert_eq!(found.len(), expect.len(), "{sql}: {found:?}");
    for (found, (what, remedy)) in found.iter().zip(expect) {
        assert!(found.what.contains(what), "{sql}: {found:?}");
        assert_eq!(found.remedy, *remedy, "{sql}: {found:?}");
    }
}

#[tokio::test]
async fn hosts_that_nobody_would_ever_ask_again_are_found() {
    check(
        "UPDATE hosts SET due = NULL WHERE id < 3",
        &[("never due: n0.example, n1.example", Remedy::Ask)],
    )
    .await;
    check(
        "UPDATE hosts SET due = NULL, state = 'opted_out', opted_out_by = 'robots' WHERE id = 7",
        &[("never due: n6.example", Remedy::Ask)],
    )
    .await;
    // A host that an owner or a moderator opted out, or that is parked, has no due time.
    check(
        "UPDATE hosts SET due = NULL, state = 'opted_out', opted_out_by = 'owner' WHERE id = 7; \
         UPDATE hosts SET due = NULL, state = 'parked' WHERE id = 8",
        &[],
    )
    .await;
    check(
        "UPDATE hosts SET last_alive = NULL WHERE id = 1",
        &[("without the time of a response: n0.example", Remedy::Wait)],
    )
    .await;
}

#[tokio::test]
async fn whatever_else_the_census_takes_for_granted_is_missed_when_it_is_broken() {
    for (sql, what, remedy) in [
        (
            "DROP TRIGGER groups_shrink; UPDATE groups SET hosts = 3",
            "groups with a wrong stored number of hosts: n0.example",
            Remedy::Restore,
        ),
        (
            "UPDATE groups SET is_over = 1",
            "does not agree with the threshold: n0.example",
            Remedy::Restart,
        ),
        (
            "INSERT INTO history (host_id, seq, at, verdict) SELECT 1, id + 1, 1, 'alive' FROM hosts LIMIT 10",
            "more verdicts than are kept: n0.example",
            Remedy::Wait,
        ),
        (
            "DELETE FROM forgotten_key; DELETE FROM grouping",
            "required rows that are missing: forgotten_key, grouping",
            Remedy::Restore,
        ),
        (
            "UPDATE hosts SET name = 'N3.Example' || char(27) WHERE id = 4",
            "no host names by this version's rules: N3.Example\\u{1b}",
            Remedy::Restart,
        ),
        (
            "INSERT INTO history (host_id, seq, at, verdict) VALUES (999, 1, 0, 'alive')",
            "a row of history belongs to no row of hosts",
            Remedy::Restore,
        ),
    ] {
        check(sql, &[(what, remedy)]).await;
    }
}

#[tokio::test]
async fn a_page_that_was_written_over_is_a_finding_and_no_error() {
    let (dir, store) = census().await;
    store.close();
    let path = dir.path().join("census.db");
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let pages = file.metadata().unwrap().len() / 4096;
    // Skips the first pages, which identify the file.
    for page in pages - 3..pages {
        file.write_all_at(&[0xa5; 64], page * 4096).unwrap();
    }
    let found = look(&dir).findings;
    assert!(!found.is_empty());
    let is_lost = found.iter().any(|one| one.remedy == Remedy::Restore);
    assert!(is_lost, "{found:?}");
}

#[tokio::test]
async fn a_database_whose_schema_was_written_over_says_what_to_do() {
    let (dir, store) = census().await;
    store.close();
    let path = dir.path().join("census.db");
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    // The first page's tree begins after the file header.
    file.write_all_at(&[0xa5; 64], 100).unwrap();
    let refused = open_read_only(&path).unwrap_err();
    let damaged = matches!(refused, crate::OpenError::Damaged { .. });
    assert!(damaged, "{refused:?}");
}

#[tokio::test]
async fn a_look_whose_time_is_over_says_what_it_left_out_and_ends() {
    let (dir, _store) = census().await;
    let reader = open_read_only(&dir.path().join("census.db")).unwrap();
    let looked = reader.soundness(Depth::Whole, Duration::ZERO).unwrap();
    assert_eq!(looked.findings, []);
    assert_eq!(looked.unfinished.len(), INVARIANTS.len() + 3);
}

#[tokio::test]
async fn what_takes_too_long_is_stopped_in_its_middle() {
    let (dir, _store) = census().await;
    let connection = Connection::open(dir.path().join("census.db")).unwrap();
    let alarm = Alarm::set(connection.get_interrupt_handle(), Duration::from_millis(1)).unwrap();
    // An endless query.
    let endless =
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let outcome = connection.query_row(endless, [], |row| row.get::<_, i64>(0));
    let code = outcome.map_err(|error| error.sqlite_error_code());
    assert_eq!(code, Err(Some(ErrorCode::OperationInterrupted)));
    drop(alarm);
}
