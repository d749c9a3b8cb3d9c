//! Servers with public conversations, and servers that are named only in these.
//!
//! Only walks find the latter: a census without walks must never know any of them.

use serde_json::{Value, json};

use super::shapes::living;
use super::table::Table;
use crate::play::{Answer, Play};

/// A Mastodon whose public feed, threads and favourites name [`FOUND`].
pub const HOST: &str = "talks.lab.test";

/// A Misskey whose local timeline names [`FOUND_BY_NOTES`].
pub const NOTES_HOST: &str = "notes.lab.test";

/// Its feed and its peers list are closed: only copies of its posts on other servers name it.
pub const CLOSED: &str = "closed.lab-talk.test";

/// The hosts that [`HOST`]'s conversations name.
pub const FOUND: [&str; 8] = [
    "account.lab-split.test",
    "boosted.lab-talk.test",
    "booster.lab-talk.test",
    CLOSED,
    "fan.lab-talk.test",
    "friend.lab-talk.test",
    "posts.lab-split.test",
    "replies.lab-talk.test",
];

/// The hosts that [`NOTES_HOST`]'s notes name.
pub const FOUND_BY_NOTES: [&str; 3] = [
    "note.lab-talk.test",
    "reacts.lab-talk.test",
    "renoted.lab-talk.test",
];

/// Hosts whose only accounts in a conversation do not want to be found.
pub const QUIET: [&str; 4] = [
    "marker.lab-quiet.test",
    "noindex.lab-quiet.test",
    "signin.lab-quiet.test",
    "undiscoverable.lab-quiet.test",
];

/// Servers from which a walk gets little or nothing, and how it ends there.
pub const HOSTILE: [(&str, &str); 6] = [
    ("circles.lab.test", "complete"),
    ("endless.lab.test", "truncated"),
    ("feed-html.lab.test", "not_json"),
    ("feed-limited.lab.test", "unresponsive"),
    ("mentions.lab.test", "truncated"),
    ("no-api.lab.test", "disallowed"),
];

/// Occurs in every text, handle and id of these conversations, and may occur nowhere outside.
pub const PRIVATE: &str = "zzprivate";

const FEED: &str = "/api/v1/timelines/public";

pub(super) fn add(table: &mut Table) {
    let plays = "Shows conversations that name hosts which nobody lists";
    table.add(HOST, plays, &[]).acting(talks());
    let plays = "Shows notes that name hosts which nobody lists";
    table.add(NOTES_HOST, plays, &[]).acting(notes());
    for host in FOUND.into_iter().chain(FOUND_BY_NOTES).chain(QUIET) {
        let play = match host {
            CLOSED => living(host, "mastodon", "4.2.0")
                .route(FEED, Answer::status(401))
                .route("/api/v1/instance/peers", Answer::status(401)),
            _ => living(host, "writefreely", "0.15.0"),
        };
        table
            .add_untouchable(host, "Is named in conversations alone", &[])
            .acting(play);
    }
    for (host, _) in HOSTILE {
        let plays = "Attacks programs that read its posts";
        table.add(host, plays, &[]).acting(hostile(host));
    }
}

fn talks() -> Play {
    let access = json!({"configuration": {"timelines_access": {
        "live_feeds": {"local": "public", "remote": "public"},
    }}});
    let by = |id: &str, host: &str| post(id, host, account(id, Some(host)));
    let copied = busy(by("1", CLOSED));
    let author = account("2", Some("account.lab-split.test"));
    let split = post("2", "posts.lab-split.test", author);
    let boosted = by("3", "boosted.lab-talk.test");
    let boost = by("4", "booster.lab-talk.test");
    let local = post("5", HOST, account("5", None));
    let refusing = [
        ("6", QUIET[0], "note", json!("<p>#<span>nobot</span></p>")),
        ("7", QUIET[1], "noindex", json!(true)),
        ("8", QUIET[3], "discoverable", json!(false)),
    ];
    let mut feed = vec![copied, split, with(boost, "reblog", boosted), local];
    for (id, host, key, value) in refusing {
        let quiet = with(account(id, Some(host)), key, value);
        feed.push(busy(post(id, host, quiet)));
    }
    let reply = by("9", "replies.lab-talk.test");
    let thread = json!({"ancestors": [], "descendants": [reply]});
    let fans = json!([account("10", Some("fan.lab-talk.test"))]);
    let posts = json!([by("11", "friend.lab-talk.test")]);
    let statuses = format!("/api/v1/accounts/{PRIVATE}a5/statuses");
    living(HOST, "mastodon", "4.5.2")
        .route("/api/v2/instance", Answer::json(&access))
        .route(FEED, Answer::json(&json!(feed)))
        .route(&at_post("1", "context"), Answer::json(&thread))
        .route(&at_post("1", "favourited_by"), Answer::json(&fans))
        .route(&statuses, Answer::json(&posts))
}

