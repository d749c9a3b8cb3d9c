//! Notifications: the button's script, and the service worker in a partial browser.

use serde_json::{Value, json};

use crate::scripts::node;

const BROWSER: &str = include_str!("browser.js");

fn with_browser(program: &str, input: &Value) -> Option<Value> {
    let program = format!(
        "{}\nconst output = await (async () => {{ {program} }})();\nconsole.log(JSON.stringify(output));",
        BROWSER.replace("export ", "")
    );
    node(&program, input)
}

#[test]
fn a_message_is_checked_before_it_is_shown_and_leads_to_the_site_alone() {
    let root = "https://census.example/";
    let told = |page: &str| json!({"title": "a.example", "body": "It is back.", "page": page});
    let generic = json!({"title": "This census has news", "body": "", "tag": "This census has news", "data": root});
    let leads_to = |url: &str| {
        json!({
            "title": "a.example", "body": "It is back.", "tag": "a.example", "data": url
        })
    };
    let elsewhere = [
        "https://other.example/",
        "//other.example/",
        "https://census.example.other.example/",
        "http://census.example/",
        "javascript:alert(1)",
        "data:text/html,x",
        "https://[",
    ];
    let mut cases: Vec<(String, Value)> = elsewhere
        .map(|page| (told(page).to_string(), leads_to(root)))
        .to_vec();
    cases.extend([
        (
            told("why.html#a.example").to_string(),
            leads_to("https://census.example/why.html#a.example"),
        ),
        (
            json!({"title": "a.example", "body": "It is back."}).to_string(),
            leads_to(root),
        ),
    ]);
    let unreadable = [
        String::new(),
        "no JSON".to_owned(),
        "null".to_owned(),
        "7".to_owned(),
        "[]".to_owned(),
        json!({"title": 7, "body": "x"}).to_string(),
        json!({"title": "x"}).to_string(),
        json!({"title": "", "body": "x"}).to_string(),
        json!({"title": "x".repeat(201), "body": "x"}).to_string(),
        json!({"title": "x", "body": "x".repeat(1001)}).to_string(),
        json!({"title": "x", "body": "x", "more": "x".repeat(4096)}).to_string(),
    ];
    cases.extend(unreadable.map(|text| (text, generic.clone())));
    let (texts, expect): (Vec<_>, Vec<_>) = cases.into_iter().unzip();
    let program = "const { shown, opened, happen } = browser();
        for (const text of input) await happen('push', { data: { text: () => text } });
        await happen('push', { data: null });
        let closed = 0;
        for (const { data } of shown) await happen('notificationclick', { notification: { data, close: () => (closed += 1) } });
        return { shown, opened, closed };";
    let Some(found) = with_browser(program, &json!(texts)) else {
        return;
    };
    let mut expect = expect;
    expect.push(generic);
    assert_eq!(found["shown"], json!(expect));
    let urls: Vec<&Value> = expect.iter().map(|shown| &shown["data"]).collect();
    assert_eq!(found["opened"], json!(urls));
    assert_eq!(found["closed"], json!(urls.len()));
}

