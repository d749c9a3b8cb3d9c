//! Groups: those that are held, each as a card, those with a decision, and one with its hosts.

use axum::response::Response;
use maud::{Markup, html};

use super::layout::{
    Page, facts, form_token, outcome, path_of_group, path_of_host, query, reason_field, shown,
};
use crate::login::Visitor;
use crate::wire::{
    DOMAINS_MAX, GroupFacts, GroupList, GroupPage, GroupRow, Member, Outcome, ROWS_MAX, Which,
};

/// A page of groups, below what came of the order before.
pub(crate) fn groups(
    visitor: &Visitor,
    which: Which,
    skip: u32,
    list: &GroupList,
    outcomes: &[Outcome],
) -> Response {
    let GroupList {
        rows,
        facts: cards,
        has_more,
    } = list;
    let (here, there, name_there) = match which {
        Which::Held => ("held", "decided", "Groups with a decision"),
        Which::Decided => ("decided", "held", "Groups that are held"),
    };
    let title = match which {
        Which::Held => "Groups that are held",
        Which::Decided => "Groups with a decision",
    };
    let next = skip.saturating_add(ROWS_MAX).to_string();
    let content = html! {
        (outcome(visitor, outcomes))
        p { "A group is all hosts below one registered domain. A group with many hosts is held: twenty of its new hosts are checked a day, and one is listed when independent sources have named it for a week and it has responded twice. An independent source is another domain with an instance that has been listed for two weeks." }
        p { a href={ "/groups?" (query(&[("which", there)])) } { (name_there) } }
        @if !cards.is_empty() { (keys()) }
        @for (number, (row, facts)) in rows.iter().zip(cards).enumerate() {
            (card(visitor, row, facts, number))
        }
        @match (rows.as_slice(), which) {
            ([], _) => { p { "None." } },
            ([_], Which::Held) => {},
            (rows, Which::Held) => {
                details {
                    summary { "Decide about several at once" }
                    (many(visitor, rows))
                }
            },
            (rows, Which::Decided) => { (many(visitor, rows)) },
        }
        @if *has_more {
            p { a href={ "/groups?" (query(&[("which", here), ("skip", &next)])) } { "Further groups" } }
        }
    };
    Page::new(visitor, "/groups", title).respond(&content)
}

fn keys() -> Markup {
    html! {
        p.about { "The first card has the keys A, D, L and F, and U undoes: with Alt in Chromium, with Alt and Shift in Firefox, with Control and Option in Safari." }
    }
}

/// A group with all that a decision needs, and a button for each. The first card has the keys.
fn card(visitor: &Visitor, row: &GroupRow, card: &GroupFacts, number: usize) -> Markup {
    let id = |name: &str| format!("{name}-{number}");
    let label = |verb: &str| match verb {
        "allow" => Some(("Allow", "a")),
        "deny" => Some(("Deny", "d")),
        "limit" => Some(("Limit", "l")),
        "forget" => Some(("Take back the decision", "f")),
        _ => None,
    };
    html! {
        section.answer aria-labelledby=(id("group")) {
            h2 id=(id("group")) { a href=(path_of_group(&row.domain)) { (row.domain) } }
            (facts(&card.lines))
            @if !card.names.is_empty() {
                p { "Such as "
                    @for (number, name) in card.names.iter().enumerate() {
                        @if number > 0 { ", " }
                        a href=(path_of_host(name)) { (name) }
                    }
                    "."
                }
            }
            @if row.decision.is_some() { p { "Decision: " (decision(row)) } }
            @if let Some((verb, evidence)) = &card.suggestion {
                p.notice { strong { "Suggestion: " (verb) "." } " Evidence: " (evidence) "." }
            }
            form method="post" action="/groups" {
                // Otherwise the Enter key in a field would press the first button.
                button disabled hidden {}
                (form_token(visitor))
                input type="hidden" name="domain" value=(row.domain);
                div.field {
                    label for=(id("reason")) { "Reason, which is kept for ever and never published" }
                    input id=(id("reason")) name="reason" required maxlength="200" autocomplete="off" value=(card.reason);
                }
                div.field {
                    label for=(id("a_day")) { "Checks a day, for a limit" }
                    input id=(id("a_day")) name="a_day" type="number" min="1" max="1000000" value="10";
                }
                @for (verb, effect) in &card.effects {
                    p.effect {
                        @if let Some((label, key)) = label(verb) {
                            button name="verb" value=(verb) accesskey=[(number == 0).then_some(key)] aria-describedby=(id(verb)) { (label) }
                        } @else {
                            b { "No decision" }
                        }
                        span id=(id(verb)) { (effect) }
                    }
                }
            }
        }
    }
}

