//! Walk mode: public conversations in each API, accounts that do not want to be found, and
//! malicious hosts.

use protocol::{Event, WalkOutcome};
use serde_json::{Value, json};

use crate::server::{Outcome, Reply, World, answer, ok};

const FEED: &str = "/api/v1/timelines/public?limit=40";
const LOCAL_FEED: &str = "/api/v1/timelines/public?limit=40&local=true";

/// A word in every text, handle and profile of these tests.
const PRIVATE: &str = "secret";

/// What a walk printed, after checking that it printed nothing else.
struct Told {
    hosts: String,
    outcome: WalkOutcome,
    posts: u32,
    retry_after_s: Option<u64>,
}

fn told(outcome: &Outcome) -> Told {
    let [
        Event::Hello { .. },
        peers @ ..,
        Event::Walked {
            outcome: end,
            requests,
            posts,
            retry_after_s,
        },
        Event::Done { .. },
    ] = &outcome.events[..]
    else {
        panic!("{:?}", outcome.events);
    };
    assert_eq!(usize::try_from(*requests).unwrap(), outcome.requests.len());
    let said = serde_json::to_string(&outcome.events).unwrap();
    assert!(!said.contains(PRIVATE), "{said}");
    let mut hosts = Vec::new();
    for event in peers {
        match event {
            Event::Peers { hosts: some } => hosts.extend(some.iter().map(ToString::to_string)),
            other => panic!("{other:?}"),
        }
    }
    Told {
        hosts: hosts.join(" "),
        outcome: *end,
        posts: *posts,
        retry_after_s: *retry_after_s,
    }
}

/// The requested paths, except robots.txt and NodeInfo.
fn asked(outcome: &Outcome) -> Vec<&str> {
    let requests = outcome.requests.iter().map(String::as_str);
    requests
        .filter(|path| !path.contains("nodeinfo") && !path.contains("robots"))
        .collect()
}

/// An account of Mastodon's API; local if `host` is `None`.
fn account(id: &str, host: Option<&str>) -> Value {
    let acct = match host {
        Some(host) => format!("secret_{id}@{host}"),
        None => format!("secret_{id}"),
    };
    json!({
        "id": format!("secret{id}"),
        "acct": acct,
        "note": "<p>secret</p>",
        "discoverable": true,
        "fields": [{"name": "secret", "value": "secret"}],
    })
}

fn post(id: &str, uri: &str, account: Value) -> Value {
    json!({
        "id": id,
        "uri": uri,
        "visibility": "public",
        "content": "secret",
        "replies_count": 0,
        "favourites_count": 0,
        "account": account,
    })
}

/// A post of an account on its own host.
fn post_of(id: &str, host: &str) -> Value {
    post(id, &uri(host), account(id, Some(host)))
}

/// With replies, which a walk asks for.
fn replied(post: Value) -> Value {
    with(post, "replies_count", json!(2))
}

/// With favourites, whose accounts a walk asks for.
fn favoured(post: Value) -> Value {
    with(post, "favourites_count", json!(1))
}

fn with(mut value: Value, key: &str, member: Value) -> Value {
    value[key] = member;
    value
}

fn reply(value: &Value) -> Reply {
    ok(&value.to_string())
}

/// Path of an account's posts.
fn posts_of(id: &str) -> String {
    format!("/api/v1/accounts/secret{id}/statuses?limit=40")
}

/// Path of the accounts that favourited a post.
fn fans_of(id: &str) -> String {
    format!("/api/v1/statuses/{id}/favourited_by?limit=80")
}

fn uri(host: &str) -> String {
    format!("https://{host}/users/secret/statuses/7")
}

#[tokio::test]
async fn who_takes_part_in_a_conversation_names_the_host() {
    let busy = favoured(replied(post_of("1", "b.example")));
    // Its account and its URI are on different hosts.
    let split = account("2", Some("c.example"));
    let split = post("2", &uri("social.c.example"), split);
    let boosted = post_of("3", "d.example");
    let boost = with(post_of("4", "e.example"), "reblog", boosted);
    let local = post("5", &uri("a.example"), account("5", None));
    let thread = json!({
        "ancestors": [post_of("6", "f.example")],
        "descendants": [post_of("7", "g.example")],
    });
    let fans = json!([account("8", Some("h.example")), account("9", None)]);
    let posts = json!([post_of("10", "i.example")]);
    let [of_5, of_9] = ["5", "9"].map(posts_of);
    let world = World::of("mastodon")
        .with(FEED, reply(&json!([busy, split, boost, local])))
        .with("/api/v1/statuses/1/context", reply(&thread))
        .with(&fans_of("1"), reply(&fans))
        .with(&of_5, reply(&posts))
        .with(&of_9, reply(&json!([])));
    let outcome = world.walk(1).await;
    let told = told(&outcome);
    assert_eq!(
        told.hosts,
        "b.example c.example d.example e.example f.example g.example h.example i.example social.c.example"
    );
    assert_eq!((told.outcome, told.posts), (WalkOutcome::Complete, 8));
    let mut asked = asked(&outcome);
    assert_eq!(asked.remove(0), FEED);
    asked.sort_unstable();
    let thread = "/api/v1/statuses/1/context";
    assert_eq!(asked, [&*of_5, &of_9, thread, &fans_of("1")]);
}

