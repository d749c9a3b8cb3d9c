//! Whether the files that stand may stay as they are.
//!
//! In: the folder, and what became of the hosts that its files name. Out: yes or no. Refused: to say yes of anything that can't be read, or that a crash
//! or a disk has left otherwise than it was told: who has left could be named there.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use files::SystemDisk;

use super::day_files::first_day;
use super::day_files::{self, Found, Scrub};
use super::recent_names::RecentNames;
use crate::feed::{ATOM_FILE, About, Entries};
use crate::instance::Moment;

/// Whether nobody is named in the published files in `folder` who has left, no file is older than
/// those that are kept at `time`, and the feed and the companions are what the days' files tell. If
/// not, [`super::write_changes`] makes them so.
///
/// # Errors
/// What `has_left` gave.
pub fn is_current<E>(
    folder: &Path,
    about: &About,
    time: Moment,
    has_left: impl FnMut(&str) -> Result<bool, E>,
) -> Result<bool, E> {
    let Ok(found) = Found::look(&SystemDisk, folder) else {
        return Ok(false);
    };
    let first_day = first_day(time);
    let mut scrub = Scrub::new(has_left, RecentNames::default());
    let mut entries = Entries::default();
    let mut newest = None;
    for day in &found.days {
        let Ok(read) = day_files::read(folder, day) else {
            return Ok(false);
        };
        if *day < first_day
            || !day_files::is_packed(folder, &day_files::file_name(day), &read.bytes)
        {
            return Ok(false);
        }
        for mut section in read.sections {
            if scrub.run(&mut section)? > 0 {
                return Ok(false);
            }
            entries.add(&section);
            newest = Some(section.header.time);
        }
    }
    let Some(newest) = newest else {
        return Ok(false);
    };
    let is_left_over = |name: &String| {
        !day_files::unpacked(name).is_some_and(|plain| {
            found
                .days
                .iter()
                .any(|day| day_files::file_name(day) == plain)
        })
    };
    if found.packed.iter().any(is_left_over) {
        return Ok(false);
    }
    let feed = entries.render(about, newest);
    let is_current = is(&folder.join(ATOM_FILE), feed.as_bytes()).unwrap_or(false);
    Ok(is_current && day_files::is_packed(folder, ATOM_FILE, feed.as_bytes()))
}

/// Whether this is all that is in the file.
fn is(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let bound = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let mut there = Vec::with_capacity(bytes.len());
    File::open(path)?
        .take(bound.saturating_add(1))
        .read_to_end(&mut there)?;
    Ok(there == bytes)
}
