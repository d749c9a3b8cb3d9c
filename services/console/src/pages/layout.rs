//! What all pages share: head, navigation, forms' hidden fields, and pages with a single message.

use axum::http::StatusCode;
use axum::response::Response;
use maud::{DOCTYPE, Markup, html};
use url::form_urlencoded;

use crate::login::Visitor;
use crate::reply::html as respond;
use crate::wire::{DecisionId, Labelled, Outcome};

pub(crate) const NAVIGATION: [(&str, &str); 8] = [
    ("/", "Overview"),
    ("/groups", "Groups"),
    ("/waiting", "Waiting names"),
    ("/sources", "Sources"),
    ("/list", "The list"),
    ("/host", "A host"),
    ("/decisions", "Decisions"),
    ("/logins", "Logins"),
];

/// The census's name on pages for strangers other than the login.
const CENSUS: &str = "Fedicensus";

pub(crate) struct Page<'p> {
    census: &'p str,
    path: &'p str,
    title: &'p str,
    visitor: Option<&'p Visitor>,
}

impl<'p> Page<'p> {
    /// A page for a logged-in moderator. `path` is its path in the navigation, if it has one.
    pub(super) fn new(visitor: &'p Visitor, path: &'p str, title: &'p str) -> Self {
        Self {
            census: &visitor.census,
            path,
            title,
            visitor: Some(visitor),
        }
    }

    pub(crate) fn for_strangers(title: &'p str) -> Self {
        Self::of_census(CENSUS, title)
    }

    /// A page for strangers that has the census's own name.
    pub(super) fn of_census(census: &'p str, title: &'p str) -> Self {
        Self {
            census,
            path: "",
            title,
            visitor: None,
        }
    }

    pub(crate) fn around(&self, content: &Markup) -> String {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (self.title) " · " (self.census) " console" }
                    link rel="icon" href="/icon.svg" type="image/svg+xml";
                    link rel="stylesheet" href="/style.css";
                }
                body {
                    a.skip href="#content" { "Skip to the content" }
                    @match self.visitor {
                        Some(visitor) => { (self.header(visitor)) },
                        None => { header { (self.brand()) } },
                    }
                    main id="content" tabindex="-1" {
                        h1 { (self.title) }
                        (content)
                    }
                    footer { p { "Fedicensus console, for moderators of this census." } }
                }
            }
        }
        .into_string()
    }

    fn brand(&self) -> Markup {
        html! { a.brand href="/" { img src="/icon.svg" alt="" width="28" height="28"; (self.census) " console" } }
    }

    fn header(&self, visitor: &Visitor) -> Markup {
        html! {
            header {
                (self.brand())
                div.visitor {
                    span { "Logged in as " (visitor.session.moderator) }
                    form method="post" action="/logout" {
                        (form_token(visitor))
                        button { "Log out" }
                    }
                }
                nav aria-label="Pages" {
                    ul {
                        @for (path, name) in NAVIGATION {
                            li { a href=(path) aria-current=[(path == self.path).then_some("page")] { (name) } }
                        }
                    }
                }
            }
        }
    }

    pub(super) fn respond(&self, content: &Markup) -> Response {
        respond(StatusCode::OK, self.around(content))
    }
}

pub(crate) fn of_visitor(
    visitor: &Visitor,
    title: &str,
    text: &str,
    status: StatusCode,
) -> Response {
    respond(
        status,
        Page::new(visitor, "", title).around(&paragraph(text)),
    )
}

pub(crate) fn paragraph(text: &str) -> Markup {
    html! { p { (text) } }
}

/// The outcome of an order, and a link back.
pub(crate) fn done(visitor: &Visitor, outcomes: &[Outcome], back: &str) -> Response {
    let done = outcomes.iter().filter(|outcome| outcome.is_done).count();
    let title = match done {
        all if all == outcomes.len() => "Done",
        0 => "Not done",
        _ => "Only a part was done",
    };
    let content = html! {
        (outcome(visitor, outcomes))
        p { a href=(back) { "Back" } " · " a href="/decisions" { "Decisions, to undo one" } }
    };
    Page::new(visitor, "", title).respond(&content)
}

/// What came of an order, and one button that undoes all decisions that it made.
pub(super) fn outcome(visitor: &Visitor, outcomes: &[Outcome]) -> Markup {
    let made: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.undo).collect();
    html! {
        @if !outcomes.is_empty() {
            div role="status" {
                @for outcome in outcomes {
                    p.outcome.failed[!outcome.is_done] {
                        @if !outcome.is_done { "Not done: " }
                        (shown(&outcome.text))
                    }
                }
            }
        }
        @if !made.is_empty() {
            form method="post" action="/decisions" {
                (form_token(visitor))
                @for id in made { input type="hidden" name="decision" value=(name_of(id)); }
                button accesskey="u" { "Undo" }
            }
        }
    }
}

/// The name of a decision in forms.
pub(super) fn name_of(id: DecisionId) -> String {
    match id {
        DecisionId::Group(id) => format!("g{id}"),
        DecisionId::Host(id) => format!("h{id}"),
    }
}

/// Texts with their labels.
pub(super) fn facts(rows: &[Labelled]) -> Markup {
    html! {
        dl.facts {
            @for (label, text) in rows { div { dt { (label) } dd { (shown(text)) } } }
        }
    }
}

/// A text from outside, with each time in RFC 3339 shown to the minute. It is isolated, so that its
/// writing direction does not affect the text around it.
pub(super) fn shown(text: &str) -> Markup {
    html! { bdi { @for word in text.split_inclusive(' ') { (word_or_time(word)) } } }
}

fn word_or_time(word: &str) -> Markup {
    let bare = word.trim_end_matches([' ', ':', ';', ',', '.', ')']);
    match bare.parse::<jiff::Timestamp>() {
        Ok(at) => html! {
            time datetime=(bare) { (at.strftime("%Y-%m-%d %H:%M UTC").to_string()) }
            (word.strip_prefix(bare).unwrap_or_default())
        },
        Err(_not_a_time) => html! { (word) },
    }
}

/// The hidden field of every form.
pub(super) fn form_token(visitor: &Visitor) -> Markup {
    html! { input type="hidden" name="form" value=(visitor.form_token); }
}

pub(crate) fn path_of_host(host: &str) -> String {
    format!("/host?{}", query(&[("host", host)]))
}

pub(super) fn path_of_group(domain: &str) -> String {
    format!("/group?{}", query(&[("domain", domain)]))
}

pub(crate) fn query(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish()
}

/// A field for the reason of a decision.
pub(super) fn reason_field(note: &str) -> Markup {
    html! {
        div.field {
            label for="reason" { "Reason" }
            input id="reason" name="reason" required maxlength="200" autocomplete="off" aria-describedby="reason-note";
            span id="reason-note" { (note) }
        }
    }
}
