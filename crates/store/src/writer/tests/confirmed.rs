//! A verdict that repeats the last one is written by a shorter statement with the same effect.

use protocol::Instance;

use super::*;

#[tokio::test]
async fn whatever_a_verdict_changes_is_in_the_row_afterwards() {
    let census = Census::with(&["a"]).await;
    let hidden = kit::alive_with(Private::Yes);
    let newer = Verdict::Alive(Instance {
        version: Some("4.6".to_owned()),
        ..kit::instance()
    });
    let registering = |open_registrations| {
        Verdict::Alive(Instance {
            open_registrations,
            ..kit::instance()
        })
    };
    let refused = Verdict::Refused {
        status: 403,
        wall: None,
        retry_after_s: None,
    };
    let moved = Verdict::Moved { to: labelled("b") };
    let mut verdicts = Vec::new();
    let registrations = [Some(false), Some(true), None].map(registering);
    let others = [alive(), hidden, newer, refused, moved];
    for verdict in registrations.into_iter().chain(others) {
        verdicts.extend([verdict.clone(), verdict]);
    }
    // Dead after eight days, and then checked less and less often.
    verdicts.extend(std::iter::repeat_n(dead(), 20));
    for (number, verdict) in (0..).zip(verdicts) {
        let now = NOW.plus(HOUR * 30 * number);
        let taken = census.take("a").await;
        census.writer.count_fault(&labelled("a")).await.unwrap();
        let noted = "UPDATE hosts SET last_note = 'put off', interruptions = 1";
        census.sql(noted).await;
        let change = transition(&taken.record, &verdict, now, JITTER, REAL);
        let expected = change.record.clone();
        census.writer.commit(change).await.unwrap();
        let stored = census.stored("a");
        assert_eq!(stored.record, expected, "{number}: {verdict:?}");
        assert!(!stored.in_flight, "{number}");
        let left = (stored.faults, stored.interruptions, stored.last_note);
        assert_eq!(left, (0, 0, None), "{number}");
        assert_eq!(stored.history.first().map(|entry| entry.at), Some(now));
    }
    assert_eq!(census.stored("a").record.doublings, 2);
}
