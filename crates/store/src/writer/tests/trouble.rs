//! Failing requests, full disks, locks and shutdown: acknowledged data stays, and one request's
//! failure does not affect another.

use super::*;

/// Keeps the thread busy until the guard is dropped, so that requests in that time become one
/// batch.
fn hold(writer: &Writer) -> std::sync::mpsc::SyncSender<()> {
    let (release, held) = std::sync::mpsc::sync_channel::<()>(0);
    let held = std::sync::Mutex::new(held);
    let writer = writer.clone();
    tokio::spawn(async move {
        writer
            .call(move |_| Ok(held.lock().unwrap().recv().is_err()))
            .await
    });
    release
}

/// A bad request between two good ones, in one batch.
async fn batch_with(
    census: &Census,
    bad: impl Fn(&Connection) -> Result<(), StoreError> + Send + 'static,
) -> [Result<(), StoreError>; 3] {
    let guard = hold(&census.writer);
    tokio::task::yield_now().await;
    let writer = &census.writer;
    let first = async { writer.add(vec![candidate("first")]).await.map(drop) };
    let last = async { writer.add(vec![candidate("last")]).await.map(drop) };
    let release = async {
        drop(guard);
        Ok::<_, StoreError>(())
    };
    let (first, bad, last, _) = tokio::join!(first, writer.call(bad), last, release);
    [first, bad, last]
}

fn has_all_but_the_bad(census: &Census) {
    for name in ["a", "first", "last"] {
        census.stored(name);
    }
}

#[tokio::test]
async fn a_request_that_fails_leaves_its_neighbours_alone() {
    let census = Census::with(&["a"]).await;
    let bad = |c: &Connection| {
        c.execute("DELETE FROM hosts", [])?;
        Ok(c.execute_batch("INSERT INTO hosts (name) VALUES (NULL)")?)
    };
    let [first, bad, last] = batch_with(&census, bad).await;
    assert!(first.is_ok() && last.is_ok());
    assert!(matches!(bad, Err(StoreError::Sqlite(_))), "{bad:?}");
    has_all_but_the_bad(&census);
}

#[tokio::test]
async fn a_commit_that_fails_is_the_fault_of_one_request_only() {
    let census = Census::with(&["a"]).await;
    // A broken foreign key that is detected at the commit.
    let bad = |c: &Connection| {
        Ok(c.execute_batch(
            "PRAGMA defer_foreign_keys = ON; INSERT INTO history (host_id, seq, at, verdict) VALUES (999, 1, 0, 'alive')",
        )?)
    };
    let [first, bad, last] = batch_with(&census, bad).await;
    assert!(first.is_ok() && last.is_ok(), "{first:?} {last:?}");
    assert!(matches!(bad, Err(StoreError::Sqlite(_))), "{bad:?}");
    has_all_but_the_bad(&census);
}

#[tokio::test]
async fn a_transaction_that_breaks_off_is_the_fault_of_one_request_only() {
    let census = Census::with(&["a"]).await;
    let bad = |c: &Connection| {
        c.execute_batch("ROLLBACK")?;
        Err(StoreError::Closed)
    };
    let [first, bad, last] = batch_with(&census, bad).await;
    assert!(first.is_ok() && last.is_ok(), "{first:?} {last:?}");
    assert!(bad.is_err());
    has_all_but_the_bad(&census);
}

#[tokio::test]
async fn a_lock_held_by_another_process_is_said_and_outlived() {
    let census = Census::with(&["a"]).await;
    let other = Connection::open(census.dir.path().join("census.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let busy = census.writer.add(vec![candidate("b")]).await;
    assert!(matches!(busy, Err(StoreError::Busy(_))), "{busy:?}");
    // Reading still works.
    census.stored("a");
    other.execute_batch("ROLLBACK").unwrap();
    census.writer.add(vec![candidate("b")]).await.unwrap();
    census.stored("b");
}

#[tokio::test]
async fn a_full_disk_is_said_and_outlived_wherever_it_strikes() {
    // Each round, the disk is full one page later: fault injection at the storage layer.
    for room in 0..12 {
        let census = Census::with(&["seed"]).await;
        let limit = move |c: &Connection| {
            let pages: i64 = c.query_row("PRAGMA page_count", [], |row| row.get(0))?;
            let limit = format!("PRAGMA max_page_count = {}", pages + room);
            Ok(c.query_row(&limit, [], |_| Ok(()))?)
        };
        census.writer.call(limit).await.unwrap();
        let mut acknowledged = Vec::new();
        let mut full = 0;
        for n in 0..300 {
            let name = format!("{}-{n}", "n".repeat(50));
            match census.writer.add(vec![candidate(&name)]).await {
                Ok(_) => acknowledged.push(name),
                Err(StoreError::Full(_)) => full += 1,
                Err(other) => panic!("{other:?}"),
            }
        }
        assert!(full > 0, "room for {room}");
        let more =
            |c: &Connection| Ok(c.query_row("PRAGMA max_page_count = 100000", [], |_| Ok(()))?);
        census.writer.call(more).await.unwrap();
        census.check("seed", &alive()).await;
        census.writer.add(vec![candidate("again")]).await.unwrap();
        for name in acknowledged {
            census.stored(&name);
        }
        census.stored("again");
    }
}

#[tokio::test]
async fn a_closed_store_has_written_what_it_accepted_and_says_that_it_is_closed() {
    let Census { store, writer, dir } = Census::new();
    let accepted: Vec<_> = (0..50)
        .map(|n| {
            let writer = writer.clone();
            tokio::spawn(async move { writer.add(vec![candidate(&format!("n{n}"))]).await })
        })
        .collect();
    for accepted in accepted {
        accepted.await.unwrap().unwrap();
    }
    store.close();
    let closed = writer.add(vec![candidate("late")]).await;
    assert!(matches!(closed, Err(StoreError::Closed)));
    let reader = crate::open_read_only(&dir.path().join("census.db")).unwrap();
    assert_eq!(reader.counts().unwrap().hosts, 50);
}
