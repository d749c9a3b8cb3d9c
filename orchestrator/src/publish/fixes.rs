//! How far security fixes have spread: for the pages, and as a file of the set for each fix.
//!
//! The counts are those of recorded days and of a new list, which is recorded once it is published.
//! Full versions of one software are in memory at a time: 400 days of at most 41 rows. The pages
//! keep a sum a day for each fix, and five minor versions a day of twenty kinds of software.

mod file;

use std::collections::BTreeMap;

use census::time::Timestamp;
use dump::{CSV_MEDIA, Draft, Packing};
use jiff::civil::Date;
use site::fixes::{Fix, Minors, STANDINGS, Spread, Tally, VersionHistory, sum};
use store::{ByDay, Reader, SoftwareVersions, StoreError, day_of};

use super::PublishError;
use super::day::date;
pub use file::{FixesError, read};

/// Minor versions of a software that are shown over time.
const MINORS_SHOWN: usize = 5;

/// Hosts by variant, for each counted day since the release of a fix.
type Days = Vec<(Date, BTreeMap<String, Tally>)>;

/// The recorded days up to `now`, and the versions of a new list, which is not recorded yet; none
/// if there is no new list.
#[derive(Clone, Copy)]
pub(super) struct Counts<'a> {
    pub(super) reader: &'a Reader,
    pub(super) now: Timestamp,
    pub(super) today: &'a [SoftwareVersions],
}

impl Counts<'_> {
    /// Adds the numbers of each fix to the set.
    pub(super) fn write(self, draft: &mut Draft<'_>, fixes: &[Fix]) -> Result<(), PublishError> {
        for fix in fixes {
            let mut csv = format!("day,variant,{}\r\n", STANDINGS.join(",")).into_bytes();
            for (day, tallies) in self.of_fix(fix)? {
                for (variant, tally) in tallies {
                    let line = [day.to_string(), variant].into_iter();
                    let line: Vec<_> = line.chain(tally.map(|hosts| hosts.to_string())).collect();
                    let fields = line.iter().map(String::as_str);
                    let fields = fields.map(|field| Some(field).filter(|field| !field.is_empty()));
                    dump::push_csv_line(fields, &mut csv);
                }
            }
            draft.add(&fix.csv(), CSV_MEDIA, Packing::Gzip, |file| {
                file.write_all(&csv)
            })?;
        }
        Ok(())
    }

    /// What the pages show of versions. `most_frequent` is the software whose minor versions they
    /// show.
    pub(super) fn history<'s>(
        self,
        fixes: &[Fix],
        most_frequent: impl Iterator<Item = &'s str>,
    ) -> Result<VersionHistory, StoreError> {
        let mut history = VersionHistory::default();
        for fix in fixes {
            let mut days = self.of_fix(fix)?;
            let sums = days.iter().map(|(day, of)| (*day, sum(of.values())));
            history.fixes.push(Spread {
                fix: fix.clone(),
                days: sums.collect(),
                variants: days.pop().map(|(_day, of)| of).unwrap_or_default(),
            });
        }
        for software in most_frequent {
            let minors = self.minors(software)?;
            history.minors.insert(software.to_owned(), minors);
        }
        Ok(history)
    }

    fn of_fix(self, fix: &Fix) -> Result<Days, StoreError> {
        let days = self.reader.versions(&fix.software, self.now)?;
        let days = self.with_today(days, &fix.software, |of| of.versions.clone());
        let days = days.into_iter().filter(|(day, _)| *day >= fix.date);
        Ok(days
            .map(|(day, versions)| (day, fix.tallies(&versions)))
            .collect())
    }

    /// The most frequent minor versions of the last day, with numbers alone, on all days.
    fn minors(self, software: &str) -> Result<Vec<(Date, Minors)>, StoreError> {
        let days = self.reader.minors(software, self.now)?;
        let mut days = self.with_today(days, software, |of| of.minors.clone());
        let last = days
            .last()
            .map(|(_, last)| last.clone())
            .unwrap_or_default();
        let names = last.into_iter().map(|(minor, _)| minor);
        let numbers = names.filter(|minor| census::version::numbers(minor).is_some());
        let shown: Vec<_> = numbers.take(MINORS_SHOWN).collect();
        for (_, minors) in &mut days {
            minors.retain(|(minor, _)| shown.contains(minor));
        }
        Ok(days)
    }

    /// Replaces the counts of today's former list by those of the new one, if it has any.
    fn with_today<T>(
        self,
        mut days: ByDay<T>,
        software: &str,
        counts: impl Fn(&SoftwareVersions) -> Vec<T>,
    ) -> Vec<(Date, Vec<T>)> {
        let today = day_of(self.now);
        if let Some(new) = self.today.iter().find(|of| of.software == software) {
            days.pop_if(|(last, _)| *last == today);
            days.push((today, counts(new)));
        }
        let days = days.into_iter();
        days.filter_map(|(day, counts)| Some((date(day)?, counts)))
            .collect()
    }
}
