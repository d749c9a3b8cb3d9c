//! The first round of checks in one sentence, for the start page and `status`.

use std::time::Duration;

use census::time::Timestamp;
use protocol::egress::Deferral;
use scheduler::command::Released;
use site::text::grouped;
use store::{Counts, Reader, StoreError, Unchecked};

/// A first round is under way while at least this share of the names waits for its first check. In
/// an old census, new names are below one per cent.
const LEFT_PERCENT_MIN: u64 = 5;

/// Checked names and running time from which the remaining time is estimated: a handful of seeds
/// says nothing about thousands of names.
const CHECKED_MIN: u64 = 50;
const RAN_MIN: Duration = Duration::from_mins(1);

/// Longest remaining time that is shown. A longer one comes from a census that was switched off for
/// days, or from a clock that was set.
const REMAINING_MAX: Duration = Duration::from_hours(72);

/// Deferrals after which a name may wait for hours.
const WAITS: [Deferral; 4] = [
    Deferral::GroupPace,
    Deferral::AddressPace,
    Deferral::BlockPace,
    Deferral::NoFamily,
];

/// The sentence. `None` if no first round is under way. Blocks.
pub(crate) fn read(
    reader: &Reader,
    counts: &Counts,
    now: Timestamp,
) -> Result<Option<String>, StoreError> {
    let notes = WAITS.map(|why| Released::Deferred(why).to_string());
    let unchecked = reader.unchecked(notes.each_ref().map(String::as_str))?;
    let checked = counts.hosts.saturating_sub(unchecked.hosts);
    // The first start makes a list.
    let first = reader.first_dump(0)?;
    let ran = first.map_or(Duration::ZERO, |first| now.since(first));
    Ok(sentence(checked, unchecked, ran))
}

/// `unchecked` has notes of [`WAITS`]. Held names are not among the known ones, because most are
/// never checked. A machine that lacks an address family almost always lacks IPv6.
fn sentence(checked: u64, unchecked: Unchecked, ran: Duration) -> Option<String> {
    let Unchecked { hosts, held, noted } = unchecked;
    let [domain, address, block, family] = noted;
    let known = (checked + hosts).saturating_sub(held);
    let left = hosts.saturating_sub(held + noted.iter().sum::<u64>());
    if left == 0 || left * 100 < known * LEFT_PERCENT_MIN {
        return None;
    }
    let (names, known) = (grouped(checked), grouped(known));
    let mut text = format!("{names} of {known} known names checked");
    text.extend(remaining(checked, left, ran).map(|time| format!("; about {time} to go")));
    let waits = [
        (domain, "wait for their domain's turn"),
        (address + block, "wait for their address's turn"),
        (held, "held"),
        (family, "have only IPv6"),
    ];
    let waits = waits.iter().filter(|(count, _)| *count > 0);
    for (number, (count, words)) in waits.enumerate() {
        let separator = if number == 0 { "; " } else { ", " };
        text.extend([separator, &grouped(*count), " ", words]);
    }
    Some(text)
}

/// Time for the names that are left, at the average rate since the first start.
fn remaining(checked: u64, left: u64, ran: Duration) -> Option<String> {
    if checked < CHECKED_MIN || ran < RAN_MIN {
        return None;
    }
    let millis = ran.as_millis() * u128::from(left) / u128::from(checked);
    if millis > REMAINING_MAX.as_millis() {
        return None;
    }
    let minutes = millis.div_ceil(60_000);
    Some(match minutes {
        0 | 1 => "a minute".to_owned(),
        2..100 => format!("{minutes} minutes"),
        _ => format!("{} hours", (minutes + 30) / 60),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(checked: u64, counts: [u64; 2], noted: [u64; 4], seconds: u64, expect: &str) {
        let [hosts, held] = counts;
        let unchecked = Unchecked { hosts, held, noted };
        let sentence = sentence(checked, unchecked, Duration::from_secs(seconds));
        let sentence = sentence.unwrap_or_default().replace('\u{a0}', " ");
        assert_eq!(sentence, expect);
    }

    #[test]
    fn first_round_is_in_one_sentence_until_few_names_are_left() {
        let expect = "1 204 of 18 300 known names checked; about 40 minutes to go; \
            310 wait for their domain's turn, 17 223 held, 1 100 have only IPv6";
        check(1204, [34_319, 17_223], [310, 0, 0, 1100], 184, expect);
        let none = [0; 4];
        check(0, [5, 0], none, 0, "0 of 5 known names checked");
        let expect = "93 of 100 known names checked; 2 wait for their address's turn";
        check(93, [7, 0], [0, 1, 1, 0], 0, expect);
        check(94, [6, 0], [0, 1, 1, 0], 0, "");
        check(0, [0, 0], none, 0, "");
        check(0, [7000, 7000], none, 0, "");
    }

    #[test]
    fn remaining_time_is_shown_only_if_it_can_be_known() {
        for (checked, left, seconds, expect) in [
            (49, 1000, 600, None),
            (50, 1000, 59, None),
            (50, 1, 600, Some("a minute")),
            (600, 1000, 600, Some("17 minutes")),
            (1000, 6100, 1000, Some("2 hours")),
            (50, 50, 4 * 86_400, None),
        ] {
            let remaining = remaining(checked, left, Duration::from_secs(seconds));
            assert_eq!(remaining.as_deref(), expect, "{left}");
        }
    }
}
