use accounts::{HoldShown, Session, Token};
use axum::http::StatusCode;
use axum::response::Response;
use limiter::login::record::Timestamp;

use super::layout::{path_of_group, shown};
use super::*;
use crate::login::Visitor;
use crate::wire::{
    Answer, Decision, DecisionId, GroupFacts, GroupList, GroupPage, GroupRow, HostPage, Member,
    Outcome, PastDecision, Publication, Source, WaitingName, Which,
};

/// A text that strangers can choose: a software name, a reason in their list, a source's name.
const HOSTILE: &str = "\"><script>alert(1)</script><img src=x onerror=y>&amp;'";

fn visitor() -> Visitor {
    Visitor {
        census: hostile(),
        session: Session {
            moderator: "ada".to_owned(),
            created_at: Timestamp::default(),
            used_at: Timestamp::default(),
        },
        token: Token::draw(&mut rand::rng()),
        form_token: "TOKEN".to_owned(),
    }
}

fn group_row() -> GroupRow {
    GroupRow {
        domain: HOSTILE.to_owned(),
        hosts: 3,
        held_back: 1,
        decision: Some("denied".to_owned()),
        reason: Some(HOSTILE.to_owned()),
    }
}

fn hostile() -> String {
    HOSTILE.to_owned()
}

fn group_facts() -> GroupFacts {
    let labelled = || (hostile(), hostile());
    GroupFacts {
        lines: vec![labelled()],
        names: vec![hostile()],
        effects: ["allow", "deny", HOSTILE]
            .map(|verb| (verb.to_owned(), hostile()))
            .into(),
        suggestion: Some(labelled()),
        reason: hostile(),
    }
}

fn group_page() -> GroupPage {
    GroupPage {
        row: group_row(),
        facts: group_facts(),
        newest: vec![Member {
            name: hostile(),
            state: hostile(),
            first_seen: hostile(),
            software: Some(hostile()),
            held_back: true,
        }],
        software: vec![(hostile(), 2)],
        decisions: vec![PastDecision {
            at: hostile(),
            decision: hostile(),
            reason: hostile(),
            who: hostile(),
        }],
    }
}

fn of_groups(visitor: &Visitor) -> Vec<(&'static str, Response)> {
    let decision = Decision {
        id: DecisionId::Group(1),
        subject: hostile(),
        at: hostile(),
        decision: hostile(),
        reason: hostile(),
        who: hostile(),
        can_be_undone: true,
    };
    let outcome = Outcome {
        is_done: false,
        text: hostile(),
        undo: Some(DecisionId::Group(7)),
    };
    let list = GroupList {
        rows: vec![group_row(), group_row()],
        facts: vec![group_facts(), group_facts()],
        has_more: true,
    };
    let outcomes = std::slice::from_ref(&outcome);
    vec![
        ("groups", groups(visitor, Which::Held, 0, &list, outcomes)),
        ("group", group(visitor, &group_page())),
        ("decisions", decisions(visitor, &[decision], None)),
        ("done", done(visitor, outcomes, "/groups")),
    ]
}

/// Pages about names, sources, hosts and the list.
fn of_names(visitor: &Visitor) -> Vec<(&'static str, Response)> {
    let name = WaitingName {
        name: hostile(),
        why: hostile(),
        first_named: hostile(),
        last_named: hostile(),
        named_by: 4,
    };
    let source = Source {
        name: hostile(),
        text: hostile(),
        is_paused: true,
    };
    let publication = Publication {
        last: Some((hostile(), 5)),
        trouble: Some(hostile()),
    };
    let host_page = HostPage {
        host: hostile(),
        group: Some(hostile()),
        is_listed: true,
        verdict: hostile(),
        says: hostile(),
        advice: hostile(),
        facts: vec![(hostile(), hostile())],
        past: vec![(hostile(), hostile())],
        is_taken_out: false,
    };
    let status = Answer::Status {
        lines: vec![hostile()],
        groups_held: 1,
        names_waiting: 2,
        sources_paused: 1,
        publication_trouble: Some(hostile()),
    };
    vec![
        ("start", start(visitor, &status)),
        ("waiting", waiting(visitor, &[name], true)),
        ("sources", sources(visitor, &[source])),
        ("list", list(visitor, &publication)),
        (
            "host",
            host(visitor, HOSTILE, Some(HOSTILE), Some(&host_page)),
        ),
    ]
}

