//! Writes a dump's changes into its tree.
//!
//! From two dumps and the former tree's files it writes today's file with one more section, earlier
//! files without the names of hosts that have left, the feeds, and compressed companions of all. If
//! no section can lead from the last dump to this one, the new section says so; that is not an
//! error.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use publish::{GZIP_END, Tree, TreeError};

use super::day_files::{self, End, Newcomers, Scrub};
use super::diff::{self, Diff, Standing};
use super::limits::{CHANGES_A_DAY_MAX, CLOCK_SLACK_SECONDS, DAY_BYTES_MAX, SECTIONS_A_DAY_MAX};
use crate::error::DumpError;
use crate::feed::{About, Entries, Weeks};
use crate::line::{Counts, Header, Section, Sha256Hex};
use crate::paths::{ATOM_FILE, CHANGES_FOLDER, WEEKLY_ATOM_FILE};
use crate::row::{ListedRow, Moment};

/// A file as it will be in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangesFile {
    pub name: String,
    pub bytes: u64,
    pub sha256: Sha256Hex,
}

/// What was written, for the log and for other code that names the dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The dump's time in its section: the given one, or one second after the last section's.
    pub time: Moment,
    /// The dump that the section starts from. `None` if it starts from no dump and has no changes.
    pub since: Option<Moment>,
    /// Whether the section has all changes. If not, there were too many.
    pub complete: bool,
    /// Number of hosts in the new dump.
    pub hosts: u64,
    /// Counts of changes. All are zero if the section starts from no dump.
    pub counts: Counts,
    /// Why the section starts from no dump although there was a former one.
    pub starts_anew: Option<String>,
    /// Files that can't be used and are deleted, each with the reason.
    pub damaged: Vec<String>,
    /// Lines of earlier sections from which names were removed.
    pub hashed_lines: u64,
}

/// The files of changes in a tree.
#[derive(Debug)]
pub struct WrittenChanges {
    pub outcome: Outcome,
    /// All files except their compressed companions, sorted by name.
    pub files: Vec<ChangesFile>,
}

/// Compares the published rows with the new ones, and writes the changes into `tree`. `former` is
/// `None` if nothing was ever published.
///
/// `standing` is called for each host that is no longer in the list. `has_left` is called for hosts
/// that the files of the last [`super::DAYS_KEPT`] days name: it says whether the host is
/// [`Standing::Withdrawn`], and should be cheap. Both must use the state of the database that `new`
/// was read from.
///
/// # Errors
/// Fails with the error of `new` or a callback, if rows of `new` are out of order, or if writing
/// fails. Damage of `former` or of earlier files is not an error: see [`Outcome`].
pub fn write_changes<E: From<DumpError>, F: ToString>(
    tree: &Tree,
    about: &About,
    time: Moment,
    former: Option<impl Iterator<Item = Result<ListedRow, F>>>,
    new: impl Iterator<Item = Result<ListedRow, E>>,
    mut standing: impl FnMut(&str) -> Result<Standing, E>,
    has_left: impl FnMut(&str) -> Result<bool, E>,
) -> Result<WrittenChanges, E> {
    let diff = diff::diff(former, new, &mut standing)?;
    let folder = tree.former().unwrap_or(tree.folder()).join(CHANGES_FOLDER);
    let days = match day_files::days(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            let error = TreeError::from_io(&folder, &folder, "listing", error);
            return Err(DumpError::from(error).into());
        }
        days => days.unwrap_or_default(),
    };
    let start = Start::find(&folder, &days, time, &diff);
    let work = Work {
        tree,
        folder: &folder,
        files: Vec::new(),
        entries: Entries::default(),
        hashed_lines: 0,
    };
    work.run(about, &days, start, diff, has_left)
}

/// Where the new section begins, and which earlier sections stay.
struct Start {
    time: Moment,
    since: Option<Moment>,
    starts_anew: Option<String>,
    damaged: std::collections::BTreeMap<String, String>,
}

