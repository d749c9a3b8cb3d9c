//! Checks whether the published files of changes can stay as they are.
//!
//! Anything that can't be read, or that a crash or disk error has changed, counts as not current:
//! it might name a host that has left.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use files::SystemDisk;

use super::day_files::first_day;
use super::day_files::{self, Found, Scrub};
use super::recent_names::RecentNames;
use crate::feed::{ATOM_FILE, About, Entries};
use crate::row::Moment;

/// Whether the published files of changes in `folder` can stay. They must name no host that has
/// left and must not be older than the days kept at `time`. Their feed and compressed companions
/// must match the day files. If not, [`super::write_changes`] rewrites them.
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

/// Whether the file contains exactly these bytes.
fn is(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let bound = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let mut there = Vec::with_capacity(bytes.len());
    File::open(path)?
        .take(bound.saturating_add(1))
        .read_to_end(&mut there)?;
    Ok(there == bytes)
}
