//! Plots over time, each with a table of the same numbers, and with files.

mod axis;
mod draw;
mod files;
mod finding;
mod versions;

use std::collections::BTreeMap;

use census::state::StateName;
use maud::{Markup, html};

use super::layout::strangers;
use crate::facts::Facts;
use crate::history::{self, Dated, Day, Point};
use crate::software::Ranking;
use crate::text::{capitalised, grouped, share};
use draw::{Caption, Height, Line, plot};
pub(crate) use files::plot_files;
pub(crate) use versions::{fix_plot, minors_plot};

/// Rows of a table below a plot: a month of days.
const TABLE_ROWS_MAX: usize = 31;

/// Kinds of software with a separate plot on the start page.
const PANELS: usize = 8;

/// Days over which new and gone instances are averaged: a whole week levels out its weekdays.
const SMOOTHED_DAYS: usize = 7;

/// Every day's numbers by software, as CSV.
const SOFTWARE_CSV: &str = "/plots/software.csv";

/// A plot of the start page.
#[derive(Debug)]
pub(crate) struct Figure {
    /// Names the figure in the page, and its files.
    id: &'static str,
    title: &'static str,
    /// A title that states what the numbers show, if they show something.
    finding: Option<String>,
    /// The content, for people who can't see it.
    says: String,
    lines: Vec<Line<'static>>,
    /// What the lines are, if their names do not say it.
    note: &'static str,
    /// Columns of the table, after the day.
    heads: Vec<&'static str>,
    counts: fn(&Day) -> Vec<u64>,
}

impl Figure {
    pub(crate) fn on_page(&self, days: &[Day]) -> Markup {
        let caption = Caption {
            id: self.id,
            title: self.title,
            says: &self.says,
        };
        let finding = html! { @if let Some(finding) = &self.finding { (finding) } };
        let [csv, svg] = ["csv", "svg"].map(|end| format!("/{}", self.file(end)));
        let files = [("CSV", csv.as_str()), ("SVG", &svg)];
        let heads: Vec<_> = self
            .heads
            .iter()
            .map(|head| html! { (capitalised(head)) })
            .collect();
        html! {
            (figure(caption, &finding, &self.lines, self.note, &files))
            (table(self.title, &heads, days, |day| {
                (self.counts)(day).into_iter().map(Some).collect()
            }))
        }
    }

    /// `None` if there is nothing to draw.
    fn picture(&self, source: &str) -> Option<String> {
        let finding = self.finding.as_deref().unwrap_or(self.title);
        let about = format!("{}{}", self.title, self.note);
        draw::picture(finding, &about, source, &self.lines)
    }

    fn file(&self, end: &str) -> String {
        format!("plots/{}.{end}", self.id)
    }
}

/// The plots over time, of listed instances first. They begin with the second day: a plot of one
/// day is a dot.
pub(crate) fn figures(facts: &Facts) -> Vec<Figure> {
    match facts.history.len() {
        0 | 1 => Vec::new(),
        // One whole day.
        2 => vec![total(facts), states(facts)],
        _ => vec![total(facts), new_and_gone(facts), states(facts)],
    }
}

fn has_plots(facts: &Facts) -> bool {
    facts.history.len() > 1
}

/// Number of listed instances over time.
fn total(facts: &Facts) -> Figure {
    let days = &facts.history;
    let points = history::stock(days, |day| Some(day.listed()));
    Figure {
        id: "listed",
        title: "Listed instances over time",
        finding: Some(finding::listed(days)),
        says: says(&points),
        lines: vec![bare("instances", points)],
        note: "",
        heads: vec!["listed"],
        counts: |day| vec![day.listed()],
    }
}

/// Listed hosts of the last day's most frequent software, with a panel each.
pub(crate) fn softwares(facts: &Facts, ranking: &Ranking) -> Markup {
    const TITLE: &str = "Listed instances by software";
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
        div.panels id="software" {
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
                    @if has_plots(facts) {
                        (plot(caption, Height::Small, &[bare("instances", points)]))
                        p.readout aria-live="polite" {}
                    }
                }
            }
        }
        (links("software", TITLE, &[("CSV", SOFTWARE_CSV)]))
        (table(TITLE, &heads, days, |day| {
            names.iter().map(|name| day.software(name)).collect()
        }))
    }
}

