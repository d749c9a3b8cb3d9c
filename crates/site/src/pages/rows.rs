//! Rows of the list as HTML; the script on the start page makes the same elements.
//!
//! On phones the style sheet turns rows into cards. Screen readers would then lose the roles, so
//! the roles are written out.

use census::state::StateName;
use maud::{Markup, html};

use super::layout::strangers;
use crate::list::Row;

/// The list's columns: the script's names, headings, cells' classes.
pub(crate) const COLUMNS: [(&str, &str, &str); 7] = [
    ("host", "Host", "host"),
    ("software", "Software", "software"),
    ("version", "Version", "version"),
    ("state", "State", "is"),
    ("open_registrations", "Sign-up", "signup"),
    ("first_seen", "First seen", "day first"),
    ("last_alive", "Last up", "day last"),
];

/// A row; row numbers in a table start at 2, behind the head.
pub(crate) fn row(number: usize, row: Row<'_>) -> Markup {
    html! {
        tr role="row" aria-rowindex=(number) {
            th.host.long[is_long(row)] scope="row" role="rowheader" { (host(row)) }
            td.software role="cell" { (strangers(row.software)) }
            td.version role="cell" { (strangers(row.version)) }
            td.is role="cell" { (state(row)) }
            td.signup role="cell" { (signup(row)) }
            td.day.first role="cell" { (row.first_seen) }
            td.day.last role="cell" { (row.last_alive) }
        }
    }
}

/// A table of instances of one software, without a column for the software.
pub(crate) fn table(lines: &[String], labelled_by: &str) -> Markup {
    html! {
        div.view.short tabindex="0" role="region" aria-labelledby=(labelled_by) {
            table.list.one role="table" aria-labelledby=(labelled_by) {
                thead role="rowgroup" {
                    tr role="row" {
                        @for (_, head, class) in COLUMNS {
                            th scope="col" role="columnheader" class=(class) { (head) }
                        }
                    }
                }
                tbody role="rowgroup" {
                    @for (number, line) in lines.iter().enumerate() {
                        @if let Some(parsed) = Row::parse(line) { (row(number.saturating_add(2), parsed)) }
                    }
                }
            }
        }
    }
}

/// On phones, a longer name takes two small lines in the room of one, since all cards have one
/// height.
const LINE_CHARS_MAX: usize = 36;

fn is_long(row: Row<'_>) -> bool {
    let unicode = row.unicode.chars().count();
    row.host.len().saturating_add(unicode) > LINE_CHARS_MAX
}

/// A host as a link to the instance's front page, which readers of a list want. `nofollow`, because
/// we vouch for no host. Neither the opened page nor its server learns where the reader came from.
/// The Unicode name comes second, since different letters can look alike.
fn host(row: Row<'_>) -> Markup {
    html! {
        a href=(format!("https://{}/", row.host)) rel="nofollow noopener noreferrer" {
            @for (number, label) in row.host.split('.').enumerate() {
                @if number > 0 { "." wbr; }
                (label)
            }
        }
        @if !row.unicode.is_empty() { " " (strangers(row.unicode)) }
    }
}

/// The state as a link to the host's answer.
fn state(row: Row<'_>) -> Markup {
    let name = StateName::parse(row.state).map_or(row.state, |name| name.for_people());
    html! {
        a class=(format!("state {}", row.state)) href=(format!("/why.html#{}", row.host)) aria-label=(format!("{name}: the answer for {}", row.host)) { (name) }
    }
}

fn signup(row: Row<'_>) -> &'static str {
    match row.open_registrations {
        "yes" => "open",
        "no" => "closed",
        _ => "–",
    }
}
