//! A console that was taken over: what it can send to the daemon's socket, and with what effect.

use console::wire::{Act, Answer, DOMAINS_MAX, HostVerb, Order, Request, Verb};
use local_socket::Ask as _;
use proptest::prelude::*;

use crate::stage::Stage;

fn act(moderator: &str, order: Order) -> Request {
    Request::Act(Act {
        moderator: moderator.to_owned(),
        order,
    })
}

fn decide(domains: &[&str], verb: Verb, reason: &str) -> Order {
    Order::Decide {
        domains: domains.iter().map(|&domain| domain.to_owned()).collect(),
        verb,
        reason: reason.to_owned(),
    }
}

fn check(host: &str) -> Order {
    let host = host.to_owned();
    Order::Check { host }
}

fn ignore_orders(stage: &mut Stage) {
    let mut orders = std::mem::replace(&mut stage.orders, tokio::sync::mpsc::channel(1).1);
    tokio::spawn(async move { while orders.recv().await.is_some() {} });
}

fn take_out(host: &str, reason: &str) -> Order {
    Order::DecideHost {
        host: host.to_owned(),
        decision: HostVerb::TakeOut,
        reason: reason.to_owned(),
    }
}

#[tokio::test] // S24
async fn daemon_checks_every_order_of_the_console() {
    let stage = Stage::start().await;
    stage.bring_in(&["a.farm.org"]).await;
    let long = "x".repeat(5000);
    let decisions = Vec::new();
    let undo_nothing = Order::Undo { decisions };
    for request in [
        act("", decide(&["farm.org"], Verb::Deny, "r")),
        act("Ada\nforged line", decide(&["farm.org"], Verb::Deny, "r")),
        act("ada", decide(&["farm.org"], Verb::Deny, " ")),
        act("ada", decide(&["farm.org"], Verb::Deny, "two\nlines")),
        act("ada", decide(&["farm.org"], Verb::Deny, &long)),
        act("ada", decide(&["farm.org"], Verb::Limit(u32::MAX), "r")),
        act("ada", take_out("not a host", "r")),
        act("ada", take_out("a.farm.org", "\u{7}")),
        act("ada", take_out("host.internal", "r")),
        act("ada", take_out("never.heard.org", "r")),
        act("ada", check("never.heard.org")),
        act("ada", undo_nothing),
    ] {
        let answer = stage.ask(&request).await;
        assert!(
            matches!(answer, Answer::Failed(_)),
            "{request:?}: {answer:?}"
        );
    }
    for order in [
        decide(&["a.farm.org"], Verb::Deny, "r"),
        decide(&["org"], Verb::Deny, "r"),
        decide(&["farm.org"], Verb::Limit(0), "r"),
        Order::ResumeSource {
            name: "no such".to_owned(),
        },
    ] {
        let answer = stage.ask(&act("ada", order.clone())).await;
        let Answer::Done(outcomes) = &answer else {
            panic!("{order:?}: {answer:?}");
        };
        let is_done = outcomes.iter().any(|outcome| outcome.is_done);
        assert!(!is_done, "{order:?}: {answer:?}");
    }
    let reader = stage.store.reader().unwrap();
    assert!(reader.decisions(None, 1).unwrap().rows.is_empty());
    let unknown = protocol::Host::parse("never.heard.org").unwrap();
    assert!(
        reader.record(&unknown).unwrap().is_none(),
        "no name came in"
    );
    assert!(stage.orders.is_empty());
}

#[tokio::test]
async fn no_more_groups_are_decided_about_at_once_than_a_form_has() {
    let mut stage = Stage::start().await;
    ignore_orders(&mut stage);
    let domains: Vec<_> = (0..DOMAINS_MAX + 5).map(|n| format!("d{n}.org")).collect();
    let domains: Vec<_> = domains.iter().map(String::as_str).collect();
    let answer = stage
        .ask(&act("ada", decide(&domains, Verb::Deny, "r")))
        .await;
    let Answer::Done(outcomes) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(outcomes.len(), DOMAINS_MAX);
}

/// A session could otherwise use up all moderators' decisions without any.
#[tokio::test] // S22
async fn orders_that_decide_nothing_use_up_no_decisions() {
    let mut stage = Stage::start().await;
    ignore_orders(&mut stage);
    stage.bring_in(&["a.farm.org"]).await;
    let no_groups = vec!["a.farm.org"; DOMAINS_MAX];
    for _ in 0..21 {
        let order = decide(&no_groups, Verb::Deny, "r");
        let answer = stage.ask(&act("ada", order)).await;
        assert!(matches!(answer, Answer::Done(_)), "{answer:?}");
    }
    let order = decide(&["farm.org"], Verb::Deny, "r");
    let Answer::Done(outcomes) = stage.ask(&act("ada", order)).await else {
        panic!("the budget is used up");
    };
    assert!(outcomes[0].is_done, "{outcomes:?}");
}

