use kit::host;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::Store;

const DAY_MS: i64 = 86_400_000;
const NOW: Timestamp = Timestamp(100 * DAY_MS);
const TIMES: WalkTimes = WalkTimes {
    now: NOW,
    walked_before: Timestamp(93 * DAY_MS),
    late_before: Timestamp(99 * DAY_MS),
};

/// A census of hosts that may be walked, except for the `change` to `b.example`.
fn store(dir: &TempDir, change: &str) -> Store {
    let path = dir.path().join("census.db");
    drop(crate::open(&path).unwrap());
    let census = Connection::open(&path).unwrap();
    census
        .execute_batch(&format!(
            "INSERT INTO groups (domain, decision, reason, decided_at) VALUES ('denied.example', 'deny', 'x', 1); \
             INSERT INTO hosts (name, state, since, software, first_seen, last_alive, due) \
             VALUES ('a.example', 'alive', 1, 'mastodon', 1, 2, {0}), ('b.example', 'alive', 1, 'misskey', 1, 2, {0}); {change}",
            NOW.0,
        ))
        .unwrap();
    drop(census);
    crate::open(&path).unwrap()
}

fn walk(at: Timestamp, free_at: Option<Timestamp>) -> LastWalk {
    LastWalk {
        at,
        outcome: WalkOutcome::Truncated,
        requests: 40,
        posts: 300,
        named: 7,
        backoff: Backoff {
            failures: 2,
            free_at,
        },
    }
}

/// Both hosts are walked, whatever number is drawn.
#[tokio::test]
async fn each_has_its_turn_once_a_week() {
    let dir = TempDir::new().unwrap();
    let store = store(&dir, "");
    let writer = store.writer();
    let draw = |part| writer.next_walk(Jitter(part), TIMES);
    assert_eq!(draw(0).await.unwrap(), Some(host("a.example")));
    assert_eq!(draw(u32::MAX).await.unwrap(), Some(host("b.example")));
    let b = host("b.example");
    writer.remember_walk(&b, walk(NOW, None)).await.unwrap();
    assert_eq!(draw(u32::MAX).await.unwrap(), Some(host("a.example")));
    // Walked a week ago but still paused, then no longer paused.
    let week_ago = Timestamp(93 * DAY_MS);
    let paused = walk(week_ago, Some(Timestamp(NOW.0 + 1)));
    writer.remember_walk(&b, paused).await.unwrap();
    assert_eq!(draw(u32::MAX).await.unwrap(), Some(host("a.example")));
    writer
        .remember_walk(&b, walk(week_ago, Some(NOW)))
        .await
        .unwrap();
    assert_eq!(draw(u32::MAX).await.unwrap(), Some(b));
}

#[tokio::test]
async fn whose_peers_nobody_hears_of_comes_first() {
    let dir = TempDir::new().unwrap();
    let store = store(&dir, "");
    let writer = store.writer();
    let b = host("b.example");
    for (outcome, first) in [
        (PeersOutcome::Complete, "a.example"),
        (PeersOutcome::Refused, "b.example"),
        (PeersOutcome::Failed, "a.example"),
        (PeersOutcome::None, "b.example"),
    ] {
        writer.remember_peers(&b, outcome).await.unwrap();
        let drawn = writer.next_walk(Jitter(0), TIMES).await.unwrap();
        assert_eq!(drawn, Some(host(first)), "{outcome:?}");
    }
    let reader = store.reader().unwrap();
    assert_eq!(reader.peers_outcome(&b).unwrap().as_deref(), Some("none"));
    assert_eq!(
        reader.peers_outcomes().unwrap(),
        [("none".to_owned(), 1)].into()
    );
}

