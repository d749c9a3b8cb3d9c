//! Titles that state what a plot shows.

use census::state::StateName;
use maud::{Markup, html};

use super::draw::rounded;
use crate::facts::ByState;
use crate::fixes::{Spread, hosts};
use crate::history::{Day, WEEK, calm, mean, whole};
use crate::pages::layout::strangers;
use crate::text::{grouped, share};

/// Days before today, of which the first is compared that is recorded and had calm days since.
const COMPARED: [(i64, &str); 4] = [
    (365, "a year ago"),
    (90, "90 days ago"),
    (30, "30 days ago"),
    (WEEK, "a week ago"),
];

pub(super) fn listed(days: &[Day]) -> String {
    let count = |day: &Day| Some(day.listed());
    let now = days.last().and_then(count).unwrap_or(0);
    counted(now, "instance is listed", "instances are listed") + &growth(days, count)
}

/// Empty if the software is not among today's most frequent.
pub(super) fn software(days: &[Day], name: &str) -> Markup {
    let count = |day: &Day| day.software(name);
    html! {
        @if let Some(now) = days.last().and_then(count) {
            (counted(now, "instance runs ", "instances run ")) (strangers(name)) (growth(days, count))
        }
    }
}

/// `None` before a whole and calm week.
pub(super) fn new_and_gone(days: &[Day]) -> Option<String> {
    let week = calm(whole(days), WEEK.saturating_sub(1))?;
    if week.len() < 7 {
        return None;
    }
    let a_day = |count: fn(&Day) -> u64| Some(rounded(mean(week, week.len(), count).last()?.value));
    let (new, gone) = (a_day(|day| day.appeared)?, a_day(|day| day.left)?);
    let are_new = match new.as_str() {
        "0" => "no instance was new".to_owned(),
        "1" => "1 instance a day was new".to_owned(),
        _ => format!("{new} instances a day were new"),
    };
    let gone = if gone == "0" { "none" } else { &gone };
    Some(format!("In the last week, {are_new} and {gone} gone"))
}

/// `None` before the first counted day.
pub(super) fn fix(spread: &Spread) -> Option<String> {
    let (day, tally) = spread.days.last()?;
    let days = spread
        .fix
        .date
        .until(*day)
        .map_or(0, |span| span.get_days());
    let (fixed, all) = (tally.first().copied().unwrap_or(0), hosts(tally));
    let unit = if days == 1 { "day" } else { "days" };
    let (part, all) = (share(fixed, all), grouped(all));
    Some(format!(
        "{part} of {all} instances run a fixed version, {days} {unit} after the release"
    ))
}

pub(super) fn states(known: &ByState) -> String {
    let all = known.values().fold(0_u64, |sum, n| sum.saturating_add(*n));
    let up = known.get(&StateName::Alive).copied().unwrap_or(0);
    let are_up = counted(up, "host is up", "hosts are up");
    format!("{are_up}, of {} known", grouped(all))
}

fn counted(number: u64, one: &str, many: &str) -> String {
    match number {
        0 => format!("No {one}"),
        1 => format!("1 {one}"),
        _ => format!("{} {many}", grouped(number)),
    }
}

/// The change of a count since the longest time ago that can be compared; empty if none can.
fn growth(days: &[Day], count: impl Fn(&Day) -> Option<u64>) -> String {
    let compared = COMPARED.into_iter().find_map(|(back, ago)| {
        let since = calm(days, back)?;
        let before = count(since.first()?).filter(|before| *before > 0)?;
        Some((before, count(since.last()?)?, ago))
    });
    let Some((before, now, ago)) = compared else {
        return String::new();
    };
    let change = share(now.abs_diff(before), before);
    if change.starts_with("0.0") {
        return format!(", about the same as {ago}");
    }
    let direction = if now > before { "more" } else { "fewer" };
    format!(", {change} {direction} than {ago}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Days with these counts of one software, of which the last is today.
    fn days(counts: impl IntoIterator<Item = u64>) -> Vec<Day> {
        let mut day = jiff::civil::date(2025, 1, 1);
        let day = |count| {
            day = day.tomorrow().unwrap();
            Day {
                day,
                by_state: ByState::new(),
                by_software: vec![("<a>".to_owned(), count)],
                others: 0,
                appeared: 0,
                left: 0,
            }
        };
        counts.into_iter().map(day).collect()
    }

    #[test]
    fn a_count_is_compared_with_the_oldest_day_that_serves() {
        let steady = |count: usize, last| days((1..count).map(|_| 10_000).chain([last]));
        let check = |days: &[Day], expect: &str| {
            let found = growth(days, |day| Some(day.listed())).replace('\u{a0}', " ");
            assert_eq!(found, expect);
        };
        for (count, last, expect) in [
            (0, 1, ""),
            (7, 10_420, ""),
            (8, 10_420, ", 4.2 % more than a week ago"),
            (31, 9690, ", 3.1 % fewer than 30 days ago"),
            (91, 9996, ", about the same as 90 days ago"),
            (366, 30_000, ", 200.0 % more than a year ago"),
        ] {
            check(&steady(count, last), expect);
        }
        let mut year = steady(366, 30_000);
        year.remove(0);
        check(&year, ", 200.0 % more than 90 days ago");
        year[300].appeared = 501;
        check(&year, ", 200.0 % more than 30 days ago");
        year[364].left = 1501;
        check(&year, "");
    }

    #[test]
    fn a_softwares_title_names_it_escaped() {
        let title = |name| software(&days([1; 8]), name).into_string();
        assert_eq!(title("b"), "");
        let expect = "1 instance runs <bdi>&lt;a&gt;</bdi>, about the same as a week ago";
        assert_eq!(title("<a>"), expect);
    }

    #[test]
    fn new_and_gone_instances_are_a_mean_of_whole_days() {
        for (new, gone, more_gone, expect) in [
            (42, 17, 0, "42 instances a day were new and 17 gone"),
            (1, 9, 6, "1 instance a day was new and 9.9 gone"),
            (0, 0, 1, "no instance was new and 0.1 gone"),
            (2, 0, 0, "2 instances a day were new and none gone"),
        ] {
            let mut days = days([20_000; 8]);
            for day in &mut days {
                (day.appeared, day.left) = (new, gone);
            }
            days[3].left += more_gone;
            days[7].appeared = 900;
            let expect = format!("In the last week, {expect}");
            assert_eq!(new_and_gone(&days), Some(expect));
            assert_eq!(new_and_gone(&days[1..]), None, "six whole days");
            days[3].left = 1001;
            assert_eq!(new_and_gone(&days), None, "a twentieth left");
        }
    }

    #[test]
    fn no_host_one_and_several_are_counted() {
        for (up, expect) in [
            (0, "No host is up, of 5 known"),
            (1, "1 host is up, of 6 known"),
            (2, "2 hosts are up, of 7 known"),
        ] {
            let known = [(StateName::Alive, up), (StateName::Dead, 5)].into();
            assert_eq!(states(&known), expect);
        }
    }
}
