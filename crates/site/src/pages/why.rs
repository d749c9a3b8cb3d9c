//! "Is my instance listed?": a form for the script, instructions without it, and the text of every
//! possible answer.

mod hosts;
mod peers;

use maud::{Markup, html};

pub(crate) use self::hosts::hosts;
pub(crate) use self::peers::peers;
use super::layout::{Page, contact, fill_in};
use super::push::{self, Notified};
use crate::answers::answer::{ENTRY_DIGITS, SHARD_DIGITS_MAX};
use crate::answers::shards::Shape;
use crate::answers::why::{Place, Why};
use crate::answers::words;
use crate::facts::{Facts, Intake, Push};

/// Where the examples are.
const EXAMPLES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/tree/main/examples");

/// The page, for answers in files of this shape.
pub(crate) fn why(facts: &Facts, shape: Shape) -> String {
    let content = html! {
        p.lead { "Type a domain to see whether this census lists it, what the last check found, and what to do if it is missing." }
        (form())
        (answer(facts))
        p { "The name does not leave your browser" @if facts.push == Push::Open { " unless you turn notifications on" } ". The answers are in " (shape.shards) " files by a salted hash of the name, and only the file with yours is requested. " (several_names()) }
        (glossary())
        (without_script(facts, shape))
    };
    Page {
        path: "/why.html",
        title: "Is my instance listed?",
        about: "Look up whether a server of the Fediverse is listed, what its last check found, and what its owner can do.",
        scripts: &push::scripts(facts, &["/why.js", "/copy.js"]),
    }
    .around(facts, &content)
}

/// Links to the pages for several names.
pub(super) fn several_names() -> Markup {
    html! { a href="/my-hosts.html" { "My hosts" } " keeps a list of names in your browser, and " a href="/my-peers.html" { "Check my peers" } " looks up all names that your server knows." }
}

/// What these pages promise, and what to do without scripts.
fn promise() -> Markup {
    html! {
        p { "The list stays in this browser. A check loads one file with the answers about all names, so this site learns no name." }
        noscript { p { "Your browser runs no scripts here. " a href="/why.html#by-hand" { "Two commands" } " look up one name, and " a href=(EXAMPLES) { "a Python program" } " looks up many." } }
    }
}

fn form() -> Markup {
    html! {
        form.ask.scripted id="ask" {
            div {
                label for="host" { "Domain, URL or account" }
                input id="host" name="host" type="text" inputmode="url" autocomplete="off" autocapitalize="none" spellcheck="false" placeholder="instance.example" aria-describedby="problem";
            }
            button.primary type="submit" { "Look up" }
        }
        noscript { p { "Your browser runs no scripts here. Two commands " a href="#by-hand" { "do the same by hand" } "." } }
        p.problem id="problem" role="alert" {}
    }
}

fn answer(facts: &Facts) -> Markup {
    let lines = [
        ("answer-since", "Known since"),
        ("answer-found", "Last check found"),
        ("answer-asked", "Last checked"),
        ("answer-next", "Next check"),
        ("answer-leaves", "Leaves the list"),
        ("answer-made", "Published"),
    ];
    html! {
        div aria-live="polite" {
            section.answer id="answer" aria-labelledby="answer-host" hidden {
                h2 id="answer-host" { "Host" }
                p.verdict id="answer-verdict" {}
                p id="answer-why" {}
                p data-line { strong { "What to do: " } span id="answer-advice" {} }
                dl {
                    div data-line { dt { "Software" } dd { a id="answer-software" href="/" {} } }
                    @for (id, name) in lines {
                        div data-line { dt { (name) } dd id=(id) {} }
                    }
                }
                p { a id="answer-owner" href="/owners.html" { "Is it yours? What you can do" } }
                (badge())
                (push::button(facts, Notified::Host))
            }
        }
        @match facts.intake {
            Intake::Open => p { "Owners can " a href="/owners.html#submit" { "submit a host, leave and come back" } " here. For anything else, write to the operator: " (contact(facts)) "." }
            Intake::Closed => p { "For anything else about your instance, write to the operator: " (contact(facts)) "." }
        }
    }
}

