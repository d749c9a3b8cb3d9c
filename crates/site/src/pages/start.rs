//! The start page: what this is, the counts, plots over time, and the list.

use census::state::StateName;
use maud::{Markup, html};

use super::layout::Page;
use super::plots::{coming_and_going, softwares, states};
use crate::error::SiteError;
use crate::facts::Facts;
use crate::list::{LIST_ROWS_MAX, Listed};
use crate::software::Ranking;
use crate::text::{grouped, size};

/// The columns of the list: its script's names, headings.
const COLUMNS: [(&str, &str); 6] = [
    ("host", "Host"),
    ("software", "Software"),
    ("version", "Version"),
    ("state", "State"),
    ("first_seen", "First seen"),
    ("last_alive", "Last alive"),
];

/// Software that the page names; the rest has its own page.
const SOFTWARE_NAMED: usize = 12;

/// The page.
pub(crate) fn start(
    facts: &Facts,
    listed: &Listed,
    ranking: &Ranking,
) -> Result<String, SiteError> {
    let content = html! {
        p { "Fedicensus visits every host of the Fediverse that it knows about once a day and lists those where an instance lives. It asks for nothing about users or posts, keeps to robots.txt, and " a href="/owners.html" { "leaves alone" } " who wants to be left alone." }
        (counts(facts, listed, ranking))
        p {
            "Looking for your own instance? " a href="/why.html" { "Ask whether it is listed, and why not" } ". "
            "A program reads " a href="/data.html" { "files" } "."
        }
        (list(listed))
        (most_frequent(ranking))
        @if !facts.history.is_empty() {
            h2 { "Over time" }
            (softwares(facts)?)
            (coming_and_going(facts)?)
            h3 { "Known hosts by state" }
            (states(facts)?)
        }
    };
    Ok(Page {
        path: "/",
        title: "A census of the Fediverse",
        script: Some("/list.js"),
    }
    .around(facts, &content))
}

fn counts(facts: &Facts, listed: &Listed, ranking: &Ranking) -> Markup {
    let known = facts
        .known
        .values()
        .fold(0_u64, |sum, count| sum.saturating_add(*count));
    let opted_out = facts.known.get(&StateName::OptedOut).copied().unwrap_or(0);
    let names = ranking.pages.len().saturating_add(ranking.rest.len());
    let names = u64::try_from(names).unwrap_or(u64::MAX);
    html! {
        dl.counts {
            div { dt { "Listed instances" } dd { (grouped(listed.rows)) } }
            div { dt { "Kinds of software" } dd { (grouped(names)) @if ranking.others > 0 { " or more" } } }
            div { dt { "Known hosts" } dd { (grouped(known)) } }
            div { dt { "Opted out" } dd { (grouped(opted_out)) } }
        }
    }
}

fn most_frequent(ranking: &Ranking) -> Markup {
    html! {
        h2 { "Software" }
        ul.legend {
            @for software in ranking.pages.iter().take(SOFTWARE_NAMED) {
                li { a href=(format!("/software/{}.html", software.slug)) { bdi { (software.name) } } " " (grouped(software.count)) }
            }
        }
        p { a href="/software.html" { "All software" } }
    }
}

fn list(listed: &Listed) -> Markup {
    html! {
        h2 id="instances" { "Instances" }
        noscript {
            p { "Your browser runs no scripts here. The same list is in " a href="/data/instances.csv" { "a file for spreadsheets" } ", and in parts on " a href="/software.html" { "the pages of each software" } "." }
        }
        div id="list-begin" hidden {
            p { "Search and sort all " (grouped(listed.rows.min(LIST_ROWS_MAX))) " instances here. The list is loaded when you ask for it: " (size(listed.wire_bytes)) "." }
            p { button id="list-load" type="button" { "Load the list" } }
        }
        @if listed.rows > LIST_ROWS_MAX {
            p { "It holds the first " (grouped(LIST_ROWS_MAX)) " of " (grouped(listed.rows)) " by name; all of them are in " a href="/data/instances.csv" { "instances.csv" } "." }
        }
        p id="list-status" role="status" {}
        div id="list" hidden {
            p {
                label for="list-search" { "Search" }
                input id="list-search" type="search" autocomplete="off" autocapitalize="none" spellcheck="false" placeholder="mastodon 4.5";
            }
            div.view id="list-view" tabindex="0" role="region" aria-labelledby="instances" { (table()) }
        }
    }
}

/// Filled by the script.
fn table() -> Markup {
    html! {
        table id="list-table" {
            thead {
                tr aria-rowindex="1" {
                    @for (at, (name, head)) in COLUMNS.into_iter().enumerate() {
                        th scope="col" id=(format!("list-by-{name}")) aria-sort=(if at == 0 { "ascending" } else { "none" }) {
                            button type="button" { (head) }
                        }
                    }
                }
            }
            tbody.gap id="list-before" aria-hidden="true" hidden { tr { td colspan="6" {} } }
            tbody id="list-rows" {}
            tbody.gap id="list-after" aria-hidden="true" hidden { tr { td colspan="6" {} } }
        }
    }
}
