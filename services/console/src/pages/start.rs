//! The first page: what needs attention, and the status.

use axum::response::Response;
use maud::{Markup, html};

use super::layout::Page;
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
    let content = html! {
        h2 { "What needs you" }
        ul {
            (entry("/groups", *groups_held, "group is held", "groups are held"))
            (entry("/sources", *sources_paused, "source is paused", "sources are paused"))
            @if let Some(trouble) = publication_trouble {
                li.needs { a href="/list" { "The list was not published" } ": " (trouble) }
            }
            (entry("/waiting", *names_waiting, "name waits for room", "names wait for room"))
        }
        h2 { "Status" }
        pre tabindex="0" { code { (lines.join("\n")) } }
    };
    Page::new(visitor, "/", "Overview").respond(&content)
}

fn entry(path: &str, count: u64, one: &str, many: &str) -> Markup {
    let words = if count == 1 { one } else { many };
    html! {
        li.needs[count > 0 && path != "/waiting"] { a href=(path) { (count) " " (words) } }
    }
}