/// Their posts are not requested either.
#[tokio::test]
async fn who_does_not_want_to_be_found_is_not() {
    let nobot = "<p><a href=\"/tags/nobot\">#<span>NoBot</span></a></p>";
    for (key, value) in [
        ("discoverable", json!(false)),
        ("indexable", json!(false)),
        ("noindex", json!(true)),
        ("suspended", json!(true)),
        ("note", json!(nobot)),
        ("display_name", json!("x #noindex")),
        ("fields", json!([{"name": "x", "value": "#nobots"}])),
    ] {
        let quiet = |id: &str| with(account(id, Some("quiet.example")), key, value.clone());
        let theirs = |id: &str| post(id, &uri("quiet.example"), quiet(id));
        let boost = with(post_of("3", "b.example"), "reblog", theirs("2"));
        let by_them = with(theirs("4"), "reblog", post_of("5", "c.example"));
        let loud = favoured(post_of("6", "d.example"));
        let feed = json!([replied(theirs("1")), boost, by_them, loud]);
        let world = World::of("mastodon")
            .with(FEED, reply(&feed))
            .with(&fans_of("6"), reply(&json!([quiet("7")])));
        let outcome = world.walk(1).await;
        assert_eq!(told(&outcome).hosts, "b.example d.example", "{key}");
        assert_eq!(asked(&outcome).len(), 2, "{key}: {:?}", outcome.requests);
    }
}

#[tokio::test]
async fn posts_that_are_not_public_name_nobody() {
    let whispered = with(post_of("1", "b.example"), "visibility", json!("private"));
    let world = World::of("mastodon").with(FEED, reply(&json!([whispered, 7, null, []])));
    assert_eq!(told(&world.walk(1).await).hosts, "");
}

#[tokio::test]
async fn a_feed_that_is_closed_is_asked_for_its_own_posts_and_then_left_alone() {
    let local = post("1", &uri("a.example"), account("1", Some("b.example")));
    let closed = || answer("422 Unprocessable Content", &[], b"{}");
    let world = World::of("mastodon")
        .with(FEED, closed())
        .with(LOCAL_FEED, reply(&json!([local])));
    let outcome = world.walk(1).await;
    let found = told(&outcome);
    assert_eq!(found.hosts, "b.example");
    assert_eq!(found.outcome, WalkOutcome::Complete);
    assert_eq!(asked(&outcome), [FEED, LOCAL_FEED]);

    let world = World::of("pleroma")
        .with(FEED, answer("401 Unauthorized", &[], b"{}"))
        .with(LOCAL_FEED, closed());
    let outcome = world.walk(1).await;
    assert_eq!(told(&outcome).outcome, WalkOutcome::AccessControlled);
    assert_eq!(asked(&outcome), [FEED, LOCAL_FEED]);
}

#[tokio::test]
async fn a_server_that_says_which_feeds_it_shows_is_asked_for_those_alone() {
    const INSTANCE: &str = "/api/v2/instance";
    use WalkOutcome::{AccessControlled, Complete};
    for (remote, local, feed, outcome) in [
        ("public", "disabled", Some(FEED), Complete),
        ("authenticated", "public", Some(LOCAL_FEED), Complete),
        ("disabled", "authenticated", None, AccessControlled),
    ] {
        let access = json!({"configuration": {"timelines_access": {
            "live_feeds": {"local": local, "remote": remote},
        }}});
        let about = json!({
            "software": {"name": "mastodon", "version": "4.5.2+glitch"},
            "protocols": ["activitypub"],
            "metadata": {},
        });
        let world = World::of("mastodon")
            .with("/nodeinfo/2.0", reply(&about))
            .with(INSTANCE, reply(&access))
            .with(FEED, reply(&json!([])))
            .with(LOCAL_FEED, reply(&json!([])));
        let found = world.walk(1).await;
        let expect: Vec<&str> = [INSTANCE].into_iter().chain(feed).collect();
        assert_eq!(asked(&found), expect, "{remote} {local}");
        assert_eq!(told(&found).outcome, outcome, "{remote} {local}");
    }
}

