//! A container's stdout in delivery mode gives an outcome for each message, or none at all, for any
//! cuts and any content.

use std::sync::LazyLock;

use protocol::order::delivery::{Message, MessageBody};
use protocol::{DeliveryOrder, Event, ListPath, MessageOutcome, limits};
use report::delivery::{Delivery, DeliveryReport};
use report::{Breach, Lines, Run};

use crate::input::{pieces, survives_the_way, with_hello};

/// Number of messages in the seeds' order.
const MESSAGES: usize = 3;

static ORDER: LazyLock<DeliveryOrder> = LazyLock::new(|| {
    let text = |text: &str| text.to_owned();
    let message = Message {
        path: ListPath::parse("/p").expect("a path"),
        ttl_s: 60,
        topic: text("t").try_into().expect("a topic"),
        authorization: text("vapid t=a, k=b").try_into().expect("a header"),
        body: MessageBody::new(b"hi".to_vec()).expect("a body"),
    };
    DeliveryOrder::new(vec![message; MESSAGES]).expect("an order")
});

pub fn check(data: &[u8]) {
    let data = with_hello(data);
    assert_eq!(hear(&[&data]), hear(&pieces(&data)));
}

fn hear(pieces: &[&[u8]]) -> String {
    let mut lines = Lines::default();
    let mut report = Run::new(DeliveryReport::new(&ORDER));
    let mut accepted = Vec::new();
    let mut outcome = Ok(());
    for piece in pieces {
        outcome = lines.push(piece, |line| {
            report.accept(line)?;
            let event: Event = protocol::parse_line(line).expect("it was accepted");
            survives_the_way(&event);
            accepted.push(event);
            Ok::<(), Breach>(())
        });
        if outcome.is_err() {
            break;
        }
    }
    if let Err(breach) = outcome.and_then(|()| Ok(lines.finish()?)) {
        report.broken_by(breach);
    }
    assert!(accepted.len() <= MESSAGES + 2);
    let has_breach = report.breach().is_some();
    let end = (!has_breach).then(|| kit::end(0)).flatten();
    let delivery = report.conclude(end, &kit::account(), "");
    if let Ok(Delivery::Ended(outcomes)) = &delivery {
        assert!(!has_breach);
        assert_eq!(outcomes.len(), MESSAGES);
        assert!(matches!(accepted.last(), Some(Event::Done { .. })));
        for outcome in outcomes {
            survives_the_way(outcome);
            if let MessageOutcome::Answered { retry_after_s, .. } = outcome {
                let longest = limits::RETRY_AFTER_SECONDS_MAX;
                assert!(retry_after_s.is_none_or(|seconds| seconds <= longest));
            }
        }
    }
    format!("{delivery:?}")
}
