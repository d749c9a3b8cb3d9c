//! A page for each security fix, and a page that lists all. None names a host, or leads to a list
//! of hosts by version.

use census::version::REST;
use maud::{Markup, html};

use crate::facts::Facts;
use crate::fixes::{LIST, STANDINGS, Spread, hosts};
use crate::pages::layout::{Page, strangers};
use crate::pages::plots::fix_plot;
use crate::text::{capitalised, grouped, share};

/// All pages of fixes, with their paths from the site's folder.
pub(crate) fn fixes(facts: &Facts) -> impl Iterator<Item = (String, String)> {
    facts.versions.fixes.iter().map(|spread| {
        let path = spread.fix.path().trim_start_matches('/').to_owned();
        (path, page(facts, spread))
    })
}

/// The fixes of a software, or of all, with links to their pages.
pub(super) fn table(facts: &Facts, software: Option<&str>) -> Markup {
    let is_wanted = |of: &&Spread| software.is_none_or(|name| of.fix.software == name);
    let fixes: Vec<_> = facts.versions.fixes.iter().filter(is_wanted).collect();
    html! {
        @if !fixes.is_empty() {
            h2 id="fixes" { "Security fixes" }
            p { "How many instances run a version with the fix, day by day since its release." }
            div.scroll tabindex="0" role="region" aria-labelledby="fixes" { table {
                thead { tr { th scope="col" { "Released" } th scope="col" { "Fix" } th.number scope="col" { "Fixed" } } }
                tbody {
                    @for Spread { fix, days, .. } in fixes {
                        tr {
                            td { (fix.date) }
                            th scope="row" { a href=(fix.path()) { (fix.title) } }
                            td.number { @if let Some((_, tally @ [fixed, ..])) = days.last() { (share(*fixed, hosts(tally))) } @else { "–" } }
                        }
                    }
                }
            } }
        }
    }
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
