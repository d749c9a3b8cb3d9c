//! Parked hosts are never checked, and come back when their names are admitted again.

use census::state::OptedOutBy;

use super::*;
use crate::tables::hosts::opt_out::{self, ParkedCursor, UNPARKED_MAX};

fn admits_all(_host: &Host) -> bool {
    true
}

async fn park(census: &Census, name: &str) {
    let name = labelled(name);
    let parked = census.writer.park(&name, NOW);
    assert_eq!(parked.await.unwrap(), Park::Done);
}

async fn unpark(census: &Census) -> u64 {
    let back = census.writer.unpark(admits_all, NOW, 7, REAL).await;
    back.unwrap()
}

#[tokio::test]
async fn a_parked_host_comes_back_as_alive_if_that_was_its_last_verdict() {
    let census = Census::with(&["a", "b", "c", "d", "e"]).await;
    census.check("a", &alive()).await;
    census.check("b", &alive()).await;
    census.check("b", &Verdict::OptedOut).await;
    census.check("c", &dead()).await;
    for name in ["a", "b", "c", "d"] {
        park(&census, name).await;
    }
    assert_eq!(census.take_due(9).await, ["e.example"]);
    assert_eq!(unpark(&census).await, 4);
    let soon = NOW.plus(HOUR);
    for (name, state) in [
        ("a", State::Alive),
        // Its robots.txt is requested first, and it is not listed until robots.txt allows the
        // census.
        ("b", State::Discovered),
        ("c", State::Discovered),
        ("d", State::Discovered),
    ] {
        let record = census.stored(name).record;
        assert_eq!(record.state, state, "{name}");
        assert!(record.due.is_some_and(|due| due <= soon), "{name}");
    }
    let due = |name| census.stored(name).record.due;
    assert_ne!(due("a"), due("b"), "spread out");
    assert_eq!(unpark(&census).await, 0);
}

#[tokio::test]
async fn a_name_that_is_still_refused_stays_parked() {
    let census = Census::with(&["a", "b"]).await;
    park(&census, "a").await;
    park(&census, "b").await;
    let admits = |host: &Host| host.as_str() == "b.example";
    let back = census.writer.unpark(admits, NOW, 7, REAL).await.unwrap();
    assert_eq!(back, 1);
    assert_eq!(census.stored("a").record.state.name().as_str(), "parked");
    // The operator adds a name that is admitted.
    let added = census.add_now(&["a"]).await;
    assert_eq!(added, [(labelled("a"), AddedAs::New)]);
    assert_eq!(census.take_due(9).await, ["a.example"]);
    let added = census.add_now(&["a"]).await;
    assert_eq!(added, [(labelled("a"), AddedAs::Known)]);
}

/// Hidden and other hosts, more of each than one transaction examines.
#[tokio::test]
async fn a_daemon_killed_in_the_middle_brings_the_others_back_at_its_next_start() {
    let mut census = Census::new();
    let names: Vec<_> = (0..UNPARKED_MAX * 2 + 2)
        .map(|n| candidate(&format!("n{n}")))
        .collect();
    let all = u64::from(UNPARKED_MAX * 2 + 2);
    census.writer.add(names).await.unwrap();
    let park_all = "UPDATE hosts SET state = 'parked', due = NULL, hidden = id % 2";
    census.sql(park_all).await;
    let once =
        |c: &Connection| opt_out::unpark(c, ParkedCursor::default(), admits_all, NOW, 7, REAL);
    let (brought, _) = census.writer.call(once).await.unwrap();
    assert_eq!(brought, u64::from(UNPARKED_MAX));
    // One of the two is hidden and comes back later.
    let due = |census: &Census| ["n0", "n1"].map(|name| census.stored(name).record.due);
    let before = due(&census);
    assert_eq!(before.iter().flatten().count(), 1);

    // No position of the pass is stored, only the committed rows.
    let path = census.dir.path().join("census.db");
    census.store.close();
    census.store = open_tuned(&path, Tuning::default()).unwrap();
    census.writer = census.store.writer();
    assert_eq!(due(&census), before);
    assert_eq!(unpark(&census).await, all - brought);
    let after = due(&census);
    for (before, after) in before.iter().zip(&after) {
        assert!(after.is_some() && (before.is_none() || before == after));
    }
    assert_eq!(unpark(&census).await, 0);
}

#[tokio::test]
async fn parking_never_loses_an_opt_out_by_word_of_mouth() {
    let census = Census::with(&["a", "b"]).await;
    let by = OptedOutBy::Owner;
    for name in ["a", "b"] {
        census.opt_out(name, by).await;
    }
    let a = labelled("a");
    let parked = census.writer.park(&a, NOW);
    assert_eq!(parked.await.unwrap(), Park::OptedOut { by });
    let rename = async |from, to| {
        let sql = "UPDATE hosts SET name = ?2 || '.example' WHERE name = ?1 || '.example'";
        let run = move |c: &Connection| Ok(c.execute(sql, [from, to])?);
        census.writer.call(run).await.unwrap();
    };
    // Refused by this version's rules, and valid by the next one's.
    rename("b", "B").await;
    census.writer.recover(NOW, 7, REAL).await.unwrap();
    rename("B", "b").await;
    assert_eq!(unpark(&census).await, 0);
    assert_eq!(census.stored("b").record.state, State::OptedOut { by });
}
