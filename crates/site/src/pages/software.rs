//! A page with all software, and a page for each of the most frequent.

mod fixes;

use maud::{Markup, html};

use super::layout::{Page, strangers};
use super::plots::{minors_plot, software_plot};
use super::push::{self, Notified};
use super::rows;
use crate::facts::Facts;
use crate::software::{Ranking, Software};
use crate::text::{grouped, share};
pub(crate) use fixes::fixes;

/// All software, sorted by number of listed hosts.
pub(crate) fn all_software(facts: &Facts, listed: u64, ranking: &Ranking) -> String {
    let content = html! {
        @if listed == 0 {
            p.lead { "No instance is listed yet, so there is no software either." }
        } @else {
            p.lead { "What the " (grouped(listed)) " listed instances say that they run, and how many of them run the newest minor version." }
            (table(listed, ranking))
        }
        (fixes::table(facts, None))
    };
    Page {
        path: "/software.html",
        title: "Software",
        about: "All software of the Fediverse by the number of its instances, and how many run the newest version.",
        scripts: &[],
    }
    .around(facts, &content)
}

fn table(listed: u64, ranking: &Ranking) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Software" { table.all {
            thead { tr { th scope="col" { "Software" } th.number scope="col" { "Instances" } th.number.spare scope="col" { "Share" } th.number scope="col" { "On newest" } } }
            tbody {
                @for software in &ranking.pages {
                    tr {
                        th.stranger scope="row" { a href=(software.path()) { (strangers(&software.name)) } }
                        (count(software.count, listed))
                        td.number { @if let Some((_, running)) = &software.versions.newest { (share(*running, software.count)) } @else { "–" } }
                    }
                }
                @for (name, instances) in &ranking.rest {
                    tr { th.stranger scope="row" { (strangers(name)) } (count(*instances, listed)) td.number { "–" } }
                }
                @if ranking.others > 0 {
                    tr { th scope="row" { em { "others and unknown" } } (count(ranking.others, listed)) td.number { "–" } }
                }
            }
        } }
        p { "A minor version counts as the newest if at least one in a hundred instances of its software runs it, so that one invented number does not make all others look outdated. The " (ranking.pages.len()) " most frequent have pages of their own; all are in " a href="/data/software.json" { "software.json" } "." }
    }
}

pub(crate) fn software(facts: &Facts, listed: u64, software: &Software) -> String {
    let about = format!(
        "{} listed instances of the Fediverse run {}: versions over time, the newest and the oldest.",
        grouped(software.count),
        software.name
    );
    let content = html! {
        dl.counts {
            div { dt { "Listed instances" } dd { (grouped(software.count)) } }
            div { dt { "Share of all" } dd { (share(software.count, listed)) } }
            @if let Some((newest, running)) = &software.versions.newest {
                div { dt { "On " (strangers(newest)) " or later" } dd { (share(*running, software.count)) } }
            }
        }
        p {
            a href=(software.query()) { "Search and filter its instances" }
            " · for programs: "
            a href=(format!("/software/{}.json", software.slug)) { "names (JSON)" } ", "
            a href=(format!("/software/{}.ndjson", software.slug)) { "rows (NDJSON)" }
        }
        (push::button(facts, Notified::Software(&software.name)))
        (software_plot(facts, &software.name))
        (minors_plot(facts, &software.name))
        (versions(software))
        (fixes::table(facts, Some(&software.name)))
        h2 id="newest" { "Newest instances" }
        (rows::table(&software.newest, "newest"))
        @if software.count > u64::try_from(software.newest.len()).unwrap_or(u64::MAX) {
            h2 id="oldest" { "Known for the longest time" }
            (rows::table(&software.oldest, "oldest"))
        }
    };
    Page {
        path: "",
        title: &software.name,
        about: &about,
        scripts: &push::scripts(facts, &["/plot.js"]),
    }
    .around(facts, &content)
}

/// Minor versions as bars, the newest first.
fn versions(software: &Software) -> Markup {
    let versions = &software.versions;
    let most = versions
        .minors
        .iter()
        .map(|(_, count)| *count)
        .chain([versions.others])
        .max()
        .unwrap_or(0);
    html! {
        h2 { "Versions" }
        table {
            thead { tr { th scope="col" { "Version" } th.number scope="col" { "Instances" } th.bar scope="col" { "Share" } } }
            tbody {
                @for (version, instances) in &versions.minors {
                    tr { th.stranger scope="row" { a href=(software.query_of(version)) { (strangers(version)) } } td.number { (grouped(*instances)) } (bar(*instances, software.count, most)) }
                }
                @if versions.others > 0 {
                    tr { th scope="row" { em { "others and unknown" } } td.number { (grouped(versions.others)) } (bar(versions.others, software.count, most)) }
                }
            }
        }
    }
}

/// A share as a number, with a bar relative to the longest one.
fn bar(part: u64, whole: u64, most: u64) -> Markup {
    let width = share(part, most).replace('\u{a0}', "");
    html! {
        td.bar {
            span { (share(part, whole)) }
            svg aria-hidden="true" { rect width=(width) height="100%" rx="2" {} }
        }
    }
}

/// A number and its share of the total, as two cells.
fn count(part: u64, whole: u64) -> Markup {
    html! {
        td.number { (grouped(part)) }
        td.number.spare { (share(part, whole)) }
    }
}
