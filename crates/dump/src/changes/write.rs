//! Writes a dump's changes next to the published files.
//!
//! From two dumps and the folder it writes today's file with one more section, earlier files
//! without the names of hosts that have left, the feed, and compressed companions of all. It also
//! lists the files to delete. If no section can lead from the last dump to this one, the new
//! section says so; that is not an error.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use files::{Disk, SystemDisk};

use super::day_files::{self, End, Found, Newcomers, Scrub};
use super::diff::{self, Diff, Standing};
use super::limits::{CHANGES_A_DAY_MAX, CLOCK_SLACK_SECONDS, DAY_BYTES_MAX, SECTIONS_A_DAY_MAX};
use super::line::{Counts, Header, Section, Sha256Hex};
use crate::compress::{self, GZIP_END};
use crate::error::DumpError;
use crate::feed::{ATOM_FILE, About, Entries};
use crate::row::{ListedRow, Moment};
use crate::swap::{self, Swap, Turn, Whose};

/// A file as it will be in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangesFile {
    /// Its name in the folder.
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

/// Files that are complete and on disk, but not published yet. Dropping this deletes them.
pub struct WrittenChanges {
    written: Written<SystemDisk>,
}

impl WrittenChanges {
    pub fn outcome(&self) -> &Outcome {
        &self.written.outcome
    }

    /// All files in the folder after publication, except their compressed companions, sorted by
    /// name.
    pub fn files(&self) -> &[ChangesFile] {
        &self.written.files
    }

    /// Moves the files to their places, and deletes the obsolete ones.
    ///
    /// # Errors
    /// Fails if a rename, a deletion or the folder's sync fails. Each file is then the complete old
    /// or new one, and a mirror sees a gap or correct data.
    pub fn publish(self) -> Result<(), DumpError> {
        self.written.publish(&SystemDisk)
    }
}

impl fmt::Debug for WrittenChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WrittenChanges")
            .field("outcome", &self.written.outcome)
            .finish_non_exhaustive()
    }
}

/// Compares the published rows with the new ones, and writes the changes next to the published
/// files in `folder`, which is created if it is missing. `former` is `None` if nothing was ever
/// published.
///
/// `standing` is called for each host that is no longer in the list. `has_left` is called for hosts
/// that the files of the last [`super::DAYS_KEPT`] days name: it says whether the host is
/// [`Standing::Withdrawn`], and should be cheap. Both must use the state of the database that `new`
/// was read from.
///
/// # Errors
/// Fails with the error of `new` or a callback, if rows of `new` are out of order, or if writing
/// fails. No files are left behind then. Damage of `former` or of earlier files is not an error:
/// see [`Outcome`].
pub fn write_changes<E: From<DumpError>, F: ToString>(
    folder: &Path,
    about: &About,
    time: Moment,
    former: Option<impl Iterator<Item = Result<ListedRow, F>>>,
    new: impl Iterator<Item = Result<ListedRow, E>>,
    mut standing: impl FnMut(&str) -> Result<Standing, E>,
    has_left: impl FnMut(&str) -> Result<bool, E>,
) -> Result<WrittenChanges, E> {
    let diff = diff::diff(former, new, &mut standing)?;
    let written = write(SystemDisk, folder, about, time, diff, has_left)?;
    Ok(WrittenChanges { written })
}

/// Deletes what a crash left next to the published files in `folder`. No other code writes there.
pub(super) fn clear(disk: &impl Disk, folder: &Path) -> Result<u32, DumpError> {
    swap::clear(disk, folder, Whose::All)
}

pub(super) struct Written<D: Disk> {
    swap: Swap<D>,
    folder: PathBuf,
    /// Files to delete, in this order.
    gone: Vec<PathBuf>,
    pub(super) files: Vec<ChangesFile>,
    pub(super) outcome: Outcome,
}

impl<D: Disk> Written<D> {
    pub(super) fn publish(self, disk: &D) -> Result<(), DumpError> {
        // Before the new files: a section to a dump that was never published must not exist
        // together with the section that replaces it.
        for path in &self.gone {
            disk.remove(path)
                .map_err(|source| DumpError::from_io(&self.folder, path, "removing", source))?;
        }
        self.swap.publish()
    }
}

