use kit::labelled;
use std::sync::Arc;

use census::time::Timestamp;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::{Store, Writer};

const WINDOW: u64 = 1_790_000_000;

fn store() -> (TempDir, Store) {
    let dir = TempDir::new().unwrap();
    let store = crate::open(&dir.path().join("census.db")).unwrap();
    (dir, store)
}

fn candidate(name: &str) -> Candidate {
    Candidate {
        host: labelled(name),
        due: Timestamp(2),
        first_seen: Timestamp(1),
    }
}

fn counter(table: Table, id: u64, window_start_s: u64, count: u32) -> Row {
    Row {
        table,
        id,
        window_start_s,
        count,
    }
}

fn waiter() -> Waiter {
    Waiter {
        room: Room::SharedSuffix,
        first_named_s: 5,
        last_named_s: 7,
        source: SourceId((1 << 45) - 1),
        named_by: NamedBy(u64::MAX),
    }
}

fn change(name: &str, waiter: Option<Waiter>) -> Change {
    Change {
        name: Arc::from(labelled(name).as_str()),
        waiter,
    }
}

async fn counters(writer: &Writer) -> Vec<Row> {
    writer.remembered().await.unwrap().counters
}

#[tokio::test]
async fn what_was_written_is_remembered_after_a_restart() {
    let (dir, store) = store();
    let rows: Vec<_> = Table::ALL
        .iter()
        .zip(1..)
        .map(|(&table, id)| counter(table, id, WINDOW, 9))
        .collect();
    let admission = Admission {
        candidates: vec![candidate("a"), candidate("a")],
        counters: rows.clone(),
        window_start_s: Some(WINDOW),
        waiting: vec![change("b", Some(waiter())), change("c", Some(waiter()))],
        brings_back: false,
    };
    let made = store.writer().admit(admission).await.unwrap();
    assert_eq!(made, [true, false]);
    let key = store.writer().remembered().await.unwrap().hash_key;
    store.close();

    let store = crate::open(&dir.path().join("census.db")).unwrap();
    let remembered = store.writer().remembered().await.unwrap();
    assert_eq!(remembered.hash_key, key);
    assert_eq!(remembered.window_start_s, Some(WINDOW));
    let mut found = remembered.counters;
    found.sort_by_key(|row| row.id);
    assert_eq!(found, rows);
    let waiting = [labelled("b"), labelled("c")].map(|host| (host.to_string(), waiter()));
    assert_eq!(remembered.waiting, waiting);
    let reader = store.reader().unwrap();
    assert_eq!(reader.waiter(&labelled("b")).unwrap(), Some(waiter()));
    assert_eq!(reader.waiter(&labelled("a")).unwrap(), None);
    assert_eq!(reader.waiting().unwrap(), 2);
    let gone = Admission {
        counters: vec![counter(Table::Key, 1, WINDOW, 0)],
        waiting: vec![change("b", None)],
        ..Admission::default()
    };
    store.writer().admit(gone).await.unwrap();
    assert_eq!(reader.waiting().unwrap(), 1);
    assert_eq!(counters(&store.writer()).await.len(), rows.len() - 1);
}

/// One statement writes many rows, and the last statement is seldom full.
#[tokio::test]
async fn of_any_number_of_names_and_counters_each_is_written_once() {
    let (_dir, store) = store();
    let writer = store.writer();
    for many in [0, 1, add::ROWS - 1, add::ROWS, 2 * add::ROWS + 1] {
        let window_start_s = WINDOW + many as u64;
        let mut candidates: Vec<_> = (0..many)
            .map(|number| candidate(&format!("n{number}-of{many}")))
            .collect();
        // A repeated name: in the same statement as its first mention, or in the last one.
        candidates.extend(candidates.first().cloned());
        let rows = (1..=many as u64).map(|id| counter(Table::Public, id, window_start_s, 7));
        let admission = Admission {
            candidates,
            counters: rows.clone().collect(),
            window_start_s: Some(window_start_s),
            ..Admission::default()
        };
        let made = writer.admit(admission.clone()).await.unwrap();
        let mut expected = vec![true; many];
        expected.extend((many > 0).then_some(false));
        assert_eq!(made, expected, "{many}");
        assert!(counters(&writer).await.into_iter().eq(rows), "{many}");
        let again = writer.admit(admission).await.unwrap();
        assert!(again.into_iter().all(|is_new| !is_new), "{many}");
    }
}

