//! The formats of real instances: NodeInfo, and each software family's peers endpoint.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::play::{Answer, Play, Request};

/// Path of the well-known NodeInfo.
pub const WELL_KNOWN: &str = "/.well-known/nodeinfo";

/// Path of the personas' NodeInfo document.
pub const DOCUMENT: &str = "/nodeinfo/2.0";

/// Path of the peers list of Mastodon and similar software.
pub const PEERS_PATH: &str = "/api/v1/instance/peers";

/// `rel` without its version.
pub const SCHEMA: &str = "http://nodeinfo.diaspora.software/ns/schema/";

/// A responding instance without any peers endpoint.
pub fn living(host: &str, software: &str, version: &str) -> Play {
    with_document(host, &document(software, version))
}

/// A responding instance with this NodeInfo document.
pub fn with_document(host: &str, document: &Value) -> Play {
    pointing(host).route(DOCUMENT, Answer::json(document))
}

/// Well-known NodeInfo that points to [`DOCUMENT`], which the caller has to add.
pub fn pointing(host: &str) -> Play {
    let href = format!("https://{host}{DOCUMENT}");
    Play::default().route(WELL_KNOWN, Answer::json(&pointer("2.0", &href)))
}

/// Well-known NodeInfo with one link.
pub fn pointer(version: &str, href: &str) -> Value {
    json!({"links": [{"rel": format!("{SCHEMA}{version}"), "href": href}]})
}

/// A NodeInfo 2.0 document.
pub fn document(software: &str, version: &str) -> Value {
    let mut document = json!({
        "version": "2.0",
        "software": {"name": software, "version": version},
        "protocols": ["activitypub"],
        "services": {"inbound": [], "outbound": []},
        "usage": {"users": {"total": 12, "activeMonth": 7, "activeHalfyear": 9}, "localPosts": 345},
        "metadata": {}
    });
    if let Some(open) = open_registrations(software) {
        set(&mut document, "openRegistrations", open.into());
    }
    document
}

pub(super) fn set(object: &mut Value, key: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(key.to_owned(), value);
    }
}

/// The `openRegistrations` of ordinary instances of a software. `None` if the member is missing.
pub fn open_registrations(software: &str) -> Option<bool> {
    match software {
        // Made for one person or a few, or expensive to run.
        "akkoma" | "gotosocial" | "hometown" | "mitra" | "owncast" | "peertube" | "sharkey"
        | "smithereen" | "snac" | "takahe" | "wordpress" | "writefreely" => Some(false),
        // NodeInfo requires the member, but these leave it out.
        "activityrelay" | "synapse" | "unheard-of" | "wildebeest" => None,
        _ => Some(true),
    }
}

pub fn flat<S: AsRef<str>>(peers: &[S]) -> Answer {
    let peers: Vec<&str> = peers.iter().map(AsRef::as_ref).collect();
    Answer::json(&json!(peers))
}

/// A flat list for clients that accept only JSON, as in `GoToSocial`. With a filter it contains
/// objects.
pub fn gotosocial(peers: &[&str]) -> Answer {
    let peers: Vec<String> = peers.iter().map(|&peer| peer.to_owned()).collect();
    Answer::make(move |request| {
        if !accepts_json(request) {
            return Answer::status(406);
        }
        if request.parameter("filter").is_none() {
            return flat(&peers);
        }
        let objects: Vec<Value> = peers.iter().map(|peer| json!({"domain": peer})).collect();
        Answer::json(&json!(objects))
    })
}

fn accepts_json(request: &Request) -> bool {
    request.accept.contains("application/json")
}