/// Instances that came onto the list or left it, per whole day.
fn new_and_gone(facts: &Facts) -> Figure {
    let days = history::whole(&facts.history);
    let flow = |name, count: fn(&Day) -> u64| Line {
        name,
        points: history::mean(days, SMOOTHED_DAYS, count),
        raw: history::daily(days, count),
    };
    Figure {
        id: "new-and-gone",
        title: "New and gone instances per day",
        finding: finding::new_and_gone(&facts.history),
        says: "Two lines, each the mean of seven days, with the single days behind them. The table below has the numbers.".to_owned(),
        lines: vec![
            flow("new", |day| day.appeared),
            flow("gone", |day| day.left),
        ],
        note: " (mean of 7 days; single days behind it)",
        heads: vec!["new", "gone"],
        counts: |day| vec![day.appeared, day.left],
    }
}

/// Known hosts that respond, fail or are unreachable.
fn states(facts: &Facts) -> Figure {
    fn words() -> Vec<&'static str> {
        let mut words = StateName::ALL.map(StateName::for_people).to_vec();
        // Opted-out and parked hosts are one column.
        words.dedup();
        words
    }
    let shown = [StateName::Alive, StateName::Dying, StateName::Dead];
    let line = |word| {
        let points = history::stock(&facts.history, |day| Some(count(&day.by_state, word)));
        bare(word, points)
    };
    Figure {
        id: "states",
        title: "Known hosts by state",
        finding: Some(finding::states(&facts.known)),
        says: "Three lines: hosts that are up, that fail, and that are gone. The table below has all states.".to_owned(),
        lines: shown.map(StateName::for_people).map(line).to_vec(),
        note: "",
        heads: words(),
        counts: |day| {
            let count = |word| count(&day.by_state, word);
            words().into_iter().map(count).collect()
        },
    }
}

/// Hosts in the states that have this word for people.
fn count(hosts: &BTreeMap<StateName, u64>, word: &str) -> u64 {
    let of_word = hosts.iter().filter(|(state, _)| state.for_people() == word);
    of_word.map(|(_, hosts)| hosts).sum()
}

/// One software over time; empty before the second day, and if no day names it.
pub(crate) fn software_plot(facts: &Facts, name: &str) -> Markup {
    let points = history::stock(&facts.history, |day| day.software(name));
    if points.is_empty() || !has_plots(facts) {
        return html! {};
    }
    let says = says(&points);
    let caption = Caption {
        id: "plot",
        title: "Listed instances over time",
        says: &says,
    };
    let finding = finding::software(&facts.history, name);
    let lines = [bare("instances", points)];
    figure(caption, &finding, &lines, "", &[("CSV", SOFTWARE_CSV)])
}

fn bare(name: &str, points: Vec<Point>) -> Line<'_> {
    Line {
        name,
        points,
        raw: Vec::new(),
    }
}

fn figure(
    caption: Caption<'_>,
    finding: &Markup,
    lines: &[Line<'_>],
    note: &str,
    files: &[(&str, &str)],
) -> Markup {
    html! {
        figure id=(caption.id) {
            figcaption {
                (finding) " "
                span.about {
                    (caption.title)
                    @for (number, line) in lines.iter().enumerate().filter(|_| lines.len() > 1) {
                        " " span class=(format!("key line{number}")) { (line.name) }
                    }
                    (note)
                }
            }
            (plot(caption, Height::Tall, lines))
            p.readout aria-live="polite" {}
            (links(caption.id, caption.title, files))
        }
    }
}

/// A link to a plot, and to its files.
fn links(id: &str, title: &str, files: &[(&str, &str)]) -> Markup {
    let link = format!("#{id}");
    html! {
        p.links {
            @for (name, address) in [("Link", link.as_str())].iter().chain(files) {
                a href=(address) aria-label=(format!("{name}: {title}")) { (name) } " "
            }
        }
    }
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
            a href=(format!("{}#plot", page.path())) { (software_name(name)) }
        } @else {
            (software_name(name))
        }
    }
}

/// A plot's numbers, for people who can't see it.
fn table<D: Dated>(
    caption: &str,
    heads: &[Markup],
    days: &[D],
    counts: impl Fn(&D) -> Vec<Option<u64>>,
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
                                th scope="row" { (day.date()) }
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
