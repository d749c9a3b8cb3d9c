//! Answers of real servers from public bug reports, with invented names. Each file of `cases` has
//! those of one kind.
//!
//! `routes` says what is served, `instance` adds NodeInfo of that software and version, and `HOST`
//! is the host. In `verdict`, `|` separates alternatives, and details may be left out from the end.

use std::collections::BTreeMap;

use protocol::Event;
use serde_json::{Value, json};

use crate::server::{HOST, Outcome, POINTER, Reply, World, answer, ok};

#[tokio::test]
async fn documents_are_read_as_servers_write_them() {
    check(include_str!("cases/documents.json")).await;
}

#[tokio::test]
async fn heads_are_read_as_browsers_read_them() {
    check(include_str!("cases/http.json")).await;
}

#[tokio::test]
async fn peers_are_read_as_servers_list_them() {
    check(include_str!("cases/peers.json")).await;
}

#[tokio::test]
async fn pointers_are_read_as_servers_write_them() {
    check(include_str!("cases/pointers.json")).await;
}

#[tokio::test]
async fn robots_files_are_read_as_owners_write_them() {
    check(include_str!("cases/robots.json")).await;
}

#[tokio::test]
async fn walls_against_robots_are_refusals() {
    check(include_str!("cases/walls.json")).await;
}

async fn check(cases: &str) {
    let cases: Vec<Value> = serde_json::from_str(cases).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        let outcome = world(case).check().await;
        let differences = differences(&case["expect"], &outcome);
        if !differences.is_empty() {
            wrong.push(format!("{}: {}", case["id"], differences.join("; ")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn world(case: &Value) -> World {
    let mut world = World::empty();
    if let Some(instance) = case["instance"].as_str() {
        let (name, version) = instance.rsplit_once(' ').unwrap();
        let software = json!({"name": name, "version": version});
        let document = json!({"software": software, "protocols": ["activitypub"]}).to_string();
        world = world
            .with("/.well-known/nodeinfo", ok(POINTER))
            .with("/nodeinfo/2.0", ok(&document));
    }
    for (path, route) in case["routes"].as_object().unwrap() {
        world = world.with(path, reply(route));
    }
    world
}

fn reply(route: &Value) -> Reply {
    let text = |member: &str| {
        route[member]
            .as_str()
            .map(|text| text.replace("HOST", HOST))
    };
    if let Some(raw) = text("raw") {
        // Bytes above ASCII stand for themselves.
        return Reply::Raw(raw.chars().map(|letter| letter as u8).collect());
    }
    let (kind, body) = match &route["json"] {
        Value::Null => ("text/plain", text("text").unwrap_or_default()),
        document => (
            "application/json",
            document.to_string().replace("HOST", HOST),
        ),
    };
    let mut head = vec![format!(
        "content-type: {}",
        text("type").as_deref().unwrap_or(kind)
    )];
    for (name, value) in route["headers"].as_object().into_iter().flatten() {
        head.push(format!(
            "{name}: {}",
            value.as_str().unwrap().replace("HOST", HOST)
        ));
    }
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let status = format!("{} X", route["status"].as_u64().unwrap_or(200));
    answer(&status, &head, body.as_bytes())
}

fn differences(expect: &Value, outcome: &Outcome) -> Vec<String> {
    let mut found = BTreeMap::new();
    let mut learned = Vec::new();
    for event in &outcome.events {
        match event {
            Event::Alive(instance) => {
                found.insert("software", json!(instance.software));
                found.insert("version", json!(instance.version));
                found.insert("private", json!(instance.private));
                found.insert("open", json!(instance.open_registrations));
            }
            Event::Peers { hosts } => learned.extend(hosts.iter().map(ToString::to_string)),
            Event::PeersEnd { outcome, .. } => {
                found.insert("outcome", json!(outcome));
            }
            _ => {}
        }
    }
    let paths = outcome
        .requests
        .iter()
        .filter_map(|request| request.split(['?', ' ']).next());
    let paths: Vec<String> = paths.map(str::to_owned).collect();
    let verdict = verdict(outcome.finding());
    let mut wrong = Vec::new();
    for (key, wanted) in expect.as_object().unwrap() {
        let all = |names: &[String], are_there: bool| {
            let mut wanted = wanted.as_array().unwrap().iter();
            wanted.all(|name| names.iter().any(|there| there == name) == are_there)
        };
        let is_met = match key.as_str() {
            "verdict" => wanted.as_str().unwrap().split('|').any(|wanted| {
                let rest = verdict.strip_prefix(wanted);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
            }),
            "learns" => all(&learned, true),
            "not_learns" => all(&learned, false),
            "asks" => all(&paths, true),
            "not_asks" => all(&paths, false),
            other => found.get(other) == Some(wanted),
        };
        if !is_met {
            wrong.push(format!(
                "{key} is not {wanted}: {verdict} {found:?} {learned:?} {paths:?}"
            ));
        }
    }
    wrong
}

fn verdict(finding: &Event) -> String {
    let finding = serde_json::to_value(finding).unwrap();
    let (word, details) = finding.as_object().unwrap().iter().next().unwrap();
    let mut words = vec![word.clone()];
    for member in ["reason", "status", "wall", "to"] {
        match &details[member] {
            Value::Null => {}
            Value::String(text) => words.push(text.clone()),
            other => words.push(other.to_string()),
        }
    }
    words.join(":")
}
