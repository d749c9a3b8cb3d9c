//! Turns the lines of a run in list mode into names, the text of a suffix list or proof, the reason
//! why there is none, or a fault.
//!
//! Takes lines of stdout, how the container ended and the gateway's account, and gives an
//! [`Outcome`], which holds no verdict. Rejects everything outside the order of list mode: `hello`,
//! `peers` or `suffix_lines` depending on the format, `listed` or `unlisted`, `done`. Events of a
//! check are a breach here, and these are a breach in a check. After the first breach nothing of
//! the run counts.

use std::collections::BTreeSet;

use protocol::container::{End, Killed};
use protocol::egress::{Account, Budget, FailedSide};
use protocol::limits::{
    EGRESS_BYTES_DOWN_MAX, PEERS_MAX, PROOF_TEXT_BYTES_MAX, SUFFIX_TEXT_BYTES_MAX, TEXT_BYTES_MAX,
};
use protocol::{
    Event, Host, ListFormat, ListOrder, ListOutcome, UnlistedReason, escaped, is_shown_safely,
};
use thiserror::Error;

use crate::check::Breach;
use crate::fault::ReportFault;
use crate::run::RunReport;

/// The events of a run, up to the first breach.
#[derive(Debug)]
pub struct ListReport {
    format: ListFormat,
    names_max: u64,
    progress: Progress,
    names_told: u64,
    /// The different names. The wire bounds them: [`PEERS_MAX`] names in 16 MiB of lines.
    names: BTreeSet<Host>,
    text: String,
    finding: Option<Finding>,
    breach: Option<Breach>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Nothing,
    Hello,
    Judged,
    Done,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Finding {
    Listed {
        outcome: ListOutcome,
        dropped: u64,
    },
    Unlisted {
        reason: UnlistedReason,
        status: Option<u16>,
        to: Option<String>,
    },
}

/// The result of a reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Names, at least one.
    Names(NamesRead),
    /// The whole text of a list of public suffixes, not yet examined.
    Suffixes(String),
    /// The whole text of a host's proof, perhaps empty, not yet examined.
    Proof(String),
    /// Nothing, because of the source.
    Unread(Unread),
}

/// A list that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamesRead {
    pub names: BTreeSet<Host>,
    /// Elements that were no name, as the checker counted them.
    pub dropped: u64,
    /// Whether it was read to its end.
    pub outcome: ListOutcome,
}

/// Why a source was not read this time. This proves nothing about the host as an instance.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unread {
    /// The reason that the checker reported.
    #[error("{}", words(*.reason, *.status, .to.as_deref()))]
    Unlisted {
        reason: UnlistedReason,
        /// HTTP status, if that was the reason.
        status: Option<u16>,
        to: Option<String>,
    },
    /// The list holds no name at all.
    #[error("it has no names ({dropped} other elements); is its format right?")]
    Empty {
        /// Elements that were no name.
        dropped: u64,
    },
    /// The text was not read to its end.
    #[error("it was not read to its end: it has more than {bytes_max} bytes, or is too slow")]
    Truncated {
        /// Most bytes of such a text.
        bytes_max: usize,
    },
    /// The answer was too large on the wire.
    #[error(
        "it takes more than {EGRESS_BYTES_DOWN_MAX} bytes on the wire; ask its owner for compression"
    )]
    TooLarge,
    /// The container printed something that list mode does not allow.
    #[error("the checker broke the rules of list mode: {0}")]
    Breach(Breach),
    /// The container printed too little, or did not use its egress socket as a checker does.
    #[error("the checker ended before the end of the list: {0}")]
    Ended(&'static str),
}

fn words(reason: UnlistedReason, status: Option<u16>, to: Option<&str>) -> String {
    let to = to.unwrap_or("nowhere");
    match (reason, status) {
        (UnlistedReason::Disallowed, _) => "robots.txt asks us not to read it".to_owned(),
        (UnlistedReason::RobotsUnavailable, Some(status)) => {
            format!("robots.txt answers {status}, so nothing else is requested this time")
        }
        (UnlistedReason::RobotsUnavailable, None) => {
            "robots.txt broke off, so nothing else is requested this time".to_owned()
        }
        (UnlistedReason::Status, status) => {
            format!("its host answers {}", status.unwrap_or_default())
        }
        (UnlistedReason::Elsewhere, _) => {
            format!("it redirects to {to}, which is not followed; enter the new address")
        }
        (UnlistedReason::BadRedirect, _) => format!("it redirects to {to}"),
        (UnlistedReason::RedirectLoop, _) => "it redirects in a loop".to_owned(),
        (UnlistedReason::Tls, _) => "the TLS handshake failed".to_owned(),
        (UnlistedReason::Http, _) => "the answer was not HTTP, or broke off".to_owned(),
        (UnlistedReason::Timeout, _) => "there was no answer in time".to_owned(),
        (UnlistedReason::Encoding, _) => {
            "the answer has an encoding that we did not offer".to_owned()
        }
        (UnlistedReason::NotAList, _) => "the answer is not a list of that format".to_owned(),
    }
}

impl RunReport for ListReport {
    fn has_begun(&self) -> bool {
        self.progress != Progress::Nothing
    }

    fn broken_by(&mut self, breach: Breach) {
        self.breach = Some(breach);
    }

    fn breach(&self) -> Option<&Breach> {
        self.breach.as_ref()
    }

