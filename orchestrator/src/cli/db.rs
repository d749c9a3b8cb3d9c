//! Maintenance of the database. Needs no daemon, and works while one runs.

use std::path::Path;
use std::time::{Duration, Instant};

use clap::Subcommand;
use store::{Depth, Soundness};

use super::{FAILED, OK, complain, say};
use crate::config::Config;

/// Default time limit of a check, in seconds. Ten million hosts take minutes, and meanwhile the
/// daemon's writes grow the write-ahead log by some megabytes a minute.
const WITHIN_S: u64 = 600;

/// Maintenance commands.
#[derive(Debug, Subcommand)]
pub(super) enum Db {
    /// Check pages, indexes, references and the census's own rules; writes nothing
    Check {
        /// Leave out the comparison of indexes with their tables, which takes most of the time
        #[arg(long)]
        quick: bool,
        /// Stop after so many seconds, and say what was left out
        #[arg(long, value_name = "SECONDS", default_value_t = WITHIN_S)]
        within: u64,
    },
}

pub(super) fn obey(command: &Db, config: &Config) -> anyhow::Result<u8> {
    match *command {
        Db::Check { quick, within } => {
            let depth = if quick { Depth::Quick } else { Depth::Whole };
            check(&config.database(), depth, Duration::from_secs(within))
        }
    }
}

fn check(database: &Path, depth: Depth, within: Duration) -> anyhow::Result<u8> {
    let began = Instant::now();
    let reader = store::open_read_only(database)?;
    let Soundness {
        findings,
        unfinished,
    } = reader.soundness(depth, within)?;
    for finding in &findings {
        say(&format!("{}: {}", finding.what, finding.remedy))?;
    }
    for what in &unfinished {
        say(&format!("not checked to the end: {what}"))?;
    }
    let database = database.display();
    if !findings.is_empty() {
        let count = findings.len();
        let what = format!("{database} is not sound: {count} findings, each with what to do");
        return Ok(complain(&what, FAILED));
    }
    if !unfinished.is_empty() {
        let what = format!(
            "{database}: the time ended before everything was checked; nothing wrong was found until then: allow more with --within, or check less with --quick"
        );
        return Ok(complain(&what, FAILED));
    }
    say(&format!(
        "{database} is sound: schema {}, checked in {:.1} s",
        reader.schema_version()?,
        began.elapsed().as_secs_f64()
    ))?;
    Ok(OK)
}
