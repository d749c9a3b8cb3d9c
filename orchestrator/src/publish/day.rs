//! The counts of a list for the plots over time.
//!
//! The counts come from the new set, the rows of the one before, and the database: hosts by state
//! and software, and how many appeared and disappeared. Without a former list, no host counts as
//! new. They are recorded once the list is published; its pages show them already.

use ::publish::{Cancel, Tree};
use census::time::Timestamp;
use dump::{ListedRow, RowError};
use jiff::{Span, civil};
use std::cmp::Ordering;
use std::iter::Peekable;
use store::{DayCounts, Reader, SOFTWARE_A_DAY_MAX, SoftwareVersions, day_of};

use super::PublishError;

/// The counts of the set in a tree, which has these versions; `None` if there is none. Fails once
/// it is cancelled.
pub(super) fn counts(
    reader: &Reader,
    tree: &Tree,
    now: Timestamp,
    versions: Vec<SoftwareVersions>,
) -> Result<Option<DayCounts>, PublishError> {
    let (Some(rows), Some(software)) = (
        dump::standing_rows(tree.folder())?,
        dump::standing_software(tree.folder())?,
    ) else {
        return Ok(None);
    };
    let former = tree.former().map(dump::standing_rows).transpose()?;
    let moves = match former.flatten() {
        Some(former) => moves(former, rows, tree.cancel())?,
        None => Moves::default(),
    };
    let by_software: Vec<_> = software
        .most_frequent
        .into_iter()
        .take(SOFTWARE_A_DAY_MAX)
        .collect();
    let named = by_software
        .iter()
        .fold(0_u64, |sum, (_, hosts)| sum.saturating_add(*hosts));
    Ok(Some(DayCounts {
        day: day_of(now),
        by_state: reader.counts()?.by_state,
        others: software.instances.saturating_sub(named),
        by_software,
        appeared: moves.came,
        died: moves.went,
        versions,
    }))
}

/// A day by its number since 1970; `None` for a day that no calendar has.
pub(super) fn date(day: i64) -> Option<civil::Date> {
    let span = Span::new().try_days(day).ok()?;
    civil::date(1970, 1, 1).checked_add(span).ok()
}

/// The recorded days with a list that is not recorded yet, as [`store::Writer::record_day`] adds
/// it.
pub(super) fn with(mut days: Vec<DayCounts>, mut today: DayCounts) -> Vec<DayCounts> {
    if let Some(earlier) = days.pop_if(|last| last.day == today.day) {
        today.appeared = today.appeared.saturating_add(earlier.appeared);
        today.died = today.died.saturating_add(earlier.died);
    }
    days.push(today);
    days
}

/// Hosts that are in only one of two lists.
#[derive(Debug, Default, PartialEq, Eq)]
struct Moves {
    came: u64,
    went: u64,
}

/// Compares two lists, each sorted by name, row by row.
fn moves(
    former: impl Iterator<Item = Result<ListedRow, RowError>>,
    new: impl Iterator<Item = Result<ListedRow, RowError>>,
    cancel: &Cancel,
) -> Result<Moves, PublishError> {
    let (mut former, mut new) = (former.peekable(), new.peekable());
    let mut moves = Moves::default();
    loop {
        cancel.check()?;
        match (head(&mut former)?, head(&mut new)?) {
            (None, None) => return Ok(moves),
            (Some(_), None) => {
                moves.went = moves.went.saturating_add(1);
                former.next();
            }
            (None, Some(_)) => {
                moves.came = moves.came.saturating_add(1);
                new.next();
            }
            (Some(old), Some(young)) => match old.cmp(young) {
                Ordering::Less => {
                    moves.went = moves.went.saturating_add(1);
                    former.next();
                }
                Ordering::Greater => {
                    moves.came = moves.came.saturating_add(1);
                    new.next();
                }
                Ordering::Equal => {
                    former.next();
                    new.next();
                }
            },
        }
    }
}

/// The next name, skipping rows that the disk has damaged.
fn head<I>(rows: &mut Peekable<I>) -> Result<Option<&str>, PublishError>
where
    I: Iterator<Item = Result<ListedRow, RowError>>,
{
    while rows
        .next_if(|row| matches!(row, Err(RowError::Damaged { .. })))
        .is_some()
    {}
    if let Some(Err(error)) = rows.next_if(Result::is_err) {
        return Err(error.into());
    }
    Ok(match rows.peek() {
        Some(Ok(row)) => Some(&row.host),
        Some(Err(_)) | None => None,
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use dump::{ListedState, Moment};

    use super::*;

    fn rows(letters: &str) -> impl Iterator<Item = Result<ListedRow, RowError>> {
        letters.chars().map(|letter| match letter {
            '!' => Err(RowError::Damaged {
                path: PathBuf::from("rows"),
                line: 1,
            }),
            letter => Ok(ListedRow {
                host: format!("{letter}.example"),
                state: ListedState::Alive,
                first_seen: Moment::from_milliseconds(0),
                last_alive: Moment::from_milliseconds(0),
                instance: kit::instance(),
            }),
        })
    }

    #[test]
    fn the_pages_have_room_for_all_days_and_software_that_the_database_keeps() {
        assert_eq!(store::DAYS_MAX.try_into(), Ok(site::history::DAYS_MAX));
        assert_eq!(SOFTWARE_A_DAY_MAX, site::history::SOFTWARE_A_DAY_MAX);
    }

    #[test]
    fn two_lists_are_compared_until_it_is_to_stop() {
        for rows_before in 0..4 {
            let cancel = Cancel::after(rows_before);
            assert!(moves(rows("abc"), rows("abc"), &cancel).is_err());
        }
        assert!(moves(rows("abc"), rows("abc"), &Cancel::after(4)).is_ok());
    }

    #[test]
    fn who_is_in_one_list_alone_came_or_went() {
        for (former, new, came, went) in [
            ("", "", 0, 0),
            ("abc", "abc", 0, 0),
            ("", "abc", 3, 0),
            ("abc", "", 0, 3),
            ("ace", "bcdf", 3, 2),
            ("a!c!", "!bc", 1, 1),
        ] {
            let found = moves(rows(former), rows(new), &Cancel::default()).unwrap();
            assert_eq!(found, Moves { came, went }, "{former} {new}");
        }
    }
}
