//! The log of decisions.

use axum::response::Response;
use maud::{Markup, html};

use super::layout::{Page, form_token, name_of, path_of_group, path_of_host, query, shown};
use crate::login::Visitor;
use crate::wire::{Cursor, DOMAINS_MAX, Decision, DecisionId};

pub(crate) fn decisions(visitor: &Visitor, rows: &[Decision], next: Option<Cursor>) -> Response {
    let content = html! {
        p { "Every decision about a group or a host, the newest first. It is kept for ever and never published. Undoing one restores the decision before it." }
        @if rows.is_empty() {
            p { "None." }
        } @else {
            form method="post" action="/decisions" {
                (form_token(visitor))
                (table_of(rows))
                p { button { "Undo the chosen decisions" } }
            }
        }
        @if let Some(Cursor { group_id, host_id }) = next {
            @let (group_id, host_id) = (group_id.to_string(), host_id.to_string());
            p { a href={ "/decisions?" (query(&[("group_id", &group_id), ("host_id", &host_id)])) } { "Older decisions" } }
        }
    };
    Page::new(visitor, "/decisions", "Decisions").respond(&content)
}

fn table_of(rows: &[Decision]) -> Markup {
    html! {
        div.scroll tabindex="0" {
            table {
                caption { "Only the latest decision about a group or host can be undone. Tick up to " (DOMAINS_MAX) "." }
                thead { tr { th scope="col" { "About" } th scope="col" { "Decision" } th scope="col" { "When" } th scope="col" { "Who" } th scope="col" { "Reason" } th scope="col" { "Look" } } }
                tbody {
                    @for row in rows {
                        @let (id, path) = named(row);
                        tr {
                            th scope="row" {
                                @if row.can_be_undone {
                                    input type="checkbox" id=(id) name="decision" value=(id);
                                    label for=(id) { (row.subject) }
                                } @else {
                                    (row.subject)
                                }
                            }
                            td data-label="Decision" { (row.decision) }
                            td data-label="When" { (shown(&row.at)) }
                            td data-label="Who" { (row.who) }
                            td data-label="Reason" { (shown(&row.reason)) }
                            td { a href=(path) aria-label={ "Look at " (row.subject) } { "Look" } }
                        }
                    }
                }
            }
        }
    }
}

/// The decision's id for the form, and the path of its subject's page.
fn named(row: &Decision) -> (String, String) {
    let path = match row.id {
        DecisionId::Group(_) => path_of_group(&row.subject),
        DecisionId::Host(_) => path_of_host(&row.subject),
    };
    (name_of(row.id), path)
}
