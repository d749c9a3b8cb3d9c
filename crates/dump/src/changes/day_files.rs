//! Reads the files of earlier days, and removes the names of hosts that have left since.
//!
//! One day is in memory at a time. Damaged or oversized files are left out, since names can't be
//! removed from a file that can't be read.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::limits::{DAY_FILE_BYTES_MAX, DAYS_KEPT, FOLDER_NAMES_MAX};
use super::recent_names::RecentNames;
use crate::line::{self, Change, RowDigests, Section, Sha256Hex};
use crate::row::Moment;

/// Seconds of a day in UTC.
const DAY_SECONDS: i64 = 24 * 60 * 60;

/// How the name of a day's file ends.
const DAY_FILE_END: &str = ".ndjson";

pub(super) fn file_name(day: &str) -> String {
    format!("{day}{DAY_FILE_END}")
}

/// The days that have a file, in order.
pub(super) fn days(folder: &Path) -> io::Result<BTreeSet<String>> {
    let mut days = BTreeSet::new();
    for entry in std::fs::read_dir(folder)?.take(FOLDER_NAMES_MAX) {
        days.extend(
            entry?
                .file_name()
                .to_str()
                .and_then(day_of)
                .map(str::to_owned),
        );
    }
    Ok(days)
}

fn day_of(name: &str) -> Option<&str> {
    name.strip_suffix(DAY_FILE_END).filter(|day| is_day(day))
}

/// Whether the text has the form of a day: four digits, two, two.
fn is_day(day: &str) -> bool {
    day.len() == 10
        && day
            .bytes()
            .zip(b"0000-00-00")
            .all(|(byte, like)| match like {
                b'-' => byte == b'-',
                _ => byte.is_ascii_digit(),
            })
}

/// The first day that is kept at this time.
pub(super) fn first_day(at: Moment) -> String {
    let kept = i64::from(DAYS_KEPT).saturating_mul(DAY_SECONDS);
    let seconds = at.seconds().saturating_sub(kept);
    Moment::from_milliseconds(seconds.saturating_mul(1000)).day()
}

pub(super) struct Day {
    pub(super) bytes: Vec<u8>,
    pub(super) sections: Vec<Section>,
}

