//! Plots over time, each with a table of the same numbers.

mod axis;
mod draw;

use std::collections::BTreeMap;

use census::state::StateName;
use maud::{Markup, html};

use super::layout::strangers;
use crate::facts::Facts;
use crate::history::{self, Day, Point};
use crate::software::Ranking;
use crate::text::{capitalised, grouped, share};
use draw::{Caption, Height, Line, plot};

/// Rows of a table below a plot: a month of days.
const TABLE_ROWS_MAX: usize = 31;

/// Kinds of software with a separate plot on the start page.
const PANELS: usize = 8;

/// Days over which new and gone instances are averaged: a whole week levels out its weekdays.
const SMOOTHED_DAYS: usize = 7;

/// Number of listed instances over time.
pub(crate) fn total(facts: &Facts) -> Markup {
    let days = &facts.history;
    let points = history::stock(days, |day| Some(day.listed()));
    let says = says(&points);
    let caption = Caption {
        id: "plot-total",
        title: "Listed instances over time",
        says: &says,
    };
    let lines = [bare("instances", points)];
    figure(
        html! { "Listed instances over time" },
        &plot(caption, Height::Tall, &lines),
        &table("Listed instances", &[html! { "Listed" }], days, |day| {
            vec![Some(day.listed())]
        }),
    )
}

/// Listed hosts of the last day's most frequent software, with a panel each.
pub(crate) fn softwares(facts: &Facts, ranking: &Ranking) -> Markup {
    let days = &facts.history;
    let Some(last) = days.last() else {
        return html! {};
    };
    let names: Vec<&str> = last
        .by_software
        .iter()
        .take(PANELS)
        .map(|(name, _)| name.as_str())
        .collect();
    let heads: Vec<Markup> = names.iter().map(|name| software_name(name)).collect();
    html! {
        div.panels {
            @for (number, name) in names.iter().enumerate() {
                @let points = history::stock(days, |day| day.software(name));
                @let says = says(&points);
                @let title = format!("Listed instances that run {name}");
                @let id = format!("plot-software-{number}");
                @let caption = Caption { id: &id, title: &title, says: &says };
                @let now = last.software(name).unwrap_or(0);
                figure.panel {
                    figcaption {
                        (software_link(name, ranking))
                        span.figures { b { (grouped(now)) } " " (share(now, last.listed())) }
                    }
                    (plot(caption, Height::Small, &[bare("instances", points)]))
                    p.readout aria-live="polite" {}
                }
            }
        }
        (table("Listed instances by software", &heads, days, |day| {
            names.iter().map(|name| day.software(name)).collect()
        }))
    }
}

/// Instances that came onto the list or left it, per day.
pub(crate) fn new_and_gone(facts: &Facts) -> Markup {
    let days = &facts.history;
    let flow = |name, count: fn(&Day) -> u64| Line {
        name,
        points: history::mean(days, SMOOTHED_DAYS, count),
        raw: history::daily(days, count),
    };
    let lines = [
        flow("new", |day| day.appeared),
        flow("gone", |day| day.left),
    ];
    let caption = Caption {
        id: "plot-changes",
        title: "New and gone instances per day",
        says: "Two lines, each the mean of seven days, with the single days behind them. The table below has the numbers.",
    };
    let heads = ["New", "Gone"].map(|name| html! { (name) });
    figure(
        html! {
            "New and gone instances per day"
            span.figures { (key(0, "new")) (key(1, "gone")) " (mean of 7 days; single days behind it)" }
        },
        &plot(caption, Height::Tall, &lines),
        &table("New and gone instances per day", &heads, days, |day| {
            vec![Some(day.appeared), Some(day.left)]
        }),
    )
}

