//! The weekly feed: one entry per ISO week that is over, Monday to Sunday in UTC.

use std::collections::{BTreeMap, BTreeSet};

use super::{About, Sum, atom, is_news};
use crate::line::Section;
use crate::paths::WEEKLY_ATOM_FILE;
use crate::row::Moment;

const DAY_SECONDS: i64 = 24 * 60 * 60;

const WEEK_SECONDS: i64 = 7 * DAY_SECONDS;

/// Weeks of the days that are kept, by their end.
#[derive(Debug, Default)]
pub(crate) struct Weeks {
    sums: BTreeMap<Moment, Sum>,
    /// When the last section was made.
    last: Option<Moment>,
    /// Weeks of which a section is missing: its file was damaged, or it made room for others.
    torn: BTreeSet<Moment>,
}

impl Weeks {
    /// Adds a section, newer than all before it.
    pub(crate) fn add(&mut self, section: &Section) {
        let end = end(section.header.time);
        let last = self.last.replace(section.header.time);
        if last.is_some() && section.header.since != last {
            self.torn.insert(end);
            self.torn.extend(last.map(self::end));
        }
        if is_news(section) {
            self.sums.entry(end).or_default().add(section);
        }
    }

    /// Renders the feed of the weeks that are over at `time`. A week that began before the first
    /// day that is kept has lost sections, so it is left out.
    pub(crate) fn render(self, about: &About, time: Moment, first_day: &str) -> String {
        let whole = self.sums.into_iter().filter(|(end, _)| {
            let is_kept = before(*end, WEEK_SECONDS).day().as_str() >= first_day;
            *end <= time && is_kept && !self.torn.contains(end)
        });
        let entries: Vec<_> = whole
            .map(|(end, sum)| {
                let sunday = before(end, DAY_SECONDS).day();
                let period = format!(" in the week to {sunday}");
                sum.entry(format!("week to {sunday}"), end, &period)
            })
            .collect();
        let updated = entries.last().map_or(time, |entry| entry.time);
        let title = format!("{}, by week", about.title);
        let feed = ("weekly feed", WEEKLY_ATOM_FILE, title.as_str());
        atom::render(about, feed, updated, entries.iter().rev())
    }
}

/// The end of the week of a time: the next Monday at midnight. 1970 began on a Thursday.
fn end(time: Moment) -> Moment {
    let since_monday = time
        .seconds()
        .saturating_add(3 * DAY_SECONDS)
        .rem_euclid(WEEK_SECONDS);
    before(time, since_monday.saturating_sub(WEEK_SECONDS))
}

fn before(time: Moment, seconds: i64) -> Moment {
    Moment::from_milliseconds(time.seconds().saturating_sub(seconds).saturating_mul(1000))
}