    fn step(&mut self, event: Event) -> Result<(), Breach> {
        use Progress::{Done, Hello, Judged, Nothing};
        let text_bytes_max = text_bytes_max(self.format);
        match (self.progress, event) {
            (Nothing, Event::Hello { protocol, .. })
                if protocol == protocol::limits::PROTOCOL_VERSION =>
            {
                self.progress = Hello;
            }
            (Nothing, _) => return Err(Breach::NoHello),
            (Hello, Event::Peers { hosts }) if text_bytes_max == 0 => self.take_names(hosts)?,
            (Hello, Event::SuffixLines { lines }) if text_bytes_max > 0 => {
                self.take_lines(&lines, text_bytes_max)?;
            }
            (Hello, Event::Listed { outcome, dropped }) => {
                self.finding = Some(Finding::Listed { outcome, dropped });
                self.progress = Judged;
            }
            (Hello, Event::Unlisted { reason, status, to }) => {
                let to = to.map(harmless);
                self.finding = Some(Finding::Unlisted { reason, status, to });
                self.progress = Judged;
            }
            (Judged, Event::Done { .. }) => self.progress = Done,
            (Hello | Judged | Done, _) => return Err(Breach::OutOfOrder),
        }
        Ok(())
    }
}

impl ListReport {
    /// An empty report of a run for this order.
    pub fn new(order: &ListOrder) -> Self {
        Self {
            format: order.format,
            names_max: u64::from(order.names_max).min(PEERS_MAX),
            progress: Progress::Nothing,
            names_told: 0,
            names: BTreeSet::new(),
            text: String::new(),
            finding: None,
            breach: None,
        }
    }

    fn take_names(&mut self, hosts: Vec<Host>) -> Result<(), Breach> {
        let told = u64::try_from(hosts.len()).unwrap_or(u64::MAX);
        self.names_told = self.names_told.saturating_add(told);
        if self.names_told > self.names_max {
            return Err(Breach::OutOfBounds);
        }
        self.names.extend(hosts);
        Ok(())
    }

    fn take_lines(&mut self, lines: &[String], bytes_max: usize) -> Result<(), Breach> {
        for line in lines {
            let bytes = self.text.len().saturating_add(line.len());
            if bytes.saturating_add(1) > bytes_max {
                return Err(Breach::OutOfBounds);
            }
            self.text.push_str(line);
            self.text.push('\n');
        }
        Ok(())
    }
}

/// The result of a run, from its events, how the container ended (`None` if we ended it for a
/// breach), and the gateway's account.
///
/// # Errors
/// A fault, if one of the three shows that the failure was ours. Nothing of the reading is kept
/// then.
pub fn conclude(
    report: ListReport,
    end: Option<End>,
    account: &Account,
    stderr: &str,
) -> Result<Outcome, ReportFault> {
    if report.progress == Progress::Nothing {
        return Err(ReportFault::NoHello {
            exit_code: end.map_or(0, |end| end.exit_code),
            stderr: stderr.to_owned(),
        });
    }
    if let Some(breach) = report.breach {
        return Ok(Outcome::Unread(Unread::Breach(breach)));
    }
    let is_listed = matches!(report.finding, Some(Finding::Listed { .. }));
    if !is_listed && (!account.up || account.failed == FailedSide::Gateway) {
        return Err(ReportFault::NetworkLost);
    }
    let unread = |unread| Ok(Outcome::Unread(unread));
    match report.finding {
        None if end.is_some_and(|end| end.exit_code == 0) => Err(ReportFault::OutputLost),
        None => unread(Unread::Ended(how(end))),
        Some(_) if account.sni_refused > 0 => {
            unread(Unread::Ended("it asked for another host, or without TLS"))
        }
        Some(Finding::Unlisted { .. }) if account.budget_hit == Some(Budget::Bytes) => {
            unread(Unread::TooLarge)
        }
        Some(Finding::Unlisted { reason, status, to }) => {
            unread(Unread::Unlisted { reason, status, to })
        }
        Some(Finding::Listed { .. }) if account.connections == 0 => Err(ReportFault::NoConnection),
        Some(Finding::Listed { outcome, dropped }) => Ok(match (report.format, outcome) {
            (ListFormat::Suffixes, ListOutcome::Complete) => Outcome::Suffixes(report.text),
            (ListFormat::Proof, ListOutcome::Complete) => Outcome::Proof(report.text),
            (ListFormat::Suffixes | ListFormat::Proof, ListOutcome::Truncated) => {
                Outcome::Unread(Unread::Truncated {
                    bytes_max: text_bytes_max(report.format),
                })
            }
            (_, _) if report.names.is_empty() => Outcome::Unread(Unread::Empty { dropped }),
            (
                ListFormat::Lines | ListFormat::Json | ListFormat::Ndjson | ListFormat::Csv,
                outcome,
            ) => Outcome::Names(NamesRead {
                names: report.names,
                dropped,
                outcome,
            }),
        }),
    }
}

/// Most bytes of the text that a run passes on, line ends included; 0 for formats that hold names.
fn text_bytes_max(format: ListFormat) -> usize {
    match format {
        ListFormat::Suffixes => SUFFIX_TEXT_BYTES_MAX,
        ListFormat::Proof => PROOF_TEXT_BYTES_MAX,
        ListFormat::Lines | ListFormat::Json | ListFormat::Ndjson | ListFormat::Csv => 0,
    }
}

fn how(end: Option<End>) -> &'static str {
    match end {
        Some(End {
            out_of_memory: true,
            ..
        }) => "out of memory",
        Some(End {
            killed: Some(Killed::Deadline),
            ..
        }) => "at its deadline",
        Some(_) | None => "it crashed",
    }
}

/// A checker escapes a host's texts. A compromised one may not.
fn harmless(text: String) -> String {
    if is_shown_safely(&text) {
        text
    } else {
        escaped(text.as_bytes(), TEXT_BYTES_MAX)
    }
}

#[cfg(test)]
mod tests;