/// Misskey's `POST /api/federation/instances`: pages by `limit` (at most 100) and `offset` in the
/// body.
pub fn misskey_instances(peers: &[String]) -> Answer {
    let peers = peers.to_vec();
    Answer::make(move |request| {
        if request.method != "POST" {
            return Answer::status(405);
        }
        let Ok(wish) = serde_json::from_slice::<Value>(&request.body) else {
            return Answer::status(400);
        };
        let number = |key: &str, otherwise: u64| {
            wish.get(key).and_then(Value::as_u64).unwrap_or(otherwise) as usize
        };
        let limit = number("limit", 30);
        if limit == 0 || limit > 100 {
            return Answer::status(400);
        }
        let page: Vec<Value> = peers
            .iter()
            .enumerate()
            .skip(number("offset", 0))
            .take(limit)
            .map(|(id, peer)| {
                json!({"id": format!("a{id}"), "host": peer, "firstRetrievedAt": "2024-02-29T00:00:00.000Z",
                    "usersCount": 3, "isNotResponding": false, "isSuspended": false, "isBlocked": false})
            })
            .collect();
        Answer::json(&json!(page))
    })
}

fn lemmy_instance((id, peer): (usize, &&str)) -> Value {
    json!({"id": id + 1, "domain": peer, "published": "2023-06-10T00:00:00Z", "software": "lemmy", "version": "0.19.5"})
}

/// Lemmy 0.18 and 0.19, and `PieFed`.
pub fn lemmy_federated(linked: &[&str], blocked: &[&str]) -> Answer {
    let linked: Vec<Value> = linked.iter().enumerate().map(lemmy_instance).collect();
    let blocked: Vec<Value> = blocked.iter().enumerate().map(lemmy_instance).collect();
    Answer::json(
        &json!({"federated_instances": {"linked": linked, "allowed": [], "blocked": blocked}}),
    )
}

/// Lemmy up to 0.17: names inside `/api/v3/site`.
pub fn lemmy_site(linked: &[&str], blocked: &[&str]) -> Answer {
    Answer::json(&json!({
        "site_view": {"site": {"name": "old"}}, "version": "0.17.4",
        "federated_instances": {"linked": linked, "allowed": null, "blocked": blocked}
    }))
}

/// Lemmy 1.0's betas: pages by `page_cursor`, in `key` (`federated_instances` or `items`).
pub fn lemmy_paged(key: &'static str, pages: &[&[&str]]) -> Answer {
    let pages: Vec<Vec<String>> = pages
        .iter()
        .map(|page| page.iter().map(|&peer| peer.to_owned()).collect())
        .collect();
    Answer::make(move |request| {
        let number = match request.parameter("page_cursor") {
            None => 0,
            Some(cursor) => match cursor.strip_prefix('P').and_then(|n| n.parse().ok()) {
                Some(number) => number,
                None => return Answer::status(400),
            },
        };
        let views: Vec<Value> = pages
            .get(number)
            .into_iter()
            .flatten()
            .map(|peer| json!({"instance": {"id": 1, "domain": peer, "published_at": "2025-01-01T00:00:00Z"}}))
            .collect();
        let next = (number + 1 < pages.len()).then(|| format!("P{}", number + 1));
        Answer::json(&json!({key: views, "next_page": next, "prev_page": null}))
    })
}

pub fn mbin(peers: &[&str]) -> Answer {
    let instances: Vec<Value> = peers
        .iter()
        .map(|peer| json!({"domain": peer, "software": "mbin", "version": "1.8.2"}))
        .collect();
    Answer::json(&json!({"instances": instances}))
}

/// One side of `PeerTube`'s follows, `following` or `follower`: pages by `start` and `count` (15,
/// at most 100).
pub fn peertube(side: &'static str, own: &str, peers: &[String]) -> Answer {
    let (own, peers) = (own.to_owned(), peers.to_vec());
    Answer::make(move |request| {
        let count = request.number("count", 15);
        if count > 100 {
            return Answer::status(400);
        }
        let data: Vec<Value> = peers
            .iter()
            .skip(request.number("start", 0))
            .take(count)
            .map(|peer| {
                let (follower, following) = if side == "following" {
                    (&own, peer)
                } else {
                    (peer, &own)
                };
                json!({"id": 1, "state": "accepted", "score": 1000,
                    "follower": {"host": follower, "name": "peertube"}, "following": {"host": following, "name": "peertube"}})
            })
            .collect();
        Answer::json(&json!({"total": peers.len(), "data": data}))
    })
}

