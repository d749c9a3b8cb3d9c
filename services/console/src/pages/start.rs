//! The first page: what needs a decision, and the status.

use axum::response::Response;
use maud::{Markup, html};

use super::layout::{Page, shown};
use crate::login::Visitor;
use crate::wire::Answer;

/// The page of [`Answer::Status`].
pub(crate) fn start(visitor: &Visitor, answer: &Answer) -> Response {
    let Answer::Status {
        lines,
        groups_held,
        names_waiting,
        sources_paused,
        publication_trouble,
    } = answer
    else {
        return Page::new(visitor, "/", "Overview").respond(&html! {});
    };
    let is_quiet = *groups_held == 0 && *sources_paused == 0 && publication_trouble.is_none();
    let content = html! {
        @if is_quiet {
            p.lead { "Nothing needs you." }
        } @else {
            h2 { "What needs a decision" }
            ul {
                (entry("/groups", *groups_held, "group is held", "groups are held"))
                (entry("/sources", *sources_paused, "source is paused", "sources are paused"))
                @if let Some(trouble) = publication_trouble {
                    li.needs { a href="/list" { "The list was not published" } ": " (shown(trouble)) }
                }
            }
        }
        @if *names_waiting > 0 {
            p { (names_waiting) " new names " a href="/waiting" { "wait for room" } ". They enter without you." }
        }
        details {
            summary { "Status of the census" }
            pre tabindex="0" { code { (lines.join("\n")) } }
        }
    };
    Page::new(visitor, "/", "Overview").respond(&content)
}

/// An entry, if there is anything to decide about.
fn entry(path: &str, count: u64, one: &str, many: &str) -> Markup {
    let words = if count == 1 { one } else { many };
    html! {
        @if count > 0 { li.needs { a href=(path) { (count) " " (words) } } }
    }
}