/// The picture names no host, and the link leads to the host's answer, which says what is true
/// then.
fn badge() -> Markup {
    html! {
        details id="badge" hidden {
            summary { "A badge for your site" }
            p { a id="badge-save" href="/" download { "Save the picture" } " to your own server, so that your visitors ask nobody else for it, and write:" }
            pre.copy tabindex="0" { code id="badge-code" {} }
        }
    }
}

fn without_script(facts: &Facts, shape: Shape) -> Markup {
    let first = SHARD_DIGITS_MAX.saturating_add(1);
    let last = SHARD_DIGITS_MAX.saturating_add(ENTRY_DIGITS);
    let commands = format!(
        "KEY=$(printf %s%s {salt} instance.example | sha256sum)\n\
         curl -fsS {address}/why/{salt}/$(printf %s \"$KEY\" | cut -c1-{digits}).json |\n\
         \x20 grep \"$(printf %s \"$KEY\" | cut -c{first}-{last})\"\n",
        salt = facts.salt,
        address = facts.address(),
        digits = shape.digits,
    );
    html! {
        details {
            summary { "By hand: two commands that do the same" }
            p id="by-hand" { "Write the name in lower case, without a dot at its end, and internationalised names in their " code { "xn--" } " form." }
            pre tabindex="0" { code { (commands) } }
            (fill_in(facts))
            p { "The answer holds the status, the reason, what the last check found, whether the host is listed, and when it was last checked and will be checked next, in seconds since 1970 (" code { "date -d @1700000000" } "). That of a listed host also has when it leaves the list if it fails, the month since which it is known, its software and version. The glossary explains the words. No answer means that the census does not know the host. Error 404 means that the answers were published again since you loaded this page: load it again, since the commands change with it." }
            p { "Anyone with a list of names can look each of them up in the same way. So hosts that opted out, that ask to be left out of statistics, or that the operator keeps out all have the same answer, without a reason or a time." }
        }
    }
}

fn glossary() -> Markup {
    let whys = Why::ALL.iter().map(|why| {
        let words = words::of_why(*why);
        Row {
            word: why.as_str(),
            says: words.says,
            advice: words.advice,
            found_tells_more: words::found_tells_more(*why),
        }
    });
    let unknown = Row {
        advice: words::UNKNOWN.advice,
        ..Row::bare("unknown", words::UNKNOWN.says)
    };
    let places = Place::ALL.map(|place| Row::bare(place.as_str(), words::of_place(place)));
    html! {
        details id="words" {
            summary { "Glossary: every answer that this page can give" }
            (table("why", "Why a host is listed or not", &whys.chain([unknown]).collect::<Vec<_>>()))
            (findings())
            (table("state", "Status", &places))
        }
    }
}

fn findings() -> Markup {
    let found = words::FOUND.iter().map(|found| {
        let words = words::of_found(*found);
        Row {
            advice: words.advice,
            ..Row::bare(words::found_word(*found), words.says)
        }
    });
    table("found", "What a check found", &found.collect::<Vec<_>>())
}

/// The same on the pages for several names.
fn glossary_of_findings() -> Markup {
    html! {
        details {
            summary { "Glossary: what a check can find" }
            (findings())
        }
    }
}

/// A text, which the script finds by its code.
struct Row {
    word: &'static str,
    says: &'static str,
    advice: &'static str,
    found_tells_more: bool,
}

impl Row {
    fn bare(word: &'static str, says: &'static str) -> Self {
        Self {
            word,
            says,
            advice: "",
            found_tells_more: false,
        }
    }
}

fn table(kind: &str, title: &str, rows: &[Row]) -> Markup {
    let has_advice = rows.iter().any(|row| !row.advice.is_empty());
    html! {
        h2 { (title) }
        div.scroll tabindex="0" role="region" aria-label=(title) {
            table.words {
                thead {
                    tr {
                        th scope="col" { "Word" }
                        th scope="col" { "Meaning" }
                        @if has_advice { th scope="col" { "What to do" } }
                    }
                }
                tbody {
                    @for row in rows {
                        tr {
                            th scope="row" { code { (row.word) } }
                            td id=(format!("{kind}-{}", row.word)) data-found-tells-more[row.found_tells_more] { (row.says) }
                            @if has_advice { td id=(format!("{kind}-{}-advice", row.word)) { (row.advice) } }
                        }
                    }
                }
            }
        }
    }
}
