//! Adds files of earlier days.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use anyhow::{Context as _, Result};
use census::time::Timestamp;
use dump::Moment;
use dump::changes::{CHANGES_A_DAY_MAX, Change, Counts, Header, Row, Section, Sha256Hex};

const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// Adds one file for each of this many days before `now` to a published set. Each has as many
/// changes as a day may have, and no host twice while there are others.
pub(crate) fn fill(public: &Path, now: Timestamp, days: u16) -> Result<()> {
    let rows = public.join("data/instances.ndjson");
    let mut lines = lines(&rows)?;
    let digest = Sha256Hex::of(b"of a list that nobody has");
    for day in 1..=i64::from(days) {
        let mut changes = Vec::with_capacity(CHANGES_A_DAY_MAX);
        while changes.len() < CHANGES_A_DAY_MAX {
            let Some(line) = lines.next() else {
                lines = self::lines(&rows)?;
                continue;
            };
            let row: Row = serde_json::from_str(&line?)?;
            changes.push(Change::Changed(row));
        }
        let time = Moment::from_milliseconds(now.0 - day * DAY_MILLIS);
        let changed = u64::try_from(changes.len())?;
        let mut section = Section {
            header: Header {
                time,
                since: None,
                complete: true,
                hosts: changed,
                counts: Counts {
                    changed,
                    ..Counts::default()
                },
                names_sha256: digest.clone(),
                rows_sha256: digest.clone(),
                full_rows_sha256: digest.clone(),
                lines: changed,
                section_sha256: digest.clone(),
            },
            changes,
        };
        let mut file = Vec::new();
        section.write(&mut file)?;
        let path = public.join(format!("data/changes/{}.ndjson", time.day()));
        std::fs::write(&path, file).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn lines(rows: &Path) -> Result<std::io::Lines<BufReader<File>>> {
    Ok(BufReader::new(File::open(rows)?).lines())
}