impl Start {
    fn find(folder: &Path, days: &BTreeSet<String>, time: Moment, diff: &Diff) -> Self {
        let Some(former_rows) = &diff.former_rows else {
            // There may still be sections, of a damaged dump: a mirror of one of them sees that no
            // section continues from it.
            let end = day_files::end(folder, days, None);
            return Self::anew(time, end, diff.former_damage.clone());
        };
        let end = day_files::end(folder, days, Some(former_rows));
        if end.former.is_none() {
            let why = "no section leads to the list that was published last".to_owned();
            return Self::anew(time, end, Some(why));
        }
        let slack = Moment::from_milliseconds(
            time.seconds()
                .saturating_add(CLOCK_SLACK_SECONDS)
                .saturating_mul(1000),
        );
        if end.newest > Some(slack) {
            let why = "the clock was set back since the last dump".to_owned();
            return Self::anew(
                time,
                End {
                    former: None,
                    ..end
                },
                Some(why),
            );
        }
        Self {
            time: after(end.newest, time),
            since: end.former,
            starts_anew: None,
            damaged: end.damaged,
        }
    }

    fn anew(time: Moment, end: End, why: Option<String>) -> Self {
        let slack = time.seconds().saturating_add(CLOCK_SLACK_SECONDS);
        let newest = end.newest.filter(|newest| newest.seconds() <= slack);
        Self {
            time: after(newest, time),
            since: None,
            starts_anew: why,
            damaged: end.damaged,
        }
    }

    /// Whether an earlier section stays: it leads to a published dump, and its time is in the past.
    fn keeps(&self, section: &Section) -> bool {
        let led_to = section.header.time;
        led_to < self.time && self.since.is_none_or(|since| led_to <= since)
    }
}

/// `time`, or one second after `newest`: a section's time identifies it and must be unique.
fn after(newest: Option<Moment>, time: Moment) -> Moment {
    match newest {
        Some(newest) if newest >= time => {
            Moment::from_milliseconds(newest.seconds().saturating_add(1).saturating_mul(1000))
        }
        Some(_) | None => time,
    }
}

struct Work<'a> {
    tree: &'a Tree,
    folder: &'a Path,
    files: Vec<ChangesFile>,
    entries: Entries,
    hashed_lines: u64,
}

impl Work<'_> {
    fn run<E: From<DumpError>>(
        mut self,
        about: &About,
        days: &BTreeSet<String>,
        mut start: Start,
        mut diff: Diff,
        has_left: impl FnMut(&str) -> Result<bool, E>,
    ) -> Result<WrittenChanges, E> {
        let today = start.time.day();
        let first_day = day_files::first_day(start.time);
        let mut scrub = Scrub::new(has_left, std::mem::take(&mut diff.listed));
        let mut section = new_section(&start, diff);
        let mut newcomers = Newcomers::among(&section.changes);
        let mut todays = Vec::new();
        let mut weeks = Weeks::default();
        for day in days {
            if *day < first_day || start.damaged.contains_key(day) {
                continue;
            }
            let read = match day_files::read(self.folder, day) {
                Ok(read) => read,
                Err(why) => {
                    start.damaged.insert(day.clone(), why);
                    continue;
                }
            };
            let (mut sections, is_changed) = self.revise(read.sections, &start, &mut scrub)?;
            if *day == today {
                make_room(&mut sections);
            }
            for section_of_then in &sections {
                newcomers.recognise(section_of_then, &mut section.changes);
                self.entries.add(section_of_then);
                weeks.add(section_of_then);
            }
            if *day == today {
                todays = sections;
            } else if sections.is_empty() {
                continue;
            } else if is_changed {
                self.put(&day_files::file_name(day), &written(sections)?)?;
            } else {
                self.keep(&day_files::file_name(day), &read.bytes)?;
            }
        }
        recount(&mut section);
        let bytes = append(todays, &mut section)?;
        self.put(&day_files::file_name(&today), &bytes)?;
        self.entries.add(&section);
        let time = section.header.time;
        let feed = self.entries.render(about, time);
        self.put(ATOM_FILE, feed.as_bytes())?;
        let weekly = weeks.render(about, time, &first_day);
        self.put(WEEKLY_ATOM_FILE, weekly.as_bytes())?;
        Ok(self.finish(start, section))
    }

    /// The sections of a day that stay, without names of hosts that have left, and whether the
    /// day's file has changed.
    fn revise<E, S: FnMut(&str) -> Result<bool, E>>(
        &mut self,
        mut sections: Vec<Section>,
        start: &Start,
        scrub: &mut Scrub<S>,
    ) -> Result<(Vec<Section>, bool), E> {
        let before = (sections.len(), self.hashed_lines);
        sections.retain(|section| start.keeps(section));
        for section in &mut sections {
            self.hashed_lines = self.hashed_lines.saturating_add(scrub.run(section)?);
        }
        let is_changed = (sections.len(), self.hashed_lines) != before;
        Ok((sections, is_changed))
    }

    /// Writes a file and its companion.
    fn put(&mut self, name: &str, bytes: &[u8]) -> Result<(), DumpError> {
        let place = format!("{CHANGES_FOLDER}/{name}");
        self.tree.write_packed(&place, bytes)?;
        self.list(name.to_owned(), bytes);
        Ok(())
    }

    /// Keeps an unchanged file and its companion.
    fn keep(&mut self, name: &str, bytes: &[u8]) -> Result<(), DumpError> {
        let place = format!("{CHANGES_FOLDER}/{name}");
        let has_both = self.tree.keep(&place)? && self.tree.keep(&format!("{place}{GZIP_END}"))?;
        if !has_both {
            self.tree.pack(&place)?;
        }
        self.list(name.to_owned(), bytes);
        Ok(())
    }

    fn list(&mut self, name: String, bytes: &[u8]) {
        self.files.push(ChangesFile {
            name,
            bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            sha256: Sha256Hex::of(bytes),
        });
    }

    fn finish(mut self, start: Start, section: Section) -> WrittenChanges {
        self.files.sort_by(|one, other| one.name.cmp(&other.name));
        let Header {
            time,
            since,
            complete,
            hosts,
            counts,
            ..
        } = section.header;
        WrittenChanges {
            files: self.files,
            outcome: Outcome {
                time,
                since,
                complete,
                hosts,
                counts,
                starts_anew: start.starts_anew,
                damaged: start
                    .damaged
                    .into_iter()
                    .map(|(day, why)| format!("{}: {why}", day_files::file_name(&day)))
                    .collect(),
                hashed_lines: self.hashed_lines,
            },
        }
    }
}