/// Funkwhale: pages by `page`, whose `next` points to a foreign host.
pub fn funkwhale(next_host: &'static str, pages: &[&[&str]]) -> Answer {
    let pages: Vec<Vec<String>> = pages
        .iter()
        .map(|page| page.iter().map(|&peer| peer.to_owned()).collect())
        .collect();
    Answer::make(move |request| {
        let number = request.number("page", 1).max(1);
        let Some(page) = pages.get(number - 1) else {
            return Answer::status(404);
        };
        let results: Vec<Value> = page.iter().map(|peer| json!({"name": peer})).collect();
        let count: usize = pages.iter().map(Vec::len).sum();
        let next = (number < pages.len()).then(|| {
            format!(
                "https://{next_host}/api/v1/federation/domains?page={}",
                number + 1
            )
        });
        Answer::json(&json!({"count": count, "next": next, "previous": null, "results": results}))
    })
}

/// GNU social's and Friendica's flag.
pub fn statusnet_config(private: Value) -> Answer {
    Answer::json(&json!({"site": {"name": "x", "private": private, "closed": "0"}}))
}

pub fn siteinfo(hide: Value) -> Answer {
    Answer::json(&json!({"version": "9.4", "hide_in_statistics": hide}))
}

/// A list far longer than accepted: `count` names generated while sending.
pub fn long_list(count: u64, name: impl Fn(u64) -> String + Send + Sync + 'static) -> Answer {
    const NAMES_PER_PIECE: u64 = 1000;
    let Answer::Reply(reply) = Answer::json_bytes("") else {
        return Answer::status(500);
    };
    let pieces = move |piece: u64| {
        let first = piece * NAMES_PER_PIECE;
        if first >= count {
            return None;
        }
        let last = (first + NAMES_PER_PIECE).min(count);
        let mut text = String::from(if first == 0 { "[" } else { "" });
        for number in first..last {
            text.push('"');
            text.push_str(&name(number));
            text.push_str(if number + 1 == count { "\"]" } else { "\"," });
        }
        Some(Bytes::from(text))
    };
    Answer::Chunked(reply, std::sync::Arc::new(pieces))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answer: &Answer, query: &str, body: &str, expect: &Value) {
        let request = Request {
            method: if body.is_empty() { "GET" } else { "POST" }.to_owned(),
            query: query.to_owned(),
            body: Bytes::from(body.to_owned()),
            ..Request::default()
        };
        let Answer::Make(maker) = answer else {
            panic!("made from the request");
        };
        let Answer::Reply(reply) = maker(&request) else {
            panic!("a reply");
        };
        let mut found = serde_json::from_slice::<Value>(&reply.body).unwrap();
        if let Some(pointer) = expect["at"].as_str() {
            found = found.pointer(pointer).cloned().unwrap_or_default();
        }
        assert_eq!(found, expect["is"]);
    }

    #[test]
    fn pages_hold_what_is_asked_for() {
        let names: Vec<String> = (0..120).map(|n| format!("n{n}.test")).collect();
        let list = peertube("following", "own.test", &names);
        let at = |at: &str, is: Value| json!({"at": at, "is": is});
        check(
            &list,
            "start=100&count=100",
            "",
            &at("/data/19/following/host", json!("n119.test")),
        );
        check(&list, "start=120&count=100", "", &at("/data", json!([])));
        let list = misskey_instances(&names);
        let body = r#"{"limit":100,"offset":100}"#;
        check(&list, "", body, &at("/19/host", json!("n119.test")));
        let list = lemmy_paged("items", &[&["a.test"], &["b.test"]]);
        check(&list, "", "", &at("/next_page", json!("P1")));
        check(
            &list,
            "page_cursor=P1",
            "",
            &at("/items/0/instance/domain", json!("b.test")),
        );
    }

    #[test]
    fn a_long_list_is_one_sound_array() {
        let Answer::Chunked(_, pieces) = long_list(2500, |n| format!("h{n}.test")) else {
            panic!("chunked");
        };
        let text: Vec<u8> = (0..).map_while(|n| pieces(n)).flatten().collect();
        let names: Vec<String> = serde_json::from_slice(&text).unwrap();
        assert_eq!(names.len(), 2500);
        assert_eq!(names.last().unwrap(), "h2499.test");
    }
}
