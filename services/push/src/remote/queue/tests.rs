use kit::{at, host};
use proptest::prelude::*;
use protocol::UnpostedReason;

use super::*;

/// Our own pauses are a tenth shorter.
const SHORTEST: Jitter = Jitter(0);

fn queue(counts: &[(&str, u64)]) -> Queue {
    let mut queue = Queue::default();
    let counts = counts.iter().map(|(name, count)| (host(name), *count));
    queue.replace(counts.collect(), at(0));
    queue
}

fn answered(status: u16, retry_after_s: Option<u64>) -> MessageOutcome {
    MessageOutcome::Answered {
        status,
        retry_after_s,
    }
}

const NOT_SENT: MessageOutcome = MessageOutcome::Unposted {
    reason: UnpostedReason::NotSent,
};

fn cursor(id: i64) -> Option<Cursor> {
    Some(("https://a.example/x".to_owned(), id))
}

fn post(name: &str, cursor: Option<Cursor>) -> Next {
    Next::Post(host(name), cursor)
}

impl Queue {
    fn ran(&mut self, name: &str, outcomes: &[MessageOutcome], now: i64) {
        let attempt = Attempt::Ran(outcomes);
        self.after(&host(name), attempt, cursor(now), at(now), SHORTEST);
    }
}

#[test]
fn a_service_gets_batch_after_batch_until_none_is_left() {
    let mut queue = queue(&[("a.example", 150)]);
    assert_eq!(queue.next(at(0)), post("a.example", None));
    queue.ran("a.example", &[answered(201, None); 100], 1);
    assert_eq!(queue.next(at(1)), post("a.example", cursor(1)));
    queue.ran("a.example", &[answered(410, None); 50], 2);
    // Only a read finds out whether messages are left.
    assert_eq!(queue.next(at(2)), post("a.example", cursor(2)));
    queue.at_end(&host("a.example"));
    assert_eq!(queue.next(at(2)), post("a.example", None));
    queue.at_end(&host("a.example"));
    assert_eq!(queue.next(at(2)), Next::Nothing);
}

#[test]
fn a_pause_that_is_asked_for_is_made() {
    for (outcomes, until) in [
        (
            vec![answered(201, None), answered(429, Some(90)), NOT_SENT],
            90,
        ),
        (vec![answered(503, Some(600)), NOT_SENT], 600),
        // Without a time, the pause is our own.
        (vec![answered(429, None), NOT_SENT], 27),
        (vec![answered(500, None)], 27),
        (vec![NOT_SENT], 27),
    ] {
        let mut queue = queue(&[("a.example", 9)]);
        queue.ran("a.example", &outcomes, 0);
        let nexts = [until - 1, until].map(|second| queue.next(at(second)));
        let expect = [Next::Wait(at(until)), post("a.example", cursor(0))];
        assert_eq!(nexts, expect, "{outcomes:?}");
    }
}

#[test]
fn errors_of_some_messages_hold_up_no_others() {
    let mut queue = queue(&[("a.example", 9)]);
    queue.ran("a.example", &[answered(500, None), answered(201, None)], 0);
    assert_eq!(queue.next(at(0)), post("a.example", cursor(0)));
}

#[test]
fn a_slow_or_made_up_service_keeps_nobody_waiting() {
    let mut queue = queue(&[("made-up.example", 500), ("push.example", 300)]);
    let made_up = host("made-up.example");
    assert_eq!(queue.next(at(0)), Next::Post(made_up.clone(), None));
    queue.after(&made_up, Attempt::Failed, None, at(0), SHORTEST);
    assert_eq!(queue.next(at(0)), post("push.example", None));
    queue.ran("push.example", &[answered(201, None); 100], 1);
    // A host that answered precedes one that failed, and those that never got a request.
    let mut counts: BTreeMap<Host, u64> = (0..1000)
        .map(|number| (host(&format!("h{number}.example")), 900))
        .collect();
    counts.insert(host("push.example"), 1);
    counts.insert(made_up.clone(), 500);
    queue.replace(counts, at(2));
    assert_eq!(queue.next(at(2)), post("push.example", None));
    assert!(queue.waiting[&made_up].backoff.is_paused(at(2)));
}

#[test]
fn a_service_that_failed_comes_after_one_that_was_never_asked() {
    let mut queue = queue(&[("a.example", 500), ("b.example", 1)]);
    queue.after(&host("a.example"), Attempt::Failed, None, at(0), SHORTEST);
    assert_eq!(queue.next(at(1000)), post("b.example", None));
}

#[test]
fn a_turn_that_we_had_not_is_no_failure() {
    let mut queue = queue(&[("a.example", 9)]);
    let a = host("a.example");
    queue.ran("a.example", &[answered(201, None)], 0);
    let wait = Attempt::NotNow(Duration::from_secs(12));
    queue.after(&a, wait, None, at(1), SHORTEST);
    assert_eq!(queue.next(at(1)), Next::Wait(at(13)));
    assert_eq!(queue.next(at(13)), Next::Post(a, cursor(0)));
}

#[test]
fn a_service_that_pauses_is_left_alone_over_the_next_section() {
    let mut queue = queue(&[("a.example", 9)]);
    queue.ran("a.example", &[answered(429, Some(3600))], 0);
    queue.replace(BTreeMap::new(), at(10));
    assert_eq!(queue.next(at(10)), Next::Nothing);
    queue.replace([(host("a.example"), 5)].into(), at(20));
    assert_eq!(queue.next(at(20)), Next::Wait(at(3600)));
    // Hosts whose pause is over are forgotten, so that invented names don't take memory forever.
    queue.replace(BTreeMap::new(), at(3600));
    assert!(queue.waiting.is_empty());
}

proptest! {
    /// For any answers of the services: no request during a pause, `Wait` is in the future, and all
    /// messages are requested in the end if all are accepted.
    #[test]
    fn nobody_is_asked_in_a_pause_and_nothing_is_forgotten(
        history in proptest::collection::vec(
            (0_u8..6, 0_i64..200, any::<u32>()),
            1..60,
        ),
    ) {
        let names = ["a.example", "b.example", "c.example"];
        let mut queue = queue(&names.map(|name| (name, 5)));
        let mut paused: BTreeMap<Host, Timestamp> = BTreeMap::new();
        let mut now = 0;
        for (what, wait, jitter) in history {
            now += wait;
            match queue.next(at(now)) {
                Next::Post(host, _) => {
                    prop_assert!(paused.get(&host).is_none_or(|until| *until <= at(now)));
                    let outcomes = [
                        [answered(201, None)], [answered(429, Some(100))], [answered(429, None)],
                        [answered(500, None)], [NOT_SENT], [answered(404, None)],
                    ][usize::from(what)];
                    let attempt = Attempt::Ran(&outcomes);
                    queue.after(&host, attempt, cursor(now), at(now), Jitter(jitter));
                    let until = match what {
                        1 => at(now + 100),
                        2..=4 => Timestamp(at(now).0 + 27_000),
                        _ => at(now),
                    };
                    paused.insert(host, until);
                }
                Next::Wait(until) => prop_assert!(until > at(now)),
                Next::Nothing => prop_assert!(false, "messages are left"),
            }
        }
        // Now reads find no more messages.
        let mut steps = 0;
        loop {
            match queue.next(at(now)) {
                Next::Post(host, _) => queue.at_end(&host),
                Next::Wait(until) => now = until.0 / 1000 + 1,
                Next::Nothing => break,
            }
            steps += 1;
            prop_assert!(steps < 100);
        }
    }
}