#[tokio::test] // S24
async fn control_requests_and_long_lines_are_refused() {
    let stage = Stage::start().await;
    for line in [
        r#"{"live":{}}"#,
        r#"{"add":{"names":["a.farm.org"]}}"#,
        r#"{"opt_out":{"host":"a.farm.org","by":"owner","undo":true,"reason":null}}"#,
        r#"{"reload_admission":{}}"#,
        r#"{"decide_group":{"domain":"farm.org","verb":"deny","reason":"r"}}"#,
        "rubbish",
    ] {
        let answer = stage.say(line.as_bytes()).await;
        let expect = r#"{"failed":"the line was not understood: "#;
        assert!(answer.starts_with(expect), "{line}: {answer}");
    }
    let long = vec![b' '; Request::BYTES_MAX + 1];
    let answer = stage.say(&long).await;
    assert!(answer.contains("is longer than"), "{answer}");
}

#[tokio::test] // S22
async fn one_check_or_publication_at_a_time_is_ordered() {
    let stage = Stage::start().await;
    stage.bring_in(&["a.farm.org"]).await;
    let check = act("ada", check("a.farm.org"));
    let first = stage.ask(&check);
    let second = async {
        // The loop has the first order, and never answers here.
        while stage.orders.is_empty() {
            tokio::task::yield_now().await;
        }
        stage.ask(&act("ada", Order::PublishByForce {})).await
    };
    tokio::select! {
        answer = first => panic!("the loop answered: {answer:?}"),
        answer = second => assert!(
            matches!(&answer, Answer::Failed(why) if why.contains("in progress")),
            "{answer:?}"
        ),
    }
    assert_eq!(stage.orders.len(), 1);
}

/// Lines that resemble requests, with any names, numbers and texts.
fn any_line() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        "[a-z0-9.-]{0,40}",
        "\\PC{0,60}",
        proptest::collection::vec(any::<char>(), 0..200).prop_map(String::from_iter),
    ];
    let text = text.prop_map(|text| serde_json::to_string(&text).unwrap());
    (text.clone(), text.clone(), text, any::<i64>(), any::<u32>(), 0..12_u8).prop_map(
        |(one, two, three, id, number, kind)| match kind {
            0 => format!(r#"{{"group":{{"domain":{one}}}}}"#),
            1 => format!(r#"{{"waiting":{{"after":{one}}}}}"#),
            2 => format!(r#"{{"host":{{"host":{one}}}}}"#),
            3 => format!(r#"{{"groups":{{"which":"held","skip":{number}}}}}"#),
            4 => format!(r#"{{"decisions":{{"cursor":{{"group_id":{id},"host_id":{number}}}}}}}"#),
            5 => format!(r#"{{"act":{{"moderator":{one},"order":{{"decide":{{"domains":[{two}],"verb":"allow","reason":{three}}}}}}}}}"#),
            6 => format!(r#"{{"act":{{"moderator":"ada","order":{{"undo":{{"decisions":[{{"group":{id}}},{{"host":{id}}}]}}}}}}}}"#),
            7 => format!(r#"{{"act":{{"moderator":"ada","order":{{"resume_source":{{"name":{one}}}}}}}}}"#),
            8 => format!(r#"{{"act":{{"moderator":"ada","order":{{"decide_host":{{"host":{one},"decision":"put_back","reason":{two}}}}}}}}}"#),
            9 => format!("{one}{two}"),
            10 => format!(r#"{{{one}:{{{two}:{id}}}}}"#),
            _ => one,
        },
    )
}

/// Every line gets one line as an answer, and every recorded decision has a name that a moderator
/// can have.
#[test]
fn no_line_breaks_the_daemon_or_its_log() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let stage = runtime.block_on(Stage::start());
    let config = ProptestConfig::with_cases(300);
    proptest!(config, |(line in any_line())| {
        let answer = runtime.block_on(stage.say(line.as_bytes()));
        prop_assert!(
            serde_json::from_str::<Answer>(&answer).is_ok() || line.contains('\n'),
            "{line}: {answer}"
        );
        let log = stage.store.reader().unwrap().decisions(None, 1).unwrap();
        for row in log.rows {
            let name = row.who.strip_prefix("moderator ").unwrap_or_default();
            prop_assert!(accounts::is_name(name), "{}", row.who);
            prop_assert!(!row.reason.chars().any(char::is_control), "{}", row.reason);
        }
    });
}