pub(super) fn read(folder: &Path, day: &str) -> Result<Day, String> {
    let bytes = read_bounded(&path(folder, day)).map_err(|error| error.to_string())?;
    if bytes.len() > DAY_FILE_BYTES_MAX {
        return Err("longer than any that was written".to_owned());
    }
    let sections = line::parse(&bytes).map_err(|error| error.to_string())?;
    if sections
        .iter()
        .any(|section| section.header.time.day() != day)
    {
        return Err("of another day".to_owned());
    }
    Ok(Day { bytes, sections })
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let bytes_max = u64::try_from(DAY_FILE_BYTES_MAX).unwrap_or(u64::MAX);
    File::open(path)?
        .take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn path(folder: &Path, day: &str) -> PathBuf {
    folder.join(file_name(day))
}

/// The newest sections of the day files.
#[derive(Debug, Default)]
pub(super) struct End {
    /// Time of the newest dump that has a section.
    pub(super) newest: Option<Moment>,
    /// Time of the last dump with the former rows: a new section starts from it. Later sections
    /// lead to a dump that was never published.
    pub(super) former: Option<Moment>,
    /// Days whose files can't be used, and why.
    pub(super) damaged: BTreeMap<String, String>,
}

/// Finds the section that led to the former rows, from the newest day backwards. None matches if
/// there are no former rows.
pub(super) fn end(folder: &Path, days: &BTreeSet<String>, former_rows: Option<&RowDigests>) -> End {
    let mut end = End::default();
    for day in days.iter().rev() {
        let sections = match read(folder, day) {
            Ok(read) => read.sections,
            Err(why) => {
                end.damaged.insert(day.clone(), why);
                continue;
            }
        };
        for section in sections.iter().rev() {
            end.newest = end.newest.max(Some(section.header.time));
            if former_rows.is_some_and(|rows| section.header.has_rows(rows)) {
                end.former = Some(section.header.time);
                return end;
            }
        }
    }
    end
}

/// Removes the names of hosts that have left from sections.
pub(super) struct Scrub<S> {
    has_left: S,
    /// Names that have not left. Hosts that come and go are named nearly every day, and each call
    /// of `has_left` reads the database.
    recent: RecentNames,
}

impl<E, S: FnMut(&str) -> Result<bool, E>> Scrub<S> {
    /// `has_left` is called for names that are not in `recent`.
    pub(super) fn new(has_left: S, recent: RecentNames) -> Self {
        Self { has_left, recent }
    }

    /// Removes the names and returns the number of changed lines.
    pub(super) fn run(&mut self, section: &mut Section) -> Result<u64, E> {
        let mut lines: u64 = 0;
        for change in &mut section.changes {
            let Some(host) = change.host() else {
                continue;
            };
            if self.is_to_go(host)? {
                *change = Change::Left {
                    host_sha256: Sha256Hex::of(host.as_bytes()),
                };
                lines = lines.saturating_add(1);
            } else if let Change::Moved { to: target, .. } = change
                && let Some(to) = target
                && self.is_to_go(to)?
            {
                *target = None;
                lines = lines.saturating_add(1);
            }
        }
        Ok(lines)
    }

    fn is_to_go(&mut self, host: &str) -> Result<bool, E> {
        if self.recent.contains(host) {
            return Ok(false);
        }
        let has_left = (self.has_left)(host)?;
        // A name that has left is removed from all lines and is seldom looked up again.
        if !has_left {
            self.recent.insert(host);
        }
        Ok(has_left)
    }
}

/// Hosts that appear in the list, some of which were removed from it within the days that are kept.
pub(super) struct Newcomers {
    places: HashMap<Sha256Hex, usize>,
}

impl Newcomers {
    /// The hosts that appear in `changes`.
    pub(super) fn among(changes: &[Change]) -> Self {
        let places = changes
            .iter()
            .enumerate()
            .filter_map(|(place, change)| match change {
                Change::Appeared(row) => Some((Sha256Hex::of(row.host.as_bytes()), place)),
                Change::Returned(_)
                | Change::Changed(_)
                | Change::Died { .. }
                | Change::Moved { .. }
                | Change::Left { .. } => None,
            })
            .collect();
        Self { places }
    }

    /// Marks hosts as returned if `section` removed them from the list.
    pub(super) fn recognise(&mut self, section: &Section, changes: &mut [Change]) {
        if self.places.is_empty() {
            return;
        }
        for change in &section.changes {
            let place = match change {
                Change::Died { host } | Change::Moved { host, .. } => {
                    self.places.remove(&Sha256Hex::of(host.as_bytes()))
                }
                Change::Left { host_sha256 } => self.places.remove(host_sha256),
                Change::Appeared(_) | Change::Returned(_) | Change::Changed(_) => None,
            };
            if let Some(slot) = place.and_then(|place| changes.get_mut(place))
                && let Change::Appeared(row) = slot
            {
                *slot = Change::Returned(row.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use super::*;
    use crate::line::{Counts, Header};

    fn section(hosts: impl Iterator<Item = u32>) -> Section {
        Section {
            header: Header {
                time: Moment::from_milliseconds(0),
                since: None,
                complete: true,
                hosts: 0,
                counts: Counts::default(),
                names_sha256: Sha256Hex::of(b""),
                rows_sha256: Sha256Hex::of(b""),
                full_rows_sha256: Sha256Hex::of(b""),
                lines: 0,
                section_sha256: Sha256Hex::of(b""),
            },
            changes: hosts
                .map(|host| Change::Died {
                    host: format!("h{host}.example"),
                })
                .collect(),
        }
    }

    #[test]
    fn who_is_named_again_and_again_is_asked_about_once_and_who_is_listed_never() {
        let asked = Cell::new(0_u32);
        let mut recent = RecentNames::default();
        (0..400).for_each(|host| recent.insert(&format!("h{host}.example")));
        let mut scrub = Scrub::new(
            |host: &str| {
                asked.set(asked.get() + 1);
                Ok::<_, Infallible>(host.ends_with("977.example"))
            },
            recent,
        );
        for _day in 0..90 {
            assert_eq!(scrub.run(&mut section(0..1000)).unwrap(), 1);
        }
        // This test looks up the name that has left each time; a real file no longer has it.
        assert_eq!(asked.get(), 600 + 89);
    }
}