fn new_section(start: &Start, diff: Diff) -> Section {
    let mut section = Section {
        header: Header {
            time: start.time,
            since: start.since,
            complete: diff.changes.is_some(),
            hosts: diff.hosts,
            counts: diff.counts,
            names_sha256: diff.names_sha256,
            rows_sha256: diff.rows.rows_sha256,
            full_rows_sha256: diff.rows.full_rows_sha256,
            lines: 0,
            section_sha256: Sha256Hex::of(b""),
        },
        changes: diff.changes.unwrap_or_default(),
    };
    if start.since.is_none() {
        section.changes.clear();
        section.header.counts = Counts::default();
        section.header.complete = true;
    }
    section
}

/// Recounts once returned hosts are known.
fn recount(section: &mut Section) {
    if section.header.complete && section.header.since.is_some() {
        let mut counts = Counts::default();
        for change in &section.changes {
            counts.add(change);
        }
        section.header.counts = counts;
    }
}

/// Drops the first sections of a full day, to make room for one more. Mirrors of dropped sections
/// see that no section continues from theirs.
fn make_room(todays: &mut Vec<Section>) {
    let others = SECTIONS_A_DAY_MAX.saturating_sub(1);
    todays.drain(..todays.len().saturating_sub(others));
}

/// A day's file with one more section. The section's changes are left out if they don't fit.
fn append(todays: Vec<Section>, section: &mut Section) -> Result<Vec<u8>, DumpError> {
    let changes_before: usize = todays.iter().map(|section| section.changes.len()).sum();
    let bytes_before = written(todays)?;
    let mut bytes = bytes_before.clone();
    write_section(section, &mut bytes)?;
    let changes = changes_before.saturating_add(section.changes.len());
    if changes > CHANGES_A_DAY_MAX || bytes.len() > DAY_BYTES_MAX {
        section.changes.clear();
        section.header.complete = false;
        bytes = bytes_before;
        write_section(section, &mut bytes)?;
    }
    Ok(bytes)
}

fn written(sections: Vec<Section>) -> Result<Vec<u8>, DumpError> {
    let mut bytes = Vec::new();
    for mut section in sections {
        write_section(&mut section, &mut bytes)?;
    }
    Ok(bytes)
}

fn write_section(section: &mut Section, to: &mut Vec<u8>) -> Result<(), DumpError> {
    let name = day_files::file_name(&section.header.time.day());
    section.write(to).map_err(|error| {
        TreeError::Failed {
            path: PathBuf::from(name),
            doing: "writing",
            source: error.into(),
        }
        .into()
    })
}