#[tokio::test]
async fn nothing_is_written_when_a_part_of_it_cannot_be() {
    let (_dir, store) = store();
    let writer = store.writer();
    let bad = Admission {
        candidates: vec![candidate("a")],
        counters: vec![
            counter(Table::Total, 1, WINDOW, 1),
            counter(Table::Total, u64::MAX, u64::MAX, u32::MAX),
        ],
        window_start_s: Some(WINDOW),
        waiting: vec![change("b", Some(waiter()))],
        brings_back: false,
    };
    writer.admit(bad.clone()).await.unwrap();
    let reader = store.reader().unwrap();
    assert!(reader.record(&labelled("a")).unwrap().is_some());
    let spoilt = move |c: &Connection| {
        let next = Admission {
            candidates: vec![candidate("z")],
            counters: vec![counter(Table::Total, 1, WINDOW, 2)],
            ..bad.clone()
        };
        admit(c, &next, None)?;
        Err::<(), _>(StoreError::Closed)
    };
    writer.call(spoilt).await.unwrap_err();
    assert_eq!(reader.record(&labelled("z")).unwrap(), None);
    assert_eq!(
        counters(&writer).await,
        [counter(Table::Total, 1, WINDOW, 1)]
    );
}

/// Vouching for a name outweighs a year without an answer.
#[tokio::test]
async fn a_forgotten_name_comes_back_when_somebody_vouches_for_it() {
    let (_dir, store) = store();
    let writer = store.writer();
    let named = Admission {
        candidates: vec![candidate("a")],
        ..Admission::default()
    };
    let forget = |c: &Connection| {
        let id = c.query_row("SELECT id FROM hosts", [], |row| row.get(0))?;
        forgotten::forget(c, id, &labelled("a"))
    };
    writer.admit(named.clone()).await.unwrap();
    writer.call(forget).await.unwrap();
    assert_eq!(writer.admit(named.clone()).await.unwrap(), [false]);
    let vouched = Admission {
        brings_back: true,
        ..named
    };
    assert_eq!(writer.admit(vouched).await.unwrap(), [true]);
}

#[tokio::test]
async fn counters_of_former_windows_go_in_bounded_portions() {
    let (_dir, store) = store();
    let writer = store.writer();
    let old = u64::from(OLD_DELETED_MAX) + 10;
    let rows = (0..old)
        .map(|id| counter(Table::Public, id, WINDOW, 1))
        .collect();
    let admit = |window, counters| {
        writer.admit(Admission {
            counters,
            window_start_s: Some(window),
            ..Admission::default()
        })
    };
    admit(WINDOW, rows).await.unwrap();
    assert_eq!(counters(&writer).await.len() as u64, old);
    let next = WINDOW + 86_400;
    let left = || async {
        let count = |c: &Connection| {
            Ok(
                c.query_row("SELECT count(*) FROM admission_counters", [], |row| {
                    row.get::<_, i64>(0)
                })?,
            )
        };
        writer.call(count).await.unwrap()
    };
    admit(next, vec![counter(Table::Public, 1, next, 3)])
        .await
        .unwrap();
    assert_eq!(left().await, 11);
    assert_eq!(
        counters(&writer).await,
        [counter(Table::Public, 1, next, 3)]
    );
    admit(next, Vec::new()).await.unwrap();
    assert_eq!(left().await, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn numbers_of_any_size_come_back(source in 0_u64..1 << 45, named_by: u64, first in 0_u64..1 << 50, id in 0_u64..1 << 45) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (_dir, store) = store();
        let waiter = Waiter { source: SourceId(source), named_by: NamedBy(named_by), first_named_s: first, last_named_s: first, room: Room::Total };
        let counter = counter(Table::Source, id, first, u32::MAX >> 1);
        let admission = Admission { counters: vec![counter], window_start_s: Some(first), waiting: vec![change("w", Some(waiter))], ..Admission::default() };
        runtime.block_on(store.writer().admit(admission)).unwrap();
        let remembered = runtime.block_on(store.writer().remembered()).unwrap();
        prop_assert_eq!(remembered.counters, [counter]);
        prop_assert_eq!(remembered.waiting, [(labelled("w").to_string(), waiter)]);
    }
}