fn many(visitor: &Visitor, rows: &[GroupRow]) -> Markup {
    html! {
        form method="post" action="/groups" {
            (form_token(visitor))
            (table_of(rows))
            (decide())
        }
    }
}

fn table_of(rows: &[GroupRow]) -> Markup {
    html! {
        div.scroll tabindex="0" {
            table {
                caption { "Tick up to " (DOMAINS_MAX) " groups, and decide below the table." }
                thead {
                    tr {
                        th scope="col" { "Group" }
                        th.number scope="col" { "Hosts" }
                        th.number scope="col" { "Held back" }
                        th scope="col" { "Decision" }
                        th scope="col" { "Hosts and decisions" }
                    }
                }
                tbody {
                    @for (number, row) in rows.iter().enumerate() {
                        tr {
                            th scope="row" {
                                input type="checkbox" id={ "g" (number) } name="domain" value=(row.domain);
                                label for={ "g" (number) } { (row.domain) }
                            }
                            td.number data-label="Hosts" { (row.hosts) }
                            td.number data-label="Held back" { (row.held_back) }
                            td data-label="Decision" { (decision(row)) }
                            td { a href=(path_of_group(&row.domain)) aria-label={ "Look at " (row.domain) } { "Look" } }
                        }
                    }
                }
            }
        }
    }
}

fn decision(row: &GroupRow) -> Markup {
    html! {
        @match &row.decision {
            None => "none",
            Some(decision) => {
                (shown(decision))
                @if let Some(reason) = &row.reason { ": " (shown(reason)) }
            }
        }
    }
}

fn decide() -> Markup {
    let verbs = [
        ("allow", "Allow: check and list its hosts like any others"),
        ("deny", "Deny: neither check nor list its hosts"),
        (
            "limit",
            "Limit: list its hosts, and check at most this number a day",
        ),
        ("forget", "No decision: the threshold applies again"),
    ];
    html! {
        fieldset {
            legend { "Decide about the chosen groups" }
            @for (verb, label) in verbs {
                div.field {
                    input type="radio" id={ "v-" (verb) } name="verb" value=(verb) required;
                    label.choice for={ "v-" (verb) } { (label) }
                }
            }
            div.field {
                label for="a_day" { "Checks a day, for a limit" }
                input id="a_day" name="a_day" type="number" min="1" max="1000000" value="10";
            }
            (reason_field("It is kept for ever, and never published."))
            button { "Decide" }
        }
    }
}

pub(crate) fn group(visitor: &Visitor, page: &GroupPage) -> Response {
    let content = html! {
        (keys())
        (card(visitor, &page.row, &page.facts, 0))
        h2 { "Hosts" }
        (counts("By software", &page.software))
        (newest(&page.newest))
        h2 { "Former decisions" }
        @if page.decisions.is_empty() {
            p { "None." }
        } @else {
            ul {
                @for past in &page.decisions {
                    li { (shown(&past.at)) ": " (past.decision) " by " (past.who) ": " (shown(&past.reason)) }
                }
            }
        }
    };
    Page::new(visitor, "/groups", "A group").respond(&content)
}

fn counts(caption: &str, rows: &[(String, u64)]) -> Markup {
    html! {
        @if !rows.is_empty() {
            p {
                (caption) ": "
                @for (number, (name, count)) in rows.iter().enumerate() {
                    @if number > 0 { ", " }
                    (shown(name)) " " (count)
                }
            }
        }
    }
}

fn newest(members: &[Member]) -> Markup {
    html! {
        div.scroll tabindex="0" {
            table {
                caption { "The newest hosts" }
                thead { tr { th scope="col" { "Host" } th scope="col" { "State" } th scope="col" { "Came in" } th scope="col" { "Software" } th scope="col" { "Held back" } } }
                tbody {
                    @for member in members {
                        tr {
                            th scope="row" { a href=(path_of_host(&member.name)) { (member.name) } }
                            td data-label="State" { (member.state) }
                            td data-label="Came in" { (shown(&member.first_seen)) }
                            td data-label="Software" { (shown(member.software.as_deref().unwrap_or("none"))) }
                            td data-label="Held back" { @if member.held_back { "yes" } @else { "no" } }
                        }
                    }
                }
            }
        }
    }
}
