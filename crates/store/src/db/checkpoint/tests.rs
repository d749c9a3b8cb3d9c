use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::Store;
use crate::db::tuning::Tuning;
use crate::open::open_tuned;

const BOUNDS: Bounds = Bounds {
    round: 64,
    long: 256,
    own_max: 16,
    longest: 1024,
};

proptest! {
    #[test]
    fn the_log_is_seen_to_at_every_thousand_pages_and_the_writer_takes_little(
        steps in proptest::collection::vec((1..3000_u32, 0..20_000_u32, proptest::bool::weighted(0.1)), 1..60),
    ) {
        let mut turns = Turns::default();
        let (mut pages, mut seen_to_at) = (0_u32, 0_u32);
        for (grown, taken, begins_anew) in steps {
            if begins_anew {
                // A reset can't be noticed if the new log is at once as long as the old one.
                if grown < pages {
                    seen_to_at = 0;
                }
                pages = 0;
            }
            pages += grown;
            let turn = turns.after_commit(pages, taken);
            if turn.wake {
                seen_to_at = pages;
            }
            prop_assert!(pages < seen_to_at + ROUND_PAGES, "nobody sees to {} pages", pages);
            let left = pages - if taken > pages { 0 } else { taken };
            match turn.own {
                Own::Nothing => {}
                Own::Little => prop_assert!(left <= OWN_PAGES_MAX && pages > LONG_PAGES, "{} of {}", left, pages),
                Own::All => prop_assert!(pages > LONGEST_PAGES, "{}", pages),
            }
        }
    }
}

#[test]
fn while_an_old_state_is_read_the_writer_does_not_try_at_each_commit() {
    let mut turns = Turns::default();
    let tries = (0..10_000)
        .map(|n| turns.after_commit(LONGEST_PAGES + 1 + n, 10))
        .filter(|turn| turn.own == Own::All)
        .count();
    assert_eq!(tries, 10);
}

fn store(dir: &TempDir) -> Store {
    let tuning = Tuning {
        log: BOUNDS,
        ..Tuning::default()
    };
    open_tuned(&dir.path().join("census.db"), tuning).unwrap()
}

/// Writes at least `pages` pages of the log as fast as possible: each row fills a page.
async fn write(store: &Store, pages: u32) {
    for _ in 0..pages / 50 {
        let fill = |c: &Connection| {
            for _ in 0..50 {
                c.execute(
                    "INSERT INTO sources (name, trouble) VALUES (hex(randomblob(16)), hex(zeroblob(2000)))",
                    [],
                )?;
            }
            Ok(())
        };
        store.writer().call(fill).await.unwrap();
    }
}

fn log_pages(dir: &TempDir) -> u64 {
    let log = dir.path().join("census.db-wal");
    std::fs::metadata(log).unwrap().len() / 4096
}

/// Bytes of the longest log, plus what one commit adds before the length is checked.
fn most() -> u64 {
    u64::from(BOUNDS.longest + BOUNDS.round) + 300
}

#[tokio::test]
async fn a_log_that_nobody_reads_stays_bounded() {
    let dir = TempDir::new().unwrap();
    let store = store(&dir);
    write(&store, 4 * BOUNDS.longest).await;
    assert!(log_pages(&dir) < most(), "{} pages", log_pages(&dir));
    let size = std::fs::metadata(dir.path().join("census.db"))
        .unwrap()
        .len();
    assert!(
        size > u64::from(BOUNDS.longest) * 4096,
        "nothing was taken over"
    );
}

#[tokio::test]
async fn what_is_read_for_long_keeps_the_log_and_nobody_waits_for_it() {
    let dir = TempDir::new().unwrap();
    let store = store(&dir);
    write(&store, 100).await;
    let reader = Connection::open(dir.path().join("census.db")).unwrap();
    let count = || -> u32 {
        reader
            .query_row("SELECT count(*) FROM sources", [], |row| row.get(0))
            .unwrap()
    };
    reader.execute_batch("BEGIN").unwrap();
    assert_eq!(count(), 100);
    let much = 4 * BOUNDS.longest;
    write(&store, much).await;
    assert_eq!(count(), 100);
    assert!(
        log_pages(&dir) > u64::from(much),
        "what the reader sees was overwritten"
    );
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(count(), 100 + much / 50 * 50);
    // Once the reader has gone, the log is reset within its file, which stops growing.
    let kept = log_pages(&dir);
    write(&store, much).await;
    assert!(
        log_pages(&dir) <= kept + most(),
        "{} {kept}",
        log_pages(&dir)
    );
}

#[tokio::test]
async fn a_closed_store_leaves_no_log_and_all_that_was_written() {
    let dir = TempDir::new().unwrap();
    let store = store(&dir);
    write(&store, 500).await;
    store.close();
    assert!(!dir.path().join("census.db-wal").exists());
    let connection = Connection::open(dir.path().join("census.db")).unwrap();
    let count: i64 = connection
        .query_row("SELECT count(*) FROM sources", [], |row| row.get(0))
        .unwrap();
    assert_eq!(count, 500);
}
