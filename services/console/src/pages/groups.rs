//! Groups: those that are held, those with a decision, and one group with its hosts.

use axum::response::Response;
use maud::{Markup, html};

use super::layout::{Page, form_token, others, path_of_group, path_of_host, query, reason_field};
use crate::login::Visitor;
use crate::wire::{DOMAINS_MAX, GroupPage, GroupRow, Member, ROWS_MAX, Which};

/// A page of groups, with a form to decide about many.
pub(crate) fn groups(
    visitor: &Visitor,
    which: Which,
    skip: u32,
    rows: &[GroupRow],
    has_more: bool,
) -> Response {
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
        p { "A group is all hosts below one registered domain. A group with many hosts is held: twenty of its new hosts are checked a day, and one is listed when independent instances have named it for a week and it has responded twice, up to two hundred of them. A moderator's decision ends that." }
        p { a href={ "/groups?" (query(&[("which", there)])) } { (name_there) } }
        @if rows.is_empty() {
            p { "None." }
        } @else {
            form method="post" action="/groups" {
                (form_token(visitor))
                (table_of(rows))
                (decide("chosen groups"))
            }
        }
        @if has_more {
            p { a href={ "/groups?" (query(&[("which", here), ("skip", &next)])) } { "Further groups" } }
        }
    };
    Page::new(visitor, "/groups", title).respond(&content)
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
                            td.number { (row.hosts) }
                            td.number { (row.held_back) }
                            td { (decision(row)) }
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
                (decision)
                @if let Some(reason) = &row.reason { ": " (others(reason)) }
            }
        }
    }
}

fn decide(about: &str) -> Markup {
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
            legend { "Decide about the " (about) }
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
            (reason_field("It is kept for ever, and `fedicensus explain` shows it for each host of the group."))
            button { "Decide" }
        }
    }
}

pub(crate) fn group(visitor: &Visitor, page: &GroupPage) -> Response {
    let row = &page.row;
    let content = html! {
        dl.counts {
            div { dt { "Hosts" } dd { (row.hosts) } }
            div { dt { "Held back" } dd { (row.held_back) } }
        }
        dl {
            dt { "Decision in force" }
            dd { (decision(row)) }
        }
        form method="post" action="/groups" {
            (form_token(visitor))
            input type="hidden" name="domain" value=(row.domain);
            (decide("group"))
        }
        h2 { "Hosts" }
        (counts("By state", &page.states))
        (counts("By software", &page.software))
        (counts("By the day they came in", &page.came))
        (newest(&page.newest))
        h2 { "Former decisions" }
        @if page.decisions.is_empty() {
            p { "None." }
        } @else {
            ul {
                @for past in &page.decisions {
                    li { (past.at) ": " (past.decision) " by " (past.who) ": " (others(&past.reason)) }
                }
            }
        }
    };
    Page::new(visitor, "/groups", &row.domain).respond(&content)
}

fn counts(caption: &str, rows: &[(String, u64)]) -> Markup {
    html! {
        @if !rows.is_empty() {
            p {
                (caption) ": "
                @for (number, (name, count)) in rows.iter().enumerate() {
                    @if number > 0 { ", " }
                    (others(name)) " " (count)
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
                            td { (member.state) }
                            td { (member.first_seen) }
                            td { (others(member.software.as_deref().unwrap_or(""))) }
                            td { @if member.held_back { "yes" } @else { "no" } }
                        }
                    }
                }
            }
        }
    }
}
