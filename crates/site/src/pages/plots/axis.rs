//! Positions and labels of an axis's ticks.

use jiff::civil::{Date, date};

/// From this many days on, ticks are years; below, months.
const YEARS_FROM_DAYS: i32 = 550;
/// From this many days on, ticks are months; below, single days.
const MONTHS_FROM_DAYS: i32 = 62;

/// An axis of counts, from 0 upwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    /// The value at the plot's top; above 0.
    pub(super) top: f64,
    step: f64,
}

impl Scale {
    /// An axis that ends at the first round number not below `most`, with at most `ticks` ticks
    /// above 0.
    pub(super) fn up_to(most: f64, ticks: usize) -> Self {
        let ticks = f64::from(u32::try_from(ticks.max(1)).unwrap_or(u32::MAX));
        let wanted = most.max(1.0) / ticks;
        let mut magnitude = 1.0;
        // Counts are below 2^32, so the loop runs at most ten times.
        while magnitude * 10.0 <= wanted {
            magnitude *= 10.0;
        }
        let step = [1.0, 2.0, 5.0, 10.0]
            .map(|factor| factor * magnitude)
            .into_iter()
            .find(|step| *step >= wanted)
            .unwrap_or(wanted);
        Self {
            top: (most.max(1.0) / step).ceil() * step,
            step,
        }
    }

    /// All ticks, including 0 and the top.
    pub(super) fn ticks(self) -> impl Iterator<Item = f64> {
        (0..=10_u32)
            .map(move |number| f64::from(number) * self.step)
            .take_while(move |value| *value <= self.top)
    }
}

/// At most `max` days between the first one and the one `length` days later, with labels: years,
/// months or days.
pub(super) fn day_ticks(first: Date, length: i32, max: usize) -> Vec<(Date, String)> {
    let last = after(first, length);
    if length < MONTHS_FROM_DAYS || max <= 2 {
        let form = if length < YEARS_FROM_DAYS {
            "%-d %b"
        } else {
            "%b %Y"
        };
        let mut ends = vec![first, last];
        ends.dedup();
        return ends
            .into_iter()
            .map(|day| (day, day.strftime(form).to_string()))
            .collect();
    }
    let (starts, form): (Vec<Date>, _) = if length < YEARS_FROM_DAYS {
        (starts(first, last, |_| true), "%b %Y")
    } else {
        (starts(first, last, |day| day.month() == 1), "%Y")
    };
    let every = starts.len().div_ceil(max.max(1)).max(1);
    starts
        .into_iter()
        .step_by(every)
        .map(|day| (day, day.strftime(form).to_string()))
        .collect()
}

/// The first days of the wanted months between two days.
fn starts(first: Date, last: Date, is_wanted: impl Fn(Date) -> bool) -> Vec<Date> {
    let mut month = date(first.year(), first.month(), 1);
    let mut starts = Vec::new();
    // Each round advances at least a month, and the days are at most three years apart.
    while month <= last {
        if month >= first && is_wanted(month) {
            starts.push(month);
        }
        let Ok(next) = month.checked_add(jiff::Span::new().months(1)) else {
            break;
        };
        month = next;
    }
    starts
}

fn after(first: Date, days: i32) -> Date {
    jiff::Span::new()
        .try_days(days)
        .and_then(|span| first.checked_add(span))
        .unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(most: f64, ticks: usize, expect: &[f64]) {
        let found: Vec<_> = Scale::up_to(most, ticks).ticks().collect();
        assert_eq!(found, expect, "{most}");
    }

    #[test]
    fn ticks_are_round_numbers() {
        check(0.0, 4, &[0.0, 1.0]);
        check(3.0, 4, &[0.0, 1.0, 2.0, 3.0]);
        check(223.0, 4, &[0.0, 100.0, 200.0, 300.0]);
        check(30_234.0, 4, &[0.0, 10_000.0, 20_000.0, 30_000.0, 40_000.0]);
        check(9603.0, 2, &[0.0, 5000.0, 10_000.0]);
    }

    fn labels(first: Date, length: i32, max: usize) -> Vec<String> {
        day_ticks(first, length, max)
            .into_iter()
            .map(|(_, label)| label)
            .collect()
    }

    #[test]
    fn days_months_or_years_are_named() {
        let day = date(2023, 11, 24);
        assert_eq!(labels(day, 0, 6), ["24 Nov"]);
        assert_eq!(labels(day, 6, 6), ["24 Nov", "30 Nov"]);
        assert_eq!(labels(day, 1098, 6), ["2024", "2025", "2026"]);
        assert_eq!(labels(day, 1098, 2), ["Nov 2023", "Nov 2026"]);
        let months = labels(day, 365, 6);
        assert_eq!(
            months,
            [
                "Dec 2023", "Feb 2024", "Apr 2024", "Jun 2024", "Aug 2024", "Oct 2024"
            ]
        );
    }

    proptest! {
        #[test]
        fn no_scale_ends_below_its_value_nor_far_above(most in 0.0_f64..5e9, ticks in 1_usize..6) {
            let scale = Scale::up_to(most, ticks);
            prop_assert!(scale.top >= most);
            prop_assert!(scale.top <= most.max(1.0) * 2.5 + 1.0);
            prop_assert!(scale.ticks().count() <= ticks + 1);
            prop_assert!((scale.ticks().last().unwrap_or(0.0) - scale.top).abs() < 1e-6);
        }

        #[test]
        fn ticks_of_days_lie_within_them(length in 0_i32..1200, max in 1_usize..8) {
            let first = date(2023, 5, 17);
            let ticks = day_ticks(first, length, max);
            prop_assert!(ticks.len() <= max.max(2));
            prop_assert!(ticks.iter().all(|(day, _)| *day >= first && *day <= after(first, length)));
        }
    }
}
