//! Plots over time, each with a table that says the same.

use census::state::StateName;
use maud::{Markup, PreEscaped, html};

use super::layout::strangers;
use super::plot::{Caption, Extent, LINES_MAX, plot};
use crate::error::SiteError;
use crate::facts::Facts;
use crate::history::{self, Day, Point};
use crate::text::grouped;

/// Rows of a table beside a plot: as many as one reads.
const TABLE_ROWS_MAX: usize = 31;

/// Known hosts by state: a panel each, for the dead are many times the living.
pub(crate) fn states(facts: &Facts) -> Result<Markup, SiteError> {
    let mut panels = Vec::new();
    for state in StateName::ALL {
        let name = name_of(state);
        let id = format!("plot-{}", state.as_str().replace('_', "-"));
        let count = |day: &Day| day.by_state.get(&state).copied().unwrap_or(0);
        let line = history::stock(&facts.history, |day| Some(count(day)));
        let says = says(&line);
        let caption = Caption {
            id: &id,
            title: name,
            says: &says,
        };
        let now = facts.known.get(&state).copied().unwrap_or(0);
        let drawn = plot(caption, Extent::Small, &[line])?;
        panels.push(html! { figure { figcaption { (name) ": " (grouped(now)) } (drawn) } });
    }
    Ok(html! {
        div.panels { @for panel in panels { (panel) } }
        (table(
            "Known hosts by state",
            &StateName::ALL.map(|state| html! { (name_of(state)) }),
            &facts.history,
            |day| StateName::ALL.map(|state| day.by_state.get(&state).copied()).to_vec(),
        ))
    })
}

/// Listed hosts by the software that is most frequent on the last day.
pub(crate) fn softwares(facts: &Facts) -> Result<Markup, SiteError> {
    let days = &facts.history;
    let names: Vec<&str> = days
        .last()
        .map(|day| {
            day.by_software
                .iter()
                .take(LINES_MAX)
                .map(|(name, _)| name.as_str())
                .collect()
        })
        .unwrap_or_default();
    let lines: Vec<Vec<Point>> = names
        .iter()
        .map(|name| history::stock(days, |day| day.software(name)))
        .collect();
    let caption = Caption {
        id: "plot-software",
        title: "Listed instances by software",
        says: &format!(
            "A line for each of the {} most frequent. The table beside it has the numbers.",
            names.len()
        ),
    };
    let heads: Vec<Markup> = names.iter().map(|name| software_name(name)).collect();
    Ok(html! {
        figure {
            figcaption { "Listed instances by software" }
            (plot(caption, Extent::Wide, &lines)?)
            (legend(&heads))
        }
        (table("Listed instances by software", &heads, days, |day| {
            names.iter().map(|name| day.software(name)).collect()
        }))
    })
}

/// Hosts that came onto the list and left it, a day.
pub(crate) fn coming_and_going(facts: &Facts) -> Result<Markup, SiteError> {
    let days = &facts.history;
    let lines = [
        history::flow(days, |day| day.appeared),
        history::flow(days, |day| day.left),
    ];
    let caption = Caption {
        id: "plot-changes",
        title: "Appeared and left a day",
        says: "Two lines: instances that came onto the list, and instances that left it. The table beside it has the numbers.",
    };
    let heads = ["Appeared", "Left"].map(|name| html! { (name) });
    Ok(html! {
        figure {
            figcaption { "Appeared and left a day" }
            (plot(caption, Extent::Wide, &lines)?)
            (legend(&heads))
        }
        (table("Appeared and left a day", &heads, days, |day| {
            vec![Some(day.appeared), Some(day.left)]
        }))
    })
}

/// One software over time; nothing when the daily counts don't name it on two days at least.
pub(crate) fn software_plot(facts: &Facts, name: &str) -> Result<Markup, SiteError> {
    let line = history::stock(&facts.history, |day| day.software(name));
    if line.len() < 2 {
        return Ok(html! {});
    }
    let says = says(&line);
    let caption = Caption {
        id: "plot",
        title: "Listed instances",
        says: &says,
    };
    Ok(html! {
        figure {
            figcaption { "Listed instances" }
            (plot(caption, Extent::Wide, &[line])?)
        }
    })
}

/// A line in words.
fn says(line: &[Point]) -> String {
    match (line.first(), line.last()) {
        (Some(first), Some(last)) => format!(
            "{:.0} on {}, {:.0} on {}.",
            first.value, first.day, last.value, last.day
        ),
        _ => "Nothing is known yet.".to_owned(),
    }
}

fn software_name(name: &str) -> Markup {
    if name.is_empty() {
        html! { em { "unknown" } }
    } else {
        strangers(name)
    }
}

/// What each line is, with a piece of it.
fn legend(names: &[Markup]) -> Markup {
    html! {
        ul.legend {
            @for (number, name) in names.iter().enumerate() {
                li {
                    (PreEscaped(format!(r##"<svg viewBox="0 0 36 6" aria-hidden="true"><path d="M0 3h36" stroke="#{:06X}" stroke-width="3"/></svg>"##, 0x03_0000_usize.saturating_add(number))))
                    (name)
                }
            }
        }
    }
}

/// The numbers of a plot, for those who don't see it.
fn table(
    caption: &str,
    heads: &[Markup],
    days: &[Day],
    counts: impl Fn(&Day) -> Vec<Option<u64>>,
) -> Markup {
    html! {
        details {
            summary { (caption) ", as a table" }
            div.scroll tabindex="0" role="region" aria-label=(caption) {
                table {
                    thead {
                        tr {
                            th scope="col" { "Day" }
                            @for head in heads { th.number scope="col" { (head) } }
                        }
                    }
                    tbody {
                        @for day in history::table(days, TABLE_ROWS_MAX) {
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

/// A state as a heading.
pub(crate) fn name_of(state: StateName) -> &'static str {
    match state {
        StateName::Discovered => "Discovered",
        StateName::Alive => "Alive",
        StateName::Dying => "Dying",
        StateName::Dead => "Dead",
        StateName::Moving => "Moving",
        StateName::Moved => "Moved",
        StateName::OptedOut => "Opted out",
        StateName::Parked => "Parked",
    }
}