fn posted(endpoint: u32, filter: &Value) -> String {
    let endpoint = format!("https://push.example/{endpoint}");
    let keys = r#"{"p256dh":"P","auth":"A"}"#;
    format!(r#"POST /subscribe {{"endpoint":"{endpoint}","keys":{keys},"filter":{filter}}} 201"#)
}

#[test]
fn a_browser_has_one_subscription_and_a_filter_for_each_button_that_is_on() {
    let program = "const { done, ask } = browser();
        const host = { host: 'a.example' };
        const answers = [];
        // At the same moment, as from two pages.
        answers.push(...await Promise.all([ask({ filter: 'all', isWanted: true }), ask({ filter: host, isWanted: true })]));
        answers.push(await ask({ filter: host, isWanted: true }));
        answers.push(await ask({}));
        answers.push(await ask({ filter: 'all', isWanted: false }));
        answers.push(await ask({ filter: 'all', isWanted: false }));
        answers.push(await ask({ filter: host, isWanted: false }));
        answers.push(await ask({}));
        return { answers, done };";
    let Some(found) = with_browser(program, &Value::Null) else {
        return;
    };
    let (all, host) = (json!("all"), json!({"host": "a.example"}));
    let on = |filters: Value| json!({"filters": filters});
    let answers = [
        json!(["all"]),
        json!(["all", host]),
        json!(["all", host]),
        json!(["all", host]),
        json!([host]),
        json!([host]),
        json!([]),
        json!([]),
    ]
    .map(on);
    assert_eq!(found["answers"], json!(answers));
    let key = "GET /subscribe 200";
    let ended = |filter: &str| {
        format!(r#"DELETE /subscribe {{"endpoint":"https://push.example/1"{filter}}} 204"#)
    };
    let expect = [
        key.to_owned(),
        "subscribe BA-_ true".to_owned(),
        posted(1, &all),
        key.to_owned(),
        posted(1, &host),
        key.to_owned(),
        posted(1, &host),
        key.to_owned(),
        ended(r#","filter":"all""#),
        ended(r#","filter":"all""#),
        ended(""),
        "unsubscribe https://push.example/1".to_owned(),
    ];
    assert_eq!(found["done"], json!(expect));
}

#[test]
fn filters_move_to_a_new_subscription_if_the_old_one_or_its_key_is_lost() {
    let program = "const { census, done, ask, happen, forget, permit } = browser();
        for (const filter of ['all', { software: 'mastodon' }]) await ask({ filter, isWanted: true });
        const from = done.length;
        forget();
        await happen('pushsubscriptionchange');
        census.key = 'BBBB';
        const moved = await ask({});
        census.key = 'BCCC';
        const added = await ask({ filter: { host: 'a.example' }, isWanted: true });
        const steps = done.slice(from);
        permit('denied');
        return { steps, moved, added, denied: await ask({}), later: done.length - from - steps.length };";
    let Some(found) = with_browser(program, &Value::Null) else {
        return;
    };
    let (all, software, host) = (
        json!("all"),
        json!({"software": "mastodon"}),
        json!({"host": "a.example"}),
    );
    let key = "GET /subscribe 200".to_owned();
    let expect = [
        key.clone(),
        "subscribe BA-_ true".to_owned(),
        posted(2, &all),
        posted(2, &software),
        key.clone(),
        "unsubscribe https://push.example/2".to_owned(),
        "subscribe BBBB true".to_owned(),
        posted(3, &all),
        posted(3, &software),
        key,
        "unsubscribe https://push.example/3".to_owned(),
        "subscribe BCCC true".to_owned(),
        posted(4, &all),
        posted(4, &software),
        posted(4, &host),
    ];
    assert_eq!(found["steps"], json!(expect));
    assert_eq!(found["moved"], json!({"filters": [all, software]}));
    assert_eq!(found["added"], json!({"filters": [all, software, host]}));
    // The browser ended the subscription with the permission, so the census needs no request.
    assert_eq!(found["denied"], json!({"filters": []}));
    assert_eq!(found["later"], 0);
}

#[test]
fn what_fails_is_said_and_leaves_nothing_half_done() {
    let program = "const failed = async (given) => {
          const { done, ask } = browser(given);
          return { ...await ask({ filter: 'all', isWanted: true }), last: done.at(-1) };
        };
        const full = await failed({ answers: { POST: [503, { error: 'there is no room' }] } });
        const others = [
          await failed({ answers: { POST: [429, null] } }), await failed({ answers: { GET: [502, null] } }),
          await failed({ answers: { GET: [0, null] } }), await failed({ answers: { GET: [200, { key: 7 }] } }),
          await failed({ refused: 'NotAllowedError' }), await failed({ refused: 'AbortError' }),
        ].map(({ problem, filters }) => { if (filters.length > 0) throw new Error('on'); return problem; });
        const { census, done, ask } = browser();
        for (const filter of ['all', { host: 'a.example' }]) await ask({ filter, isWanted: true });
        census.DELETE = [0, null];
        const one = await ask({ filter: 'all', isWanted: false });
        census.DELETE = [204, null];
        await ask({ filter: 'all', isWanted: false });
        census.DELETE = [0, null];
        const last = await ask({ filter: { host: 'a.example' }, isWanted: false });
        return { full, others, one, last, ended: done.at(-1) };";
    let Some(found) = with_browser(program, &Value::Null) else {
        return;
    };
    let unsubscribed = "unsubscribe https://push.example/1";
    let full = json!({"filters": [], "problem": "there is no room", "last": unsubscribed});
    assert_eq!(found["full"], full);
    let unreached = "this census could not be reached (no network). Try again in a minute";
    let others = [
        "there were too many requests. Try again in a minute",
        "the server answered with status 502",
        unreached,
        "the census gave no key",
        "your browser does not allow notifications of this site",
        "your browser's push service could not be reached (refused). Try again later",
    ];
    assert_eq!(found["others"], json!(others));
    let both = json!(["all", {"host": "a.example"}]);
    assert_eq!(found["one"], json!({"filters": both, "problem": unreached}));
    // The push service answers 410 from then on, so the census needs no request.
    assert_eq!(found["last"], json!({"filters": []}));
    assert_eq!(found["ended"], unsubscribed);
}

#[test]
fn the_button_says_what_keeps_it_from_working_and_what_is_on() {
    let program = "import { obstacle, refusal, state } from './push.js';
        const all = { isSecureContext: true, navigator: { serviceWorker: {} }, PushManager: {}, Notification: {} };
        const lacks = [{ isSecureContext: false }, { navigator: {} }, { PushManager: undefined }, { Notification: undefined }];
        const on = ['all', { host: 'a.example' }];
        console.log(JSON.stringify({
          obstacles: [all, ...lacks.map((lack) => ({ ...all, ...lack }))].map((browser) => obstacle(browser) ?? null),
          refusals: ['granted', 'denied', 'default'].map((permission) => refusal(permission) ?? null),
          states: [state(on, 'all'), state(on, { host: 'a.example' }), state(on, { host: 'b.example' }), state([], 'all', 'Not done: x.'), state(on, 'all', 'Not done: x')],
        }));";
    let Some(found) = node(program, &Value::Null) else {
        return;
    };
    let none = "This browser offers no push notifications here. Private windows have none.";
    let https = "Browsers offer notifications over HTTPS only.";
    assert_eq!(found["obstacles"], json!([null, https, none, none, none]));
    let refusals = found["refusals"].as_array().unwrap();
    assert_eq!(refusals[0], Value::Null);
    for refusal in refusals.iter().skip(1) {
        assert!(
            refusal
                .as_str()
                .is_some_and(|words| words.starts_with("your browser "))
        );
    }
    let on = "Notifications are on. Press again to stop.";
    let expect = json!([
        {"isOn": true, "text": on},
        {"isOn": true, "text": on},
        {"isOn": false, "text": ""},
        {"isOn": false, "text": "Not done: x."},
        {"isOn": true, "text": format!("Not done: x. {on}")},
    ]);
    assert_eq!(found["states"], expect);
}
