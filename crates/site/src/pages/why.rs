//! "Is my instance listed, and why not?": a form for the script, a way without it, and all words that an answer may hold.

use maud::{Markup, html};

use super::layout::{Page, contact, fill_in};
use crate::answers::answer::{ENTRY_DIGITS, SHARD_DIGITS_MAX};
use crate::answers::shards::Shape;
use crate::answers::why::{Place, Why};
use crate::answers::words;
use crate::facts::{Facts, Intake};

/// The page, where the answers are shared out so.
pub(crate) fn why(facts: &Facts, shape: Shape) -> String {
    let content = html! {
        p { "Type the name of a host. It does not leave your browser: the answers lie in " (shape.shards) " files by a salted hash of the name, and only the one file that yours is in is asked for. The answers name no host, but anybody who has a list of names can look each of them up. So one answer, without a reason or a time, is for all hosts that opted out, ask to be left out of statistics or are kept out by this census." }
        (form())
        (answer())
        h2 { "What to do about it" }
        @match facts.intake {
            Intake::Open => p { "A host that we do not know can be submitted by its owner: see " a href="/owners.html" { "the page for owners" } "." }
            Intake::Closed => p { "A host that we do not know can be brought in by whoever runs this census: write to " (contact(facts)) "." }
        }
        p { "The operator can say more about your own instance: " (contact(facts)) "." }
        (without_script(facts, shape))
        (all_words())
    };
    Page {
        path: "/why.html",
        title: "Is my instance listed, and why not?",
        script: Some("/why.js"),
    }
    .around(facts, &content)
}

fn form() -> Markup {
    html! {
        form id="ask" hidden {
            p {
                label for="host" { "Name of the host" }
                input id="host" name="host" type="text" inputmode="url" autocomplete="off" autocapitalize="none" spellcheck="false" placeholder="instance.example" aria-describedby="problem";
            }
            p { button type="submit" { "Ask" } }
        }
        noscript { p { "Your browser runs no scripts here. " a href="#by-hand" { "Ask by hand" } " instead; it is two commands." } }
        p.problem id="problem" role="alert" {}
    }
}

/// Filled by the script.
fn answer() -> Markup {
    let lines = [
        ("answer-state", "Where it stands"),
        ("answer-found", "What the last check found"),
        ("answer-asked", "Last asked"),
        ("answer-next", "Asked next"),
        ("answer-advice", "What to do about it"),
        ("answer-made", "As of"),
    ];
    html! {
        div aria-live="polite" {
            section.answer id="answer" aria-labelledby="answer-host" hidden {
                div data-line { h2 id="answer-host" { "Host" } }
                p data-line { strong id="answer-why" {} }
                dl {
                    @for (id, name) in lines {
                        div data-line { dt { (name) } dd id=(id) {} }
                    }
                }
            }
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
        h2 id="by-hand" { "By hand" }
        p { "Write the name in lower case, without a dot at its end, and with umlauts and the like in their " code { "xn--" } " form." }
        pre tabindex="0" { code { (commands) } }
        (fill_in(facts))
        p { "What comes back is where it stands, why, what the last check found, whether it is listed, when it was last asked and when it will be asked next, in seconds since 1970 (" code { "date -d @1700000000" } "). The words are explained below. Nothing comes back for a host that we know nothing of. An error 404 means that the answers were made again since this page was: load it again, since the commands change with it." }
    }
}

fn all_words() -> Markup {
    html! {
        h2 id="words" { "All words" }
        h3 { "Where a host stands" }
        (table("state", Place::ALL.map(|place| (place.as_str(), words::of_place(place), "")).to_vec()))
        h3 { "Why it is listed, or is not" }
        (table("why", Why::ALL.iter().map(|why| {
            let words = words::of_why(*why);
            (why.as_str(), words.says, words.advice)
        }).chain([("unknown", words::UNKNOWN.says, words::UNKNOWN.advice)]).collect()))
        h3 { "What a check found" }
        (table("found", words::FOUND.iter().map(|found| {
            let words = words::of_found(*found);
            (words::found_word(*found), words.says, words.advice)
        }).collect()))
    }
}

/// Words with what they mean and what to do about it, where the script finds them by their names.
fn table(kind: &str, rows: Vec<(&str, &str, &str)>) -> Markup {
    let has_advice = rows.iter().any(|(.., advice)| !advice.is_empty());
    html! {
        table {
            thead {
                tr {
                    th scope="col" { "Word" }
                    th scope="col" { "Meaning" }
                    @if has_advice { th scope="col" { "What to do" } }
                }
            }
            tbody {
                @for (word, says, advice) in rows {
                    tr {
                        th scope="row" { code { (word) } }
                        td id=(format!("{kind}-{word}")) { (says) }
                        @if has_advice { td id=(format!("{kind}-{word}-advice")) { (advice) } }
                    }
                }
            }
        }
    }
}
