//! A dump's changes, written beside the published files.
//!
//! In: two dumps and the folder. Out: today's file with one more section, earlier ones without the names of who has left, the feeds, all of them
//! compressed as well; and which files go. Refused: nothing that only a reader of changes would miss: where no section can lead from the last dump to
//! this one, one says so.

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
use crate::instance::{Instance, Moment};
use crate::swap::{self, Swap, Turn, Whose};

/// A file as it will lie in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangesFile {
    /// Its name in the folder.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Its digest.
    pub sha256: Sha256Hex,
}

/// What was found, for the log and for whatever else names the dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The dump's moment in the section: what was given, or the next second after the last section's.
    pub time: Moment,
    /// The dump that the section starts from. None: it starts anew, and no changes are told.
    pub since: Option<Moment>,
    /// Whether all changes are in the section; else there were too many.
    pub complete: bool,
    /// Hosts in the new dump.
    pub hosts: u64,
    /// What changed; all zero when the section starts anew.
    pub counts: Counts,
    /// Why the section starts anew although there was a former dump.
    pub starts_anew: Option<String>,
    /// Files that can't be used and go, each with the reason.
    pub damaged: Vec<String>,
    /// Lines of earlier sections out of which names were taken.
    pub hashed_lines: u64,
}

/// Files that are written, complete and on the disk, and not yet published. Dropped, they are taken away again.
pub struct WrittenChanges {
    written: Written<SystemDisk>,
}

impl WrittenChanges {
    /// What was found.
    pub fn outcome(&self) -> &Outcome {
        &self.written.outcome
    }

    /// All files that lie in the folder once these are published, but for the compressed ones beside them, sorted by name.
    pub fn files(&self) -> &[ChangesFile] {
        &self.written.files
    }

    /// Puts the files in their places and removes those that go.
    ///
    /// # Errors
    /// When a rename, a removal or the folder's sync fails. Each file is then the old one or the new one, whole, and a mirror sees a gap or the truth.
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

/// Compares the rows that were published last with the new ones, and writes what changed beside the published files in `folder`, which is made
/// when it is not there. `former` is none when nothing was ever published. `standing` is asked about each host that is in the list no more,
/// `has_left` about each that the files of the last [`super::DAYS_KEPT`] days name: whether it is [`Standing::Withdrawn`], which is all that they need and
/// should be cheap to tell. Both answer by the state of the database that `new` is of.
///
/// # Errors
/// What `new` or `standing` gave, rows of `new` out of order, else why writing failed. Nothing is left behind then. What is wrong with `former`
/// or with earlier files is no error: see [`Outcome`].
pub fn write_changes<E: From<DumpError>, F: ToString>(
    folder: &Path,
    about: &About,
    time: Moment,
    former: Option<impl Iterator<Item = Result<Instance, F>>>,
    new: impl Iterator<Item = Result<Instance, E>>,
    mut standing: impl FnMut(&str) -> Result<Standing, E>,
    has_left: impl FnMut(&str) -> Result<bool, E>,
) -> Result<WrittenChanges, E> {
    let diff = diff::diff(former, new, &mut standing)?;
    let written = write(SystemDisk, folder, about, time, diff, has_left)?;
    Ok(WrittenChanges { written })
}

/// Removes what a crash left beside the published files in `folder`, in which nobody else writes.
pub(super) fn clear(disk: &impl Disk, folder: &Path) -> Result<u32, DumpError> {
    swap::clear(disk, folder, Whose::All)
}

pub(super) struct Written<D: Disk> {
    swap: Swap<D>,
    folder: PathBuf,
    /// Files that go, in this order.
    gone: Vec<PathBuf>,
    pub(super) files: Vec<ChangesFile>,
    pub(super) outcome: Outcome,
}

impl<D: Disk> Written<D> {
    pub(super) fn publish(self, disk: &D) -> Result<(), DumpError> {
        // Before the new ones come: a section that led to a dump that was never published must not stand beside the one that takes its place.
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
    // A disk that failed may not have let go of what was half written.
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

/// Where the new section begins, and which of the earlier ones stay.
struct Start {
    time: Moment,
    since: Option<Moment>,
    starts_anew: Option<String>,
    damaged: std::collections::BTreeMap<String, String>,
}

impl Start {
    fn find(folder: &Path, days: &BTreeSet<String>, time: Moment, diff: &Diff) -> Self {
        let Some(former_rows) = &diff.former_rows else {
            // There may be sections all the same, of a dump that is damaged: who stands at them sees that nothing goes on from there.
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

    /// Whether an earlier section stays: it leads to a dump that was published, in a time that has been.
    fn keeps(&self, section: &Section) -> bool {
        let led_to = section.header.time;
        led_to < self.time && self.since.is_none_or(|since| led_to <= since)
    }
}

/// `time`, or the next second after `newest`: a section's moment is its name, and there are no two of one.
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

    /// The sections of a day that stay, without names of who has left, and whether the day's file is another one now.
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

    /// A file and its companion, which takes its place first.
    fn put(&mut self, name: &str, bytes: &[u8]) -> Result<(), DumpError> {
        self.pack(name, bytes)?;
        self.swap.put(name, Turn::Plain, bytes)?;
        self.list(name.to_owned(), bytes);
        Ok(())
    }

    /// A file that stays as it is. A crash may have left the companion of one that never took its
    /// place, with names that are not in it.
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

    /// Deletes companions without their file, before that file goes: while it is there, the next
    /// publication finds them.
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
            full_rows_sha256: Some(diff.rows.full_rows_sha256),
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

/// Counts anew once it is known who returned.
fn recount(section: &mut Section) {
    if section.header.complete && section.header.since.is_some() {
        let mut counts = Counts::default();
        for change in &section.changes {
            counts.add(change);
        }
        section.header.counts = counts;
    }
}

/// Drops the first sections of a day that has as many as it may have, so that there is room for one more. Mirrors that stand before those that are left
/// see that nothing goes on from there.
fn make_room(todays: &mut Vec<Section>) {
    let others = SECTIONS_A_DAY_MAX.saturating_sub(1);
    todays.drain(..todays.len().saturating_sub(others));
}

/// A day's file with one more section, of which the changes are left out when they don't fit.
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
