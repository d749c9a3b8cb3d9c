//! One host.

use axum::response::Response;
use maud::{Markup, html};

use super::layout::{Page, form_token, reason_field};
use crate::login::Visitor;
use crate::wire::HostPage;

/// The page: a field for a name, and what is known about that host.
pub(crate) fn host(visitor: &Visitor, page: Option<&HostPage>) -> Response {
    let name = page.map(|page| page.host.as_str()).unwrap_or_default();
    let content = html! {
        form method="get" action="/host" role="search" {
            div.field {
                label for="host" { "Host" }
                input id="host" name="host" required value=(name) autocapitalize="none" spellcheck="false" maxlength="1000";
            }
            button { "Explain" }
        }
        @if let Some(page) = page {
            h2 { (page.host) }
            pre tabindex="0" { code { (page.lines.join("\n")) } }
            (acts(visitor, page))
        }
    };
    Page::new(visitor, "/host", "A host").respond(&content)
}

fn acts(visitor: &Visitor, page: &HostPage) -> Markup {
    let (act, legend, button, note) = if page.is_taken_out {
        (
            "put_back",
            "Put it back",
            "Put it back",
            "It is checked soon, and listed once it answers as an instance.",
        )
    } else {
        (
            "take_out",
            "Take it out",
            "Take it out",
            "It leaves the list within a quarter of an hour and is not checked any more, until a moderator puts it back.",
        )
    };
    html! {
        form method="post" action="/host" {
            (form_token(visitor))
            input type="hidden" name="host" value=(page.host);
            input type="hidden" name="do" value="check";
            button { "Check it now" }
            span { " It takes up to two minutes." }
        }
        form method="post" action="/host" {
            (form_token(visitor))
            input type="hidden" name="host" value=(page.host);
            input type="hidden" name="do" value=(act);
            fieldset {
                legend { (legend) }
                p { (note) }
                (reason_field("It is kept for ever in the log of decisions, and never published."))
                button { (button) }
            }
        }
    }
}
