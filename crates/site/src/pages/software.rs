//! All software on one page, and a page for each of the most frequent.

use maud::{Markup, PreEscaped, html};

use super::layout::{Page, strangers};
use super::plots::software_plot;
use crate::error::SiteError;
use crate::facts::Facts;
use crate::list::Row;
use crate::software::{Ranking, Software};
use crate::text::grouped;

/// All software, by how many listed hosts run it.
pub(crate) fn all_software(facts: &Facts, listed: u64, ranking: &Ranking) -> String {
    let content = html! {
        p { "What the " (grouped(listed)) " listed instances say that they run." }
        table {
            thead { tr { th scope="col" { "Software" } th.number scope="col" { "Instances" } th.number scope="col" { "Share" } } }
            tbody {
                @for software in &ranking.pages {
                    tr {
                        th scope="row" { a href=(format!("/software/{}.html", software.slug)) { (strangers(&software.name)) } }
                        (count(software.count, listed))
                    }
                }
                @for (name, instances) in &ranking.rest {
                    tr { th scope="row" { (strangers(name)) } (count(*instances, listed)) }
                }
                @if ranking.others > 0 {
                    tr { th scope="row" { em { "others and unknown" } } (count(ranking.others, listed)) }
                }
            }
        }
        p { "The " (ranking.pages.len()) " most frequent have pages of their own. All of them are in " a href="/data/software.json" { "software.json" } "." }
    };
    Page {
        path: "/software.html",
        title: "Software",
        script: None,
    }
    .around(facts, &content)
}

/// One software.
pub(crate) fn software(
    facts: &Facts,
    listed: u64,
    software: &Software,
) -> Result<String, SiteError> {
    let shown = u64::try_from(software.lines.len()).unwrap_or(u64::MAX);
    let content = html! {
        p { (grouped(software.count)) " of " (grouped(listed)) " listed instances (" (share(software.count, listed)) ") say that they run it." }
        (software_plot(facts, &software.name)?)
        (versions(software))
        h2 id="instances" { "Instances" }
        @if shown < software.count {
            p { "The first " (grouped(shown)) " of " (grouped(software.count)) " by name. All of them are in " a href="/data/instances.csv" { "instances.csv" } " and in " a href="/" { "the list" } "." }
        }
        (instances(software))
    };
    Ok(Page {
        path: "",
        title: &software.name,
        script: None,
    }
    .around(facts, &content))
}

fn versions(software: &Software) -> Markup {
    html! {
        h2 { "Versions" }
        table {
            thead { tr { th scope="col" { "Version" } th.number scope="col" { "Instances" } th.number scope="col" { "Share" } } }
            tbody {
                @for (version, instances) in &software.versions {
                    tr { th scope="row" { (strangers(version)) } (count(*instances, software.count)) }
                }
                @if software.other_versions > 0 {
                    tr { th scope="row" { em { "others and unknown" } } (count(software.other_versions, software.count)) }
                }
            }
        }
    }
}

fn instances(software: &Software) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-labelledby="instances" {
            table {
                thead {
                    tr {
                        th scope="col" { "Host" }
                        th scope="col" { "Version" }
                        th scope="col" { "State" }
                        th scope="col" { "First seen" }
                        th scope="col" { "Last alive" }
                    }
                }
                tbody {
                    @for row in software.lines.iter().filter_map(|line| Row::parse(line)) {
                        tr {
                            th scope="row" { (host(row.host)) }
                            td { (strangers(row.version)) }
                            td { (row.state) }
                            td { (row.first_seen) }
                            td { (row.last_alive) }
                        }
                    }
                }
            }
        }
    }
}

/// A host as a link to it. It is the instance's own front page that a reader of a list wants; `nofollow` because we vouch for none, and neither the
/// opened page nor its server learns where the reader came from.
fn host(name: &str) -> Markup {
    html! { a href=(format!("https://{name}/")) rel="nofollow noopener noreferrer" { (name) } }
}

/// A number and its share of a whole, as two cells.
fn count(part: u64, whole: u64) -> Markup {
    html! {
        td.number { (grouped(part)) }
        td.number { (share(part, whole)) }
    }
}

/// A share of a whole in percent with one digit; rounded to the nearest.
fn share(part: u64, whole: u64) -> Markup {
    let tenths = u128::from(part)
        .saturating_mul(2000)
        .saturating_add(u128::from(whole))
        .checked_div(u128::from(whole).saturating_mul(2))
        .unwrap_or(0);
    PreEscaped(format!("{}.{}\u{a0}%", tenths / 10, tenths % 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_and_a_share_of_nothing_is_none() {
        for (part, whole, expect) in [
            (0, 0, "0.0\u{a0}%"),
            (1, 3, "33.3\u{a0}%"),
            (2, 3, "66.7\u{a0}%"),
            (7, 7, "100.0\u{a0}%"),
            (u64::MAX, u64::MAX, "100.0\u{a0}%"),
        ] {
            assert_eq!(share(part, whole).into_string(), expect);
        }
    }
}
