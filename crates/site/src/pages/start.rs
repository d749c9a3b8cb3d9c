//! The start page: purpose, counts, list, and plots over time.

mod news;

use census::state::StateName;
use maud::{Markup, html};

use super::layout::{Page, moment};
use super::plots::{figures, softwares};
use super::push::{self, Notified};
use super::rows::{COLUMNS, row};
use crate::facts::{Facts, Reading};
use crate::list::{Listed, Row};
use crate::software::Ranking;
use crate::text::{capitalised, grouped, size};

/// Kinds of software that the list's form offers. An address may name any other.
const SOFTWARE_OFFERED: usize = 100;

/// Sort orders of the list: the value in the address, and the text for the reader.
const SORTS: [(&str, &str); 14] = [
    ("-first_seen", "Newest first"),
    ("first_seen", "Oldest first"),
    ("host", "Host, A to Z"),
    ("-host", "Host, Z to A"),
    ("software", "Software, A to Z"),
    ("-software", "Software, Z to A"),
    ("-version", "Version, highest first"),
    ("version", "Version, lowest first"),
    ("state", "State: up first"),
    ("-state", "State: moving first"),
    ("-open_registrations", "Sign-up: open first"),
    ("open_registrations", "Sign-up: closed first"),
    ("-last_alive", "Last up, latest first"),
    ("last_alive", "Last up, earliest first"),
];

pub(crate) fn start(facts: &Facts, listed: &Listed<'_>, ranking: &Ranking) -> String {
    let figures = figures(facts);
    let mut figures = figures.iter().map(|figure| figure.on_page(&facts.history));
    let total = figures.next();
    let content = html! {
        div.hero {
            div {
                p.lead {
                    "Every known server of the Fediverse, visited about once a day. We count servers, not people: "
                    @match facts.reading {
                        Reading::Instances => { "nothing is read about users or posts, and " }
                        Reading::Conversations => { "of public posts, " a href="/owners.html#conversations" { "only the names of servers" } " are kept, and " }
                    }
                    a href="/owners.html" { "owners can opt out" } "."
                }
                @if listed.rows == 0 { (before_the_list(facts)) } @else {
                    (counts(facts, listed, ranking))
                    (news::news(&facts.history, ranking))
                }
                (first_round(facts))
            }
            @if let (Some(total), true) = (&total, listed.rows > 0) { div { (total) } }
        }
        @if listed.rows > 0 { (list(facts, listed, ranking)) }
        (push::button(facts, Notified::All))
        @if !facts.history.is_empty() && listed.rows > 0 {
            h2 { "Software" }
            (softwares(facts, ranking))
            p { a href="/software.html" { "All software and its versions" } }
            h2 { "Over time" }
            @if total.is_none() { p { "Plots begin with the second day." } }
            @for figure in figures { (figure) }
        }
        h2 { "Looking for something else?" }
        ul {
            li { a href="/why.html" { "Is my instance listed? If not, why?" } }
            li { a href="/data.html" { "Download the data" } " as JSON, CSV or SQLite, or follow the changes" }
            li { "A server to join: " a href="https://joinmastodon.org/servers" rel="noopener noreferrer" { "joinmastodon.org" } ", " a href="https://join-lemmy.org/instances" rel="noopener noreferrer" { "join-lemmy.org" } " or " a href="https://fedidb.com/" rel="noopener noreferrer" { "fedidb.com" } " help to choose one" }
        }
    };
    Page {
        path: "/",
        title: "A census of the Fediverse",
        about: "Every known server of the Fediverse with its software, version and state, updated several times a day, and the whole list as files.",
        scripts: &push::scripts(facts, if listed.rows == 0 { &[] } else { &["/list.js", "/plot.js"] }),
    }
    .around(facts, &content)
}

/// The text before a list names an instance.
fn before_the_list(facts: &Facts) -> Markup {
    let known = sum(facts.known.values());
    html! {
        div.notice {
            @if known == 0 {
                p { strong { "This census knows no servers yet." } }
                p { "It begins when its operator names the first one." }
            } @else {
                p { strong { "No listed instance yet." } }
                p { "This census knows " (grouped(known)) " hosts. The list appears here as soon as one of them has responded and may be listed." }
            }
        }
    }
}

fn first_round(facts: &Facts) -> Markup {
    html! {
        @if let Some(progress) = &facts.progress {
            p { "The first checks are under way. At " (moment(facts.made)) ": " (progress) "." }
        }
    }
}

