//! Checks whether the published files of changes can stay as they are.
//!
//! Anything that can't be read counts as not current: it might name a host that has left.

use std::path::Path;

use super::day_files::{self, Scrub, first_day};
use super::recent_names::RecentNames;
use crate::row::Moment;

/// Whether the files of changes in `folder` can stay. They must name no host that has left and must
/// not be older than the days kept at `time`. If not, [`super::write_changes`] rewrites them.
pub fn is_current<E>(
    folder: &Path,
    time: Moment,
    has_left: impl FnMut(&str) -> Result<bool, E>,
) -> Result<bool, E> {
    let Ok(days) = day_files::days(folder) else {
        return Ok(false);
    };
    let first_day = first_day(time);
    let mut scrub = Scrub::new(has_left, RecentNames::default());
    for day in &days {
        if *day < first_day {
            return Ok(false);
        }
        let Ok(read) = day_files::read(folder, day) else {
            return Ok(false);
        };
        for mut section in read.sections {
            if scrub.run(&mut section)? > 0 {
                return Ok(false);
            }
        }
    }
    Ok(!days.is_empty())
}
