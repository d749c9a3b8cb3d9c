//! `status --hosts`, and hosts as people paste them.

use std::io::Write;

use census::state::Record;
use census::transition::Entry;
use protocol::Host;
use serde::Serialize;

use crate::cli::OK;
use crate::config::Config;
use crate::inspect::explain::bare_reason;
use crate::inspect::state_word;

/// Width of the column of hosts. Few names are longer, and those push the rest of their line.
const HOST_COLUMN: usize = 32;

/// Which hosts are listed; `None` is all.
#[derive(Debug, Default)]
pub(in crate::cli) struct Wanted {
    pub(in crate::cli) state: Option<String>,
    pub(in crate::cli) software: Option<String>,
}

impl Wanted {
    fn takes(&self, record: &Record) -> bool {
        let state = self.state.as_deref();
        let software = self.software.as_deref();
        let name = record.state.name();
        state.is_none_or(|state| [name.as_str(), name.for_people()].contains(&state))
            && software.is_none_or(|software| record.instance.software.as_deref() == Some(software))
    }
}

#[derive(Serialize)]
struct Row {
    host: Host,
    state: &'static str,
    verdict: Option<String>,
    /// Reason of `dead`, in the wire's word.
    reason: Option<String>,
    /// The reason with all that was stored with it.
    detail: Option<String>,
    software: Option<String>,
    /// NodeInfo's `openRegistrations`. `None` if it did not say.
    open_registrations: Option<bool>,
    hidden: bool,
}

impl Row {
    fn new(record: &Record, last: Option<&Entry>) -> Self {
        Self {
            host: record.host.clone(),
            state: record.state.name().as_str(),
            verdict: last.map(|entry| entry.verdict.clone()),
            reason: last.and_then(bare_reason),
            detail: last.and_then(|entry| entry.reason.clone()),
            software: record.instance.software.clone(),
            open_registrations: record.instance.open_registrations,
            hidden: record.hidden,
        }
    }

    fn text(&self) -> String {
        let dash = "-".to_owned();
        let software = self.software.as_ref().unwrap_or(&dash);
        let verdict = match (&self.verdict, &self.reason) {
            (Some(verdict), Some(reason)) if verdict == "dead" => format!("dead: {reason}"),
            (Some(verdict), _) => verdict.clone(),
            (None, _) => dash.clone(),
        };
        let hidden = if self.hidden { "  hidden" } else { "" };
        format!(
            "{:<HOST_COLUMN$} {:<20} {software:<16} {verdict}{hidden}",
            self.host.as_str(),
            state_word(self.state),
        )
    }
}

/// Writes row by row, since all hosts together may not fit into memory.
pub(in crate::cli) fn show(config: &Config, wanted: &Wanted, json: bool) -> anyhow::Result<u8> {
    let reader = store::open_read_only(&config.database())?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let (mut first, between, end) = match json {
        true => ("[\n", ",\n", "\n]\n"),
        false => ("", "\n", "\n"),
    };
    let mut failed = None;
    let mut is_empty = true;
    reader.each(|record, last| {
        if !wanted.takes(record) {
            return;
        }
        let row = Row::new(record, last);
        let row = match json {
            true => serde_json::to_string(&row).map_err(anyhow::Error::from),
            false => Ok(row.text()),
        };
        let written = row.and_then(|row| Ok(write!(out, "{first}{row}")?));
        failed = failed.take().or(written.err());
        (first, is_empty) = (between, false);
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    match (is_empty, json) {
        (true, true) => writeln!(out, "[]")?,
        (true, false) => writeln!(out, "no host")?,
        (false, _) => write!(out, "{end}")?,
    }
    Ok(OK)
}