#[tokio::test]
async fn who_must_be_left_alone_is_never_walked() {
    for change in [
        "UPDATE hosts SET state = 'opted_out', opted_out_by = 'owner', due = NULL WHERE name = 'b.example'",
        "UPDATE hosts SET state = 'parked', due = NULL WHERE name = 'b.example'",
        "UPDATE hosts SET state = 'dead' WHERE name = 'b.example'",
        "UPDATE hosts SET hidden = 1 WHERE name = 'b.example'",
        "UPDATE hosts SET refuses = 1 WHERE name = 'b.example'",
        "UPDATE hosts SET held_back = 1 WHERE name = 'b.example'",
        "UPDATE hosts SET software = 'lemmy' WHERE name = 'b.example'",
        "UPDATE hosts SET software = NULL WHERE name = 'b.example'",
        "UPDATE hosts SET group_id = 1 WHERE name = 'b.example'",
        "INSERT INTO groups (domain) VALUES ('b.example'); UPDATE hosts SET group_id = 2 WHERE name = 'b.example'; UPDATE groups SET is_over = 1 WHERE id = 2",
    ] {
        let dir = TempDir::new().unwrap();
        let store = store(&dir, change);
        let (writer, b) = (store.writer(), host("b.example"));
        writer
            .remember_peers(&b, PeersOutcome::Refused)
            .await
            .unwrap();
        let drawn = writer.next_walk(Jitter(u32::MAX), TIMES).await.unwrap();
        assert_eq!(drawn, Some(host("a.example")), "{change}");
        assert!(!writer.may_be_walked(&b, TIMES).await.unwrap(), "{change}");
        let a = host("a.example");
        assert!(writer.may_be_walked(&a, TIMES).await.unwrap(), "{change}");
    }
}

#[tokio::test]
async fn nobody_is_walked_while_responding_hosts_wait_for_their_check() {
    let dir = TempDir::new().unwrap();
    let late = format!("UPDATE hosts SET due = {}", TIMES.late_before.0 - 1);
    let store = store(&dir, &late);
    let drawn = store.writer().next_walk(Jitter(0), TIMES).await;
    assert_eq!(drawn.unwrap(), None);
}

/// Results are deleted with a forgotten host, and none are stored for an unknown one.
#[tokio::test]
async fn what_is_remembered_goes_with_its_host() {
    let dir = TempDir::new().unwrap();
    let store = store(&dir, "");
    let writer = store.writer();
    for name in ["b.example", "nobody.example"] {
        let host = host(name);
        writer.remember_walk(&host, walk(NOW, None)).await.unwrap();
        writer
            .remember_peers(&host, PeersOutcome::Refused)
            .await
            .unwrap();
    }
    let reader = store.reader().unwrap();
    assert_eq!(
        reader.walk_outcomes().unwrap(),
        [("truncated".to_owned(), 1)].into()
    );
    drop((reader, store));
    let path = dir.path().join("census.db");
    let census = Connection::open(&path).unwrap();
    census
        .execute_batch("PRAGMA foreign_keys = ON; DELETE FROM hosts WHERE name = 'b.example'")
        .unwrap();
    drop(census);
    let reader = crate::open_read_only(&path).unwrap();
    assert!(reader.walk_outcomes().unwrap().is_empty());
    assert!(reader.peers_outcomes().unwrap().is_empty());
}

fn any_walk() -> impl Strategy<Value = LastWalk> {
    (
        any::<i64>(),
        proptest::sample::select(&WalkOutcome::ALL[..]),
        any::<(u32, u32, u32, u32)>(),
        proptest::option::of(any::<i64>()),
    )
        .prop_map(
            |(at, outcome, (requests, posts, named, failures), free_at)| LastWalk {
                at: Timestamp(at),
                outcome,
                requests,
                posts,
                named,
                backoff: Backoff {
                    failures,
                    free_at: free_at.map(Timestamp),
                },
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// The stored result, including its back-off, is read back after a restart.
    #[test]
    fn what_is_remembered_comes_back_whole(walks in proptest::collection::vec(any_walk(), 1..4)) {
        let dir = TempDir::new().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (store, a) = (store(&dir, ""), host("a.example"));
        for walk in &walks {
            runtime.block_on(store.writer().remember_walk(&a, *walk)).unwrap();
        }
        drop(store);
        let store = crate::open(&dir.path().join("census.db")).unwrap();
        prop_assert_eq!(store.reader().unwrap().last_walk(&a).unwrap(), walks.last().copied());
        prop_assert_eq!(runtime.block_on(store.writer().last_walk(&a)).unwrap(), walks.last().copied());
    }
}