pub(super) fn write<D: Disk, E: From<DumpError>>(
    disk: D,
    folder: &Path,
    about: &About,
    time: Moment,
    diff: Diff,
    has_left: impl FnMut(&str) -> Result<bool, E>,
) -> Result<Written<D>, E> {
    make_folder(folder)?;
    // After a disk error, deleting incomplete files may have failed.
    clear(&disk, folder).ok();
    let found = Found::look(&disk, folder)?;
    let start = Start::find(folder, &found.days, time, &diff);
    let work = Work {
        swap: Swap::new(disk, folder),
        folder,
        files: Vec::new(),
        gone: Vec::new(),
        entries: Entries::default(),
        hashed_lines: 0,
    };
    work.run(about, found, start, diff, has_left)
}

fn make_folder(folder: &Path) -> Result<(), DumpError> {
    match std::fs::create_dir(folder) {
        Err(source) if source.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(DumpError::from_open(folder, folder, "creating", source))
        }
        Ok(()) | Err(_) => Ok(()),
    }
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

struct Work<'a, D: Disk> {
    swap: Swap<D>,
    folder: &'a Path,
    files: Vec<ChangesFile>,
    gone: Vec<PathBuf>,
    entries: Entries,
    hashed_lines: u64,
}

impl<D: Disk> Work<'_, D> {
    fn run<E: From<DumpError>>(
        mut self,
        about: &About,
        found: Found,
        mut start: Start,
        mut diff: Diff,
        has_left: impl FnMut(&str) -> Result<bool, E>,
    ) -> Result<Written<D>, E> {
        let today = start.time.day();
        let first_day = day_files::first_day(start.time);
        let mut scrub = Scrub::new(has_left, std::mem::take(&mut diff.listed));
        let mut section = new_section(&start, diff);
        let mut newcomers = Newcomers::among(&section.changes);
        let mut todays = Vec::new();
        for day in &found.days {
            if *day < first_day || start.damaged.contains_key(day) {
                self.gone.push(day_files::path(self.folder, day));
                continue;
            }
            let read = match day_files::read(self.folder, day) {
                Ok(read) => read,
                Err(why) => {
                    self.gone.push(day_files::path(self.folder, day));
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
            }
            if *day == today {
                todays = sections;
            } else if sections.is_empty() {
                self.gone.push(day_files::path(self.folder, day));
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
        let feed = self.entries.render(about, section.header.time);
        self.put(ATOM_FILE, feed.as_bytes())?;
        self.drop_packed(&found.packed);
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

    /// Writes a file and its companion, which is published first.
    fn put(&mut self, name: &str, bytes: &[u8]) -> Result<(), DumpError> {
        self.pack(name, bytes)?;
        self.swap.put(name, Turn::Plain, bytes)?;
        self.list(name.to_owned(), bytes);
        Ok(())
    }

    /// Keeps an unchanged file. A crash may have left the companion of a file that was never
    /// published, with other names.
    fn keep(&mut self, name: &str, bytes: &[u8]) -> Result<(), DumpError> {
        if !day_files::is_packed(self.folder, name, bytes) {
            self.pack(name, bytes)?;
        }
        self.list(name.to_owned(), bytes);
        Ok(())
    }

    fn pack(&mut self, name: &str, bytes: &[u8]) -> Result<(), DumpError> {
        let packed = compress::companion(bytes)
            .map_err(|source| self.swap.failed(name, "compressing", source))?;
        self.swap
            .put(&format!("{name}{GZIP_END}"), Turn::Packed, &packed)
    }

    /// Deletes companions without their file. While an uncompressed file to delete still exists,
    /// the next publication finds its companion, so companions are deleted first.
    fn drop_packed(&mut self, packed: &BTreeSet<String>) {
        let stays = |plain: &str| self.files.iter().any(|file| file.name == plain);
        let dropped = packed
            .iter()
            .filter(|name| !day_files::unpacked(name).is_some_and(stays))
            .map(|name| self.folder.join(name));
        self.gone = dropped.chain(std::mem::take(&mut self.gone)).collect();
    }

    fn list(&mut self, name: String, bytes: &[u8]) {
        self.files.push(ChangesFile {
            name,
            bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            sha256: Sha256Hex::of(bytes),
        });
    }

    fn finish(mut self, start: Start, section: Section) -> Written<D> {
        self.files.sort_by(|one, other| one.name.cmp(&other.name));
        let Header {
            time,
            since,
            complete,
            hosts,
            counts,
            ..
        } = section.header;
        Written {
            swap: self.swap,
            folder: self.folder.to_owned(),
            gone: self.gone,
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
    section.write(to).map_err(|error| DumpError::Failed {
        path: PathBuf::from(day_files::file_name(&section.header.time.day())),
        doing: "writing",
        source: error.into(),
    })
}