#[tokio::test]
async fn robots_and_a_private_instance_are_left_alone() {
    let rules = answer("200 OK", &[], b"User-agent: *\nDisallow: /api/\n");
    let about = json!({
        "software": {"name": "mastodon", "version": "4.0"},
        "protocols": ["activitypub"],
        "metadata": {"private": true},
    });
    for (path, answer) in [("/robots.txt", rules), ("/nodeinfo/2.0", reply(&about))] {
        let outcome = World::of("mastodon").with(path, answer).walk(1).await;
        assert_eq!(told(&outcome).outcome, WalkOutcome::Disallowed, "{path}");
        assert_eq!(asked(&outcome), Vec::<&str>::new(), "{path}");
    }
}

/// robots.txt may forbid only threads.
#[tokio::test]
async fn each_path_is_asked_of_robots() {
    let rules = b"User-agent: *\nDisallow: /api/v1/statuses/\n";
    let busy = favoured(replied(post_of("1", "b.example")));
    let world = World::of("mastodon")
        .with("/robots.txt", answer("200 OK", &[], rules))
        .with(FEED, reply(&json!([busy])));
    let outcome = world.walk(1).await;
    assert_eq!(told(&outcome).hosts, "b.example");
    assert_eq!(asked(&outcome), [FEED]);
}

#[tokio::test]
async fn software_without_such_conversations_is_not_walked() {
    // No API is guessed for unknown software.
    for software in ["lemmy", "peertube", "writefreely", "something new"] {
        let world = World::of(software).with(FEED, reply(&json!([])));
        let outcome = world.walk(1).await;
        assert_eq!(told(&outcome).outcome, WalkOutcome::None, "{software}");
        assert_eq!(asked(&outcome), Vec::<&str>::new(), "{software}");
    }
}

#[tokio::test]
async fn failures_of_the_feed_are_told_apart() {
    let html = answer("200 OK", &["content-type: text/html"], b"<html>");
    let unavailable = answer("503 Service Unavailable", &["retry-after: 90"], b"");
    let busy = answer(
        "429 Too Many Requests",
        &[
            "x-ratelimit-remaining: 0",
            "x-ratelimit-reset: 1970-01-01T00:05:00.000000Z",
        ],
        b"",
    );
    use WalkOutcome::{NotFound, NotJson, Unresponsive};
    let status = |status: &str| answer(status, &[], b"");
    for (feed, outcome, least_s) in [
        (html, NotJson, None),
        (ok("{\"posts\":[]}"), NotJson, None),
        (ok("[{"), NotJson, None),
        (status("404 Not Found"), NotFound, None),
        (status("410 Gone"), NotFound, None),
        (status("500 Internal Server Error"), Unresponsive, None),
        (unavailable, Unresponsive, Some(90)),
        // The test's clock starts in 1970, and a second or so has passed.
        (busy, Unresponsive, Some(200)),
    ] {
        let shown = format!("{feed:?}");
        let outcome_told = told(&World::of("mastodon").with(FEED, feed).walk(1).await);
        assert_eq!(outcome_told.outcome, outcome, "{shown}");
        let stated_s = outcome_told.retry_after_s;
        assert_eq!(stated_s.is_some(), least_s.is_some(), "{shown}");
        assert!(
            stated_s >= least_s && stated_s <= Some(300),
            "{stated_s:?} {shown}"
        );
    }
}

#[tokio::test]
async fn a_walk_stops_when_the_rate_limit_is_used_up() {
    let busy = replied(post_of("1", "b.example"));
    let feed = answer(
        "200 OK",
        &["content-type: application/json", "x-ratelimit-remaining: 0"],
        json!([busy]).to_string().as_bytes(),
    );
    let outcome = World::of("mastodon").with(FEED, feed).walk(1).await;
    let found = told(&outcome);
    assert_eq!(found.hosts, "b.example");
    assert_eq!(found.outcome, WalkOutcome::Truncated);
    assert_eq!(asked(&outcome), [FEED]);
}

/// A thread that is gone, too long or no JSON does not hide the others.
#[tokio::test]
async fn one_bad_answer_ends_no_walk() {
    let feed: Vec<Value> = ["1 b", "2 c", "3 d", "4 e"]
        .map(|post| post.split_once(' ').unwrap())
        .map(|(id, host)| replied(post_of(id, &format!("{host}.example"))))
        .into();
    let thread = json!({"ancestors": [], "descendants": [post_of("9", "f.example")]});
    let mentions: Vec<Value> = (0..250_000)
        .map(|number| json!({"acct": format!("x@h{number}.example")}))
        .collect();
    let endless = json!({"ancestors": [{"mentions": mentions}]});
    let world = World::of("mastodon")
        .with(FEED, reply(&json!(feed)))
        .with("/api/v1/statuses/2/context", ok("<html>"))
        .with("/api/v1/statuses/3/context", reply(&endless))
        .with("/api/v1/statuses/4/context", reply(&thread));
    let found = told(&world.walk(3).await);
    assert_eq!(
        found.hosts,
        "b.example c.example d.example e.example f.example"
    );
    assert_eq!(found.outcome, WalkOutcome::Complete);
}

