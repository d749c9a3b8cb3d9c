//! Plots of versions over time: how far a fix has spread, and the minor versions of a software.

use jiff::civil::Date;
use maud::{Markup, html};

use super::draw::{Caption, LINES_MAX};
use super::{bare, figure, finding, table};
use crate::facts::Facts;
use crate::fixes::{STANDINGS, Spread};
use crate::history;
use crate::pages::layout::strangers;

/// How far a fix has spread; empty before the first counted day.
pub(crate) fn fix_plot(spread: &Spread) -> Markup {
    let caption = Caption {
        id: "spread",
        title: "Instances by whether their version has the fix",
        says: "Three lines: instances whose version has the fix, that are behind the fixed version of their branch, and whose branch has no fix. The table below has the numbers.",
    };
    let csv = format!("/data/{}", spread.fix.csv());
    let files = [("CSV", csv.as_str())];
    html! {
        @if let Some(finding) = finding::fix(spread) {
            (plot(caption, &html! { (finding) }, &STANDINGS, &spread.days, &files, |tally, at, _| tally.get(at).copied()))
        }
    }
}

/// The most frequent minor versions of a software; empty before the second day.
pub(crate) fn minors_plot(facts: &Facts, software: &str) -> Markup {
    let days = facts.versions.minors.get(software).map(Vec::as_slice);
    let Some(days @ [_, .., (_, last)]) = days else {
        return html! {};
    };
    let caption = Caption {
        id: "minors",
        title: "Minor versions over time",
        says: "A line for each of the most frequent minor versions. The table below has the numbers.",
    };
    let names: Vec<_> = last.iter().map(|(name, _)| name.as_str()).collect();
    let finding = html! {
        @if let Some(name) = names.first() { (strangers(name)) " is the most frequent" }
    };
    plot(caption, &finding, &names, days, &[], |minors, _, name| {
        let found = minors.iter().find(|(minor, _)| minor == name);
        found.map(|(_, hosts)| *hosts)
    })
}

/// Lines for the first names, and a table of all. `count` gets a day's counts, the place of a name
/// and the name.
fn plot<T>(
    caption: Caption<'_>,
    finding: &Markup,
    names: &[&str],
    days: &[(Date, T)],
    files: &[(&str, &str)],
    count: impl Fn(&T, usize, &str) -> Option<u64>,
) -> Markup {
    let named = || names.iter().enumerate();
    // A line has a value for each day: the script reads them by the day's place.
    let lines: Vec<_> = named()
        .take(LINES_MAX)
        .map(|(at, name)| {
            let points = history::stock(days, |(_, of)| Some(count(of, at, name).unwrap_or(0)));
            bare(name, points)
        })
        .collect();
    let heads: Vec<_> = names.iter().map(|name| strangers(name)).collect();
    html! {
        (figure(caption, finding, &lines, "", files))
        (table(caption.title, &heads, days, |(_, of)| named().map(|(at, name)| count(of, at, name)).collect()))
    }
}
