//! What happened lately, in sentences.

use maud::{Markup, html};

use crate::history::{Day, WEEK, calm, whole};
use crate::pages::layout::strangers;
use crate::software::Ranking;
use crate::text::{grouped, share};

/// New and gone instances, the software that grew most, and how far the newest version of the most
/// frequent has spread. The last of the days is not over.
pub(super) fn news(days: &[Day], ranking: &Ranking) -> Markup {
    let newest = ranking
        .pages
        .first()
        .and_then(|software| Some((software, software.versions.newest.as_ref()?)));
    html! {
        @if let Some((day, grown)) = growth(days) {
            p {
                "On " (day.day) ", " (grouped(day.appeared)) " instances were new and " (grouped(day.left)) " left the list."
                @if let Some((name, by)) = grown {
                    " In a week, " (strangers(name)) " grew most: by " (grouped(by)) " instances."
                }
            }
        }
        @if let Some((software, (minor, running))) = newest {
            p {
                (share(*running, software.count)) " of the " a href=(software.path()) { (strangers(&software.name)) } " instances run "
                a href=(software.query_of(minor)) { (strangers(minor)) } " or later."
            }
        }
    }
}

/// The last whole day, and the software that gained most within the week before. `None` if the
/// week was not whole or not calm.
fn growth(days: &[Day]) -> Option<(&Day, Option<(&str, u64)>)> {
    let week = calm(whole(days), WEEK)?;
    let last = week.last()?;
    let gains = last.by_software.iter().filter_map(|(name, now)| {
        let before = week.first()?.software(name)?;
        let by = now.checked_sub(before).filter(|by| *by > 0)?;
        (!name.is_empty()).then_some((name.as_str(), by))
    });
    Some((last, gains.max_by_key(|(_, by)| *by)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::ByState;

    fn days(count: i8) -> Vec<Day> {
        let day = |number: i8| Day {
            day: jiff::civil::date(2026, 11, number),
            by_state: ByState::new(),
            by_software: [("a", 200), ("b", 100 + 3 * number.unsigned_abs()), ("", 9)]
                .map(|(name, count)| (name.to_owned(), u64::from(count)))
                .to_vec(),
            others: 90,
            appeared: 7,
            left: 4,
        };
        (1..=count).map(day).collect()
    }

    #[test]
    fn growth_is_news_after_eight_whole_and_calm_days() {
        assert_eq!(growth(&[]), None);
        assert_eq!(growth(&days(8)), None);
        let mut nine = days(9);
        let found = growth(&nine).map(|(day, grown)| (day.day.day(), grown));
        assert_eq!(found, Some((8, Some(("b", 21)))));
        nine[3].left = 14;
        assert_eq!(growth(&nine), None, "a twentieth came or went");
    }
}
