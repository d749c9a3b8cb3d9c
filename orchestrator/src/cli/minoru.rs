//! `import --minoru`: imports the database of Minoru's crawler through the daemon, or directly if
//! no daemon runs.
//!
//! Sends the hosts in batches, with their states and times, and prints a summary.

use std::path::Path;

use anyhow::bail;
use import_minoru::{Found, MinoruFile};
use serde::Serialize;

use super::ask::{REFUSED_SHOWN_MAX, Way, progress, unexpected};
use super::{FAILED, OK, say};
use crate::config::Config;
use crate::serve::control::{
    Answer, IMPORTED_PER_REQUEST_MAX, ImportReport, ImportedHost, Request,
};
use crate::services::clock::Random;

/// Refused rows that are kept for display; a file may have millions.
const REFUSED_KEPT_MAX: usize = 10_000;

/// The result of the whole file.
#[derive(Debug, Default, Serialize)]
struct Summary {
    #[serde(flatten)]
    report: ImportReport,
    /// Further refused rows, of which only the number is kept.
    refused_more: u64,
}

pub(super) async fn import(config: &Config, file: &Path, json: bool) -> anyhow::Result<u8> {
    if file == Path::new("-") {
        bail!("SQLite reads no standard input: name the file");
    }
    let mut file = MinoruFile::open(file)?;
    let total = usize::try_from(file.hosts()).unwrap_or(usize::MAX);
    let (random, mut summary, mut done) = (Random::from_os(), Summary::default(), 0_usize);
    let mut way = Way::open(config).await?;
    loop {
        let page = file.next_page()?;
        if page.is_empty() {
            break;
        }
        let hosts = summary.hosts_of(page, &random);
        for batch in hosts.chunks(IMPORTED_PER_REQUEST_MAX) {
            match way.ask(Request::Import(batch.to_vec())).await? {
                Answer::Imported(report) => summary.add(report),
                other => return unexpected(&other),
            }
            done = done.saturating_add(batch.len());
            progress(done.min(total), total);
        }
    }
    way.close();
    if json {
        say(&serde_json::to_string(&summary)?)?;
    } else {
        summary.tell()?;
    }
    let is_useless = summary.report.taken.is_empty() && summary.report.known == 0;
    let has_refused = !summary.report.refused.is_empty();
    Ok(if is_useless && has_refused {
        FAILED
    } else {
        OK
    })
}

impl Summary {
    fn hosts_of(&mut self, page: Vec<Found>, random: &Random) -> Vec<ImportedHost> {
        let mut hosts = Vec::with_capacity(page.len());
        for found in page {
            match found {
                Found::Host { name, known } => hosts.push(ImportedHost {
                    name,
                    known,
                    jitter: random.jitter().0,
                }),
                Found::Refused { row, why } => self.refuse(format!("row {row}"), why.to_owned()),
            }
        }
        hosts
    }

    fn add(&mut self, batch: ImportReport) {
        for (state, count) in batch.taken {
            let sum = self.report.taken.entry(state).or_default();
            *sum = sum.saturating_add(count);
        }
        self.report.known = self.report.known.saturating_add(batch.known);
        for (name, why) in batch.refused {
            self.refuse(name, why);
        }
    }

    fn refuse(&mut self, name: String, why: String) {
        if self.report.refused.len() < REFUSED_KEPT_MAX {
            self.report.refused.push((name, why));
        } else {
            self.refused_more = self.refused_more.saturating_add(1);
        }
    }

    fn tell(&self) -> anyhow::Result<()> {
        let taken: u64 = self.report.taken.values().sum();
        let states: Vec<_> = self.report.taken.iter().collect();
        let states = states
            .iter()
            .map(|(state, count)| format!("{count} {state}"))
            .collect::<Vec<_>>()
            .join(", ");
        let states = if states.is_empty() {
            states
        } else {
            format!(" ({states})")
        };
        let kept = u64::try_from(self.report.refused.len()).unwrap_or(u64::MAX);
        let refused = kept.saturating_add(self.refused_more);
        let known = self.report.known;
        say(&format!(
            "{taken} taken{states}, {known} known, {refused} refused"
        ))?;
        for (name, why) in self.report.refused.iter().take(REFUSED_SHOWN_MAX) {
            say(&format!("refused {name}: {why}"))?;
        }
        let shown = u64::try_from(REFUSED_SHOWN_MAX).unwrap_or(u64::MAX);
        if refused > shown {
            say(&format!(
                "… and {} more refused; --json shows more",
                refused.saturating_sub(shown)
            ))?;
        }
        Ok(())
    }
}
