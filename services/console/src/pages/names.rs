//! Waiting names, sources, and the published list.

use axum::response::Response;
use maud::html;

use super::layout::{Page, form_token, path_of_host, query, shown};
use crate::login::Visitor;
use crate::wire::{Publication, Source, WaitingName};

/// Names that wait for room.
pub(crate) fn waiting(visitor: &Visitor, rows: &[WaitingName], has_more: bool) -> Response {
    let last = rows.last().map(|row| row.name.as_str()).unwrap_or_default();
    let content = html! {
        p { "New names are limited by the day. A name without room waits, and the names that most sources name enter first. A line in the admission rules or the allow-list lets names in earlier." }
        @if rows.is_empty() {
            p { "None." }
        } @else {
            div.scroll tabindex="0" {
                table {
                    caption { "By name" }
                    thead { tr { th scope="col" { "Name" } th scope="col" { "Why it waits" } th scope="col" { "First named" } th scope="col" { "Last named" } th.number scope="col" { "Named by, about" } } }
                    tbody {
                        @for row in rows {
                            tr {
                                th scope="row" { a href=(path_of_host(&row.name)) { (row.name) } }
                                td data-label="Why it waits" { (row.why) }
                                td data-label="First named" { (shown(&row.first_named)) }
                                td data-label="Last named" { (shown(&row.last_named)) }
                                td.number data-label="Named by, about" { (row.named_by) }
                            }
                        }
                    }
                }
            }
        }
        @if has_more {
            p { a href={ "/waiting?" (query(&[("after", last)])) } { "Further names" } }
        }
    };
    Page::new(visitor, "/waiting", "Names that wait for room").respond(&content)
}

/// Public lists that are read.
pub(crate) fn sources(visitor: &Visitor, sources: &[Source]) -> Response {
    let content = html! {
        p { "A public list that grew tenfold since its last reading is paused until somebody has looked at it." }
        @if sources.is_empty() {
            p { "No public list was read yet." }
        }
        @for source in sources {
            section.needs[source.is_paused] {
                h2 { (shown(&source.name)) }
                p { (shown(&source.text)) }
                @if source.is_paused {
                    form method="post" action="/sources" {
                        (form_token(visitor))
                        input type="hidden" name="name" value=(source.name);
                        button aria-label={ "Resume " (source.name) } { "Resume: read it again, whatever it holds" }
                    }
                }
            }
        }
    };
    Page::new(visitor, "/sources", "Sources").respond(&content)
}

pub(crate) fn list(visitor: &Visitor, publication: &Publication) -> Response {
    let content = html! {
        p {
            @match &publication.last {
                None => "No list was published yet.",
                Some((at, names)) => { "The published list is of " (shown(at)) " and has " (names) " names." },
            }
        }
        @match &publication.trouble {
            None => { p { "Nothing holds the next list back. It is published every six hours, and soon after an opt-out." } },
            Some(trouble) => {
                p.needs { (shown(trouble)) }
                p { "A list that lost 30 % of its names is held back, because a fault on our side is the usual cause. Look at the status and at some hosts that are missing before you publish it." }
                form method="post" action="/list" {
                    (form_token(visitor))
                    button { "Publish the list all the same" }
                }
            },
        }
    };
    Page::new(visitor, "/list", "The list").respond(&content)
}
