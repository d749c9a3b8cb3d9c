use kit::{HELLO, account, astray, end, offline, unconnected};

use super::*;
use crate::fault::ReportFault;
use crate::list::ListReport;
use crate::run::{Run, feed};
use crate::walk::WalkReport;
use proptest::prelude::*;
use protocol::order::delivery::{Message, MessageBody};
use protocol::{Host, ListPath};

const FIRST: &str = r#"{"posted":{"message":0,"status":201}}"#;
const SECOND: &str = r#"{"posted":{"message":1,"status":410}}"#;
const BUSY: &str = r#"{"posted":{"message":1,"status":429,"retry_after_s":90}}"#;
const UNSENT: &str = r#"{"unposted":{"message":1,"reason":"not_sent"}}"#;
const LAST_UNSENT: &str = r#"{"unposted":{"message":2,"reason":"not_sent"}}"#;
const LAST: &str = r#"{"posted":{"message":2,"status":201}}"#;
const DONE: &str = r#"{"done":{"requests":3,"bytes":900,"millis":40}}"#;

/// Events of the other modes, and more outcomes than this order has messages.
const OTHERS: [&str; 11] = [
    r#"{"alive":{"software":"mastodon","version":"4.3.0","private":"no"}}"#,
    r#"{"dead":{"reason":"timeout"}}"#,
    r#"{"moved":{"to":"b.example"}}"#,
    r#"{"opted_out":{}}"#,
    r#"{"gone":{}}"#,
    r#"{"peers":{"hosts":["b.example"]}}"#,
    r#"{"peers_end":{"outcome":"complete","dropped":2}}"#,
    r#"{"listed":{"outcome":"complete","dropped":2}}"#,
    r#"{"walked":{"outcome":"complete","requests":7,"posts":40}}"#,
    r#"{"posted":{"message":3,"status":201}}"#,
    r#"{"posted":{"message":4294967295,"status":201}}"#,
];

fn order() -> DeliveryOrder {
    let message = Message {
        path: ListPath::parse("/p").unwrap(),
        ttl_s: 60,
        topic: "t".to_owned().try_into().unwrap(),
        authorization: "vapid t=a, k=b".to_owned().try_into().unwrap(),
        body: MessageBody::new(b"hi".to_vec()).unwrap(),
    };
    DeliveryOrder::new(vec![message; 3]).unwrap()
}

fn posted(lines: &[&str]) -> Run<DeliveryReport> {
    feed(DeliveryReport::new(&order()), lines)
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

#[test]
fn a_whole_delivery_is_an_outcome_for_each_message() {
    for (lines, expect) in [
        (
            [HELLO, FIRST, SECOND, LAST, DONE],
            [201, 410, 201].map(|status| answered(status, None)),
        ),
        (
            [HELLO, FIRST, BUSY, LAST_UNSENT, DONE],
            [answered(201, None), answered(429, Some(90)), NOT_SENT],
        ),
    ] {
        let delivery = posted(&lines).conclude(end(0), &account(), "");
        assert_eq!(delivery, Ok(Delivery::Ended(expect.to_vec())));
    }
}

#[test]
fn what_is_not_in_the_order_of_its_messages_makes_all_of_it_fail() {
    for lines in [
        &[HELLO, SECOND][..],
        &[HELLO, FIRST, FIRST],
        &[HELLO, FIRST, LAST],
        &[HELLO, FIRST, SECOND, DONE],
        &[HELLO, FIRST, UNSENT, LAST],
        &[HELLO, FIRST, SECOND, LAST, OTHERS[9]],
        &[HELLO, FIRST, SECOND, LAST, DONE, DONE],
        &[HELLO, HELLO],
    ] {
        let report = posted(lines);
        assert_eq!(report.breach(), Some(&Breach::OutOfOrder), "{lines:?}");
        let delivery = report.conclude(None, &account(), "");
        assert_eq!(delivery, Ok(Delivery::Failed), "{lines:?}");
    }
    let late = r#"{"posted":{"message":0,"status":429,"retry_after_s":86401}}"#;
    assert_eq!(posted(&[HELLO, late]).breach(), Some(&Breach::OutOfBounds));
}

/// Other modes may not print `posted` either, nor a delivery their events.
#[test]
fn a_delivery_may_say_nothing_of_its_host() {
    for other in OTHERS {
        let report = posted(&[HELLO, FIRST, other]);
        assert_eq!(report.breach(), Some(&Breach::OutOfOrder), "{other}");
        let delivery = report.conclude(None, &account(), "");
        assert_eq!(delivery, Ok(Delivery::Failed), "nothing counts: {other}");
    }
    for said in [FIRST, UNSENT] {
        let mut check = crate::check::Report::new(Host::parse("host.example").unwrap());
        check.accept(HELLO.as_bytes()).unwrap();
        assert_eq!(check.accept(said.as_bytes()), Err(Breach::OutOfOrder));
        let walk = feed(WalkReport::default(), &[HELLO, said]);
        assert_eq!(walk.breach(), Some(&Breach::OutOfOrder));
        let order = protocol::ListOrder {
            path: ListPath::parse("/x").unwrap(),
            format: protocol::ListFormat::Json,
            names_max: 5,
        };
        let list = feed(ListReport::new(&order), &[HELLO, said]);
        assert_eq!(list.breach(), Some(&Breach::OutOfOrder));
    }
}

#[test]
fn what_fails_on_our_side_is_a_fault() {
    let former = posted(&[]).conclude(end(70), &account(), "the order");
    let no_hello = matches!(former, Err(ReportFault::NoHello { exit_code: 70, .. }));
    assert!(no_hello);
    let cut = posted(&[HELLO, FIRST]).conclude(end(0), &account(), "");
    assert_eq!(cut, Err(ReportFault::OutputLost));
    let unsent = r#"{"unposted":{"message":0,"reason":"http"}}"#;
    let lost = posted(&[HELLO, unsent, UNSENT, LAST_UNSENT, DONE]).conclude(end(0), &offline(), "");
    assert_eq!(lost, Err(ReportFault::NetworkLost));
    let whole = [HELLO, FIRST, SECOND, LAST, DONE];
    let made_up = posted(&whole).conclude(end(0), &unconnected(), "");
    assert_eq!(made_up, Err(ReportFault::NoConnection));
    // Without its `done`, any message may have arrived.
    let without_done = posted(&[HELLO, FIRST, SECOND, LAST]).conclude(end(134), &account(), "");
    assert_eq!(without_done, Ok(Delivery::Failed));
    // A crash that the host caused is no fault of ours.
    let crashed = posted(&[HELLO, FIRST]).conclude(end(134), &account(), "");
    assert_eq!(crashed, Ok(Delivery::Failed));
    let elsewhere = posted(&whole).conclude(end(0), &astray(), "");
    assert_eq!(elsewhere, Ok(Delivery::Failed));
}

proptest! {
    /// For any output of a compromised checker, there is an outcome for each message, or none at
    /// all.
    #[test]
    fn no_lines_make_a_delivery_of_another_length(
        lines in proptest::collection::vec(
            proptest::sample::select([
                &[HELLO, FIRST, SECOND, BUSY, UNSENT, LAST_UNSENT, LAST, DONE][..],
                &OTHERS,
            ].concat()),
            0..10,
        ),
    ) {
        let lines: Vec<&str> = std::iter::once(HELLO).chain(lines).collect();
        if let Ok(Delivery::Ended(outcomes)) = posted(&lines).conclude(end(0), &account(), "") {
            prop_assert_eq!(outcomes.len(), 3);
            prop_assert_eq!(lines.len(), 5);
        }
    }
}
