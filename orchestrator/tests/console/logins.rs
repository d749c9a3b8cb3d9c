//! Logging in: the same answer for every kind of failure, bans, locks and known browsers. The
//! limiter promises the timing of answers, and its tests check that.

use std::time::Duration;

use crate::stage::{Browser, PASSWORD, Stage};

/// The page without its random parts.
fn without_form(reply: &crate::stage::Reply) -> (u16, String) {
    (reply.status, reply.body.replace(&reply.form(), "FORM"))
}

#[tokio::test]
async fn whatever_is_wrong_gets_the_same_answer() {
    let mut stage = Stage::start().await;
    let mut answers = Vec::new();
    let code = stage.code();
    for (name, password, code) in [
        ("ada", "wrong horse!", code.as_str()),
        ("ada", PASSWORD, "000000"),
        ("nobody", PASSWORD, code.as_str()),
        ("", "", ""),
    ] {
        let mut browser = Browser::default();
        let reply = stage.try_login(&mut browser, name, password, code).await;
        assert_eq!(browser.cookie("__Host-session"), None, "{name}");
        answers.push(without_form(&reply));
    }
    // Two more attempts pass, the seventh bans.
    for _ in 0..4 {
        let reply = stage
            .try_login(&mut Browser::default(), "bob", "x", "0")
            .await;
        answers.push(without_form(&reply));
    }
    let reply = stage
        .try_login(&mut Browser::default(), "ada", PASSWORD, &code)
        .await;
    answers.push(without_form(&reply));
    assert_eq!(answers[0].0, 403);
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    let mut elsewhere = Browser {
        address: "192.0.2.2",
        ..Browser::default()
    };
    let reply = stage
        .try_login(&mut elsewhere, "ada", PASSWORD, &code)
        .await;
    assert_eq!(
        reply.status, 303,
        "only the address was banned, and no code was used up"
    );
}

#[tokio::test]
async fn a_lock_does_not_stop_the_owner_in_a_known_browser() {
    let mut stage = Stage::start().await;
    let mut known = stage.logged_in().await;
    let attackers = [
        "192.0.2.11",
        "192.0.2.12",
        "192.0.2.13",
        "192.0.2.14",
        "192.0.2.15",
        "192.0.2.16",
        "192.0.2.17",
        "192.0.2.18",
    ];
    for address in attackers {
        let mut browser = Browser {
            address,
            ..Browser::default()
        };
        stage
            .try_login(&mut browser, "ada", "wrong horse!", "0")
            .await;
    }
    let (first, second) = (stage.code(), stage.code());
    let mut stranger = Browser {
        address: "192.0.2.20",
        ..Browser::default()
    };
    let reply = stage
        .try_login(&mut stranger, "ada", PASSWORD, &first)
        .await;
    assert_eq!(reply.status, 403, "locked");
    let holds = stage.get(&mut known, "/logins").await;
    assert!(holds.body.contains("(ada)"), "{}", holds.body);
    let reply = stage.try_login(&mut known, "ada", PASSWORD, &first).await;
    assert_eq!(reply.status, 303, "a known browser");

    // A moderator who is logged in lifts it.
    let page = stage.get(&mut known, "/logins").await;
    let (_, rest) = page.body.split_once("name=\"lift\" value=\"").unwrap();
    let id = rest.split('"').next().unwrap();
    let body = format!("form={}&lift={id}", page.form());
    assert_eq!(stage.post(&mut known, "/logins", &body).await.status, 303);
    let reply = stage
        .try_login(&mut stranger, "ada", PASSWORD, &second)
        .await;
    assert_eq!(reply.status, 303, "lifted");
}

#[tokio::test]
async fn a_login_form_is_of_the_browser_that_asked_for_it() {
    let mut stage = Stage::start().await;
    let code = stage.code();
    let (mut attacker, mut victim) = (Browser::default(), Browser::default());
    let forged = stage.get(&mut attacker, "/login").await.form();
    stage.get(&mut victim, "/login").await;
    let body = format!("form={forged}&name=ada&password=correct+horse&code={code}");
    let reply = stage.post(&mut victim, "/login", &body).await;
    assert_eq!(reply.status, 403);
    assert!(reply.body.contains("expired"), "{}", reply.body);
    assert_eq!(victim.cookie("__Host-session"), None);
    let mut over_http = Browser::default();
    let reply = stage.post(&mut over_http, "/login", &body).await;
    assert!(reply.body.contains("https"), "{}", reply.body);
}

#[tokio::test]
async fn bans_and_sessions_are_there_after_a_restart() {
    let mut stage = Stage::start().await;
    let browser = stage.logged_in().await;
    for _ in 0..7 {
        let mut browser = Browser {
            address: "192.0.2.9",
            ..Browser::default()
        };
        stage
            .try_login(&mut browser, "ada", "wrong horse!", "0")
            .await;
    }
    // The state after a killed process: nothing is closed.
    let mut accounts = accounts::Accounts::open(&stage.accounts, &mut rand::rng()).unwrap();
    let at = limiter::login::record::Timestamp(Duration::from_secs(1_790_812_900));
    let holds = accounts.holds(at).unwrap();
    let kinds: Vec<_> = holds.iter().map(|hold| hold.kind.as_str()).collect();
    assert!(kinds.contains(&"address"), "{kinds:?}");
    assert_eq!(accounts.sessions(at).unwrap().len(), 1);
    let token = accounts::Token::parse(browser.cookie("__Host-session").unwrap()).unwrap();
    accounts.log_out(&token).unwrap();
    assert!(accounts.sessions(at).unwrap().is_empty());
}

#[tokio::test]
async fn the_metrics_count_logins_and_name_nobody() {
    let mut stage = Stage::start().await;
    stage.logged_in().await;
    stage
        .try_login(&mut Browser::default(), "mallory", "x", "0")
        .await;
    let page = stage.get(&mut Browser::default(), "/metrics").await;
    assert_eq!(page.status, 200);
    for line in [
        "login_rate_limiter_verify_successes 1",
        "login_rate_limiter_verify_failures 1",
    ] {
        assert!(
            page.body.lines().any(|found| found == line),
            "{line}: {}",
            page.body
        );
    }
    for name in ["ada", "mallory", "192.0.2."] {
        assert!(!page.body.contains(name), "{name}");
    }
}