fn counts(facts: &Facts, listed: &Listed<'_>, ranking: &Ranking) -> Markup {
    // In its first week, a census meets instances that others have known for years.
    let is_young = facts.history.len() <= 7;
    let new = sum(facts.history.iter().rev().take(7).map(|day| &day.appeared));
    html! {
        dl.counts {
            div { dt { "Listed instances" } dd { (grouped(listed.rows)) } }
            @if !is_young { div { dt { "New in 7 days" } dd { (grouped(new)) } } }
            div { dt { "Software" } dd { (grouped(ranking.named())) @if ranking.others > 0 { "+" } } }
            div { dt { "Known hosts" } dd { (grouped(sum(facts.known.values()))) } }
        }
    }
}

fn sum<'n>(numbers: impl Iterator<Item = &'n u64>) -> u64 {
    numbers.fold(0, |sum, number| sum.saturating_add(*number))
}

fn list(facts: &Facts, listed: &Listed<'_>, ranking: &Ranking) -> Markup {
    let made = facts.rows_read.day().to_string();
    let shown = u64::try_from(listed.newest.len()).unwrap_or(u64::MAX);
    html! {
        h2 id="instances" { "Instances" }
        noscript {
            p { "These are the newest instances. Searching needs scripts; without them, take " a href="/data/instances.csv" { "the whole list for spreadsheets" } " or look at " a href="/software.html" { "the pages of each software" } "." }
        }
        (form(ranking))
        p id="list-status" role="status" { (grouped(listed.rows)) " instances" }
        p.notice id="list-none" hidden {
            "Nothing found" span id="list-among" {} ". "
            a id="list-clear" href="/" hidden { "Search without filters" } " "
            a id="list-ask" href="/why.html" { "Is it listed? If not, why?" }
        }
        div.view id="list-view" tabindex="0" role="region" aria-labelledby="instances" data-made=(made) data-bytes=(listed.wire_bytes) { (table(listed)) }
        p id="list-more" hidden { "More rows match than can be scrolled through. Narrow the search to see the others." }
        @if shown < listed.rows {
            p.scripted { button id="list-load" type="button" { "Load all " (grouped(listed.rows)) " instances (" (size(listed.wire_bytes)) ")" } }
        }
    }
}

fn form(ranking: &Ranking) -> Markup {
    let state = |state: StateName| (state.as_str(), state.for_people());
    let choice = |id: &str, label: &str, options: &[(&str, &str)]| {
        html! {
            div {
                label for=(id) { (label) }
                select id=(id) { @for (value, name) in options { option value=(value) { (capitalised(name)) } } }
            }
        }
    };
    html! {
        form.search.scripted id="list-form" role="search" {
            div {
                label for="list-q" { "Search" }
                input id="list-q" type="search" autocomplete="off" autocapitalize="none" spellcheck="false" placeholder="Host, URL or @user@host";
            }
            div {
                label for="list-software" { "Software" }
                select id="list-software" {
                    option value="" { "Any" }
                    @for software in ranking.pages.iter().take(SOFTWARE_OFFERED) {
                        option value=(software.name) { (software.name) " (" (grouped(software.count)) ")" }
                    }
                }
            }
            div {
                label for="list-version" { "Version" }
                input id="list-version" type="text" autocomplete="off" spellcheck="false" placeholder="4.5";
            }
            (choice("list-state", "State", &[("", "any"), state(StateName::Alive), state(StateName::Dying), state(StateName::Moving)]))
            (choice("list-signup", "Sign-up", &[("", "Any"), ("yes", "Open"), ("no", "Closed"), ("unknown", "Not said")]))
            (choice("list-since", "First seen", &[("", "Any time"), ("1", "Today"), ("7", "Last 7 days"), ("30", "Last 30 days"), ("365", "Last year")]))
            (choice("list-sort", "Sort", &SORTS))
        }
    }
}

/// The newest rows. The script replaces them with those that the reader requests.
fn table(listed: &Listed<'_>) -> Markup {
    html! {
        table.list id="list-table" role="table" aria-labelledby="instances" {
            thead role="rowgroup" {
                tr role="row" aria-rowindex="1" {
                    @for (name, head, class) in COLUMNS {
                        th scope="col" role="columnheader" class=(class) id=(format!("list-by-{name}")) aria-sort=(if name == "first_seen" { "descending" } else { "none" }) {
                            button type="button" disabled { (head) }
                        }
                    }
                }
            }
            tbody.gap id="list-before" aria-hidden="true" hidden { tr { td colspan="7" {} } }
            tbody id="list-rows" role="rowgroup" {
                @for (number, line) in listed.newest.iter().enumerate() {
                    @if let Some(parsed) = Row::parse(line) { (row(number.saturating_add(2), parsed)) }
                }
            }
            tbody.gap id="list-after" aria-hidden="true" hidden { tr { td colspan="7" {} } }
        }
    }
}
