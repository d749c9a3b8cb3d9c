//! One host: the site's answer, and below it what only moderators may read.

use axum::response::Response;
use maud::{Markup, html};

use super::layout::{Page, facts, form_token, path_of_group, reason_field, shown};
use crate::login::Visitor;
use crate::wire::HostPage;

/// The page: a field for a name, the problem with what was typed, and what is known about a host.
pub(crate) fn host(
    visitor: &Visitor,
    typed: &str,
    problem: Option<&str>,
    page: Option<&HostPage>,
) -> Response {
    let content = html! {
        form.ask method="get" action="/host" role="search" {
            div {
                label for="host" { "Domain, URL or account" }
                input id="host" name="host" required value=(typed) autocapitalize="none" spellcheck="false" maxlength="1000";
            }
            button { "Look up" }
        }
        @if let Some(problem) = problem {
            p.problem role="alert" { (problem) }
        }
        @if let Some(page) = page {
            (answer(page))
            // Nobody can decide about a host that the census does not know.
            @if page.group.is_some() { (acts(visitor, page)) }
        }
    };
    Page::new(visitor, "/host", "A host").respond(&content)
}

fn answer(page: &HostPage) -> Markup {
    let listed = match (page.is_listed, page.verdict.as_str()) {
        (true, "Listed") => "yes",
        (true, _) => "failing",
        (false, _) => "no",
    };
    html! {
        section.answer data-listed=(listed) aria-labelledby="answer" {
            h2 id="answer" { (page.host) }
            p.verdict { (page.verdict) }
            p { (page.says) }
            @if !page.advice.is_empty() { p { strong { "To its owner: " } (page.advice) } }
        }
        h2 { "For moderators" }
        (facts(&page.facts))
        @if let Some(group) = &page.group {
            p { "Its group: " a href=(path_of_group(group)) { (group) } }
        }
        @if !page.past.is_empty() {
            h2 { "Last checks" }
            ul { @for (at, says) in &page.past { li { (shown(at)) ": " (shown(says)) } } }
        }
    }
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
