//! The files of the plots: every day's numbers as CSV, and pictures as SVG.

use super::{SOFTWARE_CSV, figures};
use crate::facts::Facts;

/// Paths and contents.
pub(crate) fn plot_files(facts: &Facts) -> Vec<(String, Vec<u8>)> {
    let days = &facts.history;
    // A name that is not among today's may be a single host's that has opted out since.
    let is_current = |name: &str| {
        days.last()
            .is_some_and(|last| last.software(name).is_some())
    };
    let by_software = days.iter().flat_map(|day| {
        let software = day.by_software.iter().filter(|(name, _)| is_current(name));
        software.map(|(name, count)| vec![day.day.to_string(), name.clone(), count.to_string()])
    });
    let software = csv("day,software,listed", by_software);
    let mut files = vec![(SOFTWARE_CSV.trim_start_matches('/').to_owned(), software)];
    let address = facts.address.as_deref().unwrap_or_default();
    let source = format!("{} {address} {}", facts.title, facts.rows_read.day());
    for figure in figures(facts) {
        let numbers = days.iter().map(|day| {
            let counts = (figure.counts)(day).into_iter();
            let counts = counts.map(|count| count.to_string());
            [day.day.to_string()].into_iter().chain(counts).collect()
        });
        let head = format!("day,{}", figure.heads.join(","));
        files.push((figure.file("csv"), csv(&head, numbers)));
        if let Some(picture) = figure.picture(&source) {
            files.push((figure.file("svg"), picture.into_bytes()));
        }
    }
    files
}

/// A head and lines of fields. Unknown software has no name, so its field is empty.
fn csv(head: &str, lines: impl Iterator<Item = Vec<String>>) -> Vec<u8> {
    let mut out = format!("{head}\r\n").into_bytes();
    for line in lines {
        let fields = line
            .iter()
            .map(|field| (!field.is_empty()).then_some(field.as_str()));
        dump::push_csv_line(fields, &mut out);
    }
    out
}
