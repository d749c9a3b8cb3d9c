//! Access: pages without a session, stolen cookies, forged forms, ended sessions.

use std::time::Duration;

use crate::stage::{Browser, Reply, Stage};

const PAGES: [&str; 9] = [
    "/",
    "/groups",
    "/group?domain=farm.org",
    "/waiting",
    "/sources",
    "/list",
    "/host?host=a.farm.org",
    "/decisions",
    "/logins",
];

const FORMS: [&str; 7] = [
    "/groups",
    "/sources",
    "/list",
    "/host",
    "/decisions",
    "/logins",
    "/logout",
];

#[tokio::test] // S88
async fn without_a_session_every_page_and_form_leads_to_the_login() {
    let stage = Stage::start().await;
    let mut browser = Browser::default();
    let is_login = |reply: &Reply| {
        let to = reply.header("location").unwrap_or_default();
        reply.status == 303 && (to == "/login" || to.starts_with("/login?to=%2F"))
    };
    for page in PAGES {
        assert!(is_login(&stage.get(&mut browser, page).await), "{page}");
    }
    for form in FORMS {
        let body = "form=x&domain=a.farm.org&verb=deny&reason=r";
        assert!(
            is_login(&stage.post(&mut browser, form, body).await),
            "{form}"
        );
    }
    let log = stage.store.reader().unwrap().decisions(None, 1).unwrap();
    assert!(log.rows.is_empty());
}

#[tokio::test] // S85
async fn every_page_of_a_session_is_shown_and_kept_by_no_cache() {
    let mut stage = Stage::start().await;
    stage.bring_in(&["a.farm.org"]).await;
    let mut browser = stage.logged_in().await;
    for page in PAGES {
        let reply = stage.get(&mut browser, page).await;
        assert_eq!(reply.status, 200, "{page}: {}", reply.body);
        assert_eq!(reply.header("cache-control"), Some("no-store"), "{page}");
        assert!(reply.body.contains("Logged in as ada"), "{page}");
        assert!(!reply.body.contains("<script"), "{page}");
    }
}

#[tokio::test] // S26
async fn a_cookie_that_is_stolen_to_another_browser_is_worth_nothing() {
    let mut stage = Stage::start().await;
    let mut owner = stage.logged_in().await;
    let mut session_alone = owner.clone();
    let cookies = &mut session_alone.cookies;
    cookies.retain(|(name, _)| name == "__Host-session");
    let mut with_another_agent = owner.clone();
    with_another_agent.agent = "browser 2";
    for (thief, what) in [
        (&mut session_alone, "without the browser's cookie"),
        (&mut with_another_agent, "in another browser"),
    ] {
        let reply = stage.get(thief, "/").await;
        assert_eq!(reply.status, 303, "{what}");
    }
    let reply = stage.get(&mut owner, "/").await;
    assert_eq!(reply.status, 200, "the owner's stays");
}

#[tokio::test] // S26 S88
async fn a_form_of_another_session_or_none_does_nothing() {
    let mut stage = Stage::start().await;
    stage.bring_in(&["a.farm.org"]).await;
    let mut other = stage.logged_in().await;
    let mut browser = stage.logged_in().await;
    let others_token = stage.get(&mut other, "/host").await.form();
    let own = stage.get(&mut browser, "/host").await.form();
    assert_ne!(own, others_token);
    for forged in ["", "x", &others_token] {
        let body = format!("form={forged}&host=a.farm.org&do=take_out&reason=r");
        let reply = stage.post(&mut browser, "/host", &body).await;
        assert_eq!(reply.status, 403, "{forged}");
    }
    let body = format!("form={own}&host=a.farm.org&do=take_out&reason=r");
    assert_eq!(stage.post(&mut browser, "/host", &body).await.status, 200);
    let log = stage.store.reader().unwrap().decisions(None, 10).unwrap();
    assert_eq!(log.rows.len(), 1, "the own form alone");
}

#[tokio::test] // S85
async fn a_session_ends_by_time_by_logging_out_and_by_another_hand() {
    let mut stage = Stage::start().await;
    let mut idle = stage.logged_in().await;
    stage.passes(Duration::from_secs(30 * 60));
    assert_eq!(stage.get(&mut idle, "/").await.status, 303, "idle");

    let mut browser = stage.logged_in().await;
    let session = browser.clone();
    let form = stage.get(&mut browser, "/").await.form();
    let body = format!("form={form}");
    let reply = stage.post(&mut browser, "/logout", &body).await;
    assert_eq!(reply.header("location"), Some("/login"));
    assert_eq!(browser.cookie("__Host-session"), None);
    let is_known = browser.cookie("__Host-browser").is_some();
    assert!(is_known, "the browser stays known");
    let reply = stage.get(&mut session.clone(), "/").await;
    assert_eq!(reply.status, 303, "logged out");

    let (mut one, mut two) = (stage.logged_in().await, stage.logged_in().await);
    let form = stage.get(&mut one, "/logins").await.form();
    let body = format!("form={form}&end=*");
    let reply = stage.post(&mut one, "/logins", &body).await;
    assert_eq!(reply.status, 303);
    for browser in [&mut one, &mut two] {
        assert_eq!(stage.get(browser, "/").await.status, 303, "all were ended");
    }
}

#[tokio::test]
async fn login_keeps_the_typed_name_and_leads_back() {
    let mut stage = Stage::start().await;
    let mut browser = Browser::default();
    let asked = stage.get(&mut browser, "/host?host=a.farm.org").await;
    let login = asked.header("location").unwrap().to_owned();
    let to = login.split_once("to=").unwrap().1;
    for (password, to, expect) in [
        ("wrong", to, None),
        ("correct+horse", "//evil.example", Some("/")),
        ("correct+horse", to, Some("/host?host=a.farm.org")),
    ] {
        let mut browser = Browser::default();
        let form = stage.get(&mut browser, &login).await;
        assert!(form.body.contains("My census console"), "{}", form.body);
        let code = stage.code();
        let form = form.form();
        let body = format!("form={form}&to={to}&name=ada&password={password}&code={code}");
        let reply = stage.post(&mut browser, "/login", &body).await;
        assert_eq!(reply.header("location"), expect);
        let kept = [
            r#"required value="ada""#,
            r#"value="/host?host=a.farm.org""#,
        ];
        let is_kept = kept.iter().all(|part| reply.body.contains(part));
        assert_eq!(is_kept, expect.is_none(), "{}", reply.body);
    }
}

#[tokio::test] // S83
async fn each_login_has_a_session_of_its_own() {
    let mut stage = Stage::start().await;
    let mut browser = stage.logged_in().await;
    let mut former = browser.clone();
    let before = browser.cookie("__Host-session").unwrap().to_owned();
    let code = stage.code();
    stage.log_in(&mut browser, &code).await;
    assert_ne!(browser.cookie("__Host-session").unwrap(), before);
    let reply = stage.get(&mut former, "/").await;
    assert_eq!(reply.status, 303, "the session before ended with the login");
}