/// Known hosts that respond, fail or are unreachable.
pub(crate) fn states(facts: &Facts) -> Markup {
    let days = &facts.history;
    let shown = [StateName::Alive, StateName::Dying, StateName::Dead].map(StateName::for_people);
    let mut words = StateName::ALL.map(StateName::for_people).to_vec();
    // Opted-out and parked hosts are one column.
    words.dedup();
    let heads = words.iter().map(|word| html! { (capitalised(word)) });
    let of_day = |day: &Day, word| Some(count(&day.by_state, word));
    let lines = shown.map(|word| bare(word, history::stock(days, |day| of_day(day, word))));
    let caption = Caption {
        id: "plot-states",
        title: "Known hosts by state",
        says: "Three lines: hosts that are up, that fail, and that are gone. The table below has all states.",
    };
    figure(
        html! {
            "Known hosts by state"
            span.figures {
                @for (number, word) in shown.into_iter().enumerate() {
                    (key(number, word)) " " b { (grouped(count(&facts.known, word))) } " "
                }
            }
        },
        &plot(caption, Height::Tall, &lines),
        &table(
            "Known hosts by state",
            &heads.collect::<Vec<_>>(),
            days,
            |day| words.iter().map(|word| of_day(day, word)).collect(),
        ),
    )
}

/// Hosts in the states that have this word for people.
fn count(hosts: &BTreeMap<StateName, u64>, word: &str) -> u64 {
    let of_word = hosts.iter().filter(|(state, _)| state.for_people() == word);
    of_word.map(|(_, hosts)| hosts).sum()
}

/// One software over time; empty if no day names it.
pub(crate) fn software_plot(facts: &Facts, name: &str) -> Markup {
    let points = history::stock(&facts.history, |day| day.software(name));
    if points.is_empty() {
        return html! {};
    }
    let says = says(&points);
    let caption = Caption {
        id: "plot",
        title: "Listed instances over time",
        says: &says,
    };
    figure(
        html! { "Listed instances over time" },
        &plot(caption, Height::Tall, &[bare("instances", points)]),
        &html! {},
    )
}

fn bare(name: &str, points: Vec<Point>) -> Line<'_> {
    Line {
        name,
        points,
        raw: Vec::new(),
    }
}

fn figure(caption: Markup, drawn: &Markup, table: &Markup) -> Markup {
    html! {
        figure {
            figcaption { (caption) }
            (drawn)
            p.readout aria-live="polite" {}
        }
        (table)
    }
}

fn key(line: usize, name: &str) -> Markup {
    html! { span class=(format!("key line{line}")) { (name) } }
}

fn says(points: &[Point]) -> String {
    match points {
        [] => "Nothing is known yet.".to_owned(),
        [only] => format!("{:.0} on {}.", only.value, only.day),
        [first, .., last] => format!(
            "{:.0} on {}, {:.0} on {}.",
            first.value, first.day, last.value, last.day
        ),
    }
}

fn software_name(name: &str) -> Markup {
    if name.is_empty() {
        html! { em { "unknown" } }
    } else {
        strangers(name)
    }
}

fn software_link(name: &str, ranking: &Ranking) -> Markup {
    let page = ranking.pages.iter().find(|page| page.name == name);
    html! {
        @if let Some(page) = page {
            a href=(page.path()) { (software_name(name)) }
        } @else {
            (software_name(name))
        }
    }
}

/// A plot's numbers, for people who can't see it.
fn table(
    caption: &str,
    heads: &[Markup],
    days: &[Day],
    counts: impl Fn(&Day) -> Vec<Option<u64>>,
) -> Markup {
    html! {
        details.numbers {
            summary { (caption) " as a table" }
            div.scroll tabindex="0" role="region" aria-label=(caption) {
                table {
                    thead {
                        tr {
                            th scope="col" { "Day" }
                            @for head in heads { th.number scope="col" { (head) } }
                        }
                    }
                    tbody {
                        @for day in history::table(days, TABLE_ROWS_MAX).into_iter().rev() {
                            tr {
                                th scope="row" { (day.day) }
                                @for count in counts(day) {
                                    td.number { @if let Some(count) = count { (grouped(count)) } @else { "–" } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
