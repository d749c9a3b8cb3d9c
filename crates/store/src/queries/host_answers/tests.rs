use kit::{NOW, labelled};
use std::sync::Arc;

use admission::{Names, Reserved, Suffixes};
use census::state::{StateName, Verdict};
use census::time::{Calendar, Jitter};
use census::transition::transition;
use protocol::DeadReason;
use tempfile::TempDir;

use super::*;
use crate::{Store, Writer};

/// Hosts `a` to `e`: one is alive, one dead, one redirects to the first, two were never checked.
/// The last of these is held with its group.
async fn census() -> (TempDir, Store) {
    let dir = TempDir::new().unwrap();
    let store = crate::open(&dir.path().join("census.db")).unwrap();
    let writer = store.writer();
    let asked: Vec<_> = ["a", "b", "c"].map(labelled).to_vec();
    writer.add_now(asked.clone(), NOW).await.unwrap();
    let verdicts = [
        kit::alive(),
        Verdict::Dead {
            reason: DeadReason::Tls,
            status: None,
            to: None,
        },
        Verdict::Moved { to: labelled("a") },
    ];
    for (host, verdict) in asked.iter().zip(verdicts) {
        let taken = writer.take_one(host, NOW, Jitter(0), Calendar::REAL).await;
        let record = taken.unwrap().unwrap().record;
        let change = transition(&record, &verdict, NOW, Jitter(0), Calendar::REAL);
        writer.commit(change).await.unwrap();
    }
    writer.add_now(vec![labelled("d")], NOW).await.unwrap();
    hold(&writer).await;
    (dir, store)
}

async fn hold(writer: &Writer) {
    let names = Arc::new(Names {
        suffixes: Suffixes::compiled(),
        reserved: Reserved::AllowInLab,
    });
    writer.set_group_threshold(1).await.unwrap();
    let crowd = vec![labelled("n1.farm"), labelled("n2.farm")];
    writer.add_now(crowd, NOW).await.unwrap();
    let mut after = Some(0);
    while let Some(last) = after {
        after = writer.group_new(Arc::clone(&names), last).await.unwrap();
    }
}

fn told(store: &Store) -> Vec<String> {
    let (reader, other) = (store.reader().unwrap(), store.reader().unwrap());
    let mut told = Vec::new();
    reader
        .each_host_answer(|asked| {
            told.push(match asked {
                HostAnswer::Known(known) => {
                    let stored = other.record(&known.record.host)?.unwrap();
                    assert_eq!(stored.record, known.record);
                    assert_eq!(stored.history.first(), known.last.as_ref());
                    assert_eq!(stored.target_is_alive, known.target_is_alive);
                    assert_eq!(stored.place, known.place);
                    assert_eq!(stored.group.map(|stored| stored.group), known.group);
                    let state: StateName = known.record.state.name();
                    format!("{} {}", known.record.host, state.as_str())
                }
                HostAnswer::Unreadable(name) => format!("{name} unreadable"),
                HostAnswer::Waiting(host) => format!("{host} waiting"),
            });
            Ok::<(), StoreError>(())
        })
        .unwrap();
    told
}

#[tokio::test]
async fn every_host_is_told_as_it_is_alone_and_those_who_wait_after_them() {
    let (dir, store) = census().await;
    let connection = Connection::open(dir.path().join("census.db")).unwrap();
    let wait = "INSERT INTO waiting (name, room, first_named_s, last_named_s, source, named_by) VALUES (?1, 'rule', 1, 1, 1, 1)";
    for name in ["z.example", "a.example", "no name"] {
        connection.execute(wait, [name]).unwrap();
    }
    let expect = [
        "a.example alive",
        "b.example dying",
        "c.example moving",
        "d.example discovered",
        "n1.farm.example discovered",
        "n2.farm.example discovered",
        "z.example waiting",
    ];
    assert_eq!(told(&store), expect);
    // For example a name that a newer list of public suffixes makes invalid.
    connection
        .execute("UPDATE hosts SET name = 'b' WHERE name = 'b.example'", [])
        .unwrap();
    assert_eq!(told(&store)[1], "b unreadable");
    assert_eq!(told(&store).len(), expect.len());
}

#[tokio::test]
async fn the_first_error_ends_it() {
    let (_dir, store) = census().await;
    let mut visited = 0;
    let outcome = store.reader().unwrap().each_host_answer(|_asked| {
        visited += 1;
        Err(StoreError::Closed)
    });
    assert!(matches!(outcome, Err(StoreError::Closed)), "{outcome:?}");
    assert_eq!(visited, 1);
}