/// A timeline without end, and threads that lead to each other.
#[tokio::test]
async fn a_walk_without_end_stops_at_its_requests_and_one_in_circles_before() {
    let endless = |seed: u64| {
        let mut world = World::of("mastodon");
        let mut feed = Vec::new();
        for number in 0..100 {
            let (id, next) = (number.to_string(), (number + 1000).to_string());
            let host = format!("h{next}.example");
            feed.push(post(&id, &uri("a.example"), account(&id, None)));
            let theirs = json!([post_of(&next, &host)]);
            world = world.with(&posts_of(&id), reply(&theirs));
        }
        world.with(FEED, reply(&json!(feed))).walk(seed)
    };
    let outcome = endless(5).await;
    assert_eq!(told(&outcome).outcome, WalkOutcome::Truncated);
    assert_eq!(outcome.requests.len(), 40);
    // Only the seed decides.
    assert_eq!(endless(5).await.requests, outcome.requests);
    assert_ne!(endless(6).await.requests, outcome.requests);

    let mut world = World::of("mastodon");
    let mut feed = Vec::new();
    for number in 0..40 {
        let id = number.to_string();
        let only = account("1", Some("b.example"));
        feed.push(favoured(post(&id, &uri("b.example"), only.clone())));
        world = world.with(&fans_of(&id), reply(&json!([only])));
    }
    let outcome = world.with(FEED, reply(&json!(feed))).walk(1).await;
    assert_eq!(told(&outcome).outcome, WalkOutcome::Complete);
    // The feed, and eight answers that name nobody new.
    assert_eq!(asked(&outcome).len(), 9);
}

/// A user of Misskey's API. In notes there is no profile.
fn user(id: &str, host: Option<&str>) -> Value {
    json!({"id": id, "username": "secret", "name": "secret", "host": host})
}

fn note(id: &str, user: Value) -> Value {
    json!({"id": id, "text": "secret", "visibility": "public", "user": user, "repliesCount": 0, "reactions": {}})
}

#[tokio::test]
async fn notes_are_read_when_their_authors_profiles_allow_it() {
    let busy = with(
        note("n1", user("u1", Some("b.example"))),
        "repliesCount",
        json!(1),
    );
    let busy = with(busy, "reactions", json!({":secret:": 1}));
    let remote = note("n2", user("u2", Some("c.example")));
    let remote = with(remote, "uri", json!("https://social.c.example/notes/n2"));
    let renote = with(note("n3", user("u3", None)), "renote", remote);
    let quiet = note("n4", user("u4", Some("quiet.example")));
    let unknown = note("n5", user("u5", Some("unknown.example")));
    let closed = user("u6", Some("closed.example"));
    let closed = with(closed, "requireSigninToViewContents", json!(true));
    let feed = json!([busy, renote, quiet, unknown, note("n6", closed)]);
    let profile = |id: &str| json!({"id": id, "description": "secret", "fields": []});
    let profiles = ["u1", "u2", "u3", "u6", "u7", "u8"].map(profile);
    let nobot = with(profile("u4"), "description", json!("#nobot"));
    let profiles: Vec<Value> = profiles.into_iter().chain([nobot]).collect();
    let children = json!([note("n7", user("u7", Some("d.example")))]);
    let reactions = json!([{"type": "secret", "user": user("u8", Some("e.example"))}]);
    let world = World::of("misskey")
        .with("POST /api/notes/local-timeline", reply(&feed))
        .with("POST /api/users/show", reply(&json!(profiles)))
        .with("POST /api/notes/conversation", reply(&json!([])))
        .with("POST /api/notes/children", reply(&children))
        .with("POST /api/notes/reactions", reply(&reactions))
        .with("POST /api/users/notes", reply(&json!([])));
    let outcome = world.walk(1).await;
    let found = told(&outcome);
    assert_eq!(
        found.hosts,
        "b.example c.example d.example e.example social.c.example"
    );
    assert_eq!(found.outcome, WalkOutcome::Complete);
    let show = r#"POST /api/users/show {"userIds":["u1","u2","u3","u4","u5","u6"]}"#;
    assert_eq!(asked(&outcome)[1], show);
}

#[tokio::test]
async fn a_local_timeline_that_is_turned_off_is_access_controlled() {
    let disabled = br#"{"error":{"code":"LTL_DISABLED"}}"#;
    let off = answer("400 Bad Request", &[], disabled);
    let world = World::of("sharkey").with("POST /api/notes/local-timeline", off);
    let outcome = world.walk(1).await;
    assert_eq!(told(&outcome).outcome, WalkOutcome::AccessControlled);
    assert_eq!(asked(&outcome).len(), 1);
}
