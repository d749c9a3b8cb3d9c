//! Daily counts, and the points that plots make of them.
//!
//! Takes the counts of at most three years and returns a bounded number of points. Older days are
//! left out.

use jiff::Span;
use jiff::civil::Date;

use crate::facts::ByState;
use crate::text::shown;

/// Days that are drawn: three years, as many as the database keeps. A test in a crate that knows
/// both numbers compares them. Older days are left out.
pub const DAYS_MAX: usize = 3 * 366;

/// Kinds of software that a day should name: twice as many as are drawn, so that software that
/// becomes frequent has a past.
pub const SOFTWARE_A_DAY_MAX: usize = 20;

/// Points of a line: one for each week of three years, finer than a plot's width on a phone.
pub(crate) const POINTS_MAX: usize = 157;

/// Days before growth is news: in its first week, a census meets instances that others have known
/// for years.
pub(crate) const WEEK: i64 = 7;

/// On a day on which one in this many instances came or went, the census changed, and not the
/// Fediverse.
const UNREST: u64 = 20;

/// The counts of one day, at its last dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Day {
    /// The day in UTC.
    pub day: Date,
    pub by_state: ByState,
    /// Listed hosts by software, for the [`SOFTWARE_A_DAY_MAX`] most frequent.
    pub by_software: Vec<(String, u64)>,
    /// Listed hosts of other or unknown software.
    pub others: u64,
    /// Hosts that came onto the list on this day.
    pub appeared: u64,
    /// Hosts that left the list on this day, for any reason.
    pub left: u64,
}

/// What has a day.
pub(crate) trait Dated {
    fn date(&self) -> Date;
}

impl Dated for Day {
    fn date(&self) -> Date {
        self.day
    }
}

impl<T> Dated for (Date, T) {
    fn date(&self) -> Date {
        self.0
    }
}

impl Day {
    pub fn listed(&self) -> u64 {
        self.by_software
            .iter()
            .fold(self.others, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Listed hosts of one software; `None` if it was not among the most frequent.
    pub(crate) fn software(&self, name: &str) -> Option<u64> {
        self.by_software
            .iter()
            .find(|(software, _)| software == name)
            .map(|(_, count)| *count)
    }

    fn is_calm(&self) -> bool {
        let moved = self.appeared.saturating_add(self.left);
        moved.saturating_mul(UNREST) <= self.listed()
    }
}

/// The days from the one that is `back` days before the last. `None` if that day is missing or one
/// of them was not calm: growth since then would be the census's own.
pub(crate) fn calm(days: &[Day], back: i64) -> Option<&[Day]> {
    let span = Span::new().try_days(back).ok()?;
    let first = days.last()?.day.checked_sub(span).ok()?;
    let at = days.binary_search_by_key(&first, |day| day.day).ok()?;
    let since = days.get(at..)?;
    since.iter().all(Day::is_calm).then_some(since)
}

/// All days but the last, which is not over.
pub(crate) fn whole(days: &[Day]) -> &[Day] {
    days.split_last().map_or(days, |(_unfinished, whole)| whole)
}

/// The newest days that are drawn, with software names shortened for display.
pub(crate) fn fit(mut days: Vec<Day>) -> Vec<Day> {
    let older = days.len().saturating_sub(DAYS_MAX);
    days.drain(..older);
    for day in &mut days {
        day.by_software.truncate(SOFTWARE_A_DAY_MAX);
        for (name, _) in &mut day.by_software {
            *name = shown(name).unwrap_or_default();
        }
    }
    days
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) day: Date,
    pub(crate) value: f64,
}

/// Splits days into at most `points_max` spans of equal length. The last day ends the last span.
fn spans<D>(days: &[D], points_max: usize) -> impl Iterator<Item = &[D]> {
    let span = days.len().div_ceil(points_max.max(1)).max(1);
    // From the end, so that the newest span is complete.
    let mut spans: Vec<_> = days.rchunks(span).collect();
    spans.reverse();
    spans.into_iter()
}

/// A line of a total: the count of each span's last day that has one.
pub(crate) fn stock<D: Dated>(days: &[D], count: impl Fn(&D) -> Option<u64>) -> Vec<Point> {
    spans(days, POINTS_MAX)
        .filter_map(|span| {
            let (day, value) = span
                .iter()
                .rev()
                .find_map(|day| count(day).map(|count| (day.date(), count)))?;
            Some(Point {
                day,
                value: float(value),
            })
        })
        .collect()
}

/// A line of daily events without the noise of single days: at the end of each span, the mean of
/// `days_at_least` days, or of the span if that is longer.
pub(crate) fn mean(days: &[Day], days_at_least: usize, count: impl Fn(&Day) -> u64) -> Vec<Point> {
    let mut end = 0_usize;
    spans(days, POINTS_MAX)
        .filter_map(|span| {
            end = end.saturating_add(span.len());
            let start = end.saturating_sub(span.len().max(days_at_least));
            let window = days.get(start..end)?;
            let sum: f64 = window.iter().map(|day| float(count(day))).sum();
            Some(Point {
                day: window.last()?.day,
                value: sum / float(u64::try_from(window.len()).unwrap_or(u64::MAX)),
            })
        })
        .collect()
}

/// A line with a point for each day.
pub(crate) fn daily(days: &[Day], count: impl Fn(&Day) -> u64) -> Vec<Point> {
    days.iter()
        .map(|day| Point {
            day: day.day,
            value: float(count(day)),
        })
        .collect()
}

/// Days for a table: at most `rows_max`, including the last day.
pub(crate) fn table<D>(days: &[D], rows_max: usize) -> Vec<&D> {
    spans(days, rows_max).filter_map(<[D]>::last).collect()
}

/// A count as a plot's number. Counts stay far below 2^32; larger ones would be cut.
fn float(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn days(count: usize) -> Vec<Day> {
        let first = jiff::civil::date(2023, 1, 1);
        (0..count)
            .map(|number| Day {
                day: first
                    .checked_add(Span::new().days(i64::try_from(number).unwrap()))
                    .unwrap(),
                by_state: ByState::new(),
                by_software: vec![("a".to_owned(), number as u64)],
                others: 1,
                appeared: 2,
                left: 4,
            })
            .collect()
    }

    proptest! {
        #[test]
        fn lines_are_bounded_and_end_with_the_last_day(count in 0_usize..3000) {
            let days = fit(days(count));
            prop_assert!(days.len() <= DAYS_MAX);
            for points in [stock(&days, |day| Some(day.listed())), mean(&days, 7, |day| day.left)] {
                prop_assert!(points.len() <= POINTS_MAX);
                prop_assert!(count == 0 || points.len() * 2 >= count.min(POINTS_MAX));
                prop_assert_eq!(points.last().map(|point| point.day), days.last().map(|day| day.day));
                prop_assert!(points.is_sorted_by(|a, b| a.day < b.day));
            }
            prop_assert!(mean(&days, 7, |day| day.left).iter().all(|point| point.value == 4.0));
            prop_assert_eq!(daily(&days, |day| day.left).len(), days.len());
            prop_assert!(table(&days, 31).len() <= 31);
        }
    }

    #[test]
    fn days_without_a_count_are_left_out_and_not_taken_for_none() {
        let mut days = days(3);
        days[1].by_software.clear();
        let line = stock(&days, |day| day.software("a"));
        let values: Vec<_> = line.iter().map(|point| point.value).collect();
        assert_eq!(values, [0.0, 2.0]);
    }
}
