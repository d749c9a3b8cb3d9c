//! A page for each security fix, and a page that lists all. None names a host, or leads to a list
//! of hosts by version.

use census::version::REST;
use maud::{Markup, html};

use crate::facts::Facts;
use crate::fixes::{LIST, STANDINGS, Spread, hosts};
use crate::pages::layout::{Page, strangers};
use crate::pages::plots::fix_plot;
use crate::text::{capitalised, grouped, share};

/// All pages of fixes, with their paths from the site's folder; none without a fix.
pub(crate) fn fixes(facts: &Facts) -> Vec<(String, String)> {
    let fixes = &facts.versions.fixes;
    let list = (!fixes.is_empty()).then(|| (LIST.to_owned(), list(facts)));
    let pages = fixes
        .iter()
        .map(|spread| (spread.fix.path(), page(facts, spread)));
    list.into_iter()
        .chain(pages)
        .map(|(path, text)| (path.trim_start_matches('/').to_owned(), text))
        .collect()
}

/// The fixes of a software, with links.
pub(super) fn links(facts: &Facts, software: &str) -> Markup {
    let fixes = facts.versions.fixes.iter();
    let fixes: Vec<_> = fixes.filter(|of| of.fix.software == software).collect();
    html! {
        @if !fixes.is_empty() {
            h2 { "Security fixes" }
            ul {
                @for Spread { fix, .. } in fixes {
                    li { (fix.date) ": " a href=(fix.path()) { (fix.title) } }
                }
            }
        }
    }
}

fn list(facts: &Facts) -> String {
    let content = html! {
        p.lead { "How many instances run a version with the fix, day by day since its release." }
        div.scroll tabindex="0" role="region" aria-label="Security fixes" { table {
            thead { tr { th scope="col" { "Released" } th scope="col" { "Fix" } th scope="col" { "Software" } th.number scope="col" { "Fixed" } } }
            tbody {
                @for Spread { fix, days, .. } in &facts.versions.fixes {
                    tr {
                        td { (fix.date) }
                        th scope="row" { a href=(fix.path()) { (fix.title) } }
                        td.stranger { (strangers(&fix.software)) }
                        td.number { @if let Some((_, tally @ [fixed, ..])) = days.last() { (share(*fixed, hosts(tally))) } @else { "–" } }
                    }
                }
            }
        } }
    };
    Page {
        path: LIST,
        title: "Security fixes",
        about: "How fast security fixes spread among the servers of the Fediverse.",
        scripts: &[],
    }
    .around(facts, &content)
}

fn page(facts: &Facts, spread: &Spread) -> String {
    let fix = &spread.fix;
    let fixed: Vec<_> = fix.fixed.iter().map(ToString::to_string).collect();
    let last = facts.history.last();
    let is_counted = last.is_none_or(|last| last.software(&fix.software).is_some());
    let content = html! {
        p.lead { "Fixed in " (strangers(&fix.software)) " " (fixed.join(", ")) ", released on " (fix.date) ". " a href=(fix.link) rel="noopener noreferrer" { "The advisory" } }
        @if !is_counted {
            p { "Versions are counted for the most frequent kinds of software. " (strangers(&fix.software)) " is not among them now." }
        } @else if spread.days.is_empty() {
            p { "Counts begin with the next list." }
        }
        (fix_plot(spread))
        (variants(spread))
        h2 { "What is counted" }
        ul {
            li { "Fixed: the fixed version of a branch (its first two numbers) or a later one. Behind: an earlier one. Without: an older branch that has no fix; it may not have the flaw." }
            li { "Unclear: no version number, a nightly build, a pre-release that may have the fix or not, or a version that is not among the forty most frequent of its software." }
            li { "A day's counts are those of its last list. They mix answers up to 31 hours old." }
        }
        p { a href=(LIST) { "All security fixes" } }
    };
    let about = format!("How fast a security fix of {} spreads.", fix.software);
    Page {
        path: &fix.path(),
        title: &fix.title,
        about: &about,
        scripts: &["/plot.js"],
    }
    .around(facts, &content)
}

/// The last day by fork, if there are forks.
fn variants(spread: &Spread) -> Markup {
    let is_fork = |name: &String| !name.is_empty() && name != REST;
    html! {
        @if spread.variants.keys().any(is_fork) {
            h2 { "By fork, on the last day" }
            div.scroll tabindex="0" role="region" aria-label="By fork" { table {
                thead { tr { th scope="col" { "Fork" } th.number scope="col" { "Instances" } @for head in STANDINGS { th.number scope="col" { (capitalised(head)) } } } }
                tbody {
                    @for (name, tally) in &spread.variants {
                        tr {
                            th.stranger scope="row" { @if name.is_empty() { em { "none" } } @else { (strangers(name)) } }
                            td.number { (grouped(hosts(tally))) }
                            @for count in tally { td.number { (share(*count, hosts(tally))) } }
                        }
                    }
                }
            } }
        }
    }
}
