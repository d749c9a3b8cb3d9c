//! Repairs after a crash, a clock jump or new rules for names.

use super::*;
use crate::tables::hosts::recovery;

#[tokio::test]
async fn hosts_in_flight_are_due_within_the_hour_after_a_start() {
    let census = Census::with(&["a", "b"]).await;
    for interruptions in 1..=4 {
        let taken = census.take("a").await;
        assert_eq!(taken.interruptions, interruptions - 1);
        assert_eq!(census.writer.recover(NOW, 7, REAL).await.unwrap(), 1);
        let stored = census.stored("a");
        assert!(!stored.in_flight);
        assert_eq!(stored.interruptions, interruptions);
        if interruptions < 3 {
            assert!(stored.record.due <= Some(NOW.plus(HOUR)), "{stored:?}");
        } else {
            assert_eq!(stored.record.due, taken.record.due);
        }
    }
    assert_eq!(census.writer.recover(NOW, 7, REAL).await.unwrap(), 0);
    census.check("a", &alive()).await;
    assert_eq!(census.stored("a").interruptions, 0);
    assert_eq!(census.stored("b").interruptions, 0);
}

/// A candidate that is due in the far future.
fn ahead<N: std::fmt::Display>(n: N) -> Candidate {
    Candidate {
        due: Timestamp(i64::MAX),
        ..candidate(&format!("n{n}"))
    }
}

#[tokio::test]
async fn due_times_beyond_the_longest_interval_come_back_spread_out() {
    let census = Census::new();
    let names = (0..100).map(ahead).collect();
    census.writer.add(names).await.unwrap();
    let longest = NOW.plus(REAL.longest());
    census.add_due("fine", longest).await;
    assert_eq!(census.writer.clamp(NOW, REAL).await.unwrap(), 100);
    assert_eq!(census.writer.clamp(NOW, REAL).await.unwrap(), 0);
    assert_eq!(census.stored("fine").record.due, Some(longest));
    let mut dues: Vec<_> = (0..100)
        .map(|n| census.stored(&format!("n{n}")).record.due.unwrap())
        .collect();
    let in_a_day = NOW..=NOW.plus(HOUR * 29);
    assert!(dues.iter().all(|due| in_a_day.contains(due)));
    dues.dedup();
    assert!(dues.len() > 50, "{}", dues.len());
}

/// A single statement for a whole census would keep all changes in memory and block other writes.
#[tokio::test]
async fn due_times_come_back_by_portions_until_none_is_left() {
    let census = Census::new();
    let names = (0..recovery::CLAMPED_MAX * 2 + 2).map(ahead).collect();
    census.writer.add(names).await.unwrap();
    let portion = move |c: &Connection| recovery::clamp(c, NOW, REAL);
    let once = census.writer.call(portion).await.unwrap();
    assert_eq!(once, recovery::CLAMPED_MAX);
    let all_others = u64::from(recovery::CLAMPED_MAX + 2);
    assert_eq!(census.writer.clamp(NOW, REAL).await.unwrap(), all_others);
}

/// As written while the clock was ahead, or as seen while the clock is behind: the row can't show
/// which.
fn with_moments_at(at: Timestamp) -> Record {
    Record {
        state: State::Dying {
            before: Before::Alive,
            count: 9,
            gone: false,
            gone_last: false,
        },
        since: at,
        last_alive: Some(at),
        last_checked: Some(at),
        ..Record::discovered(labelled("a"), at, NOW)
    }
}

#[tokio::test]
async fn moments_written_by_a_clock_ahead_are_brought_back_by_the_second_verdict() {
    let census = Census::new();
    let ahead = NOW.plus(HOUR * 24 * 1000);
    census.put(with_moments_at(ahead)).await;
    census.writer.clamp(NOW, REAL).await.unwrap();
    census.check("a", &dead()).await;
    let record = census.stored("a").record;
    assert_eq!(record.last_alive, Some(ahead), "now may be wrong as well");
    census.check("a", &dead()).await;
    let record = census.stored("a").record;
    let moments = (record.since, record.last_alive, record.last_checked);
    assert_eq!(moments, (NOW, Some(NOW), Some(NOW)));
    assert_eq!(record.state.name(), census::state::StateName::Dying);
}

/// Invariant I5: the clock of a machine without a battery starts in the past, until the machine
/// learns the time.
#[tokio::test]
async fn a_start_by_a_clock_that_is_a_year_behind_takes_nobodys_past_away() {
    let census = Census::new();
    census.put(with_moments_at(NOW)).await;
    let before = census.stored("a").record;
    let year_ago = NOW.minus(HOUR * 24 * 365);
    census.writer.recover(year_ago, 7, REAL).await.unwrap();
    census.writer.clamp(year_ago, REAL).await.unwrap();
    let after = census.stored("a").record;
    assert!(after.due < Some(year_ago.plus(HOUR * 29)), "asked again");
    let after = Record {
        due: before.due,
        ..after
    };
    assert_eq!(after, before);
}

#[tokio::test]
async fn rows_whose_name_is_no_longer_valid_are_parked_and_never_stop_the_census() {
    let census = Census::with(&["a", "b", "c", "d"]).await;
    let moved = Verdict::Moved { to: labelled("d") };
    census.check("c", &moved).await;
    let spoil = "UPDATE hosts SET name = 'not a name' WHERE name = 'a.example';
        UPDATE hosts SET target = 'nor this', due = 0 WHERE name = 'c.example'";
    census.sql(spoil).await;
    // At the head of the queue, without a restart.
    assert_eq!(census.take_due(9).await, ["b.example", "d.example"]);
    let parked = || {
        let counts = census.reader().counts().unwrap();
        counts.by_state.last().copied()
    };
    assert_eq!(parked(), Some((census::state::StateName::Parked, 2)));
    let dot = "UPDATE hosts SET name = 'x.example.' WHERE name = 'b.example'";
    census.sql(dot).await;
    census.writer.recover(NOW, 7, REAL).await.unwrap();
    assert_eq!(parked(), Some((census::state::StateName::Parked, 3)));
}
