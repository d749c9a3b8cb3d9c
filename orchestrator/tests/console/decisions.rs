//! Moderators' decisions, from the form to the row and back.

use census::group::Decision;
use census::state::{OptedOutBy, State};
use orchestrator::daemon::Order;
use protocol::Host;

use crate::stage::{Browser, Stage};

fn boxes(body: &str) -> Vec<String> {
    let parts = body.split("type=\"checkbox\"").skip(1);
    let value = |part: &str| {
        let (_, rest) = part.split_once("value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    parts.map(value).collect()
}

/// Submits the form of a page to a path. Returns the answer.
async fn submit(
    stage: &Stage,
    browser: &mut Browser,
    [page, to]: [&str; 2],
    fields: &str,
) -> String {
    let form = stage.get(browser, page).await.form();
    let body = format!("form={form}&{fields}");
    let reply = stage.post(browser, to, &body).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body
}

async fn decide(stage: &Stage, browser: &mut Browser, fields: &str) -> String {
    submit(
        stage,
        browser,
        ["/group?domain=farm.org", "/groups"],
        fields,
    )
    .await
}

async fn undo(stage: &Stage, browser: &mut Browser, fields: &str) -> String {
    submit(stage, browser, ["/decisions"; 2], fields).await
}

fn decision(stage: &Stage, domain: &str) -> Option<Decision> {
    let group = stage.store.reader().unwrap().group(domain).unwrap();
    group.map(|group| group.group.decision)
}

/// Two groups denied at once, one of them limited afterwards.
async fn with_three_decisions() -> (Stage, Browser) {
    let mut stage = Stage::start().await;
    stage
        .bring_in(&["a.farm.org", "b.farm.org", "a.mill.org"])
        .await;
    let mut browser = stage.logged_in().await;
    let fields = "domain=farm.org&domain=mill.org&verb=deny&reason=spam+%3Cb%3E";
    let done = decide(&stage, &mut browser, fields).await;
    let both = ["farm.org: denied", "mill.org: denied"];
    assert!(both.iter().all(|one| done.contains(one)), "{done}");
    assert_eq!(decision(&stage, "farm.org"), Some(Decision::Deny));
    let fields = "domain=farm.org&verb=limit&a_day=7&reason=let+us+see";
    decide(&stage, &mut browser, fields).await;
    (stage, browser)
}

#[tokio::test] // S21
async fn groups_are_decided_about_by_many_undone_and_logged_by_name() {
    let (stage, mut browser) = with_three_decisions().await;
    let page = stage.get(&mut browser, "/decisions").await;
    assert!(page.body.contains("moderator ada"), "{}", page.body);
    let is_escaped = page.body.contains("spam &lt;b&gt;");
    assert!(is_escaped, "{}", page.body);
    // The newest about each group.
    assert_eq!(boxes(&page.body), ["g3", "g2"]);
    undo(&stage, &mut browser, "decision=g3").await;
    // The decision before.
    assert_eq!(decision(&stage, "farm.org"), Some(Decision::Deny));
    let group = stage.store.reader().unwrap().group("farm.org").unwrap();
    let reason = group.unwrap().reason;
    assert_eq!(reason.as_deref(), Some("spam <b>"), "with its reason");
    let undone = undo(&stage, &mut browser, "decision=g2").await;
    assert!(undone.contains("mill.org: undone"), "{undone}");
    assert_eq!(decision(&stage, "mill.org"), Some(Decision::None));

    // A page that was loaded before another moderator decided.
    let late = undo(&stage, &mut browser, "decision=g1&decision=g99").await;
    assert!(late.contains("a later decision"), "{late}");
    assert!(late.contains("there is no such decision"), "{late}");
    assert_eq!(decision(&stage, "farm.org"), Some(Decision::Deny));

    let decided = stage.get(&mut browser, "/groups?which=decided").await;
    assert_eq!(boxes(&decided.body), ["farm.org"]);
}

#[tokio::test]
async fn held_group_is_a_card_and_its_undo_spares_later_decisions() {
    let mut stage = Stage::start().await;
    let mut browser = stage.logged_in().await;
    let overview = stage.get(&mut browser, "/").await.body;
    assert!(overview.contains("Nothing needs you."), "{overview}");
    stage.store.writer().set_group_threshold(1).await.unwrap();
    stage.bring_in(&["a.farm.org", "b.farm.org"]).await;
    let overview = stage.get(&mut browser, "/").await.body;
    assert!(overview.contains("1 group is held"), "{overview}");
    let card = stage.get(&mut browser, "/groups").await.body;
    for fact in [
        "2 known, 0 responding, 0 listed, 2 held back",
        "2 of the census's last 2 new names",
        "no independent source",
        "b.farm.org",
        "value=\"deny\" accesskey=\"d\"",
    ] {
        assert!(card.contains(fact), "{fact}: {card}");
    }
    assert!(!card.contains("Suggestion"), "{card}");
    // The reason of one key is the facts.
    let reason = "2+hosts%2C+0+responding";
    let fields = |verb| format!("domain=farm.org&verb={verb}&reason={reason}");
    let denied = submit(&stage, &mut browser, ["/groups"; 2], &fields("deny")).await;
    assert!(
        denied.contains("name=\"decision\" value=\"g1\""),
        "{denied}"
    );
    let mut other = stage.logged_in().await;
    submit(&stage, &mut other, ["/groups"; 2], &fields("limit&a_day=7")).await;
    let late = undo(&stage, &mut browser, "decision=g1").await;
    assert!(late.contains("a later decision"), "{late}");
    let limited = Some(Decision::Limit { a_day: 7 });
    assert_eq!(decision(&stage, "farm.org"), limited);
    undo(&stage, &mut other, "decision=g2").await;
    assert_eq!(decision(&stage, "farm.org"), Some(Decision::Deny));
}

#[tokio::test]
async fn a_host_is_taken_out_and_put_back_and_its_checks_are_stopped() {
    let mut stage = Stage::start().await;
    stage.bring_in(&["a.farm.org"]).await;
    let mut browser = stage.logged_in().await;
    let path = "/host?host=a.farm.org";
    let state = |stage: &Stage| {
        let host = Host::parse("a.farm.org").unwrap();
        let found = stage.store.reader().unwrap().record(&host).unwrap();
        found.unwrap().record.state
    };
    let fields = "host=a.farm.org&do=take_out&reason=asked+by+mail";
    submit(&stage, &mut browser, [path, "/host"], fields).await;
    let by = OptedOutBy::Moderator;
    assert_eq!(state(&stage), State::OptedOut { by });
    let order = stage.orders.recv().await.unwrap();
    assert!(matches!(order, Order::LeaveAlone { host } if host.as_str() == "a.farm.org"));
    // As pasted: the site's answer, and why below it.
    let pasted = "/host?host=https%3A%2F%2Fa.farm.org%2F%40a";
    let page = stage.get(&mut browser, pasted).await;
    let withheld = "Its owner asked to be left out, or this census does not list it.";
    for part in ["Put it back", "Not listed", withheld, "a moderator of this"] {
        assert!(page.body.contains(part), "{part}: {}", page.body);
    }
    let wrong = stage.get(&mut browser, "/host?host=10.0.0.1").await;
    assert!(wrong.body.contains("it is an IP address"), "{}", wrong.body);
    let fields = "host=a.farm.org&do=put_back&reason=a+mistake";
    submit(&stage, &mut browser, [path, "/host"], fields).await;
    assert_eq!(state(&stage), State::Discovered);
    let log = stage.get(&mut browser, "/decisions").await;
    for done in ["taken out", "put back"] {
        assert!(log.body.contains(done), "{done}: {}", log.body);
    }
}

#[tokio::test]
async fn an_owners_word_and_an_empty_reason_are_respected() {
    let mut stage = Stage::start().await;
    stage.bring_in(&["a.farm.org"]).await;
    let host = Host::parse("a.farm.org").unwrap();
    let now = census::time::Timestamp(1_790_812_800_000);
    let writer = stage.store.writer();
    writer.opt_out(&host, OptedOutBy::Owner, now).await.unwrap();
    let mut browser = stage.logged_in().await;
    for (fields, expect) in [
        ("do=put_back&reason=r", "only they can revoke it"),
        ("do=take_out&reason=+", "the reason must be a line"),
        ("do=take_out&reason=%C3%A4+%28asked%29", "revokes that too"),
    ] {
        let form = stage.get(&mut browser, "/host").await.form();
        let body = format!("form={form}&host=a.farm.org&{fields}");
        let reply = stage.post(&mut browser, "/host", &body).await;
        assert!(reply.body.contains(expect), "{fields}: {}", reply.body);
    }
    let log = stage.get(&mut browser, "/decisions").await;
    assert!(log.body.contains("ä (asked)"), "{}", log.body);
    let by = OptedOutBy::Owner;
    let form = stage.get(&mut browser, "/host").await.form();
    let body = format!("form={form}&host=a.farm.org&do=put_back&reason=r");
    stage.post(&mut browser, "/host", &body).await;
    let found = stage.store.reader().unwrap().record(&host).unwrap();
    assert_eq!(found.unwrap().record.state, State::OptedOut { by });
}

#[tokio::test]
async fn a_host_is_checked_and_the_list_is_published_by_force() {
    let mut stage = Stage::start().await;
    stage.bring_in(&["a.farm.org"]).await;
    let mut browser = stage.logged_in().await;
    let (form, mut orders) = (
        stage.get(&mut browser, "/host").await.form(),
        std::mem::replace(&mut stage.orders, tokio::sync::mpsc::channel(1).1),
    );
    let body = format!("form={form}&host=a.farm.org&do=check");
    let playing = async {
        let Some(Order::Check { host, watcher }) = orders.recv().await else {
            panic!("no check was ordered");
        };
        assert_eq!(host.as_str(), "a.farm.org");
        for step in ["checker: {\"alive\":{}}", "verdict: alive mastodon 4.2"] {
            watcher.send(step.to_owned()).await.unwrap();
        }
        drop(watcher);
        orders
    };
    let (reply, mut orders) = tokio::join!(stage.post(&mut browser, "/host", &body), playing);
    let sentence = "a.farm.org: It answered as an instance. (mastodon 4.2)";
    assert!(reply.body.contains(sentence), "{}", reply.body);
    assert!(!reply.body.contains("checker:"), "{}", reply.body);

    let body = format!("form={form}");
    let playing = async {
        let Some(Order::Dump { force, answer }) = orders.recv().await else {
            panic!("no publication was ordered");
        };
        answer.send(Ok(12)).unwrap();
        force
    };
    let (reply, force) = tokio::join!(stage.post(&mut browser, "/list", &body), playing);
    assert!(reply.body.contains("published 12 names"), "{}", reply.body);
    assert_eq!(force, dump::Force::Yes);
}

#[tokio::test]
async fn a_paused_source_is_resumed() {
    let mut stage = Stage::start().await;
    let at = census::time::Timestamp(1_790_812_800_000);
    let memory = census::source::Memory {
        paused: Some(census::source::Pause {
            since: at,
            names: 100,
            before: 3,
        }),
        ..census::source::Memory::default()
    };
    let writer = stage.store.writer();
    writer.remember_source("a-list", memory).await.unwrap();
    let mut browser = stage.logged_in().await;
    let page = stage.get(&mut browser, "/sources").await;
    assert!(page.body.contains("Resume"), "{}", page.body);
    let body = format!("form={}&name=a-list", page.form());
    let reply = stage.post(&mut browser, "/sources", &body).await;
    assert!(reply.body.contains("a-list: resumed"), "{}", reply.body);
    let page = stage.get(&mut browser, "/sources").await;
    assert!(!page.body.contains("Resume"), "{}", page.body);
}