fn notes() -> Play {
    let by = |id: &str, host: &str| json!({"id": user_id(id), "username": PRIVATE, "host": host});
    let note = |id: &str, user: Value| json!({"id": format!("{PRIVATE}n{id}"), "text": PRIVATE, "visibility": "public", "user": user});
    let first = note("1", by("1", "note.lab-talk.test"));
    let first = with(first, "reactions", json!({":x:": 1}));
    let renoted = note("3", by("3", "renoted.lab-talk.test"));
    let renote = note("2", by("2", "note.lab-talk.test"));
    let renote = with(renote, "renote", renoted);
    let quiet = by("4", QUIET[2]);
    let signin = with(quiet, "requireSigninToViewContents", json!(true));
    let timeline = json!([first, renote, note("4", signin)]);
    let reactions = json!([{"user": by("5", "reacts.lab-talk.test")}]);
    let profiles: Vec<Value> = ["1", "2", "3", "4", "5"]
        .map(|id| json!({"id": user_id(id), "description": PRIVATE, "fields": []}))
        .into();
    living(NOTES_HOST, "misskey", "2025.12.0")
        .route("/api/notes/local-timeline", Answer::json(&timeline))
        .route("/api/users/show", Answer::json(&json!(profiles)))
        .route("/api/notes/reactions", Answer::json(&reactions))
}

fn hostile(host: &str) -> Play {
    let play = living(host, "mastodon", "4.2.0");
    let feed = |posts: &[Value]| Answer::json(&json!(posts));
    match host {
        // Its threads refer to each other.
        "circles.lab.test" => {
            let posts: Vec<Value> = (0..40)
                .map(|n| busy(post(&n.to_string(), host, account("1", None))))
                .collect();
            play.route(FEED, feed(&posts)).otherwise(feed(&posts))
        }
        // Each account leads to another forty.
        "endless.lab.test" => play
            .route(FEED, forty(0))
            .otherwise(Answer::make(|request| {
                let digits = request.path.chars().filter(char::is_ascii_digit);
                // The first number is the API's version.
                let number: String = digits.skip(1).collect();
                forty(number.parse::<u64>().unwrap_or(0).saturating_mul(40))
            })),
        "feed-html.lab.test" => play.route(FEED, Answer::html(200, "<html>posts</html>")),
        "feed-limited.lab.test" => play.route(
            FEED,
            Answer::status(429)
                .with("X-RateLimit-Remaining", "0")
                .with("X-RateLimit-Reset", "2099-01-01T00:00:00.000000Z"),
        ),
        "mentions.lab.test" => play.route(FEED, Answer::make(|_| mentions())),
        _ => play.robots("User-agent: Fedicensus\nDisallow: /api/\n"),
    }
}

/// A post that mentions 250 000 people. It is generated as text on request: as parsed values it
/// would need all of the lab container's memory.
fn mentions() -> Answer {
    let author = account("1", None);
    let mut text = json!([post("1", "mentions.lab.test", author)]).to_string();
    // Reopens the object at the end of its array.
    text.truncate(text.len().saturating_sub("}]".len()));
    text.push_str(r#","mentions":[{}"#);
    for number in 0..250_000 {
        text.push_str(&format!(
            r#",{{"acct":"{PRIVATE}@m{number}.flood.invalid"}}"#
        ));
    }
    text.push_str("]}]");
    Answer::json_bytes(text)
}

fn forty(first: u64) -> Answer {
    let numbers = (first..first.saturating_add(40)).map(|number| number.to_string());
    let posts: Vec<Value> = numbers
        .map(|id| post(&id, "endless.lab.test", account(&id, None)))
        .collect();
    Answer::json(&json!(posts))
}

fn user_id(id: &str) -> String {
    format!("{PRIVATE}u{id}")
}

fn at_post(id: &str, what: &str) -> String {
    format!("/api/v1/statuses/{PRIVATE}{id}/{what}")
}

/// A Mastodon account, local without `host`.
fn account(id: &str, host: Option<&str>) -> Value {
    let handle = match host {
        Some(host) => format!("{PRIVATE}{id}@{host}"),
        None => format!("{PRIVATE}{id}"),
    };
    json!({"id": format!("{PRIVATE}a{id}"), "acct": handle, "note": PRIVATE, "discoverable": true})
}

fn post(id: &str, host: &str, account: Value) -> Value {
    json!({
        "id": format!("{PRIVATE}{id}"),
        "uri": format!("https://{host}/users/{PRIVATE}/statuses/{id}"),
        "visibility": "public",
        "content": PRIVATE,
        "account": account,
    })
}

fn busy(post: Value) -> Value {
    let replied = with(post, "replies_count", json!(1));
    with(replied, "favourites_count", json!(1))
}

fn with(mut object: Value, key: &str, value: Value) -> Value {
    super::shapes::set(&mut object, key, value);
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_with_many_mentions_is_json() {
        let Answer::Reply(reply) = mentions() else {
            panic!("no body");
        };
        let posts: Value = serde_json::from_slice(&reply.body).unwrap();
        let mentions = posts[0]["mentions"].as_array().unwrap();
        assert_eq!(mentions.len(), 250_001);
        assert_eq!(posts[0]["visibility"], "public");
    }
}