/// Every page, with hostile texts in every place for a text.
async fn all() -> Vec<(&'static str, String)> {
    let visitor = visitor();
    let hold = HoldShown {
        id: hostile(),
        kind: "user".to_owned(),
        moderator: Some(hostile()),
        until: Timestamp::default(),
        bans: 0,
    };
    let sessions = std::slice::from_ref(&visitor.session);
    let mut responses = of_groups(&visitor);
    responses.extend(of_names(&visitor));
    responses.push(("logins", logins(&visitor, sessions, &[hold])));
    let form = LoginForm {
        census: HOSTILE,
        form_token: "TOKEN",
        problem: Some(HOSTILE),
        name: HOSTILE,
        to: HOSTILE,
    };
    responses.push(("login", login(StatusCode::OK, form)));
    let mut pages = Vec::new();
    for (name, response) in responses {
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await;
        let text = String::from_utf8(body.unwrap().to_vec()).unwrap();
        pages.push((name, text));
    }
    pages
}

#[tokio::test]
async fn no_text_of_others_becomes_markup() {
    for (name, page) in all().await {
        for never in ["<script", "<img src=x", "onerror=y>", "javascript:"] {
            assert!(!page.contains(never), "{name}: {page}");
        }
    }
}

/// A form without its token would be refused, and a form that goes elsewhere would leak it.
#[tokio::test]
async fn every_form_that_changes_something_has_the_sessions_token_and_leads_here() {
    for (name, page) in all().await {
        for form in page.split("<form ").skip(1) {
            let (head, _) = form.split_once('>').unwrap();
            let (body, _) = form.split_once("</form>").unwrap();
            assert!(head.contains("action=\"/"), "{name}: {head}");
            if head.contains("method=\"post\"") {
                let token = "name=\"form\" value=\"TOKEN\"";
                assert_eq!(body.matches(token).count(), 1, "{name}: {body}");
            }
        }
    }
}

/// For people who use a screen reader or no mouse.
#[tokio::test]
async fn every_field_has_a_label_and_every_table_a_head() {
    for (name, page) in all().await {
        for field in page.split("<input ").skip(1) {
            let (field, _) = field.split_once('>').unwrap();
            if field.contains("type=\"hidden\"") {
                continue;
            }
            let (_, rest) = field.split_once("id=\"").unwrap_or_default();
            let id = rest.split('"').next().unwrap_or_default();
            assert!(page.contains(&format!("for=\"{id}\"")), "{name}: {field}");
        }
        let tables = page.matches("<table").count();
        assert_eq!(page.matches("<thead").count(), tables, "{name}");
        assert!(
            page.starts_with("<!DOCTYPE html><html lang=\"en\">"),
            "{name}"
        );
    }
}

#[test]
fn the_web_server_sends_the_policy_that_the_pages_are_made_for() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../deploy/nginx/console.conf"
    );
    let server = std::fs::read_to_string(path).unwrap();
    let sent = format!("add_header Content-Security-Policy \"{CONTENT_SECURITY_POLICY}\" always;");
    assert!(server.lines().any(|line| line.trim() == sent), "{server}");
}

#[test]
fn times_in_a_text_are_shown_to_the_minute() {
    let time = "<time datetime=\"2026-11-30T11:16:06Z\">2026-11-30 11:16 UTC</time>";
    for (text, expect) in [
        ("2026-11-30T11:16:06Z", time.to_owned()),
        (
            "denied since 2026-11-30T11:16:06Z: a & b",
            format!("denied since {time}: a &amp; b"),
        ),
        ("2026-11-30 <", "2026-11-30 &lt;".to_owned()),
    ] {
        assert_eq!(shown(text).into_string(), format!("<bdi>{expect}</bdi>"));
    }
}

#[test]
fn a_name_in_an_address_stays_one_value() {
    assert_eq!(path_of_host("a&b=c d"), "/host?host=a%26b%3Dc+d");
    assert_eq!(path_of_group("a&b"), "/group?domain=a%26b");
}

/// Otherwise a key would decide about another group, or the Enter key in a field would decide.
#[tokio::test]
async fn each_key_is_there_once_and_enter_decides_nothing() {
    for (name, page) in all().await {
        for attribute in [" accesskey=\"", " id=\""] {
            let values = page.split(attribute).skip(1);
            let mut values: Vec<_> = values.filter_map(|rest| rest.split('"').next()).collect();
            values.sort_unstable();
            let all = values.len();
            values.dedup();
            assert_eq!(values.len(), all, "{name}: {attribute}: {values:?}");
        }
        for form in page.split("<form ").skip(1) {
            let buttons = form.split("</form>").next().unwrap().split("<button ");
            if let [first, _, _, ..] = buttons.skip(1).collect::<Vec<_>>().as_slice() {
                assert!(first.starts_with("disabled hidden"), "{name}: {form}");
            }
        }
    }
}
